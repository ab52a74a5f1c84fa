"""The syntax of `.lark` files: text -> statements, each piece with its offset.

The same files load here as in lark (`lark/load_grammar.py` is the reference; a test compares
the two). Lark's own reader is not used because it forgets where most pieces stood, and takes seconds,
or never ends, on large and hostile files.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from constrained.errors import GrammarError
from constrained.grammar.lark_tokens import Tokens
from constrained.grammar.source import Source
from constrained.limits import Limits

_REPEATS: dict[str, tuple[int, int | None]] = {"?": (0, 1), "*": (0, None), "+": (1, None)}

_VALUES = frozenset(("rule", "terminal", "string", "regex"))
_LITERALS = frozenset(("string", "regex"))
_COUNTED = frozenset(("operator", "~"))
_PARTED = frozenset(("{", ".."))
"""Kinds of token that go on with a value of several tokens."""
_OPENING, _CLOSING, _ENDING = frozenset("(["), frozenset(")]"), frozenset(("newline", "end"))

LINES = "a line goes on only before `|`, or after a backslash at its end"


@dataclass(slots=True, eq=False)
class Symbol:
    """The use of a rule, terminal, slot or parameter; `args`: the arguments of a template."""

    text: str
    at: int
    args: list[Value] | None = None


@dataclass(slots=True, eq=False)
class Quoted:
    """A string or regular expression, as it is written."""

    text: str
    at: int


@dataclass(slots=True, eq=False)
class Range:
    """A range of characters, first to last."""

    first: Quoted
    last: Quoted

    @property
    def at(self) -> int:
        return self.first.at

    @property
    def text(self) -> str:
        return f"{self.first.text}..{self.last.text}"


@dataclass(slots=True, eq=False)
class Group:
    """Alternatives in `(...)` or, if they are optional, in `[...]`."""

    options: Expansions
    at: int
    optional: bool


@dataclass(slots=True, eq=False)
class Repeated:
    """An item with `?`, `*`, `+` or `~` behind it; `at` is the operator's offset."""

    item: Item
    low: int
    high: int | None
    at: int
    text: str


@dataclass(slots=True, eq=False)
class Expansions:
    """Alternatives, each a list of items; `aliases` are the offsets of aliases."""

    items: list[list[Item]]
    aliases: tuple[int, ...] = ()


Value = Symbol | Quoted | Range
Item = Symbol | Quoted | Range | Group | Repeated


def walk(options: Expansions) -> Iterator[Item]:
    """Iterate over every item in some alternatives, in the order they are written; a repeat before what it repeats."""
    stack: list[Item] = _flat(options)[::-1]
    while stack:
        item = stack.pop()
        yield item
        if isinstance(item, Group):
            stack += _flat(item.options)[::-1]
        elif isinstance(item, Repeated):
            stack.append(item.item)
        elif isinstance(item, Symbol) and item.args:
            stack += item.args[::-1]


def _flat(options: Expansions) -> list[Item]:
    return [item for items in options.items for item in items]


@dataclass(slots=True, eq=False)
class Defined:
    """A rule or terminal: `kind` is "define", "override" or "extend"."""

    kind: str
    name: str
    at: int
    params: tuple[str, ...]
    options: Expansions
    line: int  # one-based


@dataclass(slots=True, eq=False)
class Declared:
    """`%declare`."""

    names: list[Symbol]


@dataclass(slots=True, eq=False)
class Ignored:
    """`%ignore`."""

    options: Expansions
    at: int


@dataclass(slots=True, eq=False)
class Imported:
    """`%import`: from a file, some names, each with what it is called here."""

    path: tuple[str, ...]
    relative: bool
    names: list[tuple[Symbol, str]]
    at: int


Statement = Defined | Declared | Ignored | Imported


def parse(source: Source, limits: Limits) -> list[Statement]:
    """The statements of a grammar's text, in order.

    Raises GrammarError: at the first token that can't stand where it does. Raises LimitError: it has more symbols, or
    groups within each other, than `limits` allow.
    """
    return _StatementParser(Tokens(source, limits), limits).statements()


