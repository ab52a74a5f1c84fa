"""Positions: where in the grammar the next byte is read, and what comes after.

A position is what to read now plus a stack of frames, the rest of each construct that
is still open. Frames are interned, so equal rests are one object. Tail calls leave no
frame, so right recursion loops instead of growing; other recursion is a stack as deep as
the text nests. Nothing is made before generation reaches it; a bounded repeat is two
numbers in a frame or position.
"""

from __future__ import annotations

from bisect import bisect_left
from os.path import commonprefix

from constrained.grammar.charset import DONE, CharSet
from constrained.grammar.nodes import Node


class Env:
    """The values of one rule call's template parameters.

    Attributes
    ----------
    grammar : Grammar
        Whose rules and slots names refer to.
    values : dict
        Parameter -> bytes (bound), :class:`Thunk`, or :class:`Unbound`.
    level : int
        0 or 1, where there are values never that of the frame below: tells the frames of neighbouring calls apart.
        (No more than that, so that calls at different depths of a stack share what they can.)
    """

    __slots__ = ("grammar", "level", "values")

    def __init__(self, grammar, values: dict, level: int):
        self.grammar, self.values, self.level = grammar, values, level


class Thunk:
    """A template argument that is a piece of grammar, with the parameters it may use."""

    __slots__ = ("env", "node")

    def __init__(self, node: Node, env: Env):
        self.node, self.env = node, env

    def __eq__(self, other):
        return isinstance(other, Thunk) and self.node is other.node and self.env is other.env

    def __hash__(self):
        return hash((id(self.node), id(self.env)))


class Unbound:
    """A template argument that is a slot: one of `values`, chosen where it is first written."""

    __slots__ = ("values",)

    def __init__(self, values: tuple[bytes, ...]):
        self.values = values

    def __eq__(self, other):
        return isinstance(other, Unbound) and self.values is other.values

    def __hash__(self):
        return id(self.values)

    def __iter__(self):
        return iter(self.values)


class Frame:
    """What is still to be read once the current construct is done; None ends the text."""

    __slots__ = ("closure", "depth", "env", "next", "node", "number")

    def __init__(self, node: Node, env: Env, next: Frame | None, number: int):
        self.node, self.env, self.next, self.number = node, env, next, number
        self.closure = None
        self.depth = 1 if next is None else next.depth + 1  # frames from here down to the end, or a fork


class Fork(Frame):
    """Stacks that differ below what is being read: any of `ways` (frames, or None) goes on.

    A node of a graph-structured stack (Tomita, "An efficient augmented-context-free parsing algorithm", 1987).
    """

    __slots__ = ("ways",)

    def __init__(self, ways: tuple[Frame | None, ...], number: int):
        super().__init__(None, None, None, number)
        self.ways = ways


class Bottom(Frame):
    """Any stack: what is below is left open."""

    __slots__ = ()

    def __init__(self, number: int):
        super().__init__(None, None, None, number)


class Position:
    """Base: `number` orders positions, `step(byte)` gives the positions after it."""

    __slots__ = ("_steps", "number", "rest")

    def reads(self) -> tuple:
        """Equal for positions that read the same and differ in their frames alone."""
        return (type(self),)

    def step(self, automaton, byte: int) -> tuple:
        found = self._steps.get(byte)
        if found is None:
            found = self._steps[byte] = self._step(automaton, byte)
        return found

    def run(self, automaton) -> tuple[bytes, tuple] | None:
        """The one way to go on, as far as that is known without a step, and the positions after it; None: not known."""
        return None


class Accept(Position):
    """The text is complete."""

    __slots__ = ()

    def first(self):
        return ()

    def _step(self, automaton, byte):
        return ()


class StepEnd(Position):
    """An action is complete; `rest` is what may follow it."""

    __slots__ = ()

    def first(self):
        return ()

    def _step(self, automaton, byte):
        return ()


class InLiteral(Position):
    """Before `data[at]`."""

    __slots__ = ("at", "data")

    def reads(self):
        return InLiteral, self.data, self.at

    def first(self):
        return (self.data[self.at],)

    def run(self, automaton):
        return self.data[self.at :], automaton.enter(self.rest)

    def _step(self, automaton, byte):
        if byte != self.data[self.at]:
            return ()
        if self.at + 1 == len(self.data):
            return automaton.enter(self.rest)
        return (automaton.in_literal(self.data, self.at + 1, self.rest),)


class InChoices(Position):
    """Before byte `depth` of `values[low:high]`, which agree on the bytes before it.

    `bind` names the template parameter that the finished choice gives a value, if any.
    """

    __slots__ = ("bind", "depth", "high", "low", "values")

    def reads(self):
        return InChoices, id(self.values), self.low, self.high, self.depth, self.bind

    def first(self):
        out, at = [], self.low
        while at < self.high:
            byte = self.values[at][self.depth]
            out.append(byte)
            at = self._after(byte, at)
        return out

    def run(self, automaton):
        shared = commonprefix((self.values[self.low], self.values[self.high - 1]))  # sorted: all have it
        if len(shared) == self.depth:
            return None
        after = automaton.into_choices(self.values, self.low, self.high, len(shared), self.bind, self.rest)
        return shared[self.depth :], after

    def _after(self, byte: int, at: int) -> int:
        if byte == 255:
            return self.high
        head = self.values[at][: self.depth] + bytes((byte + 1,))
        return bisect_left(self.values, head, at, self.high)

    def _step(self, automaton, byte):
        head = self.values[self.low][: self.depth] + bytes((byte,))
        low = bisect_left(self.values, head, self.low, self.high)
        if low == self.high or self.values[low][self.depth] != byte:
            return ()
        high = self._after(byte, low)
        return automaton.into_choices(self.values, low, high, self.depth + 1, self.bind, self.rest)


class InText(Position):
    """Inside a run of characters of one set: `low` to `high` more, the current one included.

    `inside` is the state within a character, None before one. `high` None: without end.
    """

    __slots__ = ("chars", "high", "inside", "low")

    chars: CharSet

    def reads(self):
        return InText, id(self.chars), self.inside, self.low, self.high

    def first(self):
        return self.chars.edges(self.inside).keys()

    def _step(self, automaton, byte):
        state = self.chars.edges(self.inside).get(byte)
        if state is None:
            return ()
        if state is not DONE and state != DONE:
            return (automaton.in_text(self.chars, state, self.low, self.high, self.rest),)
        low = self.low - 1 if self.low else 0
        high = None if self.high is None else self.high - 1
        more = () if high == 0 else (automaton.in_text(self.chars, None, low, high, self.rest),)
        return more if low else more + automaton.enter(self.rest)
