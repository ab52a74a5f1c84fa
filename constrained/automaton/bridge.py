"""What the C kernel asks of a grammar: its positions, as plain values, and what follows a frame.

The kernel (``kernel/*.c``) knows positions by the same fields as `positions.py`. It asks once for
each frame it reaches and keeps the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from constrained.automaton.automaton import Automaton
from constrained.automaton.graph_stack import CROWD, is_open
from constrained.automaton.positions import Accept, Frame, InChoices, InLiteral, InText, Position, Stack
from constrained.errors import LimitError
from constrained.grammar.nodes import Choices, Literal, Seq

ACCEPT, STEP_END, LITERAL, CHOICES, TEXT = range(5)

Described = tuple
"""(kind, what is read, rest, low, high, depth, parameter bound) of a position."""


class Bridge:
    """One automaton, seen from the kernel.

    Parameters
    ----------
    automaton : Automaton
    capped : callable
        Frame -> the frame with counts beyond one token's reach cut (`Masks.capped_frame`).
    bounds : callable
        Frame -> bounds on the bytes to the end (`Budget.bounds`).
    """

    def __init__(
        self,
        automaton: Automaton,
        capped: Callable[[Stack], Stack],
        bounds: Callable[[Stack], tuple[float, float]],
    ):
        self.capped, self.bounds = capped, bounds
        self.bottom, self.near = automaton.frames.bottom, automaton.closure.near
        self._limits, self._positions, self._stacks = automaton.limits, automaton.positions, automaton.stacks
        self._frames, self._closure, self._templates = automaton.frames, automaton.closure, automaton.templates

    def enter(self, frame: Frame) -> list[Described]:
        """The positions reached from `frame` without reading a byte, described.

        Most frames begin with literal text, which is told without making a position of it.
        """
        node, rest = frame.node, frame.next
        if type(node) is Seq and node.items:
            if len(node.items) > 1:
                rest = self._frames.frame(self._frames.tail(node), frame.env, rest)
            node = node.items[0]
        if type(node) is Literal:
            return [(LITERAL, node.data, rest, 0, 0, 0, None)]
        if type(node) is Choices and node.values[0]:
            return [(CHOICES, node.values, rest, 0, len(node.values), 0, None)]
        return self._by_summaries(frame) or [describe(q) for q in self._closure.enter(frame)]

    def _by_summaries(self, frame: Stack) -> list[Described] | None:
        """The same, by the summaries of frames, down to where something must be read; None if that won't do."""
        out: list[Described] = []
        while len(out) <= CROWD:
            if frame is None:
                return [*out, describe(self._positions.accept)]
            summary = self._closure.summary(frame)
            if summary is None:
                return None
            made = summary.push(self._frames, frame.next)
            out += [_describe(q, made[over]) for q, over in summary.positions]
            if not summary.nullable:
                return out if len(out) <= CROWD else None
            frame = frame.next
        return None  # so many that their stacks are joined

    def after_choice(self, value: bytes, parameter: str, rest: Frame) -> Stack:
        """The frame after a choice that gives `parameter` its value."""
        return self._templates.rebind(rest, rest.env, parameter, value)

    def join(self, first: Stack, second: Stack) -> Frame | bool | None:
        """The frame after which comes what comes after either; False where parameters in one are still open."""
        return False if is_open(first) or is_open(second) else self._stacks.join((first, second))

    def position(self, kind: int, what, rest: Stack, low: int, high: int, depth, bind) -> Position:
        """The position that `describe` describes so."""
        if kind == LITERAL:
            return self._positions.literal(what, low, rest)
        if kind == TEXT:
            return self._positions.text(what, depth, low, None if high < 0 else high, rest)
        if kind == CHOICES:
            return self._positions.choices(what, low, high, depth, bind, rest)
        return self._positions.accept if kind == ACCEPT else self._positions.step_end(rest)

    def refuse(self, what: str) -> NoReturn:
        """Raise LimitError: one state has too many positions, or one mask took too many steps."""
        limit = {"positions": "state_positions", "steps": "mask_steps"}[what]
        raise LimitError(
            limit,
            getattr(self._limits, limit),
            "the text so far can be read in too many ways",
            "avoid repeats of what may be read in several ways, and join alternatives that begin alike",
        )


def describe(q: Position) -> Described:
    """A position as the kernel knows it."""
    return _describe(q, q.rest)


def _describe(q: Position, rest: Stack) -> Described:
    if type(q) is InLiteral:
        return LITERAL, q.data, rest, q.at, 0, 0, None
    if type(q) is InText:
        return TEXT, q.chars, rest, q.low, -1 if q.high is None else q.high, q.inside, None
    if type(q) is InChoices:
        return CHOICES, q.values, rest, q.low, q.high, q.depth, q.bind
    return ACCEPT if type(q) is Accept else STEP_END, None, rest, 0, 0, 0, None
