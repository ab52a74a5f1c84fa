"""A matcher for many texts at once: each row has its own grammar and state; one call masks all rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from constrained.arguments import SEVERAL, WHOLE, checked
from constrained.automaton import native
from constrained.automaton.matcher import Matcher
from constrained.automaton.refused import not_pickled
from constrained.errors import VocabularyError

THREADED = 512
"""Rows from which threads are used: to wake one takes as long as to fill some hundred."""


class BatchMatcher:
    """Matchers of several texts over one vocabulary; each row follows one text in its own grammar.

    Rows may be added and removed at any time. A row's number is that of its mask row:
    ``0 … len(batch) - 1``.

    Parameters
    ----------
    matchers : iterable of Matcher
        They are not copied: to advance one elsewhere is to advance the row.
    threads : int, 1 to 64
        Fill the batch's own mask on so many cores, without the GIL, where it has `THREADED` rows or more: fewer are
        quicker on one. What a text reaches for the first time is still computed by one of them.

    Raises
    ------
    VocabularyError
        Two rows' vocabularies differ.
    ValueError
        `threads` is out of range.
    """

    @checked(matchers=SEVERAL, threads=WHOLE)
    def __init__(self, matchers: Iterable[Matcher] = (), *, threads: int = 1):
        if not 1 <= threads <= 64:
            raise ValueError(f"{threads} threads: 1 to 64 can fill a mask")
        self.threads = threads
        self._rows: list[Matcher] = []
        self._buffer: Any = None  # the kernel's mask buffer, which also notes whose rows it contains
        self._mask: np.ndarray | None = None  # what `fill_bitmask` returns if the caller passes no mask
        for matcher in matchers:
            self.add(matcher)

    def __copy__(self) -> BatchMatcher:
        return BatchMatcher(self._rows, threads=self.threads)

    def __deepcopy__(self, memo: dict) -> BatchMatcher:
        return BatchMatcher([matcher.copy() for matcher in self._rows], threads=self.threads)

    def __reduce__(self):
        raise not_pickled(
            "a batch of matchers", "pickle each row's `compiled` and tokens, and advance new matchers by them"
        )

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"BatchMatcher([{', '.join(map(repr, self._rows))}])"

    def __getitem__(self, row: int) -> Matcher:
        return self._rows[row]

    def __iter__(self) -> Iterator[Matcher]:
        return iter(self._rows)

    def add(self, matcher: Matcher) -> int:
        """Append a row, and return its number."""
        if self._rows:
            mine, other = self._rows[0].compiled.vocabulary, matcher.compiled.vocabulary
            if mine is not other and mine.fingerprint != other.fingerprint:
                raise VocabularyError(
                    "the rows of a batch must share one vocabulary",
                    hint="compile all grammars with the same Vocabulary object",
                )
        self._rows.append(matcher)
        return len(self._rows) - 1

    def remove(self, row: int) -> Matcher:
        """Remove a row; the numbers of the rows after it decrease by one."""
        return self._rows.pop(row)

    def swap(self, row: int, other: int) -> None:
        """Exchange two rows."""
        rows = self._rows
        rows[row], rows[other] = rows[other], rows[row]

    def reorder(self, rows: Sequence[int]) -> None:
        """Make the rows independent copies of `rows`, in that order: the fork of a beam search.

        A row named once is kept as it is; one named again is copied; one not named is dropped.
        """
        taken: set[int] = set()
        out = []
        for row in rows:
            row = range(len(self._rows))[row]
            out.append(self._rows[row].copy() if row in taken else self._rows[row])
            taken.add(row)
        self._rows = out

    def copy(self) -> BatchMatcher:
        """An independent copy, whose rows are in the same states."""
        return BatchMatcher((matcher.copy() for matcher in self._rows), threads=self.threads)

    def fill_bitmask(self, mask: np.ndarray | None = None) -> np.ndarray:
        """Write the mask of each row.

        Parameters
        ----------
        mask : ndarray of int32, shape [>= rows, >= words], optional
            Row ``i`` gets matcher ``i``'s mask. Default: the batch's own, valid until the
            next call and not to be written: only what changed in a row is written again.

        Returns
        -------
        ndarray of int32, shape [rows, words]
        """
        rows = len(self._rows)
        if mask is None:
            mask = self._own_mask()
            if self._buffer is not None:
                for row in self._buffer.fill(self._rows, self.threads if rows >= THREADED else 1):
                    self._rows[row]._fill_row(mask[row])
                return mask[:rows]
        for row, matcher in enumerate(self._rows):
            matcher.fill_bitmask(mask, row)
        return mask[:rows]

    def _own_mask(self) -> np.ndarray:
        rows, kernel = len(self._rows), native.kernel
        words = self._rows[0].compiled.vocabulary.words if rows else 1
        if self._mask is None or self._mask.shape[0] < rows or self._mask.shape[1] != words:
            if kernel is not None and all(isinstance(matcher, kernel.Core) for matcher in self._rows):
                self._buffer = kernel.Rows(rows, words)
                self._mask = np.asarray(self._buffer)
            else:
                self._buffer, self._mask = None, np.zeros((rows, words), np.int32)
        return self._mask

    def advance(self, token_ids: Sequence[int | None]) -> list[bool]:
        """Read one token in each row.

        Parameters
        ----------
        token_ids : sequence of int or None, one a row
            None or a negative number leaves the row as it is.

        Returns
        -------
        list of bool
            False where the token was not allowed (that row has not changed).
        """
        if len(token_ids) != len(self._rows):
            raise ValueError(f"{len(token_ids)} tokens for {len(self._rows)} rows")
        return [token is None or token < 0 or matcher.advance(token) for matcher, token in zip(self._rows, token_ids)]

    def rollback(self, tokens: int | Sequence[int]) -> None:
        """Undo the last `tokens` tokens of every row; a sequence gives each row's own number."""
        counts = [tokens] * len(self._rows) if isinstance(tokens, int) else tokens
        for matcher, count in zip(self._rows, counts, strict=True):
            matcher.rollback(count)
