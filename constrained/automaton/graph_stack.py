"""Stacks that share what they can: a graph-structured stack, where there are many ways to read one text.

Where rules begin alike (``s: t "b" | u "c"``, both of which read ``"a" s``), one text can leave
2^depth stacks. Positions that read the same are joined into one, whose stack forks below; the ways
of a fork that begin with the same construct share it, and fork below that. Repeats of the same that
differ only in their counts are one, if the counts leave no gap (``x{1,3}`` or ``x{2,9}`` is
``x{1,9}``). What may follow is the same: the language of a fork is the union of its ways'.
"""

from __future__ import annotations

from collections.abc import Iterable

from constrained.automaton import positions as p
from constrained.automaton.interning import Interning
from constrained.grammar import nodes as n

CROWD = 8
"""Positions of one state that are left as they are; among more, stacks are joined."""

NEAR = 6
"""Frames that a mask's walk seldom gets through: two or three levels of brackets."""

DEEP = 24
"""Frames of a stack from which on its masks are shared with others that have the same top; to share costs more than a
few masks do."""


class Stacks(Interning):
    """Joins frames, and positions that differ only in their frames."""

    def __init__(self, limits):
        super().__init__(limits)
        self._joined: dict[tuple, p.Frame | None] = {}
        self._shapes: dict[tuple, n.Node] = {}
        self._alike: dict[int, n.Node] = {}

    def join(self, frames: Iterable[p.Frame | None]) -> p.Frame | None:
        """One frame for all of `frames`."""
        root = self._counted(alternatives(frames))
        work = [root]
        while work:
            ways = work[-1]
            if ways in self._joined or len(ways) == 1:
                work.pop()
                continue
            below = {
                head: self._counted(alternatives(w.next for w in same))
                for head, same in self._by_head(ways).items()
                if len(same) > 1
            }
            missing = [b for b in below.values() if len(b) > 1 and b not in self._joined]
            work += missing
            if not missing:
                self._joined[ways] = self._fork(ways, below)
        return root[0] if len(root) == 1 else self._joined[root]

    def _fork(self, ways: tuple, below: dict) -> p.Frame | None:
        """A fork of `ways`, those of the same head (a key of `below`) made one."""
        made: list[p.Frame | None] = []
        for head, same in self._by_head(ways).items():
            if head in below:
                after = below[head]
                after = after[0] if len(after) == 1 else self._joined[after]
                same = [self.frame(same[0].node, same[0].env, after)]
            made += same
        again = self._counted(alternatives(made))
        if len(again) == 1:
            return again[0]
        if again != ways:  # what was made may have other heads, or other counts of the same
            return self.join(again)
        return self.fork(again)

    def _counted(self, ways: tuple) -> tuple:
        """`ways`, repeats that differ only in their counts made one."""
        if sum(isinstance(w, p.Frame) and isinstance(w.node, n.Repeat) for w in ways) < 2:
            return ways
        alike: dict[tuple, list] = {}
        for way in ways:
            counted = way is not None and isinstance(way.node, n.Repeat) and not is_open(way)
            key = (id(self._like(way.node.item)), id(way.env), way.next) if counted else (way,)
            alike.setdefault(key, []).append(way)
        out = []
        for same in alike.values():
            if len(same) > 1:
                item, env, after = same[0].node.item, same[0].env, same[0].next
                counts = union((way.node.low, way.node.high) for way in same)
                same = [self.frame(self.repeat(item, low, high), env, after) for low, high in counts]
            out += same
        return alternatives(out)

    def _by_head(self, ways: tuple) -> dict[tuple, list]:
        """The ways by the construct they go on with; open parameters keep a way apart."""
        heads: dict[tuple, list] = {}
        for way in ways:
            apart = way is None or way.node is None or is_open(way)
            head = (id(way), 0) if apart else (id(self._like(way.node)), id(way.env))
            heads.setdefault(head, []).append(way)
        return heads

    def _like(self, node: n.Node) -> n.Node:
        """One node for all that read the same; what follows an action is the action's own (see `ActionGraph.ended_by`)."""
        found = self._alike.get(id(node))
        if found is None:
            found = node if n.ends_action(node) else self._shapes.setdefault(n.shape(node), node)
            self._alike[id(node)] = found
            self._keep.append(node)  # the key holds its id
        return found

    def crowd(self, positions: tuple) -> tuple:
        """`positions`, where they are many those joined that differ only in their stacks."""
        if len(positions) <= CROWD:
            return positions
        texts: dict[tuple, list[p.InText]] = {}
        alike: dict[tuple, list[p.Position]] = {}
        for q in positions:
            if isinstance(q, p.InText):
                texts.setdefault((id(q.chars), q.inside, q.rest), []).append(q)
            else:
                alike.setdefault(q.reads() if joinable(q) else (q,), []).append(q)
        for same in texts.values():
            first = same[0]
            for low, high in union((q.low, q.high) for q in same) if len(same) > 1 else ((first.low, first.high),):
                q = self.in_text(first.chars, first.inside, low, high, first.rest)
                alike.setdefault(q.reads() if joinable(q) else (q,), []).append(q)
        return tuple(
            same[0] if len(same) == 1 else self.on(same[0], self.join(q.rest for q in same)) for same in alike.values()
        )

    def near(self, frame: p.Frame | None) -> p.Frame | None:
        """A deep stack's top, and below it any stack: the same mask, if its walk gets no deeper.

        Stacks with template parameters, whose values may be tied further down, and forks stay as they are.
        """
        if frame is None or frame.depth <= DEEP:
            return frame
        top: list[p.Frame] = []
        below = frame
        while len(top) < NEAR:
            if below.node is None or below.env.values:
                return frame
            top.append(below)
            below = below.next
        below = self.bottom_frame()
        for part in reversed(top):
            below = self.frame(part.node, part.env, below)
        return below

    def on(self, q: p.Position, rest: p.Frame | None) -> p.Position:
        """The position that reads what `q` reads, and then goes on with `rest`."""
        if isinstance(q, p.InLiteral):
            return self.in_literal(q.data, q.at, rest)
        if isinstance(q, p.InText):
            return self.in_text(q.chars, q.inside, q.low, q.high, rest)
        if isinstance(q, p.InChoices):
            return self.in_choices(q.values, q.low, q.high, q.depth, q.bind, rest)
        return self.step_end(rest)


