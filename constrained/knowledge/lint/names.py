"""Names that lead nowhere, or that nothing leads to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from difflib import get_close_matches

from constrained.grammar import STEP
from constrained.grammar.lark_outline import (
    IMPORT,
    RULE,
    SLOT,
    TERMINAL,
    Outline,
    OutlineEntry,
    choices_in,
    first_of,
    names_in,
    spelled,
)
from constrained.grammar.lark_syntax import Name
from constrained.grammar.source import Source, SourceSpan
from constrained.knowledge.lint.finding import Finding
from constrained.knowledge.lint.imports import library


def undefined(outline: Outline) -> Iterator[Finding]:
    """Every name that is used but defined nowhere, at its first use."""
    known = {*outline.by_name, *outline.guessed}
    told: set[str] = set()
    for name, params in _all_uses(outline):
        text = name.text
        word = outline.word(name)
        if text in known and word == text or text in params or word in told:
            continue
        told.add(word)
        if word != text:
            yield _mixed(word, outline.span(name))
            continue
        yield Finding(
            "undefined-rule",
            f"'{text}' is used, but defined nowhere",
            "a file with an undefined name can't be loaded at all",
            _define(text, [*known, *params]),
            outline.span(name),
        )


def _mixed(word: str, span: SourceSpan) -> Finding:
    """Of a name in mixed case, which lark reads as several names side by side."""
    return Finding(
        "syntax",
        f"the name '{word}' is neither a rule's nor a terminal's",
        "it is read as several names side by side",
        f"rules are lower case ({word.lower()}), terminals upper case ({word.upper()})",
        replace(span, end_column=span.column + len(word)),
    )


def not_in_library(source: Source, outline: Outline) -> Iterator[Finding]:
    """Imports of names that the file they are imported from doesn't define."""
    for definition in outline.definitions:
        if definition.kind != IMPORT:
            continue
        found = library(source, definition.library)
        name = definition.library.split(".")[-1]
        if found is None or name in found[1].by_name or found[1].faults:
            continue
        there = found[0].name
        near = get_close_matches(name, found[1].by_name, 1, 0.6)
        yield Finding(
            "undefined-rule",
            f"'{name}' is imported from {there}, which doesn't define it",
            "a file with an undefined name can't be loaded at all",
            f"did you mean '{near[0]}'?" if near else f"import one of: {', '.join(sorted(found[1].by_name))}",
            definition.span,
        )


def _all_uses(outline: Outline) -> Iterator[tuple[Name, tuple[str, ...]]]:
    for definition in outline.definitions:
        for name in names_in(definition.options):
            yield name, definition.params
    for options in outline.ignored:
        for name in names_in(options):
            yield name, ()


def _define(name: str, known: Iterable[str]) -> str:
    if name == STEP:
        return "declare it: `%declare _STEP`"
    same_kind = [k for k in known if k.isupper() == name.isupper()]
    near = get_close_matches(name, same_kind, 1, 0.6)
    if near:
        return f"did you mean '{near[0]}'?"
    if name.isupper():
        return (
            f"define it, as in `{name}: /[^\\n]{{1,80}}/`; or, if its values are bound at run time, `%declare {name}`"
        )
    return f'define it, as in `{name}: "..."`'


def defined_twice(outline: Outline) -> Iterator[Finding]:
    """Names with more than one definition that doesn't say %override or %extend."""
    for name, found in outline.by_name.items():
        plain = [d for d in found if d.how == "define"]
        for again in plain[1:]:
            if again.kind == IMPORT and again.library == plain[0].library:
                continue  # the same thing
            what = "imported and defined" if IMPORT in (plain[0].kind, again.kind) else "defined"
            yield Finding(
                "defined-twice",
                f"'{name}' is {what} more than once; first on line {plain[0].span.line}",
                "which of them holds can't be told, so the file can't be loaded",
                "keep one; or say what the second does: `%override` takes the first's place, `%extend` adds to it",
                again.span,
            )


def wrong_arguments(outline: Outline) -> Iterator[Finding]:
    """Templates used with another number of arguments than they have parameters."""
    params = {d.name: d.params for d in outline.definitions if d.kind == RULE and d.options is not None}
    for definition in outline.definitions:
        for name in names_in(definition.options):
            wanted, count = params.get(name.text), len(name.args or ())
            if name.text in definition.params or wanted is None or count == len(wanted):
                continue
            shape = f"{name.text}{{{', '.join(wanted)}}}" if wanted else name.text
            yield Finding(
                "wrong-arguments",
                f"'{name.text}' takes {_count(len(wanted))}, here it is given {count or 'none'}",
                "without a value for each parameter the rule has no meaning, and the file can't be loaded",
                f"write it as it is defined on line {outline.span_of(name.text).line}: `{shape}`",
                outline.span(name),
            )


