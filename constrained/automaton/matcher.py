"""`compile_grammar`, and the matcher, which follows one text token by token."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from constrained.arguments import PATH, TEXT_OR_BYTES, WHOLE, check, checked
from constrained.automaton import native, persist
from constrained.automaton.automaton import State, automaton_of, begin
from constrained.automaton.bridge import Bridge, describe
from constrained.automaton.budget import Budget
from constrained.automaton.explain import expected
from constrained.automaton.masks import Masks, allowed_ids, without
from constrained.automaton.memory import SPARE, DistinctMemory
from constrained.automaton.refused import not_a_grammar, not_a_vocabulary, not_pickled
from constrained.automaton.ruled_out import RuledOut
from constrained.automaton.state import MAX_FORCED, Prefix
from constrained.automaton.vocabulary import Vocabulary
from constrained.automaton.written import OPENING
from constrained.errors import GrammarError, LimitError, VocabularyError
from constrained.grammar.grammar import ContextFreeGrammar
from constrained.limits import DEFAULT, Limits
from constrained.limits import KIND as LIMITS

NEVER_ASK, MAY_ASK, MUST_ASK = 0, 1, 2  # as in kernel/core.h
MOST_BUDGET = 2**31 - 1
"""Tokens of a budget that the kernel counts; a greater one is as good as none."""


@checked(GrammarError, limits=LIMITS)
def compile_grammar(
    grammar: ContextFreeGrammar, vocabulary: Vocabulary, *, limits: Limits | None = None
) -> CompiledGrammar:
    """Compile `grammar` for `vocabulary`. Masks are computed lazily, so this costs microseconds.

    Parameters
    ----------
    grammar : ContextFreeGrammar
    vocabulary : Vocabulary
    limits : Limits, optional
        Default: the grammar's own limits.

    Raises
    ------
    GrammarError
        A slot is unbound.
    VocabularyError
        The vocabulary can't spell any text of the grammar.
    """
    if limits is not None and isinstance(grammar, ContextFreeGrammar):
        grammar = grammar.with_limits(limits)
    return CompiledGrammar(grammar, vocabulary)


class CompiledGrammar:
    """A grammar's masks over a vocabulary, computed when matchers first need them."""

    def __init__(self, grammar: ContextFreeGrammar, vocabulary: Vocabulary):
        if not isinstance(grammar, ContextFreeGrammar):
            raise not_a_grammar(grammar)
        if not isinstance(vocabulary, Vocabulary):
            raise not_a_vocabulary(vocabulary)
        self.grammar = grammar
        self.vocabulary = vocabulary
        self._newest = self
        # Where the grammar names control tokens, its automaton reads them with a mark, as the tokens of `marked` are.
        admitted = grammar.derived(vocabulary.control_tokens.admitted)
        spelled = vocabulary if admitted is grammar else vocabulary.marked
        self.automaton = automaton_of(admitted)
        self.masks = Masks(self.automaton, spelled)
        self.budget = Budget(self.masks)
        self.remembers = admitted.remembers
        self.ruled_out = RuledOut(self.budget, spelled)
        self.engine = None
        kernel = native.kernel
        if kernel is not None and len(vocabulary.eos_token_ids) <= kernel.MAX_EOS:
            self.engine = self.masks.engine = kernel.Engine(
                Bridge(self.automaton, self.masks.capped_frame, self.budget.bounds),
                spelled.kernel_tokens,
                self.automaton.root,
                grammar.limits.frames,
                grammar.limits.state_positions,
                grammar.limits.mask_steps,
                grammar.limits.row_bytes,
                grammar.limits.closure,
                grammar.limits.entered,
            )
        if self.remembers and self.budget.needed:
            raise VocabularyError(
                "what a text has written can't be remembered over this vocabulary (uniqueItems, minProperties)",
                hint="it lacks single-byte tokens that the grammar needs",
            )
        if self.budget.needed and self.budget.fewest(self.automaton.start) is None:
            raise VocabularyError(
                "no text of the grammar can be written with this vocabulary's tokens",
                hint="it lacks single-byte tokens that the grammar needs",
            )

    def __repr__(self) -> str:
        kernel = "Python" if self.engine is None else "the C kernel"
        return f"CompiledGrammar({self.grammar!r}, {self.vocabulary!r}, on {kernel})"

    def __reduce__(self) -> tuple:
        """For `pickle`: the grammar and the vocabulary, compiled anew where they are read."""
        return CompiledGrammar, (self.grammar, self.vocabulary)

    def __copy__(self) -> CompiledGrammar:
        """This object: its masks are the same for all who use it."""
        return self

    def __deepcopy__(self, memo: dict) -> CompiledGrammar:
        return self

    @property
    def begin(self) -> Prefix:
        """The empty prefix: see `Grammar.begin`. In it, control tokens that the grammar names are read with a mark."""
        return begin(self.automaton.grammar)

    @checked(GrammarError, begun=TEXT_OR_BYTES)
    def matcher(self, begun: str | bytes = b"") -> Matcher:
        """A matcher at the beginning of a text, or after its first part `begun`.

        Its `compiled` is this object, or the same grammar compiled anew once half of a limit is used up.

        Raises
        ------
        GrammarError
            No text of the grammar begins with `begun`.
        """
        compiled = self._with_room()
        kind = Matcher if compiled.engine is None else MemoryMatcher if compiled.remembers else NativeMatcher
        return kind(compiled, begun.encode() if isinstance(begun, str) else begun)

    def _with_room(self) -> CompiledGrammar:
        """This object; or, once earlier texts have used half of a limit, the same grammar compiled anew.

        A new text therefore doesn't fail because of earlier ones. Texts in progress keep their compiled grammar.
        """
        newest = self._newest
        if newest.automaton.half_full or (newest.engine is not None and newest.engine.half_full):
            self._newest = newest = CompiledGrammar(self.grammar.copy(), self.vocabulary)
        return newest

    @checked(path=PATH)
    def save(self, path: str | os.PathLike) -> None:
        """Write the grammar to `path`, whole or not at all. Masks aren't saved: computing them is faster than reading.

        Raises
        ------
        OSError
            The file can't be written.
        DataError
            Some of the grammar's rules are made during generation (a tool policy's).
        """
        persist.save(path, self.grammar, self.vocabulary)

    @staticmethod
    @checked(path=PATH, limits=LIMITS)
    def load(path: str | os.PathLike, vocabulary: Vocabulary, *, limits: Limits = DEFAULT) -> CompiledGrammar:
        """Load a grammar that :meth:`save` wrote, compiled over the same vocabulary.

        Raises
        ------
        DataError
            The file doesn't exist, is damaged, or has another version.
        VocabularyError
            It was compiled for another vocabulary.
        LimitError
            The grammar costs more than `limits` allow.
        """
        return persist.load(path, vocabulary, limits, CompiledGrammar)

    def precompute(self) -> int:
        """Compute all masks in advance.

        Returns
        -------
        int
            Positions visited.

        Raises
        ------
        LimitError
            There are more than ``Limits.precomputed`` positions (with recursion, perhaps infinitely many).
        """
        most = self.grammar.limits.precomputed
        visited = (self.masks if self.engine is None else self.engine).precompute(most)
        if visited < 0:
            raise LimitError(
                "precomputed", most, "too many positions to compute ahead", "leave them to be computed when reached"
            )
        return visited

    @property
    def nbytes(self) -> int:
        """Bytes of the masks and tables in memory, without the vocabulary's."""
        return (self.masks if self.engine is None else self.engine).nbytes


