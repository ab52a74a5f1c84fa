"""Which strings a schema admits: pattern, format, lengths and values left out, as one language."""

from __future__ import annotations

from collections.abc import Callable

from constrained.grammar import nodes as n
from constrained.grammar.assertions import looks
from constrained.grammar.json_schema import spelling
from constrained.grammar.json_schema.formats import format_node
from constrained.grammar.json_schema.regular import Dfa, Nfa, product, within
from constrained.grammar.json_schema.shape import Shape, reading
from constrained.grammar.nodes import Node, Rule, choices
from constrained.limits import Limits

Written = "tuple[Node, dict[str, Rule]]"


def trees(shape: Shape) -> list[Node]:
    """The trees of characters that every string must fit."""
    found = [reading(part, "pattern", pattern, shape.limits) for part, pattern in shape.all("pattern")]
    named = (format_node(name) for _, name in shape.all("format") if isinstance(name, str))
    return found + [node for node in named if node is not None]


def denied(shape: Shape) -> list[Node]:
    """The strings left out, as one tree if there are any."""
    return any_of([value for value in shape.denied if isinstance(value, str)])


def any_of(values: list[str]) -> list[Node]:
    """The tree of a list of strings; none for none."""
    return [choices(value.encode("utf-8", "ignore") for value in values)] if values else []


def string(shape: Shape, name: str, add: Callable[[Rule], None]) -> Node:
    """The text between the quotes; `add` takes the rules it needs, whose names begin with `name`."""
    return language(trees(shape), denied(shape), *shape.counts("Length"), name, add, shape.limits)


def language(
    fitting: list[Node],
    without: list[Node],
    low: int,
    high: int | None,
    name: str,
    add: Callable[[Rule], None],
    limits: Limits,
) -> Node:
    """Strings of `low` to `high` characters that fit all of some trees and none of others, between the quotes."""
    if high is not None and high < low:
        return n.NEVER
    limits.check("repeat", max(low, high or 0), f"strings of {max(low, high or 0)} characters")
    if not fitting and not without:
        return spelling.free(low, high)
    if len(fitting) == 1 and not without and not looks(fitting[0]):
        node = within(fitting[0], low, high)
        if node is not None:
            return spelling.spelled(node)
    node, rules = spelling.dfa_rules(automaton(fitting, without, low, high, limits), name)
    for rule in rules.values():
        add(rule)
    return node


def automaton(fitting: list[Node], without: list[Node], low: int, high: int | None, limits: Limits) -> Dfa:
    """The deterministic automaton of such strings."""
    parts = [(Nfa(node, limits), True) for node in fitting] + [(Nfa(node, limits), False) for node in without]
    return product(parts, low, high, limits)


def some_in_both(one: Shape, other: Shape) -> bool:
    """Whether some string is admitted by both."""
    (low, high), (low2, high2) = one.counts("Length"), other.counts("Length")
    least, most = max(low, low2), min((h for h in (high, high2) if h is not None), default=None)
    if most is not None and most < least:
        return False
    fitting, without = trees(one) + trees(other), denied(one) + denied(other)
    return not fitting or bool(automaton(fitting, without, least, most, one.limits).edges)
