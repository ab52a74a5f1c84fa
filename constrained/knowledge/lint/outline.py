"""What a `.lark` file defines and uses, and where, whether or not it can be loaded.

A statement that doesn't parse is told of and left out, so that one mistake doesn't hide all
that stands after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from constrained.errors import GrammarError, LimitError
from constrained.grammar.lark_definitions import walk
from constrained.grammar.lark_syntax import Declared, Defined, Group, Ignored, Imported, Name, Options, Repeated, parse
from constrained.grammar.source import Source, blank_comments
from constrained.knowledge.lint.finding import Span
from constrained.limits import DEFAULT, Limits

# what stands at the very beginning of a line is meant to begin a statement, whatever it is
_STATEMENT = re.compile(
    r"(?m)^(?:[\w%?!<'\"]|[ \t]+(?:%[a-z]+|[?!]*\w+[ \t]*(?:\{[^}\n]*\}[ \t]*)?(?:\.[ \t]*-?\d+[ \t]*)?:))"
)
_NAME = re.compile(r"(?<![\w/\"\\])[a-zA-Z_]\w*")
MAX_FAULTS = 10
"""Statements that don't parse which are told of at once; the rest is read anew after each."""

RULE, TERMINAL, SLOT, IMPORT = "rule", "terminal", "slot", "import"


@dataclass(frozen=True)
class Definition:
    """One definition: a rule, a terminal, a declared slot, or an imported name.

    Attributes
    ----------
    name : str
    kind : str
    span : Span
        Where the name stands.
    params : tuple of str
        A template's parameters.
    options : Options or None
        What it may stand for; None of slots and imports.
    how : str
        "define", "override" or "extend".
    library : str
        What is imported: its path with dots, one in front where it is relative.
    head : str
        What stands between the name and its colon.
    """

    name: str
    kind: str
    span: Span
    params: tuple[str, ...] = ()
    options: Options | None = None
    how: str = "define"
    library: str = ""
    head: str = ""

    def in_head(self, pattern: str) -> Span | None:
        """Where a pattern stands between the name and its colon."""
        found = re.search(pattern, self.head)
        if not found:
            return None
        column = self.span.column + len(self.name) + found.start()
        return Span(self.span.line, column, column + len(found[0]))


@dataclass
class Outline:
    """Definitions and uses of one file.

    Attributes
    ----------
    source : Source
    definitions : list of Definition
    ignored : list of Options
        What stands after each `%ignore`.
    faults : list of GrammarError
        Statements that don't parse.
    guessed : set of str
        Names that stand in those.
    """

    source: Source
    definitions: list[Definition] = field(default_factory=list)
    ignored: list[Options] = field(default_factory=list)
    faults: list[GrammarError] = field(default_factory=list)
    guessed: set[str] = field(default_factory=set)

    @cached_property
    def by_name(self) -> dict[str, list[Definition]]:
        """Name -> its definitions, in the file's order."""
        out: dict[str, list[Definition]] = {}
        for definition in self.definitions:
            out.setdefault(definition.name, []).append(definition)
        return out

    @cached_property
    def declared(self) -> dict[str, Span]:
        """Slot -> where it is declared (`_STEP` is among them)."""
        return {d.name: d.span for d in self.definitions if d.kind == SLOT}

    @cached_property
    def users(self) -> dict[str, list[str]]:
        """Name -> the other names whose definitions use it, in the file's order."""
        out: dict[str, dict[str, None]] = {}
        for definition in self.definitions:
            for name in self.uses(definition):
                if name != definition.name:
                    out.setdefault(name, {})[definition.name] = None
        return {name: list(users) for name, users in out.items()}

    def uses(self, definition: Definition) -> Iterator[str]:
        """Names of rules and terminals that stand in a definition, parameters aside."""
        return (n.text for n in names_in(definition.options) if n.text not in definition.params)

    def reachable(self, start: str) -> set[str]:
        """Names that a text of `start` can pass through, and those of `%ignore`."""
        work = [start, *(name.text for options in self.ignored for name in names_in(options))]
        found: set[str] = set()
        while work:
            name = work.pop()
            if name not in found:
                found.add(name)
                work += [used for d in self.by_name.get(name, ()) for used in self.uses(d)]
        return found

    def place(self, name: str) -> Span | None:
        """Where `name` is defined first."""
        found = self.by_name.get(name)
        return found[0].span if found else None

    def word(self, name: Name) -> str:
        """What a name is part of, as a reader sees it: `Search` is two names, `S` and `earch`."""
        text = self.source.text
        first = name.at
        while first and (text[first - 1].isalnum() or text[first - 1] == "_"):
            first -= 1
        return re.compile(r"\w*").match(text, first)[0]

    def span(self, item) -> Span:
        """Where an item of a definition stands; of a group, its bracket; of a repeat, its operator."""
        text = item.text if not isinstance(item, Group) else "("
        line, column = self.source.place(item.at)
        return Span(line, column, None if "\n" in text else column + len(text))