class Matcher:
    """Follows one text, and tells which tokens may come next.

    The masks are sound (every sequence of allowed tokens can be finished) and complete (every way to
    split an accepted text into tokens is allowed).

    Attributes
    ----------
    compiled : CompiledGrammar
    state : State
        The automaton's state after the text so far.
    memory : DistinctMemory or None
        What the text has written; None if the grammar remembers nothing.
    prefix : Prefix
        What may follow the text: the memory, else the state.
    is_complete : bool
        Whether the text so far is in the language.
    is_terminated : bool
        Whether an EOS token has been read.
    """

    def __init__(self, compiled: CompiledGrammar, begun: bytes = b""):
        self.compiled = compiled
        start = compiled.automaton.start
        self.state, self.memory = start, DistinctMemory.at(start) if compiled.remembers else None
        after = self._after(begun)
        if after is None:
            raise _no_such_text(begun)
        self._start = after
        self.reset()

    def reset(self) -> None:
        """Go back to the beginning, and remove the budget."""
        (self.state, self.memory), self.is_terminated = self._start, False
        self._left: int | None = None
        self._history: list[tuple[State, DistinctMemory | None, bool, int | None]] = []

    def copy(self) -> Matcher:
        """An independent matcher in the same state."""
        other = Matcher.__new__(Matcher)
        other.compiled, other.state, other.memory = self.compiled, self.state, self.memory
        other.is_terminated, other._left = self.is_terminated, self._left
        other._start, other._history = self._start, list(self._history)
        return other

    def __copy__(self) -> Matcher:
        return self.copy()

    def __deepcopy__(self, memo: dict) -> Matcher:
        return self.copy()

    def __reduce__(self):
        raise not_pickled("a matcher", "pickle its `compiled` and the tokens so far, and advance a new matcher by them")

    @property
    def prefix(self) -> Prefix:
        return self.state if self.memory is None else self.memory

    @property
    def is_complete(self) -> bool:
        return self.state.accepting

    def advance(self, token_id: int) -> bool:
        """Read a token and return whether it is allowed; if it is not, nothing changes."""
        vocabulary = self.compiled.masks.vocabulary
        token_id = int(token_id)
        here = self.state, self.memory, self.is_terminated, self._left
        if token_id in vocabulary.eos_token_ids:
            if not self.state.accepting:
                return False
            self._history.append(here)
            self.is_terminated = True
            return True
        if self.is_terminated or not 0 <= token_id < len(vocabulary.tokens):
            return False
        data = vocabulary.tokens[token_id]
        if not data or token_id in vocabulary.special_set:
            return False
        after = self._after(data)
        left = None if self._left is None else self._left - 1
        if after is None or self._near_end() and not self._ends_within(left, *after):
            return False
        self._history.append(here)
        (self.state, self.memory), self._left = after, left
        return True

    def _after(self, data: bytes) -> tuple[State, DistinctMemory | None] | None:
        """The state and the memory after `data`; None if the text can't go on so."""
        if self.memory is None:
            state = self.state.read(data)
            return None if state is None else (state, None)
        memory = self.memory.read(data)
        return None if memory is None else (memory.state, memory)

    def rollback(self, tokens: int = 1) -> None:
        """Undo the last `tokens` tokens; ValueError if fewer have been read."""
        if tokens < 0 or tokens > len(self._history):
            raise ValueError(f"can't take back {tokens} tokens of {len(self._history)}")
        if tokens:
            self.state, self.memory, self.is_terminated, self._left = self._history[-tokens]
            del self._history[-tokens:]

    def _forced(self, limit: int) -> bytes:
        return b"" if self.is_terminated else self.prefix.forced_text(limit)

    def __repr__(self) -> str:
        if self.is_terminated:
            return "Matcher(terminated)"
        budget = "" if self._left is None else f", budget {self._left} tokens"
        following = expected(self.prefix)
        following = f", next: {following}" if following else ""
        return f"Matcher({'complete' if self.is_complete else 'unfinished'}{budget}{following})"

    def set_budget(self, tokens: int | None) -> None:
        """From now on, allow only tokens after which the text can be finished within `tokens` tokens from here.

        The EOS token is not counted: after `tokens` tokens the text is complete. The fewest tokens to the end
        are exact where the search for them is small, and an upper bound otherwise. A budget near the minimum may
        therefore rule out a longer text that would have fitted, but it never leads to an unfinished text.

        Raises
        ------
        VocabularyError
            Even the shortest completion is longer.
        """
        if tokens is not None:
            check("the budget", tokens, WHOLE)
            tokens = min(int(tokens), MOST_BUDGET)
        if tokens is not None and not self.ends_within(tokens):
            raise VocabularyError(
                f"a budget of {tokens} tokens is too small: the shortest way to finish takes {self.fewest_tokens()}",
                hint="raise max_new_tokens",
            )
        self._left = tokens

    def ends_within(self, tokens: int | None) -> bool:
        """Whether the text can be finished within `tokens` tokens (None: at all), as :meth:`set_budget` asks it."""
        return self._ends_within(tokens, self.state, self.memory)

    def fewest_tokens(self) -> int | None:
        """The fewest tokens that complete the text, or an upper bound; None if it can't be completed."""
        memory = self.memory
        if memory is None or self.is_complete:
            return self.compiled.budget.fewest(self.state)
        return len(memory.completion())

    def _ends_within(self, left: int | None, state: State, memory: DistinctMemory | None) -> bool:
        if memory is None:
            return self.compiled.budget.fits(state, left)
        return left is None or memory.fits(left)

    def allowed_token_ids(self) -> np.ndarray:
        """The ids that may come next, int32, ascending; the EOS ids are among them if the text is complete."""
        eos = np.array(self.compiled.vocabulary.eos_token_ids, np.int32)
        if self.is_terminated:
            return eos
        state, memory, masks = self.state, self.memory, self.compiled.masks
        ids = masks.token_ids(state) if memory is None else allowed_ids(self._row()).astype(np.int32)
        if self._near_end():
            if memory is None or self._left is None:
                ids = self.compiled.budget.filter(state, ids, self._left)
            else:
                ids = self.compiled.ruled_out.in_time(memory, ids, self._left)
        return np.union1d(ids, eos).astype(np.int32) if state.accepting else ids.copy()

    def _row(self) -> np.ndarray:
        """The mask without the EOS ids and the budget, int32 ``[words]``; it may be a cache entry."""
        row = self.compiled.masks.row(self.state)
        if self.memory is None:
            return row
        return without(row, self.compiled.ruled_out.tokens(self.memory, row))

    def fill_bitmask(self, mask: np.ndarray, row: int = 0) -> None:
        """Write the allowed tokens into ``mask[row]``.

        Parameters
        ----------
        mask : ndarray or torch.Tensor of int32, shape [rows, >= ceil(size / 32)]
            Bit ``i % 32`` of word ``i // 32`` is 1 if token ``i`` is allowed; words beyond
            the vocabulary are cleared.

        Raises
        ------
        VocabularyError
            The mask has another shape or dtype.
        """
        self._fill_any(mask, row)

    def _fill_any(self, mask, row: int = 0) -> None:
        if not isinstance(mask, np.ndarray):
            if not hasattr(mask, "numpy"):
                raise VocabularyError(f"the mask is {mask!r:.80}", "give an int32 array or tensor of two dimensions")
            mask = mask.numpy()
        words = self.compiled.vocabulary.words
        if mask.dtype != np.int32 or mask.ndim != 2 or mask.shape[1] < words:
            raise VocabularyError(f"mask of shape {mask.shape} and dtype {mask.dtype}; needs int32 [rows, {words}]")
        self._fill_row(mask[row])

    def _fill_row(self, target: np.ndarray) -> None:
        """Write the mask, within the budget if there is one, into `target`, int32 ``[>= words]``."""
        vocabulary = self.compiled.vocabulary
        words = vocabulary.words
        target[words:] = 0
        if self.is_terminated or self._near_end():
            target[:words] = vocabulary.pack(self.allowed_token_ids())
            return
        target[:words] = self._row()
        if self.is_complete:
            for token in vocabulary.eos_token_ids:
                target.view(np.uint32)[token >> 5] |= np.uint32(1 << (token & 31))

    def _near_end(self) -> bool:
        """Whether the budget, or a vocabulary without some bytes, may rule out tokens."""
        budget = self.compiled.budget
        if budget.needed or self._left is None:
            return budget.needed
        return self._left <= budget.horizon(self.state) + (0 if self.memory is None else self.memory.spare)

    def accepts(self, token_ids: Iterable[int]) -> int:
        """How many tokens of a draft are allowed, in order; nothing changes."""
        count = 0
        for token in token_ids:
            if not self.advance(token):
                break
            count += 1
        self.rollback(count)
        return count

    def forced_text(self) -> bytes:
        """The bytes that must come next; empty where the model has a choice."""
        return self._forced(MAX_FORCED)


