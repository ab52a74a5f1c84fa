"""`Grammar`, and its byte automaton: nondeterministic, lazy, with interned states.

A state is a set of positions. States and positions are created when generation, or the walk for a
mask, first reaches them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property

from constrained.arguments import WHOLE, checked
from constrained.automaton.closure import Closure
from constrained.automaton.distance import Distance
from constrained.automaton.export import to_gbnf, to_llguidance, to_regex
from constrained.automaton.graph_stack import GraphStack
from constrained.automaton.liveness import Liveness, has_gaps
from constrained.automaton.memory import DistinctMemory
from constrained.automaton.positions import (
    TOO_MANY_WAYS,
    Frames,
    Position,
    Positions,
    Reached,
)
from constrained.automaton.state import Prefix, State
from constrained.automaton.templates import Templates
from constrained.errors import GrammarError, LimitError
from constrained.grammar.grammar import ContextFreeGrammar, as_bytes

MAX_TEXTS = 100_000
"""Most texts that `Grammar.texts` lists."""


class Automaton:
    """The lazy automaton of `grammar`.

    Attributes
    ----------
    frames : Frames
        Those created so far.
    templates : Templates
    liveness : Liveness or None
        Decides which stacks can be finished; None if all can.
    root : Frame
        The frame that reads the whole text.
    """

    def __init__(self, grammar: ContextFreeGrammar):
        missing = grammar.unbound()
        if missing:
            raise GrammarError(
                f"slot {missing[0]} is not bound",
                hint="bind it first: .bind(" + ", ".join(f"{m}=[...]" for m in missing) + ")",
            )
        grammar.check_slots()
        self.grammar, self.limits = grammar, grammar.limits
        self.frames = Frames(self.limits)
        self.remembers = grammar.remembers
        self.opened: dict = {}  # the cache of `distinct._opened`
        self.templates = Templates(self.frames)
        gaps = has_gaps(grammar)
        self.liveness = Liveness(grammar, self.frames, self.templates, self.limits) if gaps else None
        self._states: dict[Reached, State] = {}
        self.root = self.frames.frame(grammar.start, self.frames.env(grammar, {}, 0), None)
        if self.liveness and not self.liveness.can_finish(self.root):
            raise GrammarError(
                "with these bindings no text can be complete",
                hint="every text needs a slot that has no value; bind more values",
            )

    @cached_property
    def closure(self) -> Closure:
        """The ε-closures, computed in Python. Created on first use: the kernel computes nearly all of its own."""
        made = Closure(self.grammar, self.frames, self.templates, self.liveness, self.limits)
        return vars(self).setdefault("closure", made)  # the same one for all threads

    @cached_property
    def distance(self) -> Distance:
        """Lower bounds on the bytes to the end."""
        return Distance(lower=True)

    @property
    def positions(self) -> Positions:
        """The positions created so far."""
        return self.closure.positions

    @property
    def stacks(self) -> GraphStack:
        """The graph-structured stack."""
        return self.closure.stacks

    @cached_property
    def start(self) -> State:
        """The state before any text. The kernel finds it by itself, from `root`."""
        return self.state(self.closure.enter(self.root))

    @property
    def states(self) -> Collection[State]:
        """The states created so far."""
        return self._states.values()

    @property
    def half_full(self) -> bool:
        """Whether half of some limit (frames, positions, states, entered frames) is used up."""
        limits = self.limits
        if "closure" in vars(self) and (
            2 * len(self.positions) > limits.positions or 2 * self.closure.entered > limits.entered
        ):
            return True
        return 2 * len(self.frames) > limits.frames or 2 * len(self._states) > limits.states

    def read(self, data: bytes) -> State | None:
        """The state after `data` from the start; None if no text begins so. It knows nothing of what must differ."""
        return self.start.read(data)

    def state(self, positions: Iterable[Position]) -> State:
        """The state that consists of `positions`, joined where there are many."""
        key = tuple(positions)
        if len(key) > 1:
            key = tuple(sorted(set(self.stacks.join_positions(tuple(set(key)))), key=_number))
        cached = self._states.get(key)
        if cached is None:
            if len(key) > self.limits.state_positions:
                raise LimitError("state_positions", self.limits.state_positions, *TOO_MANY_WAYS)
            if len(self._states) >= self.limits.states:
                raise LimitError(
                    "states",
                    self.limits.states,
                    "the automaton has too many states",
                    "write shorter texts",
                )
            cached = self._states[key] = State(self, key)
        return cached


class Grammar(ContextFreeGrammar):
    """A context-free language of texts, as UTF-8 bytes.

    Use :meth:`from_lark`, :meth:`from_regex`, :meth:`from_choices` or :meth:`from_json_schema`; the attributes
    are those of :class:`constrained.grammar.ContextFreeGrammar`.
    """

    @property
    def automaton(self) -> Automaton:
        """The lazy byte automaton, created once."""
        return automaton_of(self)

    @property
    def begin(self) -> Prefix:
        """The empty prefix, from which texts are read: the automaton's start, with a memory where one is needed."""
        return begin(self)

    def matches(self, text: str | bytes) -> bool:
        """Whether the whole text is in the language."""
        prefix = self.begin.read(as_bytes(text))
        return prefix is not None and prefix.accepting

    def is_prefix(self, text: str | bytes) -> bool:
        """Whether some text of the language begins with `text`."""
        return self.begin.read(as_bytes(text)) is not None

    @checked(limit=WHOLE)
    def texts(self, limit: int = MAX_TEXTS) -> list[str] | None:
        """Every text of the language, sorted; None if there are more than `limit`."""
        texts = self.begin.texts(limit)
        return None if texts is None else [text.decode() for text in texts]

    # export to other engines

    def to_gbnf(self) -> str:
        """Write the language in GBNF, which llama.cpp and XGrammar read, with the current values of the slots.

        Raises
        ------
        GrammarError
            GBNF can't express it, or a slot is not bound; the message says which part.
        LimitError
            The result is too large.
        """
        return to_gbnf(self, self.automaton.templates)

    def to_regex(self) -> str:
        """Write the language as a regular expression of whole texts, for Python's `re` and Rust's `regex`.

        Raises as :meth:`to_gbnf`, and a GrammarError where the grammar nests, which no regular expression can express.
        """
        return to_regex(self, self.automaton.templates)

    def to_llguidance(self) -> str:
        """Write the language in llguidance's variant of Lark. Raises as :meth:`to_gbnf`."""
        return to_llguidance(self, self.automaton.templates)


def automaton_of(grammar: ContextFreeGrammar) -> Automaton:
    """The lazy byte automaton of `grammar`, created once."""
    return grammar.derived(Automaton)


def begin(grammar: ContextFreeGrammar) -> Prefix:
    """The empty prefix of a grammar's texts: see `Grammar.begin`."""
    return grammar.derived(_begin)


def _begin(grammar: ContextFreeGrammar) -> Prefix:
    start = automaton_of(grammar).start
    return DistinctMemory.at(start) if grammar.remembers else start


def _number(position: Position) -> int:
    return position.number
