"""How much deeper one token can nest: what bounds a budget where recursion takes a stack.

Each time a rule comes to itself with something left to do after, its text before that call
has been read. Where some byte must stand there, so many of those bytes in a token are so
many levels, but for the first, which may have been prepared before the token.
"""

from __future__ import annotations

from collections.abc import Iterator

from constrained.automaton import positions as p
from constrained.automaton.stacks import forks_below
from constrained.grammar import nodes as n
from constrained.grammar.left_recursion import recursive_groups, references


def nesting_calls(rules: dict[str, n.Rule]) -> tuple[set[int], frozenset[int]]:
    """Calls that nest, each after a byte that must stand before it.

    Returns
    -------
    calls : set of int
        Identities of Call nodes. Without them no rule comes to itself with something left to
        do after, or (empty) there are no such calls.
    bytes : frozenset of int
        One of these is read before each.
    """
    sites = [(name, *site) for name, rule in rules.items() for site in _sites(rule.body, rules)]
    never = {id(call) for _, call, _, before, tail in sites if call is not None and (tail or not before)}
    order = sorted({byte for _, _, _, before, _ in sites for byte in before}, key=_preference)

    def cut(chosen: list[int]) -> set[int]:
        left = {id(call) for _, call, _, before, _ in sites if call is not None and before.isdisjoint(chosen)}
        return {id(call) for _, call, _, _, _ in sites if call is not None} - left - never

    def nests(without: set[int]) -> bool:
        edges: dict[str, set[tuple[str, bool]]] = {name: set() for name in rules}
        for name, call, callee, _, tail in sites:
            if id(call) not in without:
                edges[name].add((callee, tail))
        return any(c in g and not tail for g in recursive_groups(edges) for name in g for c, tail in edges[name])

    if not nests(set()) or nests(cut(order)):
        return set(), frozenset()
    chosen = order
    for byte in reversed(order):  # as few as will do
        fewer = [other for other in chosen if other != byte]
        if not nests(cut(fewer)):
            chosen = fewer
    return cut(chosen), frozenset(chosen)


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


def _sites(node: n.Node, rules: dict[str, n.Rule]) -> Iterator[tuple[n.Call | None, str, frozenset[int], bool]]:
    """(call, rule called, bytes read before, whether nothing is left to do after); None: in an argument."""
    for call, before, tail in _calls(node, frozenset(), True):
        yield call, call.rule, before, tail
        for arg in call.args:
            for callee, _ in references(arg, rules):
                yield None, callee, frozenset(), False


def _calls(node: n.Node, before: frozenset[int], tail: bool) -> Iterator[tuple[n.Call, frozenset[int], bool]]:
    """(call, bytes that are read before it, whether nothing is left to do after it) of the calls in `node`."""
    if isinstance(node, n.Call):
        yield node, before, tail
    elif isinstance(node, n.Seq):
        for i, item in enumerate(node.items):
            yield from _calls(item, before, tail and i == len(node.items) - 1)
            before = before | _always(item)
    elif not isinstance(node, n.Scoped):
        tail = tail and not (isinstance(node, n.Repeat) and node.high != 1)
        for item in n.children(node):
            yield from _calls(item, before, tail)


def _always(node: n.Node) -> frozenset[int]:
    """Bytes that every text of `node` has (not all of them)."""
    if isinstance(node, n.Literal):
        return frozenset(node.data)
    if isinstance(node, n.Seq):
        return frozenset().union(*map(_always, node.items))
    if isinstance(node, n.Choices):
        return frozenset.intersection(*map(frozenset, node.values))
    if isinstance(node, n.Alt) and node.items:
        return frozenset.intersection(*map(_always, node.items))
    if isinstance(node, n.Repeat) and node.low:
        return _always(node.item)
    return frozenset()


def _preference(byte: int) -> tuple[int, int]:
    """Brackets first, then other signs: few tokens have many of them."""
    kind = 0 if byte in b"([{" else 2 if chr(byte).isalnum() or byte >= 0x80 or byte in b" -" else 1
    return kind, byte