def _count(number: int) -> str:
    return "no arguments" if number == 0 else "1 argument" if number == 1 else f"{number} arguments"


def unused(outline: Outline, start: str) -> Iterator[Finding]:
    """Rules, terminals, imports and slots that no text of `start` passes through."""
    reached = outline.reachable(start) | outline.guessed
    if outline.guessed:  # what those lead to can't be known
        for definition in outline.definitions:
            reached.update(outline.uses(definition))
    imports = any(d.kind == IMPORT for d in outline.definitions)
    for name, found in outline.by_name.items():
        first = found[0]
        if name in reached or name == STEP or imports and first.how == "override":
            continue  # %override reaches into what was imported
        if first.kind == IMPORT and _slot_elsewhere(outline, first):
            continue  # imported by name so that it can be bound by it
        if first.kind == SLOT:
            yield Finding(
                "unused-slot",
                f"slot {name} is declared, but nothing uses it",
                "whatever is bound to it has no effect on what the agent may write",
                f"use it where its values belong, or take {name} out of the %declare",
                first.span,
            )
        elif not any(holds_step(d) for d in found):  # else it is an action: see `actions.unreachable`
            yield _unused(outline, first, start)


def _slot_elsewhere(outline: Outline, imported: OutlineEntry) -> bool:
    """Whether what is imported is a slot, which rules imported from the same file may use."""
    found = library(outline.source, imported.library)
    there = found[1].by_name.get(imported.library.split(".")[-1], ()) if found else ()
    return any(definition.kind == SLOT for definition in there)


def _unused(outline: Outline, definition: OutlineEntry, start: str) -> Finding:
    name = definition.name
    users = outline.users.get(name)
    kind = {RULE: "rule", TERMINAL: "terminal", IMPORT: "import"}[definition.kind]
    by = f"; only '{users[0]}' uses it, which is itself not used" if users else ""
    return Finding(
        "unused-rule",
        f"{kind} '{name}' can't be reached from '{start}'{by}",
        "it has no effect; often a name is misspelled where it should be used",
        f"use '{name}' in a rule that '{start}' leads to, or delete it",
        definition.span,
    )


def holds_step(definition: OutlineEntry) -> bool:
    """Whether a definition's own body has a `_STEP`, which makes it an action."""
    return any(name.text == STEP for name in names_in(definition.options))


def unused_parameters(outline: Outline) -> Iterator[Finding]:
    """Template parameters that the rule never writes, and that no slot before them takes as its key."""
    keys = _key_parameters(outline)
    for definition in outline.definitions:
        used = {name.text for name in names_in(definition.options)}
        for i, param in enumerate(definition.params):
            if param not in used and (definition.name, i) not in keys:
                yield Finding(
                    "unused-parameter",
                    f"parameter '{param}' of '{definition.name}' is never used",
                    "what is handed over for it is lost: nothing ties it to what comes after",
                    f"write {param} where its value belongs, or take it out here and wherever '{definition.name}' is used",
                    definition.in_head(rf"\b{param}\b"),
                )


def _key_parameters(outline: Outline) -> set[tuple[str, int]]:
    """(template, number of the parameter) that a slot is followed by in some use: it picks the slot's values."""
    out = set()
    for definition in outline.definitions:
        for name in names_in(definition.options):
            for i, arg in enumerate((name.args or ())[:-1]):
                if isinstance(arg, Name) and arg.text in outline.declared:
                    out.add((name.text, i + 1))
    return out


def repeated_alternatives(outline: Outline) -> Iterator[Finding]:
    """Alternatives that stand twice in one choice."""
    for definition in outline.definitions:
        for options in choices_in(definition.options):
            seen: set[str] = set()
            for items in options.items:
                text = " ".join(map(spelled, items))
                if text in seen and items:
                    yield Finding(
                        "repeated-alternative",
                        f"the alternative {text} stands twice in '{definition.name}'",
                        "the second has no effect; often something else was meant",
                        "change it, or delete it",
                        outline.span(first_of(items[0])),
                    )
                seen.add(text)


def priorities(outline: Outline) -> Iterator[Finding]:
    """Priorities, which choose between parses and so say nothing about texts."""
    for definition in outline.definitions:
        priority = definition.in_head(r"[+-]?\d+\s*$") if "." in definition.head else None
        if priority is not None:
            yield Finding(
                "priority-without-effect",
                f"the priority of '{definition.name}' has no effect here",
                "a priority picks one reading of a text that has several; what may be written stays the same",
                "leave the dot and the number out, unless lark parses with this file, too",
                priority,
            )