def _no_such_text(begun: bytes) -> GrammarError:
    return GrammarError(f"no text of the grammar begins with {begun!r}")


if native.kernel is not None:
    Core: Any = native.kernel.Core

    class NativeMatcher(Core, Matcher):
        """The matcher on the C kernel, which implements `advance`, `fill_bitmask`, `rollback`, `reset` and `copy`."""

        def __init__(self, compiled: CompiledGrammar, begun: bytes = b""):
            eos = tuple(compiled.vocabulary.eos_token_ids)
            if not self._begin(compiled, compiled.engine, begun, eos, compiled.budget.needed):
                raise _no_such_text(begun)

        memory = None  # no items or names of the grammar must differ

        @property
        def state(self) -> State:  # type: ignore[override]  # created from the kernel's positions
            return self.compiled.automaton.state(self._positions())

        def _fits(self, positions: tuple, left: int) -> bool:
            """Whether the text can be finished from `positions` within `left` tokens; the kernel calls this."""
            state = self.compiled.automaton.state(positions)
            return self.compiled.budget.fits(state, None if left < 0 else left)

    class MemoryMatcher(NativeMatcher):
        """The same for a grammar with arrays whose items must differ, or objects whose names must.

        While one is open, a memory stands beside the kernel's state. Elsewhere there is none, except near the end of a
        budget, where it keeps the way to the end. `_ask` tells the kernel whether Python must compute the next mask:
        with a memory always, else unless it was noted that nothing can be ruled out at these positions.
        """

        def __init__(self, compiled: CompiledGrammar, begun: bytes = b""):
            super().__init__(compiled, begun)
            self._begun: DistinctMemory | None = None
            if not OPENING.isdisjoint(begun):
                self._begun = DistinctMemory.at(compiled.automaton.start).read(begun)
                if self._begun is None:
                    raise _no_such_text(begun)
            self.reset()

        def reset(self) -> None:
            Core.reset(self)
            self._past: list[DistinctMemory | None] = []
            """What `_memory` was before each token."""
            begun = self._begun
            if begun is not None:
                self._go_to(list(map(describe, begun.positions)))
            self._keep(begun if begun is not None and begun.holds else None)

        def copy(self) -> MemoryMatcher:
            other = Core.copy(self)
            other._begun, other._memory, other._past = self._begun, self._memory, list(self._past)
            return other

        def _keep(self, memory: DistinctMemory | None) -> None:
            """Set the memory beside the kernel's state; None: none is needed here."""
            self._memory = memory
            self._ask = MAY_ASK if memory is None else MUST_ASK
            self._spare = 2 * SPARE if memory is None or self._left is None else memory.spare

        def set_budget(self, tokens: int | None) -> None:
            super().set_budget(tokens)
            self._keep(self._memory)

        @property
        def memory(self) -> DistinctMemory:  # type: ignore[override]
            return self._memory or DistinctMemory.at(self.state)

        def advance(self, token_id: int) -> bool:
            tokens = self.compiled.masks.vocabulary.tokens
            token_id = int(token_id)
            data = tokens[token_id] if 0 <= token_id < len(tokens) else b""
            memory, left = self._memory, self._left
            # Near the end of a budget, the text must end within the tokens that are left after this one.
            after = left - 1 if left is not None and self._near() else None
            if memory is None and (after is not None or not OPENING.isdisjoint(data) and self._opens(token_id)):
                memory = self.memory
            if not Core.advance(self, token_id):
                return False
            before, taken = self._memory, False
            try:
                taken = memory is None or self.is_terminated or self._follow(memory, data, after)
            finally:
                if taken:
                    self._past.append(before)
                else:
                    Core.rollback(self, 1)
                    self._keep(before)
            return taken

        def _follow(self, memory: DistinctMemory, data: bytes, left: int | None) -> bool:
            """Set the memory to `memory` after `data`, which the kernel has read.

            Returns False, and sets nothing, if the text would repeat something or can't be finished with `left` tokens.
            """
            after = memory.read(data)
            if after is None or left is not None and not after.fits(left):
                return False
            if len(memory.ways) > 1 or not OPENING.isdisjoint(data):  # some of the kernel's positions may be ruled out
                self._go_to(list(map(describe, after.positions)))
            self._keep(after)
            if not after.holds and (self._left is None or not self._near()):
                self._keep(None)
            return True

        def rollback(self, tokens: int = 1) -> None:
            Core.rollback(self, tokens)
            if tokens:
                self._keep(self._past[-tokens])
                del self._past[-tokens:]

        def _fill_row(self, target: np.ndarray) -> None:
            near = self._left is not None and not self.is_terminated and self._near()
            if near and self._memory is None:
                self._keep(self.memory)  # each step keeps the rest of its way to the end
            if near or self.is_terminated:
                Matcher._fill_row(self, target)
                return
            mask = np.empty((1, self.compiled.vocabulary.words), np.int32)
            self._ask = NEVER_ASK
            try:
                self.fill_bitmask(mask)
            finally:
                self._ask = MUST_ASK
            if self._memory is not None:
                bad = self.compiled.ruled_out.tokens(self._memory, mask[0])
            else:
                bad = self._repeated_by(mask[0])
                if not bad:
                    self._know_nothing_out()
                    self._ask = NEVER_ASK
            target[: mask.size] = without(mask[0], bad)
            target[mask.size :] = 0

        def _repeated_by(self, row: np.ndarray) -> list[int]:
            """The tokens of a mask that open such an array or object, and already repeat something in it."""
            opening = allowed_ids(row & self.compiled.vocabulary.endings.opens).tolist()
            opening = [token for token in opening if self._opens(token)]
            if not opening:
                return []
            memory, tokens = self.memory, self.compiled.vocabulary.tokens
            return [token for token in opening if not memory.admits(tokens[token])]

        def _forced(self, limit: int) -> bytes:
            return Matcher._forced(self, limit)

        def _fits(self, positions: tuple, left: int) -> bool:
            return True  # `advance` asks the memory instead
