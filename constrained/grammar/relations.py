"""Relations between a slot's values, as a grammar writes them: the templates of `grammars/relations.lark`."""

from __future__ import annotations

from collections.abc import Mapping

from constrained.grammar.lark_definitions import Definition
from constrained.grammar.nodes import Literal, Node, Related, Slot, Var, walk
from constrained.grammar.source import SHIPPED

AT, ANOTHER, NEXT, BEFORE, FIRST = "at", "another", "next", "before", "first"

_PARAMETERS = {
    ("values", "key"): AT,
    ("values", "than"): ANOTHER,
    ("values", "after"): NEXT,
    ("values", "until"): BEFORE,
    ("values",): FIRST,
}
"""Which template of the file is which: it may go by another name where it is imported."""


def relations(definitions: Mapping[str, Definition]) -> dict[str, str]:
    """Name -> relation, of those `definitions` that are imported from `grammars/relations.lark`."""
    shipped = [d for d in definitions.values() if d.params and d.scope.source.path == SHIPPED / "relations.lark"]
    return {d.name: _PARAMETERS[tuple(d.params)] for d in shipped}


def related(relation: str, arguments: tuple[Node, ...]) -> Node:
    """The node of a relation with its arguments; ValueError says what can't stand there."""
    if relation not in _PARAMETERS.values() or len(arguments) != (1 if relation == FIRST else 2):
        raise ValueError("no such relation")
    values, *to = arguments
    if not isinstance(values, Related) and not (isinstance(values, Slot) and values.name != "_STEP"):
        raise ValueError("what comes first is a slot, a `%declare`d terminal, or a relation of one")
    if relation == AT and isinstance(values, Related):
        raise ValueError("what comes first is a slot, which is bound by key")
    if to and not isinstance(to[0], (Var, Literal)):
        raise ValueError("what a value is related to is a template's parameter, or a text")
    return Related(relation, values, *to)


def uses_relations(rules: Mapping) -> bool:
    """Whether some rule picks values by a relation."""
    return any(isinstance(node, Related) for rule in rules.values() for node in walk(rule.body))


def stand_ins(grammar, form: str = "{}") -> dict:
    """Values for the slots that have none: their names in that form; two of each where rules ask for another than before.

    For looking at a grammar without what it will be bound to.
    """
    unbound = grammar.unbound()
    if not uses_relations(grammar.rules):
        return {name: form.format(name) for name in unbound}
    texts = {name: [form.format(name), form.format(f"another {name}")] for name in unbound}
    every = [text for values in texts.values() for text in values]
    every_node = (node for rule in grammar.rules.values() for node in walk(rule.body))
    by_key = {node.slot.name for node in every_node if isinstance(node, Related) and node.relation == AT}
    return {name: dict.fromkeys(every, values) if name in by_key else values for name, values in texts.items()}
