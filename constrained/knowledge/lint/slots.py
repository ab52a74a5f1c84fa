"""Slots: what is bound to them, and what they are bound by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from constrained.automaton import Grammar
from constrained.errors import GrammarError
from constrained.grammar import STEP
from constrained.grammar import nodes as n
from constrained.grammar.lark_outline import Outline, names_in
from constrained.knowledge.lint.finding import Finding


def bindings(grammar: Grammar, outline: Outline, values: Mapping) -> Iterator[Finding]:
    """What is wrong with the `values` that slots are to be bound to; nothing if there are none."""
    if not values:
        return
    declared = {name for name in outline.declared if name != STEP}
    for name in values:
        if name not in declared:
            near = get_close_matches(name, declared, 1, 0.5)
            yield Finding(
                "unknown-slot",
                f"there is no slot {name} to bind",
                "its values would be lost",
                f"did you mean {near[0]}?"
                if near
                else f"`%declare {name}` and use it, or bind one of: {', '.join(sorted(declared)) or 'none'}",
            )
    for name in grammar.unbound():
        if name not in values:
            yield _without(name, outline, "it is used, but --bind gives it no values", f"add --bind '{name}=[\"...\"]'")
    for name, value in values.items():
        if name in declared and isinstance(value, Mapping) and not any(value.values()) and _used(grammar, name):
            yield Finding(
                "empty-slot",
                f"slot {name} is bound to nothing",
                "what needs one of its values can't be written with these bindings",
                "nothing, if nothing is there; else bind its values",
                outline.declared[name],
            )
        elif name in declared:
            try:
                grammar.bind(**{name: value})
            except GrammarError as error:
                message = error.message.removeprefix(f"slot {name}: ")
                yield _without(name, outline, message, error.hint or "bind a text, a list of texts, or lists by key")


def _without(name: str, outline: Outline, what: str, fix: str) -> Finding:
    why = "nothing can be written where it stands, so no text that passes there can be complete"
    return Finding("slot-without-values", f"slot {name}: {what}", why, fix, outline.declared.get(name))


def _used(grammar: Grammar, name: str) -> bool:
    return any(isinstance(p, n.Slot) and p.name == name for r in grammar.rules.values() for p in n.walk(r.body))


def without_key(outline: Outline, values: Mapping) -> Iterator[Finding]:
    """Slots with lists by key, where no template argument follows that could be the key."""
    keyed = {name for name, value in values.items() if isinstance(value, Mapping) and value}
    for definition in outline.definitions:
        followed = set()
        for item in names_in(definition.options):
            followed.update(id(arg) for arg in (item.args or ())[:-1])
            if item.text in keyed and id(item) not in followed:
                name = item.text
                yield Finding(
                    "slot-without-key",
                    f"slot {name} has values by key, but nothing after it says which key",
                    f"of {name}'s lists the one is meant that belongs to the argument after it; here there is none",
                    f"hand it to a template, its key behind it: `rule{{{name}, r}}`; or bind {name} to one list",
                    outline.span(item),
                )
