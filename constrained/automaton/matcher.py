"""`compile_grammar`, and the matcher, which follows one text token by token."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from constrained.arguments import PATH, TEXT_OR_BYTES, WHOLE, check, checked
from constrained.automaton import native, persist
from constrained.automaton.automaton import State, automaton_of
from constrained.automaton.bridge import Bridge, describe
from constrained.automaton.budget import Budget
from constrained.automaton.distinct import Remembering, ways_after
from constrained.automaton.explain import expected
from constrained.automaton.masks import Masks, allowed_ids
from constrained.automaton.memory import OPENING
from constrained.automaton.state import MAX_FORCED
from constrained.automaton.vocabulary import Vocabulary
from constrained.errors import ConstrainedError, GrammarError, LimitError, VocabularyError
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
        if self.automaton.remembers and self.budget.needed:
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
        kind = Matcher if compiled.engine is None else MemoryMatcher if compiled.automaton.remembers else NativeMatcher
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
    is_complete : bool
        Whether the text so far is in the language.
    is_terminated : bool
        Whether an EOS token has been read.
    """

    def __init__(self, compiled: CompiledGrammar, begun: bytes = b""):
        self.compiled = compiled
        start = compiled.automaton.read(begun)
        if start is None:
            raise _no_such_text(begun)
        self._start = start
        self.reset()

    def reset(self) -> None:
        """Go back to the beginning, and remove the budget."""
        self.state, self.is_terminated = self._start, False
        self._left: int | None = None
        self._history: list[tuple[State, bool, int | None]] = []

    def copy(self) -> Matcher:
        """An independent matcher in the same state."""
        other = Matcher.__new__(Matcher)
        other.compiled, other.state, other.is_terminated = self.compiled, self.state, self.is_terminated
        other._start, other._left, other._history = self._start, self._left, list(self._history)
        return other

    def __copy__(self) -> Matcher:
        return self.copy()

    def __deepcopy__(self, memo: dict) -> Matcher:
        return self.copy()

    def __reduce__(self):
        raise not_pickled("a matcher", "pickle its `compiled` and the tokens so far, and advance a new matcher by them")

    @property
    def is_complete(self) -> bool:
        return self.state.accepting

    def advance(self, token_id: int) -> bool:
        """Read a token and return whether it is allowed; if it is not, nothing changes."""
        vocabulary = self.compiled.masks.vocabulary
        token_id = int(token_id)
        here = self.state, self.is_terminated, self._left
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
        after = self.state.read(data)
        if after is None:
            return False
        left = None if self._left is None else self._left - 1
        if self._filtered(self.state) and not self.compiled.budget.fits(after, left):
            return False
        self._history.append(here)
        self.state, self._left = after, left
        return True

    def rollback(self, tokens: int = 1) -> None:
        """Undo the last `tokens` tokens; ValueError if fewer have been read."""
        if tokens < 0 or tokens > len(self._history):
            raise ValueError(f"can't take back {tokens} tokens of {len(self._history)}")
        if tokens:
            self.state, self.is_terminated, self._left = self._history[-tokens]
            del self._history[-tokens:]

    def _forced(self, limit: int) -> bytes:
        return b"" if self.is_terminated else self.state.forced_text(limit)

    def __repr__(self) -> str:
        if self.is_terminated:
            return "Matcher(terminated)"
        budget = "" if self._left is None else f", budget {self._left} tokens"
        following = expected(self.state)
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
        if tokens is not None and not self.compiled.budget.fits(self.state, tokens):
            need = self.compiled.budget.fewest(self.state)
            raise VocabularyError(
                f"a budget of {tokens} tokens is too small: the shortest way to finish takes {need}",
                hint="raise max_new_tokens",
            )
        self._left = tokens

    def allowed_token_ids(self) -> np.ndarray:
        """The ids that may come next, int32, ascending; the EOS ids are among them if the text is complete."""
        eos = np.array(self.compiled.vocabulary.eos_token_ids, np.int32)
        if self.is_terminated:
            return eos
        state = self.state
        ids = self.compiled.masks.token_ids(state)
        if self._filtered(state):
            ids = self.compiled.budget.filter(state, ids, self._left)
        return np.union1d(ids, eos).astype(np.int32) if state.accepting else ids.copy()

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
        vocabulary, state = self.compiled.vocabulary, self.state
        words = vocabulary.words
        target[words:] = 0
        if self.is_terminated or self._filtered(state):
            target[:words] = vocabulary.pack(self.allowed_token_ids())
            return
        target[:words] = self.compiled.masks.row(state)
        if state.accepting:
            for token in vocabulary.eos_token_ids:
                target.view(np.uint32)[token >> 5] |= np.uint32(1 << (token & 31))

    def _filtered(self, state: State) -> bool:
        budget = self.compiled.budget
        return budget.needed or (self._left is not None and self._left <= budget.horizon(state))

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


