"""Find unused rules and parameters, alternatives that occur twice, and priorities."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import takewhile

from constrained.grammar import STEP
from constrained.grammar.lark_definitions import Definition
from constrained.grammar.lark_outline import (
    IMPORT,
    RULE,
    SLOT,
    TERMINAL,
    Outline,
    OutlineEntry,
    first_of,
    names_in,
    spelled,
)
from constrained.grammar.lark_syntax import Group, Name, walk
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
    return any(name.text == STEP for name in names_in(definition.options))


def unused_parameters(outline: Outline) -> Iterator[Finding]:
    """Template parameters that neither the rule nor a `//:` line above it uses, and that aren't the key of a slot."""
    keys = _key_parameters(outline)
    lines = outline.source.text.split("\n")
    for definition in outline.definitions:
        used = {name.text for name in names_in(definition.options)}
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
        for name in names_in(definition.options)
        for i, arg in enumerate((name.args or ())[:-1], 1)
        if isinstance(arg, Name) and arg.text in outline.declared
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
                        outline.span(first_of(items[0])),
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
