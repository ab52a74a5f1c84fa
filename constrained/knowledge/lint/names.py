"""Find unused names, alternatives that occur twice, priorities, and mistakes in the values of slots."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from constrained.automaton import Grammar
from constrained.errors import GrammarError, nearest
from constrained.grammar import STEP, nodes
from constrained.grammar.lark_definitions import Definition
from constrained.grammar.lark_outline import (
    IMPORT,
    RULE,
    SLOT,
    TERMINAL,
    Outline,
    OutlineEntry,
    spelled,
    symbols_in,
    without_repeat,
)
from constrained.grammar.lark_syntax import Group, Symbol, walk
from constrained.knowledge.lint.finding import Finding

_WORD = re.compile(r"[A-Za-z_]\w*")


def unused(outline: Outline, start: str, definitions: Mapping[str, Definition]) -> Iterator[Finding]:
    """Rules, terminals, imports and slots that no text of `start` passes through."""
    reached = outline.reachable(start) | outline.guessed
    if outline.guessed:  # nobody knows where those lead
        for definition in outline.definitions:
            reached.update(outline.uses(definition))
    imports = any(d.kind == IMPORT for d in outline.definitions)
    for name, entries in outline.by_name.items():
        first = entries[0]
        if name in reached or name == STEP or (imports and first.how == "override"):
            continue  # %override changes imported rules
        if first.kind == IMPORT and name in definitions and definitions[name].declared:
            continue  # a slot that imported rules may use
        if first.kind == SLOT:
            yield Finding(
                "unused-slot",
                f"slot {name} is declared, but nothing uses it",
                f"use it where its values belong, or take {name} out of the %declare",
                first.span,
            )
        elif not any(map(has_step, entries)):  # else it is an action: see `actions.unreachable`
            yield _unused(outline, first, start)


def _unused(outline: Outline, definition: OutlineEntry, start: str) -> Finding:
    name = definition.name
    users = outline.users.get(name)
    kind = {RULE: "rule", TERMINAL: "terminal", IMPORT: "import"}[definition.kind]
    by = f"; only '{users[0]}' uses it, which is not used itself" if users else ""
    return Finding(
        "unused-rule",
        f"{kind} '{name}' can't be reached from '{start}'{by}",
        f"use '{name}' in a rule that '{start}' leads to, or delete it",
        definition.span,
    )


def has_step(definition: OutlineEntry) -> bool:
    """Whether a definition has a `_STEP`, which makes it an action."""
    return any(name.text == STEP for name in symbols_in(definition.options))


def unused_parameters(outline: Outline) -> Iterator[Finding]:
    """Template parameters that neither the rule nor a `//:` line above it uses, and that aren't the key of a slot."""
    keys = _key_parameters(outline)
    lines = outline.source.text.split("\n")
    for definition in outline.definitions:
        used = {name.text for name in symbols_in(definition.options)}
        above = takewhile(
            lambda line: line.lstrip().startswith("//"), reversed(lines[: (definition.span.line or 1) - 1])
        )
        used.update(word for line in above if definition.params and "//:" in line for word in _WORD.findall(line))
        for i, param in enumerate(definition.params):
            if param not in used and (definition.name, i) not in keys:
                yield Finding(
                    "unused-parameter",
                    f"parameter '{param}' of '{definition.name}' is never used",
                    f"write {param} where its value belongs, or remove it here and in all calls of '{definition.name}'",
                    definition.in_head(rf"\b{param}\b"),
                )


def _key_parameters(outline: Outline) -> set[tuple[str, int]]:
    """(template, number of the parameter) right after a slot in some call: such a parameter is the slot's key."""
    return {
        (name.text, i)
        for definition in outline.definitions
        for name in symbols_in(definition.options)
        for i, arg in enumerate((name.args or ())[:-1], 1)
        if isinstance(arg, Symbol) and arg.text in outline.declared
    }


def repeated_alternatives(outline: Outline) -> Iterator[Finding]:
    """Alternatives that occur twice in one choice."""
    for definition in outline.definitions:
        groups = (item.options for item in walk(definition.options) if isinstance(item, Group))
        for options in (definition.options, *groups):
            seen: set[str] = set()
            for items in options.items:
                text = " ".join(map(spelled, items))
                if text in seen and items:
                    yield Finding(
                        "repeated-alternative",
                        f"the alternative {text} occurs twice in '{definition.name}'",
                        "change it, or delete it",
                        outline.span(without_repeat(items[0])),
                    )
                seen.add(text)


def priorities(outline: Outline) -> Iterator[Finding]:
    """Priorities, which choose between parses of a text and don't change which texts are admitted."""
    for definition in outline.definitions:
        priority = definition.in_head(r"[+-]?\d+\s*$") if "." in definition.head else None
        if priority is not None:
            yield Finding(
                "priority-without-effect",
                f"the priority of '{definition.name}' has no effect here",
                "remove the dot and the number, unless lark also parses with this file",
                priority,
            )


# slots


def bindings(grammar: Grammar, outline: Outline, values: Mapping[str, Any]) -> Iterator[Finding]:
    """Mistakes in the values to which the slots should be bound, if any are given."""
    if not values:
        return
    # Values for slots that don't exist, slots without values, then values that a slot can't take.
    declared = {name for name in outline.declared if name != STEP}
    for name in values:
        if name not in declared:
            others = f"`%declare {name}` and use it, or bind one of: {', '.join(sorted(declared)) or 'none'}"
            yield Finding("unknown-slot", f"there is no slot {name} to bind", nearest(name, declared, others))
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
    return any(isinstance(p, nodes.Slot) and p.name == name for r in grammar.all_rules().values() for p in r.nodes)


def without_key(outline: Outline, values: Mapping[str, Any]) -> Iterator[Finding]:
    """Uses of slots with values by key without a template argument after them that could be the key."""
    by_key = {name for name, value in values.items() if isinstance(value, Mapping) and value}
    for definition in outline.definitions:
        with_key: set[int] = set()  # arguments (by identity) followed by another
        for name in symbols_in(definition.options):
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
