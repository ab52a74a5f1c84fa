"""The values of slots, worked out from the commands that an environment lists as admissible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from constrained.automaton import Grammar
from constrained.automaton.parse import parses, text_of
from constrained.grammar import nodes

_TEXT = (nodes.Var, nodes.LiteralText, nodes.Slot, nodes.Related)


def slot_values(grammar: Grammar, commands: Iterable[str]) -> dict[str, Sequence[str] | Mapping[str, Sequence[str]]]:
    """Find the values to which slots must be bound so that the next actions are some commands.

    Parameters
    ----------
    grammar : Grammar
        The grammar of the rest of a path.
    commands : iterable of str
        Each is parsed by the rules that may write it; a command that isn't an action is ignored.

    Returns
    -------
    dict
        Slot -> its values; values by key, if the slot always stands before another argument.
    """
    free = Grammar(grammar.rules, grammar.start, grammar.slots, limits=grammar.limits)
    result: dict[str, dict[str | None, dict[str, None]]] = {}
    for command in commands:
        for parts in parses(free, command):
            for part in parts:
                if part.chosen is not None and part.name:
                    key = text_of(part.chosen.key, parts, command)
                    result.setdefault(part.name, {}).setdefault(key, {})[command[part.start : part.end]] = None
    listed = grammar.of_rules(_without_key)
    return {
        slot: list(dict.fromkeys(value for values in by.values() for value in values))
        if slot in listed or None in by
        else {key: list(values) for key, values in by.items() if key is not None}
        for slot, by in result.items()
    }


def _without_key(rules: Mapping[str, nodes.Rule]) -> frozenset[str]:
    """The slots that stand somewhere without an argument after them that could be their key."""
    result = set()
    for node in (node for rule in rules.values() for node in (nodes.Seq((rule.body,)), *nodes.walk(rule.body))):
        if not isinstance(node, nodes.Related) or node.relation != nodes.AT:
            keys = node.parts[1:] if isinstance(node, nodes.RuleRef) else ()
            for part, key in zip_longest(node.parts, keys):
                if isinstance(part, nodes.Slot) and not isinstance(key, _TEXT):
                    result.add(part.name)
    return frozenset(result)


_SEPARATORS = {ord(c): repr(c)[1:-1] for c in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"}


def on_one_line(text: str) -> str:
    """A text with its line separators written as Python writes them, so that a prompt shows it on one line."""
    return text.translate(_SEPARATORS)
