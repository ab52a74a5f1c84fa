"""For `transformers`: `model.generate(..., logits_processor=[ConstrainedLogitsProcessor(compiled)])`.

transformers and Outlines hand a logits processor all token ids so far and nothing else: beams change places between
steps, finished rows are padded, and nothing says where a generation begins. A row's matcher is found by its history.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import LogitsProcessor

from constrained.automaton import BatchMatcher, CompiledGrammar, Matcher
from constrained.automaton.refused import not_compiled
from constrained.decoding import bitmask
from constrained.errors import ConstrainedError


class ConstrainedLogitsProcessor(LogitsProcessor):
    """Keeps every row of `generate` inside its grammar: greedy, sampling, beams, several answers a prompt.

    transformers applies it before temperature, top-k and top-p, so these choose among the allowed tokens. A row that
    has ended may only repeat an end-of-text token, until the batch is done. Columns of the logits beyond the
    vocabulary are never allowed.

    A processor serves one generation at a time. It notices by itself when another begins, except where that continues
    exactly where the last was cut off, or had used up `max_new_tokens`: there call `reset`.

    Parameters
    ----------
    grammar : CompiledGrammar or sequence of CompiledGrammar
        One for all prompts, or one for each; beams and several answers have that of their prompt.
    max_new_tokens : int, optional
        The number given to `generate`: every text is then whole within it, and after it may only end. Without it a
        text may be cut off.
    begun : str
        Beginning of the grammar's text that the prompts end with; generation continues after it.
    prompt_length : int, optional
        Columns of the prompts, padding included; default: those of the first step.
    num_beams : int
        The number given to `generate`. Where a grammar has fewer continuations than there are beams, transformers
        fills the others with sequences of score minus infinity; these rows allow nothing.
    assisted : bool
        `generate` is given an `assistant_model` or `prompt_lookup_num_tokens`: it shows drafts, and takes back what
        the model wouldn't have written. Every generation then needs a processor of its own, or `reset`.

    Raises
    ------
    ConstrainedError
        A number out of range, or (`VocabularyError`) a budget below the shortest text.

    Notes
    -----
    A step costs one read of the ids, one copy of the masks (rows × vocabulary bits) to the logits' device, one masked
    fill, and one pass over the result. On a GPU `generate` itself waits for the device once a step, to see which rows
    have ended.
    """

    supports_continuous_batching = False  # see hf_continuous

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
        grammars: list[Any] = list(grammar) if isinstance(grammar, (list, tuple)) else [grammar]
        if wrong := [item for item in grammars or [None] if not isinstance(item, CompiledGrammar)]:
            raise not_compiled(wrong[0])
        for name, value in (("max_new_tokens", max_new_tokens), ("num_beams", num_beams)):
            if value is not None and value < 1:
                raise ConstrainedError(f"{name} is {value}", "use 1 or more")
        self.vocabulary = grammars[0].vocabulary
        self.starts = [g.matcher(begun) for g in grammars]
        for start in self.starts:
            start.set_budget(max_new_tokens)
        self._prompt_length = prompt_length
        self._beams = num_beams > 1
        self._assisted = assisted
        self.reset()

    def reset(self) -> None:
        """Forget the generation so far: the next call begins a new one."""
        self.batch = BatchMatcher()
        self._last = np.zeros((0, 0), np.int64)  # the last step's rows
        self._begin = 0  # columns before the first generated token
        self._dead = np.zeros(0, bool)  # beams without continuations, and drafts past a forbidden token

    def follow(self, ids: np.ndarray) -> BatchMatcher:
        """Read the new tokens; return a matcher for each row, in order.

        `ids` are int ``[rows, length]``: prompts and what has been generated. What follows a row's end-of-text token is
        ignored. Raises ConstrainedError: a token was not allowed, or the rows are not a multiple of the grammars.
        """
        if self._is_new(ids):
            self._start(ids)
        elif not (ids.shape[1] == self._last.shape[1] + 1 and self._step(ids)):
            self._start(ids, self._begin)
        self._last = ids.copy()  # the host may write its next step into the same memory
        return self.batch

    def fill(self, mask: np.ndarray) -> None:
        """Write what each row allows into ``mask``, int32 ``[rows, words]``.

        A dead beam allows nothing; after a forbidden token of a draft everything is allowed, for it is thrown away.
        """
        self.batch.fill_bitmask(mask)
        if self._dead.any():
            mask[: len(self._dead)][self._dead] = -1 if self._assisted else 0

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.Tensor:
        """Set the scores of tokens that aren't allowed to minus infinity, in a copy.

        Parameters
        ----------
        input_ids : torch.LongTensor
            ``[rows, length]``: prompts and generated tokens.
        scores : torch.FloatTensor
            ``[rows, width]``.

        Raises
        ------
        ConstrainedError
            A row took a token that was not allowed, others have forbidden all that are, or (`VocabularyError`) the
            logits are narrower than the vocabulary.
        """
        bitmask.check_width(self.vocabulary, scores.shape[1])
        self.follow(input_ids.cpu().numpy())
        mask = bitmask.filled((len(scores), self.vocabulary.words), scores.device, self.fill)
        out = bitmask.apply(scores.clone(), mask)
        best = out.amax(dim=1).float().cpu().numpy()
        stuck = np.flatnonzero(np.isneginf(best) & ~self._dead)
        if len(stuck):
            raise ConstrainedError(
                f"row {stuck[0]}: every token that the grammar allows here has been forbidden before",
                "leave out what forbids tokens, too, such as min_new_tokens, bad_words_ids or suppress_tokens",
            )
        return out

    def _is_new(self, ids: np.ndarray) -> bool:
        """Whether these rows can't continue the last step's."""
        # A continuation has as many rows, at most one more column, and the same prompts.
        last = self._last
        rows, length = ids.shape
        if rows != len(last) or not self._begin < length <= last.shape[1] + 1:
            return True
        if not np.array_equal(ids[:, : self._begin], last[:, : self._begin]):
            return True
        if self._assisted:
            return False
        return not self._beams and all(matcher.is_terminated for matcher in self.batch)

    def _start(self, ids: np.ndarray, begin: int | None = None) -> None:
        rows, length = ids.shape
        share, rest = divmod(rows, len(self.starts))
        if rest or not rows:
            raise ConstrainedError(
                f"{rows} rows for {len(self.starts)} grammars",
                "pass one grammar for all prompts, or as many as there are prompts in the batch",
            )
        first = length if self._prompt_length is None else self._prompt_length
        self._begin = first if begin is None else begin
        if self._begin > length:
            raise ConstrainedError(f"prompt_length is {self._begin}, but the rows have only {length} tokens")
        self.batch = BatchMatcher(self.starts[row // share].copy() for row in range(rows))
        self._dead = np.zeros(rows, bool)
        for column in range(self._begin, length):
            self._advance(ids[:, column], column)

    def _step(self, ids: np.ndarray) -> bool:
        """Continue the last step's rows, which may be in another order; return False if one was not among them."""
        last = self._last
        if not np.array_equal(ids[:, :-1], last):
            share = len(ids) // len(self.starts)
            # Rows of equal tokens under the same grammar are in the same state: any of them will do.
            rows = {(row // share, last[row].tobytes()): row for row in range(len(last))}
            try:
                parents = [rows[row // share, ids[row, :-1].tobytes()] for row in range(len(ids))]
            except KeyError:
                return False
            self.batch.reorder(parents)
            self._dead = self._dead[parents]
        self._advance(ids[:, -1], ids.shape[1] - 1)
        return True

    def _advance(self, tokens: np.ndarray, column: int) -> None:
        # The host pads finished rows and may go on writing in dead ones: the matchers of both read nothing more.
        matchers = self.batch
        over = [dead or matcher.is_terminated for dead, matcher in zip(self._dead, matchers)]
        read = matchers.advance([None if done else int(token) for done, token in zip(over, tokens)])
        for row, allowed in enumerate(read):
            if allowed:
                continue
            if not (self._beams or self._assisted):
                raise not_allowed(matchers[row], int(tokens[row]), f"row {row}, token {column - self._begin + 1}")
            self._dead[row] = True


def not_allowed(matcher: Matcher, token: int, where: str) -> ConstrainedError:
    """The error for a token that the host took although the mask forbade it, or that isn't the grammar's."""
    tokens = matcher.compiled.vocabulary.tokens
    text = f" {tokens[token]!r}" if 0 <= token < len(tokens) else ""
    allowed = matcher.allowed_token_ids()
    some = ", ".join(repr(tokens[i]) if i < len(tokens) else str(i) for i in allowed[:5])
    more = f" and {len(allowed) - 5} more" if len(allowed) > 5 else ""
    return ConstrainedError(
        f"{where}: token {token}{text} is not allowed here; allowed: {some}{more}",
        "the processor must be the last to forbid tokens; call reset() before it serves another generation; "
        "with beams, pass num_beams; with drafts, assisted=True",
    )
