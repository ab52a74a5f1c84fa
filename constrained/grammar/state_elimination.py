"""Turn a deterministic automaton over characters into one regular expression, if that stays small.

Our byte automaton reads a repeat of characters many times faster than rules that call each other.
(Brzozowski and McCluskey, "Signal flow graph techniques for sequential circuit state diagrams", 1963.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from constrained.grammar import nodes
from constrained.grammar.charset import CharSet
from constrained.grammar.nodes import NEVER, Chars, Node

_GROWTH = 4
"""The most nodes of an expression, per state and edge of its automaton."""

_END = -1

T = TypeVar("T")

Edges = Mapping[int, CharSet]
"""Next state -> the characters that lead there."""


def merge_equivalent(ends: Sequence[object], edges: Sequence[Edges]) -> tuple[list[int], list[dict[int, CharSet]]]:
    """Merge the states that read the same texts, by refinement (Moore, 1956).

    Parameters
    ----------
    ends : sequence
        For each state, what it means if a text ends there; only states with equal values are merged.
    edges : sequence of mapping

    Returns
    -------
    class_of : list of int
        The class of each state.
    edges : list of dict
        Those of each class.
    """
    class_of, count = _numbered(ends)
    while True:
        merged = [joined_edges(((chars, to) for to, chars in row.items()), class_of.__getitem__) for row in edges]
        refined, more = _numbered([(own, frozenset(row.items())) for own, row in zip(class_of, merged)])
        if more == count:
            break
        class_of, count = refined, more
    return class_of, [merged[class_of.index(number)] for number in range(count)]


def _numbered(values: Sequence[object]) -> tuple[list[int], int]:
    numbers: dict[object, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values], len(numbers)


def joined_edges(ways: Iterable[tuple[CharSet, T]], number: Callable[[T], int]) -> dict[int, CharSet]:
    """Merge edges: return number of a target -> characters, from (characters, target) pairs."""
    out: dict[int, CharSet] = {}
    for chars, then in ways:
        target = number(then)
        out[target] = out[target] | chars if target in out else chars
    return out


def expression(start: int, ends: Sequence[Node | None], edges: Sequence[Edges]) -> Node | None:
    """The texts from state `start` to an end as one node, by state elimination; None if it grows too large.

    `ends` and `edges` are those of `merge_equivalent`.
    """
    most = _GROWTH * (len(edges) + sum(map(len, edges)))
    ways: dict[int, dict[int, Node]] = {
        s: {t: one_of(chars) for t, chars in row.items()} for s, row in enumerate(edges)
    }
    for state, end in enumerate(ends):
        if end is not None:
            ways[state][_END] = end
    while len(ways) > 1:
        before = {s: [p for p in ways if p != s and s in ways[p]] for s in ways if s != start}
        state = min(before, key=lambda s: (len(before[s]) * len(ways[s]), s))
        onward = ways.pop(state)
        loop = nodes.repeat(onward.pop(state, NEVER), 0, None)
        for source in before[state]:
            first = ways[source].pop(state)
            for target, rest in onward.items():
                way = nodes.seq([first, loop, rest])
                ways[source][target] = nodes.alt([ways[source].get(target, NEVER), way])
        if sum(len(nodes.walk(node)) for row in ways.values() for node in row.values()) > most:
            return None
    row = ways[start]
    return nodes.seq([nodes.repeat(row.get(start, NEVER), 0, None), row.get(_END, NEVER)])


def one_of(chars: CharSet) -> Node:
    """A node that reads one character of a set."""
    low, high = chars.ranges[0]
    return nodes.literal(chr(low)) if len(chars.ranges) == 1 and low == high else Chars(chars)
