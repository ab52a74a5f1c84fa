"""Walks over the node tree, each written once: folds, rewriting, and least fixed points over rules.

An analysis of a grammar is a value for each node, computed from the values of the nodes below it
(:func:`fold`). Where rules call each other it is the least solution of one equation per rule and
template parameter (:func:`least_fixpoint`), as for the nullable and first sets of any compiler text.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from constrained.grammar import nodes
from constrained.grammar.nodes import (
    LEAVES,
    Alt,
    Node,
    Related,
    Repeat,
    Rule,
    RuleRef,
    Seq,
    Var,
    find,
    scoped_children,
    walk,
)

Unit = str | tuple[str, str]
"""A rule, or a template parameter: (rule, parameter)."""

Pieces = list[tuple[str, Node]]
"""What a unit stands for: each node, after the rule that it is written in."""

T = TypeVar("T")
U = TypeVar("U", str, Unit)
H = TypeVar("H", bound=Hashable)

_PASSES = 4
"""Times that equations are gone through before it is kept track of which depend on which."""


def fold(
    node: Node,
    leaf: Callable[[Node], T],
    seq: Callable[[Iterable[T]], T],
    alt: Callable[[Iterable[T]], T],
    repeat: Callable[[Repeat, T], T],
) -> T:
    """Compute a value for `node` from the values of what is below it.

    Parameters
    ----------
    leaf : callable
        The value of any node that is no sequence, alternative or repeat.
    seq, alt : callable
        The value of a sequence, or of alternatives, from those of the items. They are computed as they are
        asked for: `all` and `any` stop at the first that decides.
    repeat : callable
        The value of a repeat, from the repeat itself and the value of its item.
    """

    def value(node: Node) -> T:
        if type(node) in LEAVES or isinstance(node, RuleRef):  # most nodes
            return leaf(node)
        if isinstance(node, Seq):
            return seq(map(value, node.items))
        if isinstance(node, Alt):
            return alt(map(value, node.items))
        if isinstance(node, Repeat):
            return repeat(node, value(node.item))
        return leaf(node)

    return value(node)


def optional_repeat(node: Repeat, item: bool) -> bool:
    """The `repeat` of folds that ask whether a node can be passed: zero times always can."""
    return node.low == 0 or item


def rebuild(node: Node, leaf: Callable[[Node], Node]) -> Node:
    """The same tree in normal form, with every node `x` but Seq, Alt and Repeat replaced by ``leaf(x)``.

    The arguments of a call are rebuilt before the call itself.
    """

    def below(node: Node) -> Node:
        if isinstance(node, RuleRef) and node.args:
            node = RuleRef(node.rule, tuple(rebuild(arg, leaf) for arg in node.args))
        return leaf(node)

    return fold(node, below, nodes.seq, nodes.alt, lambda old, item: nodes.repeat(item, old.low, old.high))


def call_arguments(rules: Mapping[str, Rule]) -> dict[tuple[str, str], Pieces]:
    """Return, for each (rule, parameter), every argument given to it, after the rule that gives it."""
    out: dict[tuple[str, str], Pieces] = {}
    for rule in rules.values():
        for call in rule.find(RuleRef):
            for name, arg in zip(rules[call.rule].params, call.args):
                out.setdefault((call.rule, name), []).append((rule.name, arg))
    return out


def argument_sources(given: Mapping[Unit, Pieces], parameter: tuple[str, str]) -> tuple[list[tuple[str, str]], Pieces]:
    """Where the values of a template parameter come from, through parameters that are handed on.

    `given`: as of :func:`units`. Returns the parameter and those handed on to it, and the other arguments that
    calls give one of them, after the calling rule.
    """
    parameters = reached([parameter], lambda p: ((by, a.name) for by, a in given.get(p, ()) if isinstance(a, Var)))
    return parameters, [one for p in parameters for one in given.get(p, ()) if not isinstance(one[1], Var)]


def units(rules: Mapping[str, Rule], parameters: bool = True) -> dict[Unit, Pieces]:
    """Every rule with its body and, with `parameters`, every template parameter with its arguments."""
    out: dict[Unit, Pieces] = {name: [(name, rule.body)] for name, rule in rules.items()}
    for parameter, given in call_arguments(rules).items() if parameters else ():
        out[parameter] = given
    return out


def users(pieces: Mapping[U, Pieces]) -> dict[Unit, set[U]]:
    """Return, for each unit, the units whose pieces mention it."""
    out: dict[Unit, set[U]] = {}
    for unit, given in pieces.items():
        for rule, piece in given:
            for node in walk(piece):
                if isinstance(node, RuleRef):
                    out.setdefault(node.rule, set()).add(unit)
                elif type(node) is Var:
                    out.setdefault((rule, node.name), set()).add(unit)
    return out


def least_fixpoint(
    pieces: Mapping[U, Pieces], value: Callable[[U, Mapping[U, T]], T], bottom: T, top: T | None = None
) -> dict[U, T]:
    """The least solution of ``found[unit] == value(unit, found)`` over all units of `pieces`.

    Parameters
    ----------
    pieces : mapping
        See :func:`units`.
    value : callable
        The value of a unit, given those found so far; monotone.
    bottom : object
        The least value, where every unit begins.
    top : object, optional
        The greatest value, if there is one: a unit that has it is done.
    """
    # Most are found by going through those that are left a few times: what is called mostly stands after what calls it.
    values = dict.fromkeys(pieces, bottom)
    left = list(reversed(values))
    for _ in range(1 if top is None else _PASSES):
        before = [values[unit] for unit in left]
        for unit in left:
            values[unit] = value(unit, values)
        if before == [values[unit] for unit in left]:
            return values
        left = [unit for unit in left if values[unit] != top]
        if not left:
            return values
    work = [unit for unit, known in values.items() if known != bottom]
    mentioned_by = users({unit: pieces[unit] for unit in left})
    waiting = set(work)
    while work:
        unit = work.pop()
        waiting.discard(unit)
        for user in mentioned_by.get(unit, ()):
            new = values[user] if values[user] == top else value(user, values)
            if new != values[user]:
                values[user] = new
                if user not in waiting:
                    waiting.add(user)
                    work.append(user)
    return values


def reachable(rules: Mapping[str, Rule], start: Node) -> list[str]:
    """The rules that a text of `start` can pass through, in the order they are met."""
    called = (call.rule for call in find(start, RuleRef))
    return reached(called, lambda name: (call.rule for call in rules[name].find(RuleRef)))


def reached(start: Iterable[H], after: Callable[[H], Iterable[H]]) -> list[H]:
    """`start` and all that ``after`` leads to from there, each once, in the order they are met."""
    result = dict.fromkeys(start)
    work = list(result)
    for one in work:  # which grows meanwhile
        for other in after(one):
            if other not in result:
                result[other] = None
                work.append(other)
    return work


def uses_relations(rules: Mapping[str, Rule]) -> bool:
    """Whether some rule picks values by a relation."""
    return any(rule.find(Related) for rule in rules.values())


def size(node: Node) -> int:
    """Count the nodes that :func:`nodes.walk` visits, scopes included: shared parts count each time they are used."""
    sizes: dict[int, int] = {}
    work = [node]
    while work:
        top = work[-1]
        below = scoped_children(top)
        missing = [b for b in below if id(b) not in sizes]
        if missing:
            work += missing
        else:
            sizes[id(work.pop())] = 1 + sum(sizes[id(b)] for b in below)
    return sizes[id(node)]
