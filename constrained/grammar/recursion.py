"""Which recursion is regular, and its rewriting.

Tail calls are the automaton's own loops. A group of rules that only recurse at the
front (``list: list "," item | item``) is turned round into tail calls. Everything else
needs a stack and is refused here. (Nederhof, "Practical experiments with regular
approximation of context-free languages", 2000, section 2, names the condition.)
"""

from __future__ import annotations

from collections.abc import Iterator

from constrained.grammar import nodes
from constrained.grammar.nodes import EMPTY, Alt, Call, Node, Repeat, Rule, Seq, Var

TAIL, FRONT, INNER = "tail", "front", "inner"


class NotRegular(Exception):
    """Recursion that no finite automaton holds; `.rule` names the rule."""

    def __init__(self, rule: str):
        self.rule = rule
        super().__init__(rule)


def make_regular(rules: dict[str, Rule]) -> dict[str, Rule]:
    """`rules` with front recursion rewritten, or NotRegular."""
    places = _argument_places(rules)
    edges = {n: set(_references(r.body, places, TAIL)) for n, r in rules.items()}
    out = dict(rules)
    for group in _components({n: {c for c, _ in e} for n, e in edges.items()}):
        inside = {(caller, place) for caller in group for callee, place in edges[caller] if callee in group}
        kinds = {place for _, place in inside}
        if kinds <= {TAIL}:
            continue
        if INNER in kinds or any(rules[n].params for n in group):
            raise NotRegular(min((c for c, p in inside if p != TAIL), key=lambda n: rules[n].line or 0))
        heads = {n: list(_heads(rules[n].body, group)) for n in group}
        for n in group:
            for _, rest in heads[n]:
                if any(c in group for c, _ in _references(rest, places, TAIL)):
                    raise NotRegular(n)
        for target in sorted(group):
            out.update(_turn_round(target, group, heads, rules))
    return out


def _references(node: Node, places: dict, where: str) -> Iterator[tuple[str, str]]:
    """(rule, place) of every call in `node`, itself standing at `where`."""
    if isinstance(node, Call):
        yield node.rule, where
        for i, arg in enumerate(node.args):
            at = places.get((node.rule, i), TAIL)
            yield from _references(arg, places, where if at == TAIL else INNER)
    elif isinstance(node, Alt):
        for item in node.items:
            yield from _references(item, places, where)
    elif isinstance(node, Repeat):
        yield from _references(node.item, places, where if node.high == 1 else INNER)
    elif isinstance(node, Seq):
        for i, item in enumerate(node.items):
            if i == len(node.items) - 1 and where == TAIL:
                at = TAIL
            elif i == 0 and where != INNER:
                at = FRONT
            else:
                at = INNER
            yield from _references(item, places, at)


def _argument_places(rules: dict[str, Rule]) -> dict[tuple[str, int], str]:
    """(rule, argument index) -> TAIL if the parameter stands only at the rule's end."""
    places = {}
    for rule in rules.values():
        tails = _tail_vars(rule.body)
        for i, name in enumerate(rule.params):
            uses = [n for n in nodes.walk(rule.body) if isinstance(n, Var) and n.name == name]
            places[rule.name, i] = TAIL if all(id(n) in tails for n in uses) else INNER
    return places


def _tail_vars(node: Node) -> set[int]:
    if isinstance(node, Var):
        return {id(node)}
    if isinstance(node, Alt):
        return set().union(*map(_tail_vars, node.items)) if node.items else set()
    if isinstance(node, Seq) and node.items:
        return _tail_vars(node.items[-1])
    if isinstance(node, Repeat) and node.high == 1:
        return _tail_vars(node.item)
    return set()


def _heads(node: Node, group: set[str]) -> Iterator[tuple[str | None, Node]]:
    """Alternatives of `node` as (leading call into the group or None, what follows)."""
    if isinstance(node, Call) and node.rule in group:
        yield node.rule, EMPTY
    elif isinstance(node, Alt):
        for item in node.items:
            yield from _heads(item, group)
    elif isinstance(node, Repeat) and node.high == 1 and node.low == 0:
        yield None, EMPTY
        yield from _heads(node.item, group)
    elif isinstance(node, Seq) and node.items:
        rest = nodes.seq(node.items[1:])
        for head, after in _heads(node.items[0], group):
            if head is None and after is EMPTY:
                yield from _heads(rest, group)
            else:
                yield head, nodes.seq([after, rest])
    else:
        yield None, node


def _turn_round(target: str, group, heads, rules) -> dict[str, Rule]:
    """Rules for `target` that first read a base case, then what followed each recursion."""

    def after(name: str) -> str:
        return f"{target}${name}"

    out = {}
    bases = [nodes.seq([rest, Call(after(n))]) for n in group for head, rest in heads[n] if head is None]
    out[target] = Rule(target, nodes.alt(bases), (), rules[target].line)
    for name in group:
        steps = [
            nodes.seq([rest, Call(after(n))]) for n in group for head, rest in heads[n] if head == name
        ]
        body = nodes.alt([*steps, EMPTY] if name == target else steps)
        out[after(name)] = Rule(after(name), body)
    return out


def _components(graph: dict[str, set[str]]) -> list[set[str]]:
    """Strongly connected components with a cycle in them (Tarjan's algorithm, no recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    on_path: dict[str, None] = {}  # in the order they were entered
    found = []
    for root in graph:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        on_path[root] = None
        work = [(root, iter(sorted(graph[root])))]
        while work:
            node, callees = work[-1]
            for callee in callees:
                if callee not in graph:
                    continue
                if callee not in index:
                    index[callee] = low[callee] = len(index)
                    on_path[callee] = None
                    work.append((callee, iter(sorted(graph[callee]))))
                    break
                if callee in on_path:
                    low[node] = min(low[node], index[callee])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = {last := on_path.popitem()[0]}
                    while last != node:
                        group.add(last := on_path.popitem()[0])
                    if len(group) > 1 or node in graph[node]:
                        found.append(group)
    return found
