"""Walks through states that need not try every byte: one stands for all that lead to the same."""

from __future__ import annotations

from collections.abc import Iterator

from constrained.automaton import positions as p
from constrained.automaton.automaton import State

_GROUPS: dict[frozenset, list[list[int]]] = {}
_KEPT: list = []
_ORDER = (*range(0x61, 0x7B), *range(0x21, 0x61), 0x20, *range(0x7B, 0x80), *range(0x20), *range(0x80, 0x100))


def bytes_apart(*states: State) -> Iterator[int]:
    """Bytes that some state reads, one for each way in which the states go on together."""
    special: set[int] = set()
    texts = {}
    for state in states:
        for q in state.positions:
            if isinstance(q, p.InText):
                texts[id(q.chars), q.inside] = q
            else:
                special.update(q.first())
    yield from special
    for group in _groups(texts):
        byte = next((b for b in group if b not in special), None)
        if byte is not None:
            yield byte


def _groups(texts: dict) -> list[list[int]]:
    """Bytes that each of some character sets goes on with alike, printable ones first."""
    key = frozenset(texts)
    found = _GROUPS.get(key)
    if found is None:
        by_way: dict[tuple, list[int]] = {}
        edges = [q.chars.edges(q.inside) for q in texts.values()]
        # after a whole character of a set it doesn't matter which it was: one that is a byte will do
        whole = len(texts) == 1 and next(iter(texts.values())).inside is None
        for byte in _ORDER:
            way = tuple(e.get(byte) for e in edges)
            if any(way) and not (whole and by_way and byte >= 0x80):
                by_way.setdefault(way, []).append(byte)
        found = _GROUPS[key] = list(by_way.values())
        _KEPT.extend(q.chars for q in texts.values())  # the key holds their ids
    return found
