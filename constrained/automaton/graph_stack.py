"""Stacks that share what they can: a graph-structured stack, where there are many ways to read one text.

Where rules begin alike (``s: t "b" | u "c"``, both of which read ``"a" s``), one text can leave
2^depth stacks. Positions that read the same are joined into one, whose stack forks below; the ways
of a fork that begin with the same construct share it, and fork below that. Repeats of the same
item that differ only in their counts become one, if the counts leave no gap (``x{1,3}`` or
``x{2,9}`` is ``x{1,9}``). The language stays the same: that of a fork is the union of its ways'.
"""

from __future__ import annotations

from collections.abc import Iterable

from constrained.automaton.positions import (
    Accept,
    Bottom,
    Fork,
    Frame,
    Frames,
    InChoices,
    InLoop,
    InText,
    Position,
    Positions,
    Reached,
    Stack,
    Unbound,
)
from constrained.grammar import nodes as n
from constrained.limits import Limits

CROWD = 8
"""Positions of one state that are left as they are; among more, stacks are joined."""

NEAR = 6
"""Frames that a mask's walk seldom gets through (two or three levels of brackets); at most 16."""

DEEP = 24
"""Frames of a stack from which on the kernel shares its masks with stacks of the same top `NEAR` frames. Sharing costs
more than a few masks do."""

Ways = tuple[Stack, ...]


class GraphStack:
    """Joins frames, and positions that differ only in their frames."""

    def __init__(self, frames: Frames, positions: Positions, limits: Limits):
        self._frames, self._positions, self._limits = frames, positions, limits
        self._depth, self._joins = 0, 0  # of the join that is under way
        self._joined: dict[Ways, Stack] = {}
        self._shapes: dict[tuple, n.Node] = {}
        self._alike: dict[int, tuple[n.Node, n.Node]] = {}  # with the node, whose id is the key
        self._numbers: dict[int, tuple[n.Node, int]] = {}  # of their shapes, likewise

    def join(self, frames: Iterable[Stack]) -> Stack:
        """One frame for all of `frames`.

        Raises
        ------
        LimitError
            The stacks share so little that joining them takes more than `joins` steps.
        """
        self._joins = self._joins + 1 if self._depth else 1
        self._limits.check(
            "joins", self._joins, "too many ways to read the text so far", "make the grammar less ambiguous"
        )
        self._depth += 1
        try:
            return self._joined_frame(frames)
        finally:
            self._depth -= 1

    def _joined_frame(self, frames: Iterable[Stack]) -> Stack:
        root = self._join_counts(alternatives(frames))
        work = [root]
        while work:  # first what is below, where ways begin alike
            ways = work[-1]
            if ways in self._joined or len(ways) == 1:
                work.pop()
                continue
            below = {
                head: self._join_counts(alternatives(way.next for way in same if way))
                for head, same in self._by_head(ways).items()
                if len(same) > 1
            }
            missing = [b for b in below.values() if len(b) > 1 and b not in self._joined]
            work += missing
            if not missing:
                self._joined[ways] = self._fork(ways, below)
        return root[0] if len(root) == 1 else self._joined[root]

    def _fork(self, ways: Ways, below: dict[tuple, Ways]) -> Stack:
        """A fork of `ways`, those of the same head (a key of `below`) made one."""
        made: list[Stack] = []
        for head, same in self._by_head(ways).items():
            if head in below:
                after = below[head]
                first = same[0]
                assert first is not None, "the end of the text has a head of its own"
                made.append(
                    self._frames.frame(first.node, first.env, after[0] if len(after) == 1 else self._joined[after])
                )
            else:
                made += same
        again = self._join_counts(alternatives(made))
        if len(again) == 1:
            return again[0]
        if again != ways:  # what was made may have other heads, or other counts of the same
            return self.join(again)
        return self._frames.fork(again)

    def _join_counts(self, ways: Ways) -> Ways:
        """`ways`, repeats that differ only in their counts made one."""
        if sum(way is not None and isinstance(way.node, n.Repeat) for way in ways) < 2:
            return ways
        repeats: dict[tuple, list[tuple[Frame, n.Repeat]]] = {}
        out: list[Stack] = []
        for way in ways:
            if way is not None and isinstance(way.node, n.Repeat) and not is_open(way):
                key = id(self._like(way.node.item)), id(way.env), way.next
                repeats.setdefault(key, []).append((way, way.node))
            else:
                out.append(way)
        for same in repeats.values():
            first, node = same[0]
            if len(same) == 1:
                out.append(first)
                continue
            for low, high in union((repeat.low, repeat.high) for _, repeat in same):
                out.append(self._frames.frame(self._frames.repeat(node.item, low, high), first.env, first.next))
        return alternatives(out)

    def _by_head(self, ways: Ways) -> dict[tuple, list[Stack]]:
        """The ways by the construct they go on with; open parameters keep a way apart."""
        heads: dict[tuple, list[Stack]] = {}
        for way in ways:
            if way is None or isinstance(way, (Fork, Bottom)) or is_open(way):
                head = id(way), 0
            else:
                head = id(self._like(way.node)), id(way.env)
            heads.setdefault(head, []).append(way)
        return heads

    def _like(self, node: n.Node) -> n.Node:
        """One node for all that read the same; what follows an action stays the action's own (see `ActionGraph`)."""
        found = self._alike.get(id(node))
        if found is None:
            like = node if n.has_step(node) else self._first_alike(node)
            found = self._alike[id(node)] = node, like
        return found[1]

    def _first_alike(self, node: n.Node) -> n.Node:
        return self._shapes.setdefault(n.shape(node, self._shape), node)

    def _shape(self, node: n.Node) -> int:
        """A number for all nodes of one shape."""
        found = self._numbers.get(id(node))
        if found is None:
            found = self._numbers[id(node)] = node, id(self._first_alike(node))
        return found[1]

    def join_positions(self, positions: Reached) -> Reached:
        """`positions`; where they are many, those that differ only in their stacks joined."""
        if len(positions) <= CROWD:
            return positions
        texts: dict[tuple, list[InText]] = {}
        alike: dict[tuple, list[Position]] = {}
        for q in positions:
            if isinstance(q, InText) and not isinstance(q, InLoop):
                texts.setdefault((id(q.chars), q.inside, q.rest), []).append(q)
            else:
                alike.setdefault(q.reads() if _is_joinable(q) else (q,), []).append(q)
        for same in texts.values():
            first = same[0]
            for low, high in union((q.low, q.high) for q in same) if len(same) > 1 else ((first.low, first.high),):
                text = self._positions.text(first.chars, first.inside, low, high, first.rest)
                alike.setdefault(text.reads() if _is_joinable(text) else (text,), []).append(text)
        return tuple(
            like[0] if len(like) == 1 else self._positions.with_rest(like[0], self.join(q.rest for q in like))
            for like in alike.values()
        )


