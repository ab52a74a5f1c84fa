"""A `.lark` file whether or not it can be loaded: what it defines, uses and says in comments, and where.

A statement that doesn't parse is reported and left out, so that one mistake doesn't hide everything
after it. The linter, the language server and the prompt's comments read files through this model; its
statements and comments are those of the loader (`lark_syntax`, `lark_tokens`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from constrained.errors import GrammarError, LimitError
from constrained.grammar import lark_syntax as syntax
from constrained.grammar.lark_syntax import Expansions, Group, Item, Repeated, Symbol, parse, walk
from constrained.grammar.lark_tokens import blank_comments, comments
from constrained.grammar.source import Source, SourceSpan
from constrained.grammar.traverse import reached
from constrained.limits import DEFAULT, Limits

# anything at the very beginning of a line, or a directive or definition after blank space, begins a statement
_STATEMENT = re.compile(
    r"(?m)^(?:[\w%?!<'\"]|[ \t]+(?:%[a-z]+|[?!]*\w+[ \t]*(?:\{[^}\n]*\}[ \t]*)?(?:\.[ \t]*-?\d+[ \t]*)?:))"
)
_RULE_HEAD = re.compile(r"\s*[?!]*([a-z_][a-z0-9_]*)(?:\{[^}]*\})?(?:\.-?\d+)?\s*:")
_NAME = re.compile(r"(?<![\w/\"\\])[a-zA-Z_]\w*")
MAX_FAULTS = 10
"""Statements that don't parse which are reported at once: the rest of the file is read again after each."""

RULE, TERMINAL, SLOT, IMPORT = "rule", "terminal", "slot", "import"


def rule_comments(text: str) -> dict[str, str]:
    """Return, for each rule, the comment lines directly above it, joined by spaces, save ``//:`` lines."""
    above = {c.line: "" if text.startswith("//:", c.offset) else c.text for c in comments(text) if c.alone}
    out: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        rule = _RULE_HEAD.match(line)
        if rule and number - 1 in above and number not in above:
            first = number - 1
            while first - 1 in above:
                first -= 1
            out[rule[1]] = " ".join(filter(None, (above[i] for i in range(first, number))))
    return out


def slot_comments(text: str) -> dict[str, str]:
    """Return, for each slot that is declared on a line of its own with a comment behind it, that comment."""
    behind = {c.line: c.text for c in comments(text) if not c.alone}
    out: dict[str, str] = {}
    for number, line in enumerate(blank_comments(text).split("\n"), 1):
        match line.split():
            case ["%declare", slot] if number in behind:
                out[slot] = behind[number]
    return out


@dataclass(frozen=True)
class OutlineEntry:
    """One definition: a rule, a terminal, a declared slot, or an imported name."""

    name: str
    kind: str  # `RULE`, `TERMINAL`, `SLOT` or `IMPORT`
    span: SourceSpan  # of the name
    params: tuple[str, ...] = ()  # a template's parameters
    options: Expansions = field(default_factory=lambda: Expansions([]))  # empty for slots, imports
    how: str = "define"  # "define", "override" or "extend"
    library: str = ""  # what is imported: its path with dots, one in front where it is relative
    head: str = ""  # the text between the name and its colon

    def in_head(self, pattern: str) -> SourceSpan | None:
        """Where a pattern stands between the name and its colon."""
        match = re.search(pattern, self.head)
        if not match or self.span.start is None:
            return None
        return self.span.source.span(self.span.start + self.span.length + match.start(), len(match[0]))


