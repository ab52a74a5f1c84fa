"""A frame's closure in which each construct is entered once, whatever may come after it.

Where a grammar can be read in many ways, the same construct is reached over many stacks without reading a byte: an
operand of an expression from each operator that may follow it, what `%ignore` names from each token. The plain closure
(`closure.py`) has a frame, and a position, for each of them. Here, a construct is a `Place` with all the ways to go on
after it, the node of a graph-structured stack, as in GLL parsing (Scott and Johnstone, "GLL parsing", 2010). Ways are
added while the closure is made. At the end, each place that text is read over gets a frame: that of its only way, or a
fork of them. The language is the same. The kernel has the same in ``kernel/shared.c``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from constrained.automaton.positions import Bottom, Env, Fork, Frame, Position, Reached, Stack
from constrained.grammar import nodes as n
from constrained.grammar.json_text import JsonText
from constrained.grammar.members import MemberSequence


class _Place:
    """A construct that the closure has reached, and the ways to go on after it.

    Attributes
    ----------
    passed : bool
        Whether the construct may be empty, so that the ways are entered, too.
    frame : Frame, None or False
        What stands for the ways on a stack; False before it is made.
    """

    __slots__ = ("env", "frame", "node", "passed", "seen", "ways")

    def __init__(self, node: n.Node, env: Env):
        self.node, self.env = node, env
        self.ways: list[_Way] = []
        self.seen: set[tuple[int, int]] = set()
        self.passed = False
        self.frame: Stack | bool = False


class _Way:
    """One way to continue: `node` (None: nothing) and then what comes after the place `below`; or the frame `below`."""

    __slots__ = ("again", "below", "node")

    def __init__(self, node: n.Node | None, below: _Place | Stack, again: bool = False):
        self.node, self.below, self.again = node, below, again  # again: `node` is the rest of a repeat


class Apart(Exception):
    """The closure can't share constructs, for example because a template's parameter belongs to one stack."""


class SharedClosure:
    """Computes one closure; call :meth:`positions` once."""

    def __init__(self, closure: Any):  # a `closure.Closure`, whose module imports this one
        self._closure = closure
        self._frames = closure._frames
        self._places: dict[tuple[int, int], _Place] = {}
        self._work: list[_Place] = []
        self._passing: list[_Way] = []
        self._entered: set[Stack] = set()
        self._ends: list[tuple[Position, Stack]] = []
        self._leaves: list[tuple[Callable[[Stack], Reached], _Place, bool]] = []
        self.steps = 0

    def positions(self, start: Frame) -> dict[Position, Stack]:
        """The positions reached from `start`, each with the frame whose node is read there.

        Raises
        ------
        Apart
            They can't be found in this way.
        """
        self._passing.append(_Way(None, start))
        while self._passing or self._work:
            if self._passing:
                self._pass_way(self._passing.pop())
            else:
                self._expand(self._work.pop())
        out = dict(self._ends)
        for make, place, inside in self._leaves:
            rest = self._frozen(place)
            frame = self._frames.frame(place.node, place.env, rest)
            out.update(dict.fromkeys(make(frame if inside else rest), frame))
        return out

    def _reach(self, node: n.Node, env: Env, way: _Way) -> None:
        """Note that `node` is reached, and `way` as one way to continue after it."""
        if env.values:
            raise Apart
        self.steps += 1
        self._closure.check(self.steps)
        while isinstance(node, n.RuleRef) and not node.args:
            node = env.grammar.rules[node.rule].body
        key = id(node), id(env)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = _Place(node, env)
            self._work.append(place)
        told = id(way.node), id(way.below)
        if (way.node is None and way.below is place) or told in place.seen:
            return
        place.seen.add(told)
        place.ways.append(way)
        if place.passed:
            self._passing.append(way)

    def _pass(self, place: _Place) -> None:
        """Note that the construct of `place` may be empty, and enter what comes after it."""
        if not place.passed:
            place.passed = True
            self._passing += place.ways

    def _pass_way(self, way: _Way) -> None:
        below = way.below
        if isinstance(below, _Place):
            if way.node is None or way.again:  # if one item of the repeat may be empty, all remaining items may be
                self._pass(below)
            else:
                self._reach(way.node, below.env, _Way(None, below))
        elif below not in self._entered:
            self._entered.add(below)
            if below is None:
                self._ends.append((self._closure.positions.accept, None))
            elif isinstance(below, Bottom):
                self._ends.append((self._closure.bottom, below))
            elif isinstance(below, Fork):
                self._passing += [_Way(None, one) for one in below.ways]
            else:
                self._reach(below.node, below.env, _Way(None, below.next))

    def _expand(self, place: _Place) -> None:
        """Enter the construct of `place`."""
        node, env, positions = place.node, place.env, self._closure.positions
        onward: tuple[n.Node, ...] = ()
        if isinstance(node, n.Seq):
            if not node.items:
                self._pass(place)
            elif len(node.items) == 1:
                onward = node.items
            else:
                self._reach(node.items[0], env, _Way(self._frames.tail(node), place))
        elif isinstance(node, n.Alt):
            onward = node.items
        elif isinstance(node, n.Repeat):
            self._expand_repeat(node, place)
        elif isinstance(node, n.LiteralText):
            self._leaf(place, lambda rest: (positions.literal(node.data, 0, rest),))
        elif isinstance(node, n.Chars):
            self._leaf(place, lambda rest: (positions.text(node.chars, None, 1, 1, rest),))
        elif isinstance(node, n.Choices):
            low, high = int(not node.values[0]), len(node.values)
            if low < high:
                self._leaf(place, lambda rest: (positions.choices(node.values, low, high, 0, None, rest),))
            if low:
                self._pass(place)
        elif isinstance(node, n.Except):
            self._leaf(place, lambda rest: (positions.unlike(node.chars, node.values, 0, len(node.values), 0, rest),))
            if node.values[0]:
                self._pass(place)
        elif isinstance(node, MemberSequence):
            names = self._frames.text_list(node.names)
            if names:
                into = self._closure.into_choices
                self._leaf(place, lambda frame: into(names, 0, len(names), 0, "", frame), inside=True)
            onward = () if node.free is n.NEVER else (node.free,)
        elif isinstance(node, JsonText) and node.table is not None:
            table, high_ = node.table, node.high
            self._leaf(place, lambda rest: (positions.json_text(table, 0, high_, 0, rest),))
        elif isinstance(node, JsonText):
            onward = (node.written,)
        elif isinstance(node, n.Lazy):
            onward = (node.node,)
        else:  # slots and calls with arguments
            raise Apart
        for each in onward:
            self._reach(each, env, _Way(None, place))

    def _leaf(self, place: _Place, make: Callable[[Stack], Reached], inside: bool = False) -> None:
        """Note that `make` makes positions that read text above the stack of `place`, or (`inside`) above its frame."""
        self._leaves.append((make, place, inside))

    def _expand_repeat(self, node: n.Repeat, place: _Place) -> None:
        low, high, env, positions = node.low, node.high, place.env, self._closure.positions
        self._frames.know_repeat(node)
        looped = self._closure.looped(node.item, env) if high is not None and high > 1 else None
        if isinstance(node.item, n.Chars):
            chars = node.item.chars
            self._leaf(place, lambda rest: (positions.text(chars, None, low, high, rest),))
        elif looped:
            of, loop = looped
            self._leaf(place, lambda rest: (positions.loop(of.chars, None, low, high, rest, loop),))
        elif high == 1:
            self._reach(node.item, env, _Way(None, place))
        else:
            after = self._frames.repeat(node.item, max(low - 1, 0), None if high is None else high - 1)
            self._reach(node.item, env, _Way(after, place, again=True))
        if not low:
            self._pass(place)

    def _frozen(self, first: _Place) -> Stack:
        """The frame that stands for what comes after `first`; the frames below it are made first."""
        work, busy = [first], set()
        while work:
            place = work[-1]
            if place.frame is not False:
                work.pop()
                continue
            ways = _gathered(place)
            missing = [w.below for w in ways if isinstance(w.below, _Place) and w.below.frame is False]
            if missing:
                if place in busy:
                    raise Apart  # a construct that comes back to itself
                busy.add(place)
                work += missing
                continue
            frames = {self._frame_of(way) for way in ways}
            if len(frames) > 1 and any(frame is not None and frame.env.values for frame in frames):
                raise Apart
            place.frame = frames.pop() if len(frames) == 1 else self._closure.stacks.join(frames)
            work.pop()
        assert not isinstance(first.frame, bool), "it was made"
        return first.frame

    def _frame_of(self, way: _Way) -> Stack:
        below = way.below
        if not isinstance(below, _Place):
            return below
        assert way.node is not None and not isinstance(below.frame, bool), "gathered, and made before"
        return self._frames.frame(way.node, below.env, below.frame)


def _gathered(place: _Place) -> list[_Way]:
    """The ways to continue after `place`; a way that only refers to another place is replaced by that place's ways."""
    result: list[_Way] = []
    seen, work = {place}, [place]
    while work:
        for way in work.pop().ways:
            if way.node is not None or not isinstance(way.below, _Place):
                result.append(way)
            elif way.below not in seen:
                seen.add(way.below)
                work.append(way.below)
    return result