def union(counts: Iterable[tuple[int, int | None]]) -> list[tuple[int, int | None]]:
    """Ranges of counts (None: no end), those that leave no gap made one."""
    out: list[tuple[int, int | None]] = []
    for low, high in sorted(counts, key=lambda count: count[0]):
        before, last = out[-1] if out else (0, -2)
        if last is None or low <= last + 1:
            out[-1] = before, None if last is None or high is None else max(last, high)
        else:
            out.append((low, high))
    return out


def alternatives(frames: Iterable[Stack]) -> Ways:
    """The frames, forks taken apart, each once and in order."""
    found: dict[int, Stack] = {}
    for frame in frames:
        for way in frame.ways if isinstance(frame, Fork) else (frame,):
            found[-1 if way is None else way.number] = way
    return tuple(found[number] for number in sorted(found))


def forks_below(frame: Stack, known) -> list[Fork]:
    """The forks that `frame` leads to, lower ones first, as far down as to what is in `known`."""
    found: dict[int, Fork] = {}
    work = [frame]
    while work:
        top = work.pop()
        while top is not None and top not in known and not isinstance(top, (Fork, Bottom)):
            top = top.next
        if isinstance(top, Fork) and top not in known and top.number not in found:
            found[top.number] = top
            work += top.ways
    return [found[number] for number in sorted(found)]


def _is_joinable(q: Position) -> bool:
    """Whether nothing read later can still fix a parameter in the stack of `q`."""
    binds = isinstance(q, InChoices) and q.bind is not None
    return not binds and not isinstance(q, Accept) and not is_open(q.rest)


def is_open(frame: Stack) -> bool:
    """Whether a parameter of the call that `frame` is a part of has no value yet."""
    return frame is not None and any(isinstance(value, Unbound) for value in frame.env.values.values())


def open_levels(state, known: dict[Stack, dict]) -> int:
    """How deep the stacks of `state` nest: the most times that one construct stands open in one of them.

    Parameters
    ----------
    state : State
    known : dict
        Frame -> times that each construct stands open from there down; grows with each call.
    """
    known.setdefault(None, {})
    deepest = 0
    for q in state.positions:
        for fork in forks_below(q.rest, known):
            most: dict = {}
            for way in fork.ways:
                for head, times in _open_constructs(way, known).items():
                    most[head] = max(times, most.get(head, 0))
            known[fork] = most
        deepest = max(deepest, *_open_constructs(q.rest, known).values(), 0)
    return deepest


def _open_constructs(frame: Stack, known: dict[Stack, dict]) -> dict:
    """How often each construct stands open from `frame` down."""
    chain = []
    below = frame
    while below is not None and below not in known:
        chain.append(below)
        below = below.next
    for part in reversed(chain):
        head = id(part.node), id(part.env)
        known[part] = {**known[part.next], head: known[part.next].get(head, 0) + 1}
    return known[frame]
