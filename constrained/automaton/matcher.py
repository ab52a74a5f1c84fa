"""`compile_grammar` and the matcher: one text being written, token by token."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from constrained.automaton.budget import Budget
from constrained.automaton.masks import Masks
from constrained.automaton.state import State
from constrained.automaton.vocabulary import Vocabulary
from constrained.errors import GrammarError, VocabularyError
from constrained.grammar.grammar import Grammar


def compile_grammar(grammar: Grammar, vocabulary: Vocabulary) -> CompiledGrammar:
    """`grammar` over `vocabulary`; lazy, so it costs microseconds.

    Raises
    ------
    GrammarError
        A slot is unbound.
    VocabularyError
        The vocabulary can't spell any text of the grammar.
    """
    return CompiledGrammar(grammar, vocabulary)


class CompiledGrammar:
    """A grammar's masks over a vocabulary, filled as matchers visit them."""

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary):
        self.grammar = grammar
        self.vocabulary = vocabulary
        self.automaton = grammar.automaton
        self.masks = Masks(self.automaton, vocabulary)
        self.budget = Budget(self.masks)
        if self.budget.needed and self.budget.fewest(self.automaton.start) is None:
            raise VocabularyError(
                "no text of the grammar can be written with this vocabulary's tokens",
                hint="it lacks single-byte tokens that the grammar needs",
            )

    def matcher(self, begun: str | bytes = b"") -> Matcher:
        """A matcher at the beginning of a text, or after its first part `begun`.

        Raises
        ------
        GrammarError
            No text of the grammar begins so.
        """
        return Matcher(self, begun.encode() if isinstance(begun, str) else begun)