def not_a_grammar(given: object) -> GrammarError:
    """The error for an object that is not a grammar; for action knowledge it names its two grammars."""
    of_knowledge = hasattr(given, "next_action")
    return GrammarError(
        f"a grammar is wanted here, not {type(given).__name__}",
        hint="knowledge.next_action() is the grammar of the next action, knowledge.grammar that of whole paths"
        if of_knowledge
        else "make one: Grammar.from_lark(…), .from_regex(…), .from_choices(…) or .from_json_schema(…)",
    )


def not_pickled(what: str, otherwise: str) -> ConstrainedError:
    """The error for an object that stands in the memory of this process only."""
    return ConstrainedError(f"{what} can't be pickled: it refers to states in this process", otherwise)


def not_a_vocabulary(given: object) -> VocabularyError:
    """The error for an object that is not a vocabulary, such as a tokenizer."""
    hint = "make one: Vocabulary.from_tokenizer(tokenizer); a loaded model has one: loaded.vocabulary"
    return VocabularyError(f"a vocabulary is wanted here, not {type(given).__name__}", hint=hint)


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

        @property
        def state(self) -> State:  # type: ignore[override]  # created from the kernel's positions
            return self.compiled.automaton.state(self._positions())

        def _fits(self, positions: tuple, left: int) -> bool:
            """Whether the text can be finished from `positions` within `left` tokens; the kernel calls this."""
            state = self.compiled.automaton.state(positions)
            return self.compiled.budget.fits(state, None if left < 0 else left)

    class MemoryMatcher(NativeMatcher):
        """The same for a grammar that remembers what was written (`distinct.py`).

        Outside of everything whose items, or names, must differ, the kernel has the text; inside, Python has it. `_ask`
        tells the kernel whether the next mask is Python's: outside, it may be, unless nothing is ruled out there.
        """

        def __init__(self, compiled: CompiledGrammar, begun: bytes = b""):
            super().__init__(compiled, begun)
            self._first: Remembering | None = None
            if not OPENING.isdisjoint(begun):
                start = compiled.automaton.read(begun)
                if not isinstance(start, Remembering):
                    raise _no_such_text(begun)
                self._first = start
            self.reset()

        def reset(self) -> None:
            Core.reset(self)
            self._inside: Remembering | None = self._first  # the text, while Python has it
            self._past: list[tuple[Remembering | None, int | None, int]] = []
            """For each token what `_inside` and `_left` were, and how many steps the kernel took for it."""
            self._ask = MAY_ASK if self._first is None else MUST_ASK

        def copy(self) -> MemoryMatcher:
            other = Core.copy(self)
            other._first, other._inside, other._past = self._first, self._inside, list(self._past)
            return other

        @property
        def state(self) -> Remembering:  # type: ignore[override]
            return self._inside or Remembering(self.compiled.automaton, [(self._native_state(), None)])

        def _native_state(self) -> State:
            return self.compiled.automaton.state(self._positions())

        @property
        def is_complete(self) -> bool:
            return Core.is_complete.__get__(self) if self._inside is None else self._inside.accepting

        def advance(self, token_id: int) -> bool:
            inside, left = self._inside, self._left
            vocabulary = self.compiled.vocabulary
            token_id = int(token_id)
            if inside is None and left is not None and self._near():
                inside = self.state
            data = vocabulary.tokens[token_id] if 0 <= token_id < len(vocabulary.tokens) else b""
            if inside is None and (OPENING.isdisjoint(data) or not self._opens(token_id)):
                taken = Core.advance(self, token_id)
                if taken:
                    self._past.append((None, left, 1))
                return taken
            if self.is_terminated:
                return False
            here = inside or self.state
            if token_id in vocabulary.eos_token_ids:
                if not here.accepting:
                    return False
                self._go_to([describe(q) for q in here.positions])
                self._past.append((self._inside, left, 2))
                self._inside = None
                return Core.advance(self, token_id)
            if not data or token_id in vocabulary.special_set:
                return False
            after = here.read(data)
            left = None if left is None else left - 1
            if not isinstance(after, Remembering) or (
                self._filtered(here) and not self.compiled.budget.fits(after, left)
            ):
                return False
            stays = any(memory is not None for _, memory in after.ways)
            stays = stays or (left is not None and left <= self.compiled.budget.horizon(after))
            if not stays:
                self._go_to([describe(q) for q in after.positions])
            self._past.append((self._inside, self._left, int(not stays)))
            self._inside, self._left = after if stays else None, left
            self._ask = MUST_ASK if stays else MAY_ASK
            return True

        def rollback(self, tokens: int = 1) -> None:
            if tokens < 0 or tokens > len(self._past):
                raise ValueError(f"can't take back {tokens} tokens of {len(self._past)}")
            if tokens:
                undone = self._past[-tokens:]
                Core.rollback(self, sum(steps for *_, steps in undone))
                del self._past[-tokens:]
                self._inside, self._left, _ = undone[0]
                self._ask = MAY_ASK if self._inside is None else MUST_ASK

        def _fill_row(self, target: np.ndarray) -> None:
            if self._inside is None and self._left is not None and not self.is_terminated and self._near():
                self._inside, self._ask = self.state, MUST_ASK  # from here on, its way to the end is kept
            if self.is_terminated or self._inside is not None:
                Matcher._fill_row(self, target)
                return
            words = self.compiled.vocabulary.words
            mask = np.empty((1, words), np.int32)
            self._ask = NEVER_ASK
            self.fill_bitmask(mask)
            bad = self._ruled_out(mask[0])
            if bad:
                mask &= ~self.compiled.vocabulary.pack(np.array(bad))
                self._ask = MUST_ASK
            else:
                self._know_nothing_out()
            target[:words] = mask[0]
            target[words:] = 0

        def _ruled_out(self, row: np.ndarray) -> list[int]:
            """The tokens of a mask that open something and repeat in it what they have written there."""
            opening = allowed_ids(row & self.compiled.vocabulary.endings.opens).tolist()
            opening = [token for token in opening if self._opens(token)]
            if not opening:
                return []
            state, tokens = self._native_state(), self.compiled.vocabulary.tokens
            return [token for token in opening if not ways_after(state, None, tokens[token])]

        def _forced(self, limit: int) -> bytes:
            return Matcher._forced(self, limit)

        def _fits(self, positions: tuple, left: int) -> bool:
            state = Remembering(self.compiled.automaton, [(self.compiled.automaton.state(positions), None)])
            return self.compiled.budget.fits(state, None if left < 0 else left)


def not_compiled(given: object) -> GrammarError:
    """The error for an object that is not a compiled grammar."""
    grammar = "knowledge.next_action()" if hasattr(given, "next_action") else "grammar"
    hint = f"pass compile_grammar({grammar}, vocabulary)"
    return GrammarError(f"a compiled grammar is wanted here, not {type(given).__name__}", hint=hint)
