"""What slots hold, as told by the commands that an environment lists as admissible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from constrained.automaton import Grammar
from constrained.automaton.parse import readings, text_of
from constrained.grammar import nodes

_TEXT = (nodes.Var, nodes.Literal, nodes.Slot, nodes.Related)


def slot_values(grammar: Grammar, commands: Iterable[str]) -> dict[str, Sequence[str] | Mapping[str, Sequence[str]]]:
    """Return what slots must be bound to for the next actions to be some commands, as far as slots can say it.

    Parameters
    ----------
    grammar : Grammar
        Of the rest of a path.
    commands : iterable of str
        Each is read by the rules that may write it; what is no action is left out.

    Returns
    -------
    dict
        Slot -> its values; by key, where it always stands before another argument.
    """
    free = Grammar(grammar.rules, grammar.start, grammar.slots, limits=grammar.limits)
    found: dict[str, dict[str | None, dict[str, None]]] = {}
    for command in commands:
        for parts in readings(free, command):
            for part in parts:
                if part.chosen is not None and part.name:
                    key = text_of(part.chosen.key, parts, command)
                    found.setdefault(part.name, {}).setdefault(key, {})[command[part.start : part.end]] = None
    listed = grammar.of_rules(_without_key)
    return {
        slot: list(dict.fromkeys(value for values in by.values() for value in values))
        if slot in listed or None in by
        else {key: list(values) for key, values in by.items() if key is not None}
        for slot, by in found.items()
    }


def _without_key(rules: Mapping[str, nodes.Rule]) -> frozenset[str]:
    """The slots that stand somewhere without an argument after them, on which their values could depend."""
    found = set()
    for node in (node for rule in rules.values() for node in (nodes.Seq((rule.body,)), *nodes.walk(rule.body))):
        if not isinstance(node, nodes.Related) or node.relation != nodes.AT:
            keys = nodes.children(node)[1:] if isinstance(node, nodes.Call) else ()
            for part, key in zip_longest(nodes.children(node), keys):
                if isinstance(part, nodes.Slot) and not isinstance(key, _TEXT):
                    found.add(part.name)
    return frozenset(found)