def read_outline(source: Source, limits: Limits = DEFAULT) -> Outline:
    """The outline of a file; never raises for what is wrong in it."""
    outline = Outline(source)
    rest = source
    while True:
        try:
            statements = parse(rest, limits)
            break
        except LimitError as error:
            outline.faults.append(error)
            return outline
        except GrammarError as error:
            outline.faults.append(error)
            first, after = _statement_at(rest.text, error.line)
            bad = rest.text[first:after]
            outline.guessed |= set(_NAME.findall(blank_comments(bad)))
            if len(outline.faults) >= MAX_FAULTS or not bad.strip():
                outline.guessed |= set(_NAME.findall(blank_comments(rest.text)))
                return outline
            rest = replace(rest, text=rest.text[:first] + re.sub(r"[^\n]", " ", bad) + rest.text[after:])
    for statement in statements:
        _add(outline, statement)
    return outline


def _statement_at(text: str, line: int) -> tuple[int, int]:
    """Where the statement that `line` belongs to begins and ends."""
    at = 0
    for _ in range(line - 1):
        at = text.index("\n", at) + 1
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    first = 0
    for found in _STATEMENT.finditer(text):
        if found.start() > at:
            return first, max(found.start(), min(end, len(text)))
        first = found.start()
    return first, len(text)


def names_in(options: Options | None) -> Iterator[Name]:
    """The names of rules, terminals and parameters used, as they stand."""
    return (item for item in items_in(options) if isinstance(item, Name))


def items_in(options: Options | None) -> Iterator:
    """Everything in some alternatives, from left to right, what is inside groups and arguments included."""
    return walk(options) if options is not None else iter(())


def choices_in(options: Options | None) -> Iterator[Options]:
    """Some alternatives, and those of every group within."""
    if options is not None:
        yield options
        yield from (item.options for item in walk(options) if isinstance(item, Group))


def spelled(item) -> str:
    """An item as it is written, or would be."""
    if isinstance(item, Name):
        return item.text + (f"{{{', '.join(map(spelled, item.args))}}}" if item.args else "")
    if isinstance(item, Repeated):
        return spelled(item.item) + item.text
    if isinstance(item, Group):
        inner = " | ".join(" ".join(map(spelled, items)) for items in item.options.items)
        return f"[{inner}]" if item.optional else f"({inner})"
    return item.text


def first_of(item):
    """The item that stands first in an item."""
    return first_of(item.item) if isinstance(item, Repeated) else item


def _add(outline: Outline, statement) -> None:
    if isinstance(statement, Defined):
        kind = TERMINAL if statement.name.isupper() else RULE
        text = outline.source.text
        after = statement.at + len(statement.name)
        head = re.compile(r"[^:\n]*").match(text, after)[0]
        span = _span(outline, statement.name, statement.at)
        if statement.kind == "override":  # what was there before is as if it weren't
            outline.definitions = [d for d in outline.definitions if d.name != statement.name]
        outline.definitions.append(
            Definition(statement.name, kind, span, statement.params, statement.options, statement.kind, head=head)
        )
    elif isinstance(statement, Ignored):
        outline.ignored.append(statement.options)
    elif isinstance(statement, Declared):
        for name in statement.names:
            kind = SLOT if name.text.isupper() else RULE
            outline.definitions.append(Definition(name.text, kind, _span(outline, name.text, name.at)))
    elif isinstance(statement, Imported):
        path = ("." if statement.relative else "") + ".".join(statement.path)
        for name, called in statement.names:
            span = _span(outline, name.text, name.at)
            outline.definitions.append(Definition(called, IMPORT, span, library=f"{path}.{name.text}"))


def _span(outline: Outline, text: str, at: int) -> Span:
    line, column = outline.source.place(at)
    return Span(line, column, column + len(text))
