"""Names that are undefined, defined twice, unused or used wrongly."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

import lark

from constrained.errors import GrammarError
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
    read_outline,
    spelled,
)
from constrained.grammar.lark_syntax import Name
from constrained.grammar.nodes import RELATIONS
from constrained.grammar.source import SHIPPED, read_source
from constrained.knowledge.lint.finding import Finding

_STANDARD = Path(lark.__file__).parent / "grammars"


def undefined(outline: Outline) -> Iterator[Finding]:
    """Every name that is used but defined nowhere, at its first use."""
    known = {*outline.by_name, *outline.guessed}
    told: set[str] = set()
    for name, params in _all_uses(outline):
        word, span = outline.word(name), outline.span(name)
        if (name.text in known and word == name.text) or name.text in params or word in told:
            continue
        told.add(word)
        if word == name.text:
            fix = _define(word, [*known, *params])
            yield Finding("undefined-rule", f"'{word}' is used, but defined nowhere", fix, span)
        else:
            yield Finding(
                "syntax",
                f"the name '{word}' is neither a rule's nor a terminal's",
                f"rules are lower case ({word.lower()}), terminals upper case ({word.upper()})",
                replace(span, end_column=span.column + len(word)),
                why="it is read as several names side by side",
            )


def not_in_library(outline: Outline) -> Iterator[Finding]:
    """Imports of names that the file they are imported from doesn't define."""
    for definition in outline.definitions:
        there = library(outline, definition)
        name = definition.library.split(".")[-1]
        if there is None or name in there.by_name or there.faults:
            continue
        near = get_close_matches(name, there.by_name, 1, 0.6)
        yield Finding(
            "undefined-rule",
            f"'{name}' is imported from {there.source.name}, which doesn't define it",
            f"did you mean '{near[0]}'?" if near else f"import one of: {', '.join(sorted(there.by_name))}",
            definition.span,
        )


def _all_uses(outline: Outline) -> Iterator[tuple[Name, tuple[str, ...]]]:
    """Every name used, with the parameters of the definition that it stands in."""
    for definition in outline.definitions:
        for name in names_in(definition.options):
            yield name, definition.params
    for options in outline.ignored:
        for name in names_in(options):
            yield name, ()


def _define(name: str, known: Iterable[str]) -> str:
    """The fix for an undefined name."""
    if name == STEP:
        return "declare it: `%declare _STEP`"
    if name in RELATIONS:
        return f"it is a relation; import it: `%import relations.{name}`"
    if name in ("or", "and"):
        return "alternatives are written `a | b`" if name == "or" else "a sequence is written `a b`"
    if name.upper() in known and name != name.upper():
        return f"did you mean the slot or terminal '{name.upper()}'?"
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
                continue  # the same import twice
            what = "imported and defined" if IMPORT in (plain[0].kind, again.kind) else "defined"
            yield Finding(
                "defined-twice",
                f"'{name}' is {what} more than once; first on line {plain[0].span.line}",
                "keep one; or say what the second does: `%override` takes the first's place, `%extend` adds to it",
                again.span,
            )