@dataclass
class Outline:
    """The definitions and uses of one file."""

    source: Source
    statements: list[syntax.Statement] = field(default_factory=list)
    definitions: list[OutlineEntry] = field(default_factory=list)
    ignored: list[Expansions] = field(default_factory=list)  # what each `%ignore` admits
    faults: list[GrammarError] = field(default_factory=list)  # statements that don't parse
    guessed: set[str] = field(default_factory=set)  # names that occur in those

    @cached_property
    def by_name(self) -> dict[str, list[OutlineEntry]]:
        """Return, for each name, its definitions in the file's order."""
        out: dict[str, list[OutlineEntry]] = {}
        for definition in self.definitions:
            out.setdefault(definition.name, []).append(definition)
        return out

    @cached_property
    def declared(self) -> dict[str, SourceSpan]:
        """Where each slot is declared (`_STEP` is among them)."""
        return {d.name: d.span for d in self.definitions if d.kind == SLOT}

    @cached_property
    def users(self) -> dict[str, list[str]]:
        """Return, for each name, the other names whose definitions use it, in the file's order."""
        out: dict[str, dict[str, None]] = {}
        for definition in self.definitions:
            for name in self.uses(definition):
                if name != definition.name:
                    out.setdefault(name, {})[definition.name] = None
        return {name: list(users) for name, users in out.items()}

    def uses(self, definition: OutlineEntry) -> Iterator[str]:
        """Iterate over the names of rules and terminals in a definition, parameters aside."""
        return (n.text for n in symbols_in(definition.options) if n.text not in definition.params)

    def reachable(self, start: str) -> set[str]:
        """The names that a text of `start` can pass through, and those of `%ignore`."""
        starts = [start, *(name.text for options in self.ignored for name in symbols_in(options))]
        return set(reached(starts, lambda name: (used for d in self.by_name.get(name, ()) for used in self.uses(d))))

    def span_of(self, name: str) -> SourceSpan | None:
        """Where `name` is first defined."""
        entry = self.by_name.get(name)
        return entry[0].span if entry else None

    def span(self, item: Item) -> SourceSpan:
        """Where an item of a definition stands; of a group, its bracket; of a repeat, its operator."""
        return self.source.span(item.at, len(item.text) if not isinstance(item, Group) else 1)


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
            first, after = _statement_at(rest.text, error.line or 1)
            bad = rest.text[first:after]
            outline.guessed |= set(_NAME.findall(blank_comments(bad)))
            if len(outline.faults) >= MAX_FAULTS or not bad.strip():
                outline.guessed |= set(_NAME.findall(blank_comments(rest.text)))
                return outline
            rest = replace(rest, text=rest.text[:first] + re.sub(r"[^\n]", " ", bad) + rest.text[after:])
    outline.statements = statements
    for statement in statements:
        if isinstance(statement, syntax.Ignored):
            outline.ignored.append(statement.options)
        for entry in _entries(source, statement):
            if entry.how == "override":  # it replaces what was defined before
                outline.definitions = [d for d in outline.definitions if d.name != entry.name]
            outline.definitions.append(entry)
    return outline


def _statement_at(text: str, line: int) -> tuple[int, int]:
    """Where the statement that `line` belongs to begins and ends."""
    at = 0
    for _ in range(line - 1):
        at = text.index("\n", at) + 1
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    first = 0
    for match in _STATEMENT.finditer(text):
        if match.start() > at:
            return first, max(match.start(), min(end, len(text)))
        first = match.start()
    return first, len(text)


def symbols_in(options: Expansions) -> Iterator[Symbol]:
    """Iterate over the names of rules, terminals and parameters used, as they stand."""
    return (item for item in walk(options) if isinstance(item, Symbol))


def spelled(item: Item) -> str:
    """An item as it is written, or would be."""
    if isinstance(item, Symbol):
        return item.text + (f"{{{', '.join(map(spelled, item.args))}}}" if item.args else "")
    if isinstance(item, Repeated):
        return spelled(item.item) + item.text
    if isinstance(item, Group):
        inner = " | ".join(" ".join(map(spelled, items)) for items in item.options.items)
        return f"[{inner}]" if item.optional else f"({inner})"
    return item.text


def without_repeat(item: Item) -> Item:
    """The item that a repeat repeats; any other item as it is."""
    return without_repeat(item.item) if isinstance(item, Repeated) else item


def _entries(source: Source, statement: syntax.Statement) -> Iterator[OutlineEntry]:
    def span(name: syntax.Symbol) -> SourceSpan:
        return source.span(name.at, len(name.text))

    match statement:
        case syntax.Defined(how, name, at, params, options):
            kind = TERMINAL if name.isupper() else RULE
            found = re.compile(r"[^:\n]*").match(source.text, at + len(name))
            head = found[0] if found else ""
            yield OutlineEntry(name, kind, source.span(at, len(name)), params, options, how, head=head)
        case syntax.Declared():
            yield from (OutlineEntry(n.text, SLOT if n.text.isupper() else RULE, span(n)) for n in statement.names)
        case syntax.Imported(path, relative):
            file = ("." if relative else "") + ".".join(path)
            for imported, called in statement.names:
                yield OutlineEntry(called, IMPORT, span(imported), library=f"{file}.{imported.text}")
