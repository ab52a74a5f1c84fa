"""What the C kernel asks of a grammar: its positions, as plain values, and what follows a frame.

The kernel (``kernel/*.c``) knows positions by the same fields as `positions.py`. It asks once
for each frame it reaches and keeps the answer.
"""

from __future__ import annotations

from constrained.automaton import positions as p
from constrained.automaton.automaton import Automaton
from constrained.automaton.graph_stack import CROWD, is_open
from constrained.errors import LimitError
from constrained.grammar.nodes import Choices, Literal, Seq

ACCEPT, STEP_END, LITERAL, CHOICES, TEXT = range(5)


class Bridge:
    """One automaton, seen from the kernel.

    Parameters
    ----------
    automaton : Automaton
    capped : callable
        Frame -> the frame with counts beyond one token's reach cut (`Masks.capped_frame`).
    bounds : callable
        Frame -> bounds on the bytes to the end (`Distance.of_rest`).
    """

    def __init__(self, automaton: Automaton, capped, bounds):
        self.automaton, self.capped, self.bounds = automaton, capped, bounds
        self.bottom, self.near = automaton.bottom, automaton.near
        self._frame, self._rest_of = automaton.frame, automaton.rest_of

    def enter(self, frame: p.Frame) -> list[tuple]:
        """The positions reached from `frame` without reading a byte, described.

        Most frames begin with literal text, which is told without making a position of it.
        """
        node, rest = frame.node, frame.next
        kind = type(node)
        if kind is Seq and node.items:
            if len(node.items) > 1:
                rest = self._frame(self._rest_of(node), frame.env, rest)
            node = node.items[0]
            kind = type(node)
        if kind is Literal:
            return [(LITERAL, node.data, rest, 0, 0, 0, None)]
        if kind is Choices and node.values[0]:
            return [(CHOICES, node.values, rest, 0, len(node.values), 0, None)]
        return self._opened(frame) or [describe(q) for q in self.automaton.enter(frame)]

    def _opened(self, frame: p.Frame | None) -> list[tuple] | None:
        """The same by what constructs begin with, down to where something must be read; None if that won't do."""
        out: list[tuple] = []
        while len(out) <= CROWD:
            if frame is None:
                return [*out, _describe(self.automaton.accept, None)]
            opening = self.automaton.opening(frame)
            if opening is None:
                return None
            made = opening.push(self.automaton, frame.next)
            out += [_describe(q, made[over]) for q, over in opening.positions]
            if not opening.through:
                return out if len(out) <= CROWD else None
            frame = frame.next
        return None  # so many that their stacks are joined

    def after_choice(self, value: bytes, parameter: str, rest: p.Frame) -> p.Frame | None:
        """The frame after a choice that gives `parameter` its value."""
        return self.automaton.rebind(rest, rest.env, parameter, value)

    def join(self, first: p.Frame | None, second: p.Frame | None) -> p.Frame | bool | None:
        """The frame after which comes what comes after either; False where parameters in one are still open."""
        return False if is_open(first) or is_open(second) else self.automaton.join((first, second))

    def position(self, kind: int, what, rest, low: int, high: int, depth, bind) -> p.Position:
        """The position that `describe` describes so."""
        automaton = self.automaton
        if kind == LITERAL:
            return automaton.in_literal(what, low, rest)
        if kind == TEXT:
            return automaton.in_text(what, depth, low, None if high < 0 else high, rest)
        if kind == CHOICES:
            return automaton.in_choices(what, low, high, depth, bind, rest)
        return automaton.accept if kind == ACCEPT else automaton.step_end(rest)

    def refuse(self, what: str) -> None:
        """Raise: one state has too many positions, or one mask took too many steps."""
        limit = {"positions": "state_positions", "steps": "mask_steps"}[what]
        raise LimitError(
            limit,
            getattr(self.automaton.limits, limit),
            "the text so far can be read in too many ways",
            "avoid repeats of what may be read in several ways, and join alternatives that begin alike",
        )


def describe(q: p.Position) -> tuple:
    """(kind, what is read, rest, low, high, depth, parameter bound) of a position."""
    return _describe(q, q.rest)


def _describe(q: p.Position, rest: p.Frame | None) -> tuple:
    kind = type(q)
    if kind is p.InLiteral:
        return LITERAL, q.data, rest, q.at, 0, 0, None
    if kind is p.InText:
        return TEXT, q.chars, rest, q.low, -1 if q.high is None else q.high, q.inside, None
    if kind is p.InChoices:
        return CHOICES, q.values, rest, q.low, q.high, q.depth, q.bind
    return ACCEPT if kind is p.Accept else STEP_END, None, rest, 0, 0, 0, None