def wrong_arguments(outline: Outline) -> Iterator[Finding]:
    """Templates used with another number of arguments than they have parameters."""
    templates = {d.name: d for d in reversed(outline.definitions) if d.kind == RULE and d.options is not None}
    for definition in outline.definitions:
        for name in names_in(definition.options):
            template, count = templates.get(name.text), len(name.args or ())
            if name.text in definition.params or template is None or count == len(template.params):
                continue
            params = template.params
            usage = f"{name.text}{{{', '.join(params)}}}" if params else name.text
            yield Finding(
                "wrong-arguments",
                f"'{name.text}' takes {_count(len(params))}, here it is given {count or 'none'}",
                f"write it as it is defined on line {template.span.line}: `{usage}`",
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
        if name in reached or name == STEP or (imports and first.how == "override"):
            continue  # %override reaches into what was imported
        if first.kind == IMPORT and _slot_elsewhere(outline, first):
            continue  # imported by name, so that it can be bound
        if first.kind == SLOT:
            yield Finding(
                "unused-slot",
                f"slot {name} is declared, but nothing uses it",
                f"use it where its values belong, or take {name} out of the %declare",
                first.span,
            )
        elif not any(holds_step(d) for d in found):  # else it is an action: see `actions.unreachable`
            yield _unused(outline, first, start)


def _slot_elsewhere(outline: Outline, imported: OutlineEntry) -> bool:
    """Whether what is imported is a slot, which rules imported from the same file may use."""
    there = library(outline, imported)
    entries = there.by_name.get(imported.library.split(".")[-1], ()) if there else ()
    return any(entry.kind == SLOT for entry in entries)


def _unused(outline: Outline, definition: OutlineEntry, start: str) -> Finding:
    name = definition.name
    users = outline.users.get(name)
    kind = {RULE: "rule", TERMINAL: "terminal", IMPORT: "import"}[definition.kind]
    by = f"; only '{users[0]}' uses it, which is itself not used" if users else ""
    return Finding(
        "unused-rule",
        f"{kind} '{name}' can't be reached from '{start}'{by}",
        f"use '{name}' in a rule that '{start}' leads to, or delete it",
        definition.span,
    )


def holds_step(definition: OutlineEntry) -> bool:
    """Whether a definition's own body has a `_STEP`, which makes it an action."""
    return any(name.text == STEP for name in names_in(definition.options))


def unused_parameters(outline: Outline) -> Iterator[Finding]:
    """Template parameters that the rule never writes, and that are no slot's key."""
    keys = _key_parameters(outline)
    for definition in outline.definitions:
        used = {name.text for name in names_in(definition.options)}
        for i, param in enumerate(definition.params):
            if param not in used and (definition.name, i) not in keys:
                yield Finding(
                    "unused-parameter",
                    f"parameter '{param}' of '{definition.name}' is never used",
                    f"write {param} where its value belongs, or take it out here and wherever '{definition.name}' is "
                    "used",
                    definition.in_head(rf"\b{param}\b"),
                )


def _key_parameters(outline: Outline) -> set[tuple[str, int]]:
    """(template, number of the parameter) right after a slot in some use: such a parameter picks the slot's values."""
    out = set()
    for definition in outline.definitions:
        for name in names_in(definition.options):
            for i, arg in enumerate((name.args or ())[:-1]):
                if isinstance(arg, Name) and arg.text in outline.declared:
                    out.add((name.text, i + 1))
    return out


def repeated_alternatives(outline: Outline) -> Iterator[Finding]:
    """Alternatives that occur twice in one choice."""
    for definition in outline.definitions:
        for options in choices_in(definition.options):
            seen: set[str] = set()
            for items in options.items:
                text = " ".join(map(spelled, items))
                if text in seen and items:
                    yield Finding(
                        "repeated-alternative",
                        f"the alternative {text} stands twice in '{definition.name}'",
                        "change it, or delete it",
                        outline.span(first_of(items[0])),
                    )
                seen.add(text)


def priorities(outline: Outline) -> Iterator[Finding]:
    """Priorities: they choose between parses of a text, and don't change which texts there are."""
    for definition in outline.definitions:
        priority = definition.in_head(r"[+-]?\d+\s*$") if "." in definition.head else None
        if priority is not None:
            yield Finding(
                "priority-without-effect",
                f"the priority of '{definition.name}' has no effect here",
                "leave the dot and the number out, unless lark parses with this file, too",
                priority,
            )


def library(outline: Outline, imported: OutlineEntry) -> Outline | None:
    """The outline of the file that an import names; None if it can't be read, or `imported` is no import."""
    path = imported.library.lstrip(".").split(".")[:-1]
    if imported.kind != IMPORT or not path:
        return None
    folders = [SHIPPED, _STANDARD]
    if imported.library.startswith("."):
        folders = [outline.source.path.parent] if outline.source.path else []
    for folder in folders:
        file = folder.joinpath(*path).with_suffix(".lark")
        if file.is_file():
            try:
                found = read_outline(read_source(file))
            except GrammarError:
                return None  # the loader reports it
            found.ignored.clear()  # an import brings no %ignore
            return found
    return None
