"""A graph-structured stack: the stacks of an ambiguous text share their common parts.

Where two rules begin with the same text (``s: t "b" | u "c"``, where both `t` and `u` read ``"a" s``), one text can
leave 2^depth stacks. Positions that read the same are joined into one, and the joined stack forks below it. Branches
of a fork that begin with the same construct share that construct, and fork below it. Repeats of the same item that
differ only in their counts become one if the counts leave no gap (``x{1,3}`` or ``x{2,9}`` is ``x{1,9}``). The language
stays the same: the language of a fork is the union of those of its branches.
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
"""States with more positions than this have their stacks joined."""

NEAR = 6
"""Frames that the walk for one mask seldom gets past (two or three levels of brackets); at most 16."""

DEEP = 24
"""Stacks of at least this many frames share their masks in the kernel with stacks that have the same top `NEAR` frames.
Below that, sharing costs more than computing a few masks."""

CROWDED = 32
"""From this many positions on, a closure is looked at: where half as many positions differ from others only in their
stacks, it is made anew by `shared_closure`."""

Ways = tuple[Stack, ...]


class GraphStack:
    """Joins frames, and positions that differ only in their frames."""

    def __init__(self, frames: Frames, positions: Positions, limits: Limits, has_steps: bool):
        self._frames, self._positions, self._limits = frames, positions, limits
        self._has_steps = has_steps  # whether the grammar has ends of actions
        self._depth, self._joins = 0, 0  # recursion depth and steps of the current join
        self._joined: dict[Ways, Stack] = {}
        self._shapes: dict[tuple, n.Node] = {}
        # Keys are ids of nodes; each value also holds the node, which keeps the id valid.
        self._alike: dict[int, tuple[n.Node, n.Node]] = {}
        self._numbers: dict[int, tuple[n.Node, int]] = {}

    def join(self, frames: Iterable[Stack]) -> Stack:
        """One frame that stands for all of `frames`.

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
        while work:  # before merging branches with the same construct on top, join the stacks below it
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
        """A fork of `ways`, after merging those with the same head (a key of `below`)."""
        made: list[Stack] = []
        for head, same in self._by_head(ways).items():
            if head in below:
                after = below[head]
                first = same[0]
                assert first is not None, "only the end of the text has this head"
                made.append(
                    self._frames.frame(first.node, first.env, after[0] if len(after) == 1 else self._joined[after])
                )
            else:
                made += same
        again = self._join_counts(alternatives(made))
        if len(again) == 1:
            return again[0]
        if again != ways:  # a merged branch may have another head, or another count
            return self.join(again)
        return self._frames.fork(again)

    def _join_counts(self, ways: Ways) -> Ways:
        """`ways` after merging repeats that differ only in their counts."""
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
            for low, high in merged_counts((repeat.low, repeat.high) for _, repeat in same):
                out.append(self._frames.frame(self._frames.repeat(node.item, low, high), first.env, first.next))
        return alternatives(out)

    def _by_head(self, ways: Ways) -> dict[tuple, list[Stack]]:
        """Group the branches by the construct on top. A branch with open parameters is a group of its own."""
        heads: dict[tuple, list[Stack]] = {}
        for way in ways:
            if way is None or isinstance(way, (Fork, Bottom)) or is_open(way):
                head = id(way), 0
            else:
                head = id(self._like(way.node)), id(way.env)
            heads.setdefault(head, []).append(way)
        return heads

    def _like(self, node: n.Node) -> n.Node:
        """The representative of all nodes that read the same as `node`; `node` itself if an action can end in it."""
        cached = self._alike.get(id(node))
        if cached is None:
            like = node if self._has_steps and n.has_step(node) else self._first_alike(node)
            cached = self._alike[id(node)] = node, like
        return cached[1]

    def _first_alike(self, node: n.Node) -> n.Node:
        return self._shapes.setdefault(n.shape(node, self._shape), node)

    def _shape(self, node: n.Node) -> int:
        """The number of the node's shape: nodes that read the same have the same number."""
        cached = self._numbers.get(id(node))
        if cached is None:
            cached = self._numbers[id(node)] = node, id(self._first_alike(node))
        return cached[1]

    def join_positions(self, positions: Reached) -> Reached:
        """Join positions that differ only in their stacks, if there are more than `CROWD`."""
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
            counts = merged_counts((q.low, q.high) for q in same) if len(same) > 1 else [(first.low, first.high)]
            for low, high in counts:
                text = self._positions.text(first.chars, first.inside, low, high, first.rest)
                alike.setdefault(text.reads() if _is_joinable(text) else (text,), []).append(text)
        return tuple(
            like[0] if len(like) == 1 else self._positions.with_rest(like[0], self.join(q.rest for q in like))
            for like in alike.values()
        )


def merged_counts(counts: Iterable[tuple[int, int | None]]) -> list[tuple[int, int | None]]:
    """Merge ranges of counts that leave no gap between them (None: no upper end)."""
    out: list[tuple[int, int | None]] = []
    for low, high in sorted(counts, key=lambda count: count[0]):
        before, last = out[-1] if out else (0, -2)
        if last is None or low <= last + 1:
            out[-1] = before, None if last is None or high is None else max(last, high)
        else:
            out.append((low, high))
    return out


def alternatives(frames: Iterable[Stack]) -> Ways:
    """The frames, with forks replaced by their branches, without duplicates and in order of their numbers."""
    result: dict[int, Stack] = {}
    for frame in frames:
        for way in frame.ways if isinstance(frame, Fork) else (frame,):
            result[-1 if way is None else way.number] = way
    return tuple(result[number] for number in sorted(result))


def forks_below(frame: Stack, known) -> list[Fork]:
    """The forks below `frame`, lower ones first, down to frames that are in `known`."""
    result: dict[int, Fork] = {}
    work = [frame]
    while work:
        top = work.pop()
        while top is not None and top not in known and not isinstance(top, (Fork, Bottom)):
            top = top.next
        if isinstance(top, Fork) and top not in known and top.number not in result:
            result[top.number] = top
            work += top.ways
    return [result[number] for number in sorted(result)]


def _is_joinable(q: Position) -> bool:
    """Whether no text read later can fix a parameter in the stack of `q`."""
    binds = isinstance(q, InChoices) and q.bind is not None
    return not binds and not isinstance(q, Accept) and not is_open(q.rest)


def is_open(frame: Stack) -> bool:
    """Whether the call that `frame` belongs to has a parameter without a value."""
    return frame is not None and any(isinstance(value, Unbound) for value in frame.env.values.values())


def open_levels(state, known: dict[Stack, dict]) -> int:
    """The nesting depth of the stacks of `state`: how often one construct is open in one of them, at most.

    Parameters
    ----------
    state : State
    known : dict
        Frame -> how often each construct is open from there down; a cache that this function fills.
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
    """How often each construct is open from `frame` down."""
    chain = []
    below = frame
    while below is not None and below not in known:
        chain.append(below)
        below = below.next
    for part in reversed(chain):
        head = id(part.node), id(part.env)
        known[part] = {**known[part.next], head: known[part.next].get(head, 0) + 1}
    return known[frame]