class _StatementParser:
    def __init__(self, tokens: Tokens, limits: Limits):
        self.tokens, self.limits = tokens, limits
        self.kinds, self.texts, self.starts = tokens.kinds, tokens.texts, tokens.starts
        self.at = 0
        self.depth = 0
        self.line, self.counted = 1, 0  # the line of the newest definition, which begins at that offset

    def error(self, message: str, hint: str | None = None, index: int | None = None) -> GrammarError:
        return self.tokens.error(message, self.at if index is None else index, hint)

    def take(self, kind: str) -> str | None:
        """Consume and return the next token's text, if it is of this kind."""
        if self.kinds[self.at] != kind:
            return None
        self.at += 1
        return self.texts[self.at - 1]

    def need(self, kind: str, what: str, hint: str | None = None) -> str:
        text = self.take(kind)
        if text is None:
            raise self.error(f"{what} expected here, not {self.shown()}", hint)
        return text

    def shown(self, index: int | None = None) -> str:
        return self.tokens.shown(self.at if index is None else index)

    def end_of_line(self) -> None:
        if self.kinds[self.at] not in ("newline", "end"):
            raise self.error(f"the line should end here, before {self.shown()}")
        self.at += self.kinds[self.at] == "newline"

    # statements

    def statements(self) -> list[Statement]:
        result: list[Statement] = []
        while self.kinds[self.at] != "end":
            kind = self.kinds[self.at]
            if kind == "newline":
                self.at += 1
            elif kind in ("modifiers", "rule", "terminal"):
                result.append(self.definition("define"))
            elif kind == "directive":
                result.append(self.directive())
            else:
                raise self.no_statement()
        return result

    def directive(self) -> Statement:
        self.at += 1
        kind = self.texts[self.at - 1]
        if kind == "%declare":
            return self.declare()
        if kind == "%ignore":
            return self.ignore()
        return self.import_() if kind == "%import" else self.definition(kind[1:])

    def no_statement(self) -> GrammarError:
        kind, text = self.kinds[self.at], self.texts[self.at]
        hint = LINES if self.at else "a rule is `name: ...`, a terminal `NAME: ...`"
        if kind == "number":
            hint = "names begin with a letter, or `_` and a letter"
        elif kind == "operator" and text == "?":
            hint = "`?` stands right before the name of a rule; terminals have no modifiers"
        return self.error(f"a rule, a terminal or a %-directive expected here, not {self.shown()}", hint)

    def definition(self, kind: str) -> Defined:
        modifiers = self.take("modifiers") if self.kinds[self.at] == "modifiers" else None
        start, at, name = self.at, self.starts[self.at], self.texts[self.at]
        terminal = self.kinds[start] == "terminal"
        if not terminal and self.kinds[start] != "rule":
            raise self.error(f"a rule or terminal expected here, not {self.shown()}")
        self.at += 1
        self.line += self.tokens.source.text.count("\n", self.counted, at)
        self.counted = at
        if modifiers and "?" in modifiers and name.startswith("_"):
            raise self.error(f"rule '{name}' can't be `?` and begin with `_`, too", "leave one of both out", start)
        params: tuple[str, ...] = ()
        if self.kinds[self.at] != ":":
            if not terminal and self.take("{"):
                params = self.parameters()
            if self.take("."):
                self.need("number", "a priority", "a priority is a whole number: `name.2: ...`")
            if self.kinds[self.at] != ":":
                raise self.tokens.no_colon(start, self.at)
        self.at += 1
        options = self.options()
        if options.aliases and (terminal or name.startswith("_")):
            why = "a terminal has no alternatives to name" if terminal else "a rule that begins with `_` is inlined"
            raise self.tokens.error_at("an alias can't stand here", options.aliases[0], f"{why}: leave `-> ...` out")
        return Defined(kind, name, at, params, options, self.line)

    def parameters(self) -> tuple[str, ...]:
        result: list[str] = []
        while True:
            name = self.need("rule", "a parameter", "parameters are lower case: `name{x, y}: ...`")
            if name in result:
                raise self.error(f"parameter '{name}' stands there twice", "give each its own name", self.at - 1)
            result.append(name)
            if self.take("}"):
                return tuple(result)
            self.need(",", "`,` or `}`")

    def declare(self) -> Declared:
        names = []
        while self.kinds[self.at] in ("rule", "terminal"):
            names.append(self.name())
        if not names:
            raise self.error("%declare expects names", "`%declare OBJECT RECEPTACLE`: slots, bound at run time")
        if self.kinds[self.at] == ",":
            raise self.error("%declare takes its names without commas", "write spaces between them")
        self.end_of_line()
        return Declared(names)

    def ignore(self) -> Ignored:
        at = self.starts[self.at]
        options = self.options()
        if not any(options.items):
            raise self.tokens.error_at("%ignore expects something to ignore", at, "`%ignore WS` or `%ignore / +/`")
        if options.aliases:
            raise self.tokens.error_at("an alias can't stand here", options.aliases[0], "leave `-> ...` out")
        return Ignored(options, at)

    def import_(self) -> Imported:
        first = self.at  # `file.NAME`, `file.NAME -> OTHER` or `file (NAME, ...)`; a dot in front: relative
        relative = self.take(".") is not None
        path = [self.imported()]
        while self.take("."):
            path.append(self.imported())
        if self.take("("):
            names = [self.imported()]
            while not self.take(")"):
                self.need(",", "`,` or `)`")
                names.append(self.imported())
            imports = [(name, name.text) for name in names]
        else:
            name = path.pop()
            called = name.text
            if self.take("->"):
                called = self.imported().text
            imports = [(name, called)]
        if not path:
            hint = f"name what to take from it: `%import {name.text}.NAME`"
            raise self.error(f"nothing is imported from {name.text}", hint, first)
        self.end_of_line()
        return Imported(tuple(p.text for p in path), relative, imports, self.starts[first])

    def imported(self) -> Symbol:
        if self.kinds[self.at] not in ("rule", "terminal"):
            hint = "`%import common.WS`, `%import .file.rule`, `%import .file (rule, TERMINAL)`"
            raise self.error(f"a name expected here, not {self.shown()}", hint)
        return self.name()

    def name(self) -> Symbol:
        self.at += 1
        return Symbol(self.texts[self.at - 1], self.starts[self.at - 1])

    # alternatives

    def options(self) -> Expansions:
        """Parse alternatives and the end of their line; groups are on an explicit stack, as they can nest deeply."""
        outer: list[tuple[Expansions, int]] = []
        items: list[Item] = []
        options = Expansions([items])
        kinds, texts, starts = self.kinds, self.texts, self.starts
        at = self.at  # a local name, as this loop meets every token; `self.at` is set before another method is called
        while True:
            kind = kinds[at]
            if kind in _VALUES:
                item: Item
                if kinds[at + 1] in _PARTED or (kind == "regex" and "\n" in texts[at]):
                    self.at = at
                    item = self.value()
                    at = self.at
                else:  # the usual case
                    item = (Quoted if kind in _LITERALS else Symbol)(texts[at], starts[at])
                    at += 1
                if kinds[at] in _COUNTED:
                    self.at = at
                    item = self.repeated(item)
                    at = self.at
                items.append(item)
            elif kind == "|":
                at += 1
                items = []
                options.items.append(items)
            elif kind in _OPENING:
                outer.append((options, at))
                if len(outer) > self.limits.depth:
                    self.at = at
                    self.check_depth(len(outer), "groups")
                at += 1
                items = []
                options = Expansions([items])
            elif kind in _CLOSING:
                self.at = at
                if not outer:
                    raise self.error(f"nothing is open that {texts[at]} could close", "leave it out")
                inner, (options, opened) = options, outer.pop()
                if (kinds[opened] == "(") != (kind == ")"):
                    hint = f"it was opened by {texts[opened]}, in {self.tokens.named(opened)}"
                    raise self.error(f"{texts[at]} closes another bracket", hint)
                at += 1
                item = Group(inner, starts[opened], kind == "]")
                if kinds[at] in _COUNTED:
                    self.at = at
                    item = self.repeated(item)
                    at = self.at
                items = options.items[-1]
                items.append(item)
                options.aliases += inner.aliases
            elif kind == "->":
                options.aliases += (starts[at],)
                self.at = at
                self.alias()
                at = self.at
            elif kind == "newline" and kinds[at + 1] == "|":
                at += 1
            elif kind in _ENDING:
                self.at = at
                if outer:
                    opened = outer[-1][1]
                    raise self.error(f"{texts[opened]} is never closed", LINES, opened)
                self.at += kind == "newline"
                return options
            else:
                raise self.tokens.misplaced(at)

    def check_depth(self, depth: int, what: str) -> None:
        if depth > self.limits.depth:
            advice = "name the inner ones as rules"
            self.limits.check("depth", depth, f"{what} are nested too deeply", advice, **self.tokens.for_error(self.at))

    def alias(self) -> None:
        self.at += 1
        self.need("rule", "a lower-case name for this alternative", "an alias is a rule's name: `-> name`")
        if self.kinds[self.at] not in ("|", ")", "]", "newline", "end"):
            raise self.error("an alias stands at the end of its alternative", "put it last, or before `|`")

    def value(self) -> Value:
        kind, text, at = self.kinds[self.at], self.texts[self.at], self.starts[self.at]
        self.at += 1
        if kind == "terminal":
            return Symbol(text, at)
        if kind == "rule":
            return Symbol(text, at, self.arguments() if self.take("{") else None)
        if kind == "string" and self.take(".."):
            last = self.at
            self.need("string", "the last character of the range", 'a range goes from string to string: `"a".."z"`')
            return Range(Quoted(text, at), Quoted(self.texts[last], self.starts[last]))
        self.tokens.check_regex(self.at - 1)
        return Quoted(text, at)

    def arguments(self) -> list[Value]:
        result: list[Value] = []
        self.depth += 1
        self.check_depth(self.depth, "templates")
        while True:
            if self.kinds[self.at] not in _VALUES:
                hint = "an argument is one name, string, regex or range; make anything else a rule of its own"
                raise self.error(f"an argument expected here, not {self.shown()}", hint)
            result.append(self.value())
            if self.take("}"):
                self.depth -= 1
                return result
            if not self.take(","):
                hint = "an argument is one name, string, regex or range; make anything else a rule of its own"
                raise self.error(f"`,` or `}}` expected here, not {self.shown()}", hint)

    def repeated(self, item: Item) -> Repeated:
        """Parse the operator behind an item."""
        at, text = self.at, self.texts[self.at]
        self.at += 1
        if self.kinds[at] == "operator":
            low, high = _REPEATS[text]
        else:
            hint = "`x~3` is three times, `x~2..5` two to five times"
            low = most = self.count(hint)
            if self.take(".."):
                most = self.count(hint)
            text = f"~{low}" if self.at - at == 2 else f"~{low}..{most}"
            if most < low or low < 0:
                hint = "write two counts, the smaller one first"
                raise self.error(f"repeat ~{low}..{most} can never be met", hint, at)
            if most > self.limits.repeat:
                self.limits.check("repeat", most, f"repeat {text}", **self.tokens.for_error(at))
            high = most
        if self.kinds[self.at] in _COUNTED:
            further = self.texts[self.at]
            raise self.error(f"`{further}` can't follow `{text}`", f"group what it repeats: `(x{text}){further}`")
        return Repeated(item, low, high, self.starts[at], text)

    def count(self, hint: str) -> int:
        text = self.need("number", "a count", hint)
        if len(text) > 15:
            self.limits.check("repeat", 10**15, f"repeat ~{text[:15]}...", **self.tokens.for_error(self.at - 1))
        return int(text)