class Matcher:
    """Follows one text; says which tokens may come next.

    The masks are sound (a sequence of allowed tokens can always be finished) and complete
    (every way to cut an accepted text into tokens is allowed).
    """

    __slots__ = ("compiled", "state", "_start", "_ended", "_left", "_history")

    def __init__(self, compiled: CompiledGrammar, begun: bytes = b""):
        self.compiled = compiled
        start = compiled.automaton.read(begun)
        if start is None:
            raise GrammarError(f"no text of the grammar begins with {begun!r}")
        self._start: State = start
        self.reset()

    def reset(self) -> None:
        """Back to the beginning, without a budget."""
        self.state: State = self._start
        self._ended = False
        self._left: int | None = None
        self._history: list[tuple] = []

    def copy(self) -> Matcher:
        """An independent matcher at the same place."""
        other = Matcher.__new__(Matcher)
        other.compiled, other.state, other._ended = self.compiled, self.state, self._ended
        other._start = self._start
        other._left, other._history = self._left, list(self._history)
        return other

    @property
    def is_complete(self) -> bool:
        """The text so far is in the language."""
        return self.state.accepting

    @property
    def is_terminated(self) -> bool:
        """An EOS token has been read."""
        return self._ended

    def set_budget(self, tokens: int | None) -> None:
        """From here on allow only tokens that leave a way to finish within `tokens`.

        The EOS token itself is not counted: after `tokens` tokens the text is whole. The
        fewest tokens to the end are exact where the search for them is small, else an
        upper bound, so a budget near the minimum may rule out a longer detour that would
        still have fitted, but never leads to an unfinished text.

        Raises
        ------
        VocabularyError
            Not even the shortest way to finish fits.
        """
        if tokens is not None:
            need = self.compiled.budget.fewest(self.state)
            if need is None or need > tokens:
                raise VocabularyError(
                    f"a budget of {tokens} tokens is too small: the shortest way to finish takes {need}",
                    hint="raise max_new_tokens",
                )
        self._left = tokens

    def allowed_token_ids(self) -> np.ndarray:
        """Ids that may come next, int32, ascending; with the EOS ids exactly when complete."""
        eos = np.array(self.compiled.vocabulary.eos_token_ids, np.int32)
        if self._ended:
            return eos
        ids = self.compiled.masks.token_ids(self.state)
        if self._filtered():
            ids = self.compiled.budget.filter(self.state, ids, self._left)
        if not self.state.accepting:
            return ids.copy()
        return np.union1d(ids, eos).astype(np.int32)

    def fill_bitmask(self, mask: np.ndarray, row: int = 0) -> None:
        """Write the allowed tokens into ``mask[row]``.

        Parameters
        ----------
        mask : ndarray or torch.Tensor of int32, shape [rows, >= ceil(size / 32)]
            Bit ``i % 32`` of word ``i // 32`` is 1 if token ``i`` is allowed; words beyond
            the vocabulary are cleared.
        """
        if not isinstance(mask, np.ndarray):
            mask = mask.numpy()
        vocabulary = self.compiled.vocabulary
        if mask.dtype != np.int32 or mask.ndim != 2 or mask.shape[1] < vocabulary.words:
            raise VocabularyError(
                f"mask of shape {mask.shape} and dtype {mask.dtype}; "
                f"needs int32 [rows, {vocabulary.words}]"
            )
        target = mask[row]
        target[vocabulary.words :] = 0
        target = target[: vocabulary.words]
        if self._ended or self._filtered():
            target[:] = vocabulary.pack(self.allowed_token_ids())
            return
        target[:] = self.compiled.masks.row(self.state)
        if self.state.accepting:
            for token in vocabulary.eos_token_ids:
                target.view(np.uint32)[token >> 5] |= np.uint32(1 << (token & 31))

    def _filtered(self) -> bool:
        budget = self.compiled.budget
        return budget.needed or (self._left is not None and self._left <= budget.horizon(self.state))

    def advance(self, token_id: int) -> bool:
        """Read a token; False, and nothing changed, if it is not allowed."""
        vocabulary = self.compiled.vocabulary
        token_id = int(token_id)
        if token_id in vocabulary.eos_token_ids:
            if not self.state.accepting:
                return False
            self._history.append((self.state, self._ended, self._left))
            self._ended = True
            return True
        if self._ended or not 0 <= token_id < len(vocabulary.tokens):
            return False
        data = vocabulary.tokens[token_id]
        if not data or token_id in vocabulary.special_set:
            return False
        after = self.state.read(data)
        if after is None:
            return False
        left = None if self._left is None else self._left - 1
        if self._filtered() and not self.compiled.budget.fits(after, left):
            return False
        self._history.append((self.state, self._ended, self._left))
        self.state, self._left = after, left
        return True

    def accepts(self, token_ids: Iterable[int]) -> int:
        """How many tokens of a draft, in order, are allowed; nothing changes."""
        count = 0
        for token in token_ids:
            if not self.advance(token):
                break
            count += 1
        self.rollback(count)
        return count

    def fill_draft(self, mask: np.ndarray, token_ids: Sequence[int], row: int = 0) -> int:
        """Masks all along a draft (speculative decoding), in one call; nothing changes.

        ``mask[row + i]`` gets what may come after the first `i` tokens, up to and with the
        first that is not allowed.

        Returns
        -------
        int
            How many tokens of the draft, in order, are allowed.
        """
        count = 0
        self.fill_bitmask(mask, row)
        for token in token_ids:
            if not self.advance(token):
                break
            count += 1
            self.fill_bitmask(mask, row + count)
        self.rollback(count)
        return count

    def rollback(self, tokens: int = 1) -> None:
        """Take back the last `tokens` tokens.

        Raises
        ------
        ValueError
            More than have been read.
        """
        if tokens < 0 or tokens > len(self._history):
            raise ValueError(f"can't take back {tokens} tokens of {len(self._history)}")
        if tokens:
            self.state, self._ended, self._left = self._history[-tokens]
            del self._history[-tokens:]

    def forced_text(self) -> bytes:
        """The bytes that must come next whatever the model says; empty where it may choose."""
        return b"" if self._ended else self.state.forced_text()
