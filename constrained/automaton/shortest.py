"""A shortest text from some positions to the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import count
from time import monotonic
from typing import Any

from constrained.automaton.positions import Accept, InExcept, InJsonText, InLiteral, InText, Position, StepEnd
from constrained.errors import LimitError

PATIENCE, HASTE = 5_000, 8
"""After so many positions the search is weighted A*, with this weight on the bytes that are left."""


def shortest(automaton: Any, starts: Iterable[Position]) -> list[tuple[Position, bytes]]:
    """Find a text of few bytes from one of `starts` to the end: its positions, and what is read at each.

    This is A* over positions (Hart, Nilsson and Raphael, 1968). Its lower bound on the bytes left is computed from
    the grammar, and keeps the search from trying every text that nests less deeply. A search of many positions goes on
    as weighted A* (Pohl, 1970), whose text needn't be the shortest.

    Raises
    ------
    LimitError
        It takes more than `search_positions` or `search_milliseconds`.
    """
    came: dict[Position, tuple[Position | None, bytes]] = {}
    order = count()
    heap: list[tuple[float, int, int, Position, Position | None, bytes]] = []
    limits = automaton.limits
    end, weight = monotonic() + limits.search_milliseconds / 1000, 1

    def push(read: int, q: Position, before: Position | None, data: bytes) -> None:
        # Among equals, prefer the path that has read more: the search stays on one of them.
        heappush(heap, (read + weight * automaton.distance.of_position(q), -read, next(order), q, before, data))

    for q in starts:
        push(0, q, None, b"")
    while heap:
        _, read, _, q, before, data = heappop(heap)
        if q in came:
            continue
        came[q] = (before, data)
        if isinstance(q, (Accept, StepEnd)):
            path: list[tuple[Position, bytes]] = []
            while before is not None:
                path.append((before, data))
                before, data = came[before]
            return path[::-1]
        for data in continuations(q):
            after = automaton.state((q,)).read(data)
            for r in after.positions if after else ():
                if r not in came:
                    push(len(data) - read, r, q, data)
        if len(came) == PATIENCE:
            weight, open_ends, heap = HASTE, heap, []
            for _, less, _, q, before, data in open_ends:
                push(-less, q, before, data)
        advice = "set no token budget: the grammar's shortest text is too long for one"
        limits.check("search_positions", len(came), "a shortest text is too far to be found", advice)
        if monotonic() > end:
            what = "it takes too long to find a shortest text"
            raise LimitError("search_milliseconds", limits.search_milliseconds, what, advice)
    raise AssertionError("a live position always has an end")


def continuations(q: Position) -> Iterator[bytes]:
    """Yield what `q` can read next, as far as a shortest text needs it: one character for a whole set."""
    if isinstance(q, InJsonText):
        yield from q.table.completions(q.state, q.inside)
    elif isinstance(q, InLiteral):
        yield q.data[q.at :]
    elif isinstance(q, InText):
        yield q.chars.shortest() if q.inside is None else bytes((min(q.first()),))
    elif isinstance(q, InExcept):
        listed = {value[q.depth] for value in q.values[q.low : q.high] if len(value) > q.depth}
        others = set(q.first()) - listed  # after one of these, the run may end anywhere
        yield from (bytes((byte,)) for byte in ([min(others)] if others else q.first()))
    else:
        yield from (bytes((byte,)) for byte in q.first())
