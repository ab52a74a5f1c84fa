"""Rows that a host shows whole at every step, and what each may go on with.

transformers and Outlines hand a logits processor all token ids so far and nothing else: beams change places between
steps, finished rows are padded, and nobody says where a generation begins. A row's matcher is found by its history.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from constrained.automaton import BatchMatcher, CompiledGrammar, Matcher
from constrained.errors import ConstrainedError


class Rows:
    """The matchers of a batch, found again at every step by the rows' token histories.

    Parameters
    ----------
    grammar : CompiledGrammar or sequence of CompiledGrammar
        One for all rows, or one a prompt: where a prompt has several rows (beams, several answers), its grammar is
        for all of them.
    max_new_tokens : int, optional
        Every text is whole within so many tokens, the end-of-text token not counted.
    begun : str
        Text of the grammar that the prompts end with; the rows go on after it.
    prompt_length : int, optional
        Columns before the first generated token; default: the columns of the first step.
    num_beams : int
        More than 1: rows whose token was not allowed are beams that nothing was left for, not errors.
    assisted : bool
        The rows show drafts, too, which may hold any token and are taken back.

    Raises
    ------
    ConstrainedError
        No grammar, a number out of range, or (`VocabularyError`) a budget below the shortest text.
    """

    def __init__(
        self,
        grammar: CompiledGrammar | Sequence[CompiledGrammar],
        *,
        max_new_tokens: int | None = None,
        begun: str = "",
        prompt_length: int | None = None,
        num_beams: int = 1,
        assisted: bool = False,
    ):
        grammars = [grammar] if isinstance(grammar, CompiledGrammar) else list(grammar)
        if not grammars or not all(isinstance(g, CompiledGrammar) for g in grammars):
            raise ConstrainedError(
                "a processor needs a compiled grammar, or one for each prompt",
                "pass compile_grammar(grammar, vocabulary)",
            )
        for name, value in (("max_new_tokens", max_new_tokens), ("num_beams", num_beams)):
            if value is not None and value < 1:
                raise ConstrainedError(f"{name} is {value}", "use 1 or more")
        self.vocabulary = grammars[0].vocabulary
        self._starts = [g.matcher(begun) for g in grammars]
        for start in self._starts:
            start.set_budget(max_new_tokens)
        self._limit = max_new_tokens
        self._prompt_length = prompt_length
        self._beams = num_beams > 1
        self._assisted = assisted
        self.reset()

    def reset(self) -> None:
        """Forget the rows: the next step is the first of a new generation."""
        self.batch = BatchMatcher()
        self._ids: np.ndarray | None = None  # the last step's rows
        self._begin = 0  # columns before the first generated token
        self._dead = np.zeros(0, bool)  # beams that nothing was left for, and drafts past a forbidden token

    def follow(self, ids: np.ndarray) -> BatchMatcher:
        """Read what the rows have come to.

        Parameters
        ----------
        ids : ndarray of int, shape [rows, length]
            Prompts and what has been generated; what follows a row's end-of-text token is not looked at.

        Returns
        -------
        BatchMatcher
            A matcher for each row, in order.

        Raises
        ------
        ConstrainedError
            A token was not allowed, or the rows are not a multiple of the grammars.
        """
        if self._is_new(ids):
            self._start(ids)
        elif not (ids.shape[1] == self._ids.shape[1] + 1 and self._step(ids)):
            self._start(ids, self._begin)
        self._ids = ids.copy()  # the host may write its next step into the same memory
        return self.batch

    def fill(self, mask: np.ndarray) -> None:
        """Write what each row allows into ``mask``, int32 ``[rows, words]``.

        A dead beam allows nothing. After a forbidden token of a draft all is allowed, for it is thrown away.
        """
        self.batch.fill_bitmask(mask)
        if self._dead.any():
            mask[: len(self._dead)][self._dead] = -1 if self._assisted else 0

    def check_choice(self, best: np.ndarray) -> None:
        """Refuse to go on where others have forbidden all that the grammar allows: a host would take just anything.

        Parameters
        ----------
        best : ndarray of float, shape [rows]
            Each row's highest score under its mask.

        Raises
        ------
        ConstrainedError
        """
        stuck = np.flatnonzero(np.isneginf(best) & ~self._dead)
        if len(stuck):
            raise ConstrainedError(
                f"row {stuck[0]}: every token that the grammar allows here has been forbidden before",
                "leave out what forbids tokens, too, such as min_new_tokens, bad_words_ids or suppress_tokens",
            )

    def _is_new(self, ids: np.ndarray) -> bool:
        """Whether these rows can't be what comes after the last step's."""
        last = self._ids
        rows, length = ids.shape
        if last is None or rows != len(last) or not self._begin < length <= last.shape[1] + 1:
            return True
        if not np.array_equal(ids[:, : self._begin], last[:, : self._begin]):
            return True
        if self._assisted:
            return False
        if self._limit is not None and length - self._begin >= self._limit:
            return True  # every text is whole, so no host asks again
        return not self._beams and all(matcher.is_terminated for matcher in self.batch)

    def _start(self, ids: np.ndarray, begin: int | None = None) -> None:
        rows, length = ids.shape
        share, rest = divmod(rows, len(self._starts))
        if rest or not rows:
            raise ConstrainedError(
                f"{rows} rows for {len(self._starts)} grammars",
                "pass one grammar for all prompts, or as many as there are prompts in the batch",
            )
        first = length if self._prompt_length is None else self._prompt_length
        self._begin = first if begin is None else begin
        if self._begin > length:
            raise ConstrainedError(f"prompt_length is {self._begin}, but the rows have only {length} tokens")
        self.batch = BatchMatcher(self._starts[row // share].copy() for row in range(rows))
        self._dead = np.zeros(rows, bool)
        for column in range(self._begin, length):
            self._advance(ids[:, column], column)

    def _step(self, ids: np.ndarray) -> bool:
        """Go on from the last step's rows, wherever they stand now; False if some were not among them."""
        last = self._ids
        if not np.array_equal(ids[:, :-1], last):
            share = len(ids) // len(self._starts)
            # Rows of equal tokens under the same grammar are in the same state: any of them will do.
            places = {(row // share, last[row].tobytes()): row for row in range(len(last))}
            parents = [places.get((row // share, ids[row, :-1].tobytes())) for row in range(len(ids))]
            if None in parents:
                return False
            self.batch.reorder(parents)
            self._dead = self._dead[parents]
        self._advance(ids[:, -1], ids.shape[1] - 1)
        return True

    def _advance(self, tokens: np.ndarray, column: int) -> None:
        matchers = self.batch
        over = [dead or matcher.is_terminated for dead, matcher in zip(self._dead, matchers)]
        read = matchers.advance([None if done else int(token) for done, token in zip(over, tokens)])
        for row, allowed in enumerate(read):
            if allowed:
                continue
            if not (self._beams or self._assisted):
                raise not_allowed(matchers[row], int(tokens[row]), f"row {row}, token {column - self._begin + 1}")
            self._dead[row] = True


def not_allowed(matcher, token: int, place: str) -> ConstrainedError:
    """The error for a token that the host took although the mask forbade it, or that is not the grammar's."""
    tokens = matcher.compiled.vocabulary.tokens
    text = f" {tokens[token]!r}" if 0 <= token < len(tokens) else ""
    allowed = matcher.allowed_token_ids()
    some = ", ".join(repr(tokens[i]) if i < len(tokens) else str(i) for i in allowed[:5])
    more = f" and {len(allowed) - 5} more" if len(allowed) > 5 else ""
    return ConstrainedError(
        f"{place}: token {token}{text} is not allowed here; allowed: {some}{more}",
        "the processor must be the last to forbid tokens; call reset() before it serves another generation; "
        "with beams, pass num_beams; with drafts, assisted=True",
    )


class Follower:
    """Reads what is new in a request's generated tokens, and takes back what the host took back.

    Parameters
    ----------
    matcher : Matcher
        At the request's beginning; taken over.
    """

    __slots__ = ("matcher", "read")

    def __init__(self, matcher: Matcher):
        self.matcher = matcher
        self.read: list[int] = []

    def follow(self, tokens: Sequence[int]) -> int | None:
        """Read up to the end of `tokens`, all that has been generated so far.

        Returns
        -------
        int or None
            The place of the first token that is not allowed, where reading stopped; None if there is none.
        """
        kept = len(self.read)
        if self.read != list(tokens[:kept]):
            kept = next((i for i, (a, b) in enumerate(zip(self.read, tokens)) if a != b), min(kept, len(tokens)))
            self.matcher.rollback(len(self.read) - kept)
            del self.read[kept:]
        for token in tokens[kept:]:
            if not self.matcher.advance(token):
                return len(self.read)
            self.read.append(token)
        return None
