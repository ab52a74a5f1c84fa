"""Find mistakes in the values bound to slots, and slots with values by key but without a key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from constrained.automaton import Grammar
from constrained.errors import GrammarError
from constrained.grammar import STEP
from constrained.grammar import nodes as n
from constrained.grammar.lark_outline import Outline, names_in
from constrained.knowledge.lint.finding import Finding


def bindings(grammar: Grammar, outline: Outline, values: Mapping[str, Any]) -> Iterator[Finding]:
    """Mistakes in the values to which the slots should be bound, if any are given."""
    if not values:
        return
    declared = {name for name in outline.declared if name != STEP}
    for name in values:
        if name not in declared:
            near = get_close_matches(name, declared, 1, 0.5)
            yield Finding(
                "unknown-slot",
                f"there is no slot {name} to bind",
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
                "nothing, if that is right; else bind its values",
                outline.declared[name],
            )
        elif name in declared:
            try:
                grammar.bind(**{name: value})
            except GrammarError as error:
                message = error.message.removeprefix(f"slot {name}: ")
                yield _without(name, outline, message, error.hint or "bind a text, a list of texts, or lists by key")


def _without(name: str, outline: Outline, what: str, fix: str) -> Finding:
    return Finding("slot-without-values", f"slot {name}: {what}", fix, outline.declared.get(name))


def _used(grammar: Grammar, name: str) -> bool:
    return any(isinstance(p, n.Slot) and p.name == name for r in grammar.rules.values() for p in r.nodes)


def without_key(outline: Outline, values: Mapping[str, Any]) -> Iterator[Finding]:
    """Uses of slots with values by key without a template argument after them that could be the key."""
    by_key = {name for name, value in values.items() if isinstance(value, Mapping) and value}
    for definition in outline.definitions:
        with_key: set[int] = set()  # arguments (by identity) followed by another
        for name in names_in(definition.options):
            with_key.update(id(arg) for arg in (name.args or ())[:-1])
            if name.text in by_key and id(name) not in with_key:
                slot = name.text
                yield Finding(
                    "slot-without-key",
                    f"slot {slot} has values by key, but nothing after it says which key",
                    f"pass it to a template, followed by its key: `rule{{{slot}, r}}`; or bind {slot} to one list",
                    outline.span(name),
                    why=f"the argument after {slot} selects one of its lists; here there is no argument",
                )