def union(counts: Iterable[tuple[int, int | None]]) -> list[tuple[int, int | None]]:
    """Ranges of counts (None: no end), those that leave no gap made one."""
    out: list[tuple[int, int | None]] = []
    for low, high in sorted(counts, key=lambda c: c[0]):
        if out and (out[-1][1] is None or low <= out[-1][1] + 1):
            before, last = out[-1]
            out[-1] = before, None if last is None or high is None else max(last, high)
        else:
            out.append((low, high))
    return out


def forks_below(frame: p.Frame | None, known) -> list[p.Fork]:
    """The forks that `frame` leads to, lower ones first, as far down as to what is in `known`."""
    found: dict[int, p.Fork] = {}
    work = [frame]
    while work:
        top = work.pop()
        while top is not None and top not in known and top.node is not None:
            top = top.next
        if isinstance(top, p.Fork) and top not in known and top.number not in found:
            found[top.number] = top
            work += top.ways
    return [found[number] for number in sorted(found)]


def joinable(q: p.Position) -> bool:
    """Whether nothing read later can still fix a parameter in the stack of `q`."""
    return not isinstance(q, p.Accept) and getattr(q, "bind", None) is None and not is_open(q.rest)


def is_open(frame: p.Frame | None) -> bool:
    """Whether a parameter of the call that `frame` is a part of has no value yet."""
    env = None if frame is None else frame.env
    return env is not None and any(isinstance(v, p.Unbound) for v in env.values.values())


def alternatives(frames: Iterable[p.Frame | None]) -> tuple[p.Frame | None, ...]:
    """The frames, forks taken apart, each once and in order."""
    found: dict[int, p.Frame | None] = {}
    for frame in frames:
        for way in frame.ways if isinstance(frame, p.Fork) else (frame,):
            found[-1 if way is None else way.number] = way
    return tuple(found[number] for number in sorted(found))


def open_levels(state, known: dict[p.Frame | None, dict]) -> int:
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
            known[fork] = _most(_open_below(way, known) for way in fork.ways)
        deepest = max(deepest, *_open_below(q.rest, known).values(), 0)
    return deepest


def _open_below(frame: p.Frame | None, known: dict) -> dict:
    chain = []
    while frame not in known:
        chain.append(frame)
        frame = frame.next
    for part in reversed(chain):
        below, head = known[part.next], (id(part.node), id(part.env))
        known[part] = {**below, head: below.get(head, 0) + 1}
    return known[chain[0] if chain else frame]


def _most(counts) -> dict:
    out: dict = {}
    for one in counts:
        for head, times in one.items():
            out[head] = max(times, out.get(head, 0))
    return out
