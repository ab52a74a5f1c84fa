"""The C kernel's view of a grammar: positions as plain values, and what follows a frame.

The kernel (``kernel/*.c``) has the same positions as `positions.py`. It reads plain nodes by itself, asks
once for the parts of each other construct, and computes the closure of both as `closure.py` does. For
template calls, and wherever missing values decide what can be finished, it asks Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from constrained.automaton import graph_stack
from constrained.automaton.automaton import Automaton
from constrained.automaton.closure import REFUSALS
from constrained.automaton.graph_stack import is_open
from constrained.automaton.positions import (
    NO_CALL,
    Accept,
    Env,
    Frame,
    InChoices,
    InExcept,
    InJsonText,
    InLiteral,
    InLoop,
    InText,
    Loop,
    Position,
    Stack,
    Thunk,
)
from constrained.errors import LimitError
from constrained.grammar import nodes as n
from constrained.grammar.json_text import JsonText
from constrained.grammar.members import MemberSequence

ACCEPT, STEP_END, LITERAL, CHOICES, TEXT, EXCEPT, LOOP, JSON_TEXT = range(1, 9)
ASKED, SEQ, ALT, REPEAT, MEMBERS = range(9, 14)
"""Kinds of constructs, besides the last six above. Python computes the closure of those that are `ASKED`."""

Described = tuple
"""A position as (kind, what is read, rest, low, high, depth, extra); extra is a parameter, characters or a loop."""


class Bridge:
    """The methods and values of one automaton that the kernel uses.

    Parameters
    ----------
    automaton : Automaton
    capped : callable
        Frame -> the frame with capped counts (`Masks.capped_frame`).
    bounds : callable
        Frame -> bounds on the bytes to the end (`Budget.bounds`).
    """

    types = (n.LiteralText, n.Chars, n.Seq, n.Alt, n.RuleRef, n.Repeat, n.Choices)
    """Nodes that the kernel reads by itself, unless missing values decide what can be finished."""

    def __init__(
        self,
        automaton: Automaton,
        capped: Callable[[Stack], Stack],
        bounds: Callable[[Stack], tuple[float, float]],
    ):
        self.capped, self.bounds = capped, bounds
        self.bottom, self.frame, self.no_call = automaton.frames.bottom, automaton.frames.frame, NO_CALL
        self.asks = automaton.liveness is not None  # what may come next depends on the whole stack
        self.near, self.deep, self.crowded = graph_stack.NEAR, graph_stack.DEEP, graph_stack.CROWDED
        self._automaton, self._frames = automaton, automaton.frames
        self.tails, self.repeats = automaton.frames.tails, automaton.frames.repeats

    def construct(self, node: n.Node, env: Env) -> tuple:
        """Describe a construct whose node type is not in `types`.

        Returns
        -------
        tuple
            (kind, what is read, low, high, may be empty, has values, environment, nodes in it). The nodes of a
            repeat are the item, and the repeat that follows one item.
        """
        value: object = None
        if self.asks:
            return _of(ASKED, env)
        if isinstance(node, n.RuleRef) and not node.args:
            return _of(ALT, env, env.grammar.rules[node.rule].body, inner=self._frames.env(env.grammar, {}, 0))
        if isinstance(node, n.Repeat):
            low, high = node.low, -1 if node.high is None else node.high
            if isinstance(node.item, n.Chars):
                return _read(TEXT, env, node.item.chars, low, high, empty=not low)
            self._frames.know_repeat(node)
            looped = self._automaton.closure.looped(node.item, env) if high > 1 else None
            if looped:
                return _read(LOOP, env, (looped[0].chars, looped[1]), low, high, empty=not low)
            after = () if high == 1 else (self.repeat(node, max(low - 1, 0), max(high - 1, -1)),)
            return _of(REPEAT, env, node.item, *after, low=low, high=high)
        if isinstance(node, n.Choices):
            value = node.values
        elif isinstance(node, n.Except):
            empty = bool(node.values[0])
            return _read(EXCEPT, env, (node.values, node.chars), 0, len(node.values), empty=empty)
        elif isinstance(node, MemberSequence):
            names, others = self._frames.text_list(node.names), () if node.free is n.NEVER else (node.free,)
            read = _read(MEMBERS, env, (names, ""), 0, len(names)) if names else _of(ALT, env)
            return *read[:-1], others
        elif isinstance(node, JsonText):
            if node.table is None:
                return _of(ALT, env, node.written)
            return _read(JSON_TEXT, env, node.table, 0, -1 if node.high is None else node.high)
        elif isinstance(node, n.Lazy):
            return _of(ALT, env, node.node)
        elif isinstance(node, n.Slot):
            value = env.grammar.bindings.get(node.name)
        elif isinstance(node, n.Var):
            value = env.values[node.name]
        if isinstance(value, Thunk):
            return _of(ALT, env, value.node, inner=value.env)
        if value in (b"", (b"",)):
            return _of(SEQ, env)
        if isinstance(value, bytes):
            return _read(LITERAL, env, value)
        if isinstance(value, tuple) and value:  # sorted: an empty text would be the first
            return _read(CHOICES, env, value, int(not value[0]), len(value), empty=not value[0])
        return _of(ASKED, env)

    def may_be_empty(self, item: n.Node, env: Env) -> bool:
        """Whether an item of a repeat may be empty."""
        return self._automaton.positions.accept in self._automaton.closure.enter(self._frames.frame(item, env, None))

    def repeat(self, node: n.Repeat, low: int, high: int) -> n.Repeat:
        """The repeat with other counts; `high` -1: no upper bound."""
        return self._frames.repeat(node.item, low, None if high < 0 else high)

    def enter(self, frame: Frame) -> list[Described]:
        """The positions reached from `frame` without reading a byte, as plain values."""
        return [describe(q) for q in self._automaton.closure.enter(frame)]

    def after_choice(self, value: bytes, parameter: str, rest: Frame) -> Stack:
        """The frame after a choice whose value decides what follows (see `Closure.after_choice`)."""
        return self._automaton.closure.after_choice(rest, parameter, value)

    def aside(self, loop: Loop, low: int, high: int, rest: Stack) -> Stack:
        """The frame for the part of a loop that isn't a character (see `Closure.aside`)."""
        return self._automaton.closure.aside(loop, low, None if high < 0 else high, rest)

    def join(self, frames: tuple[Stack, ...]) -> Frame | bool | None:
        """Join `frames` into one; False if some parameter in them has no value yet."""
        return False if any(map(is_open, frames)) else self._automaton.stacks.join(frames)

    def position(self, kind: int, what, rest: Stack, low: int, high: int, depth, bind) -> Position:
        """The position that `describe` gives these values for."""
        positions = self._automaton.positions
        if kind == LITERAL:
            return positions.literal(what, low, rest)
        if kind == TEXT:
            return positions.text(what, depth, low, None if high < 0 else high, rest)
        if kind == CHOICES:
            return positions.choices(what, low, high, depth, bind, rest)
        if kind == LOOP:
            return positions.loop(what, depth, low, None if high < 0 else high, rest, bind)
        if kind == EXCEPT:
            return positions.unlike(bind, what, low, high, depth, rest)
        if kind == JSON_TEXT:
            return positions.json_text(what, low, None if high < 0 else high, depth, rest)
        return positions.accept if kind == ACCEPT else positions.step_end(rest)

    def refuse(self, limit: str) -> NoReturn:
        """Raise the LimitError for a limit that the kernel has passed."""
        what, advice = REFUSALS.get(limit, REFUSALS["state_positions"])
        raise LimitError(limit, getattr(self._automaton.limits, limit), what, advice)


def describe(q: Position) -> Described:
    """A position as plain values for the kernel."""
    rest = q.rest
    if type(q) is InLiteral:
        return LITERAL, q.data, rest, q.at, 0, 0, None
    if type(q) is InText:
        return TEXT, q.chars, rest, q.low, -1 if q.high is None else q.high, q.inside, None
    if type(q) is InChoices:
        return CHOICES, q.values, rest, q.low, q.high, q.depth, q.bind
    if type(q) is InLoop:
        return LOOP, q.chars, rest, q.low, -1 if q.high is None else q.high, q.inside, q.loop
    if type(q) is InExcept:
        return EXCEPT, q.values, rest, q.low, q.high, q.depth, q.chars
    if type(q) is InJsonText:
        return JSON_TEXT, q.table, rest, q.state, -1 if q.left is None else q.left, q.inside, None
    return ACCEPT if type(q) is Accept else STEP_END, None, rest, 0, 0, 0, None


def _read(kind: int, env: Env, what, low: int = 0, high: int = 0, empty: bool = False) -> tuple:
    """The description of a construct that reads text."""
    return kind, what, low, high, empty, bool(env.values), env, ()


def _of(kind: int, env: Env, *nodes: n.Node, inner: Env | None = None, low: int = 0, high: int = 0) -> tuple:
    """The description of a construct that consists of other nodes, in environment `inner`."""
    return kind, None, low, high, False, bool(env.values), inner or env, nodes
