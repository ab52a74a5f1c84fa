"""The definitions of a `.lark` file and of the files it imports, by name.

Names are lark's: what an imported definition needs from its own file is imported with it as
``file__name`` (``_file__name`` for ``_name``), so that names of two files never clash. The one
exception is `_STEP`, which is the same in all files. The names in a terminal mean those of its own file; the
names in a rule mean what they stand for in the end: `%override` affects imported rules, not the parts of imported
terminals.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from constrained.errors import GrammarError, LimitError, nearest
from constrained.grammar import lark_syntax as syntax
from constrained.grammar.lark_syntax import Expansions, Symbol, walk
from constrained.grammar.lark_tokens import word_at
from constrained.grammar.nodes import RELATIONS, STEP
from constrained.grammar.source import SHIPPED, Source, SourceSpan, read_file, shipped_names
from constrained.grammar.traverse import reached
from constrained.limits import Limits


@dataclass(eq=False)
class Scope:
    """One loading of one file: how its names map to those of the grammar as a whole."""

    source: Source
    prefix: str = ""
    imported_by: SourceSpan | None = None
    imported: frozenset[str] = frozenset()
    outer: Scope | None = None
    called: dict[str, str] = field(default_factory=dict)
    definitions: dict[str, Definition] = field(default_factory=dict)

    def full(self, name: str) -> str:
        """The name that `name`, as written in this file, has in the grammar as a whole."""
        called = self.called.get(name)
        if called is None:
            called = name
            if self.outer is not None:
                mark, rest = ("_", name[1:]) if name[0] == "_" else ("", name)
                called = self.outer.full(name if name == STEP else f"{mark}{self.prefix}__{rest}")
            self.called[name] = called
        return called

    def definition(self, name: str) -> Definition | None:
        """What `name`, as written in this file, stands for in this file."""
        return self.definitions.get(self.full(name))

    def known(self, name: str) -> Definition:
        """What `name` stands for, which is known to be defined."""
        return self.definitions[self.full(name)]

    def error(self, message: str, at: int, hint: str | None = None, code: str = "refused") -> GrammarError:
        """A GrammarError at an offset of the file; the message names the import that led here."""
        if self.imported_by:
            message += f" (imported in {self.imported_by.source.name}:{self.imported_by.line})"
        return self.span(at).error(message, hint, code)

    def span(self, at: int, length: int = 0) -> SourceSpan:
        return self.source.span(at, length)


@dataclass(eq=False)
class Body:
    """Alternatives of a definition, and the file that their names belong to."""

    options: Expansions
    scope: Scope


@dataclass(eq=False)
class Definition:
    """A rule, terminal or slot."""

    name: str
    terminal: bool  # written in capitals: a terminal or a slot
    params: tuple[str, ...]  # a template's
    bodies: list[Body]  # one, and one more for each `%extend`
    declared: bool  # by `%declare`: a slot
    at: int  # where its name stands, as an offset in its file
    scope: Scope
    line: int = 0  # a rule's, one-based

    @property
    def span(self) -> SourceSpan:
        """Where its name stands where it is defined."""
        return self.scope.span(self.at)

    @property
    def shown(self) -> str:
        """Its name for a reader: `common.DIGIT` for the `common__DIGIT` that an import brings with it."""
        if self.name[0] == "$":
            return "%ignore"
        if self.scope.outer is None or self.name in self.scope.imported:
            return self.name
        return f"{self.scope.prefix.replace('__', '.')}.{word_at(self.scope.source.text, self.at)}"

    def first_use(self, name: str) -> SourceSpan | None:
        """Where a name, given in full, is first used in it."""
        for body in self.bodies:
            for item in walk(body.options):
                if isinstance(item, Symbol) and name == (
                    item.text if item.text in self.params else body.scope.full(item.text)
                ):
                    return body.scope.span(item.at, len(item.text))
        return None


class Faults(list[GrammarError]):
    """What is wrong with a file, if `every` error is wanted; otherwise the first one is raised."""

    def __init__(self, every: bool = False):
        super().__init__()
        self.every = every

    def add(self, error: GrammarError) -> None:
        """Keep an error if every one is wanted, or raise it; one that says that a limit is passed is always raised."""
        if not self.every or isinstance(error, LimitError):
            raise error from None
        self.append(error)


def load(
    source: Source, limits: Limits, faults: Faults, statements: list[syntax.Statement] | None = None
) -> tuple[dict[str, Definition], list[Definition]]:
    """Load what a `.lark` file and its imports define, and what it ignores; the definitions' bodies are not read yet.

    `statements` are those of the file, if they are parsed already. Errors go to `faults`; LimitError: it costs more
    than `limits` allow.
    """
    if len(source.text) > limits.characters:
        what = f"grammar text of {len(source.text)} characters"
        limits.check("characters", len(source.text), what, source=source.name)
    loader = _Loader(limits, faults)
    return loader.load(source, statements), loader.ignored


class _Loader:
    def __init__(self, limits: Limits, faults: Faults):
        self.limits, self.faults = limits, faults
        self.ignored: list[Definition] = []
        self._parsed: dict[Path, tuple[Source, list]] = {}
        self._loading: list[Path] = []
        self._loads = 0
        self._characters = 0

    def load(self, source: Source, statements: list[syntax.Statement] | None) -> dict[str, Definition]:
        """The definitions of a file, and of what it imports."""
        statements = syntax.parse(source, self.limits) if statements is None else statements
        if source.path:
            self._loading.append(source.path.resolve())
        self._characters = len(source.text)
        return self._definitions(Scope(source), statements)

    def _definitions(self, scope: Scope, statements: list) -> dict[str, Definition]:
        imports: dict[tuple, list[syntax.Imported]] = {}
        for statement in statements:
            if isinstance(statement, syntax.Imported):
                imports.setdefault((statement.relative, statement.path), []).append(statement)
        for same in imports.values():
            try:
                self._import(scope, same)
            except GrammarError as error:
                self.faults.add(error)
        for statement in statements:
            try:
                if isinstance(statement, syntax.Defined):
                    self._define(scope, statement)
                elif isinstance(statement, syntax.Declared):
                    self._declare(scope, statement)
                elif isinstance(statement, syntax.Ignored) and scope.outer is None:
                    self._ignore(scope, statement)
            except GrammarError as error:
                self.faults.add(error)
        return scope.definitions

    def _define(self, scope: Scope, statement: syntax.Defined) -> None:
        name = scope.full(statement.name)
        existing = scope.definitions.get(name)
        terminal = statement.name.isupper()
        body = Body(statement.options, scope)
        new = Definition(name, terminal, statement.params, [body], False, statement.at, scope, statement.line)
        if statement.kind == "define" and not existing:  # the usual case
            scope.definitions[name] = new
            return
        # A name is defined once; `%override` and `%extend` need a definition above them, and only those.
        span = scope.span(statement.at)
        kind = "terminal" if terminal else "rule"
        if statement.kind == "define" and existing:
            if existing.params == statement.params:
                existing.bodies.append(body)  # its errors are looked for, too
            hint = _NOT_BOTH if existing.declared else "keep one, or write `%override` or `%extend` before the other"
            raise _defined_twice(f"{kind} '{statement.name}'", existing, scope, span, hint)
        if statement.kind != "define" and not existing:
            hint = nearest(name, scope.definitions, "write the definition without it, or put it after the first one")
            raise span.error(f"there is no {kind} '{statement.name}' to {statement.kind} above", hint)
        if statement.kind == "extend" and existing:
            if existing.declared:
                hint = "a slot's values are bound at run time: define it, or leave this out"
                raise span.error(f"'{statement.name}' is only declared, there is nothing to extend", hint)
            if existing.params != statement.params:
                hint = f"its parameters are: {', '.join(existing.params) or 'none'}"
                raise span.error(f"'{statement.name}' has other parameters where it is defined", hint)
            existing.bodies.append(body)
            return
        scope.definitions[name] = new

    def _declare(self, scope: Scope, statement: syntax.Declared) -> None:
        for declared in statement.names:
            name, span = scope.full(declared.text), scope.span(declared.at)
            existing = scope.definitions.get(name)
            if existing and not (name == STEP and existing.scope is not scope):
                hint = "declare it once" if existing.declared else _NOT_BOTH
                raise _defined_twice(f"'{declared.text}'", existing, scope, span, hint)
            scope.definitions[name] = Definition(name, declared.text.isupper(), (), [], True, declared.at, scope)

    def _ignore(self, scope: Scope, statement: syntax.Ignored) -> None:
        items = walk(statement.options)
        first, more = next(items, None), next(items, None)
        existing = scope.definitions.get(first.text) if isinstance(first, Symbol) else None
        if more is None and existing is not None and existing.terminal:
            self.ignored.append(existing)
            return
        name = f"$ignore{len(self.ignored)}"
        body = Body(statement.options, scope)
        self.ignored.append(Definition(name, True, (), [body], False, statement.at, scope))

    def _import(self, scope: Scope, statements: list[syntax.Imported]) -> None:
        first = statements[0]
        span = scope.span(first.at)
        self._loads += 1
        advice = "import each file once, by one path"
        self.limits.check("imports", self._loads, "too many imports", advice, **span.for_error())
        source, parsed = self._open(scope, first)
        self._characters += len(source.text)
        what = f"the grammar, with what it imports, has {self._characters:,} characters"
        self.limits.check("characters", self._characters, what, **span.for_error())
        assert source.path is not None
        path = source.path.resolve()
        if path in self._loading:
            circle = " -> ".join(p.name for p in [*self._loading[self._loading.index(path) :], path])
            raise span.error(f"files import each other in a circle: {circle}", "move what both need to a third file")
        # The file is read in a scope of its own, which knows what the imported names are called here. All that they
        # need comes with them, under names that begin with the file's.
        names = {name.text: scope.full(called) for s in statements for name, called in s.names}
        inner = Scope(source, "__".join(first.path), span, frozenset(names.values()), scope, dict(names))
        self._loading.append(path)
        definitions = self._definitions(inner, parsed)
        self._loading.pop()
        for statement in statements:
            for imported, called in statement.names:
                try:
                    self._check_imported(scope, inner, imported, called)
                except GrammarError as error:
                    self.faults.add(error)
        for full in _needed([inner.full(name) for name in names if inner.full(name) in definitions], definitions):
            existing = scope.definitions.get(full)
            if existing and full != STEP:
                written = next((name for name, called in names.items() if called == full), full)
                other = "OTHER" if written.isupper() else "other"
                hint = f"import it under another name: `%import {'.'.join(first.path)}.{written} -> {other}`"
                raise span.error(f"'{full}' comes from {existing.span.source.name}, too", hint, "defined-twice")
            scope.definitions[full] = definitions[full]

    def _check_imported(self, scope: Scope, inner: Scope, name: Symbol, called: str) -> None:
        span = scope.span(name.at)
        definition = inner.definitions.get(inner.full(name.text))
        if definition is None:
            own = [d for d in inner.definitions if d in inner.called.values()]
            written = {n for n, f in inner.called.items() if f in own} or set(inner.definitions)
            hint = nearest(name.text, written, f"it has: {enumerated(sorted(written))}")
            raise span.error(f"{inner.source.name} has no '{name.text}'", hint, "undefined-rule")
        if definition.terminal != called.isupper():
            kind, case = ("terminal", "upper") if definition.terminal else ("rule", "lower")
            raise span.error(f"'{name.text}' is a {kind} and can't be called '{called}'", f"use {case} case")

    def _open(self, scope: Scope, statement: syntax.Imported) -> tuple[Source, list]:
        span = scope.span(statement.at)
        file = Path(*statement.path).with_suffix(".lark")
        folders = [_beside(scope.source)] if statement.relative else [SHIPPED, _lark_folder()]
        path = next((f / file for f in folders if (f / file).exists()), None)
        if path is None:
            tried = _tried(file, scope.source if statement.relative else None)
            raise span.error(f"can't import {'.'.join(statement.path)}: {tried}", _elsewhere(scope, statement, file))
        if path not in self._parsed:
            try:
                source = read_file(path, self.limits)
            except OSError as error:
                raise span.error(f"can't import {'.'.join(statement.path)}: {error.strerror or error}") from None
            except GrammarError as error:
                raise span.error(f"can't import {'.'.join(statement.path)}: {error.message}", error.hint) from None
            self._parsed[path] = source, syntax.parse(source, self.limits)
        return self._parsed[path]


_NOT_BOTH = "a slot's values are bound at run time: leave one of both out"


def _defined_twice(what: str, known: Definition, scope: Scope, span: SourceSpan, hint: str) -> GrammarError:
    where = f"in line {known.span.line}" if known.scope is scope else f"by an import from {known.scope.source.name}"
    how = "declared" if known.declared else "defined"
    return span.error(f"{what} is {how} already, {where}", hint, "defined-twice")


def _needed(names: list[str], definitions: dict[str, Definition]) -> list[str]:
    """`names` and all names that their rules use, directly or not; the parts of terminals are not needed."""

    def used(name: str) -> Iterator[str]:
        definition = definitions[name]
        for body in definition.bodies if not definition.terminal else ():
            for item in walk(body.options):
                if isinstance(item, Symbol) and item.text not in definition.params:
                    yield from {body.scope.full(item.text)} & definitions.keys()

    return reached(names, used)


def _beside(source: Source) -> Path:
    """The folder that `%import .name` looks in: the file's own; for text, the running script's, as in lark."""
    if source.path:
        return source.path.parent
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    return Path(script).resolve().parent if script else Path(os.curdir)


def _lark_folder() -> Path:
    spec = importlib.util.find_spec("lark")  # importing it takes half a second
    assert spec and spec.origin
    return Path(spec.origin).parent / "grammars"


def _tried(file: Path, source: Source | None) -> str:
    if source is not None:
        where = f"beside {source.name}" if source.path else "in the folder of the running script"
        return f"there is no {file.as_posix()} {where}"
    return f"no {file.as_posix()} ships with lark or here"


def _elsewhere(scope: Scope, statement: syntax.Imported, file: Path) -> str:
    name = ".".join(statement.path)
    if statement.relative:
        if any((f / file).exists() for f in (SHIPPED, _lark_folder())):
            return f"that is one that ships: write `%import {name}...`, without the first dot"
        known = [
            ".".join(p.relative_to(_beside(scope.source)).with_suffix("").parts)
            for p in _beside(scope.source).glob("*.lark")
        ]
        where = "`%import .name` looks beside the file that imports, or of text, beside the running script"
        return nearest(name, known, where)
    if (_beside(scope.source) / file).exists():
        return f"a file of your own is imported with a dot before it: `%import .{name}...`"
    ours = (name.replace("/", ".") for name in shipped_names())
    known = ["relations", *ours, *sorted(p.stem for p in _lark_folder().glob("*.lark"))]
    there = f"there are: {', '.join(known)}; a file of your own has a dot before it: `%import .{name}...`"
    return nearest(name, known, there)


def enumerated(names: list[str]) -> str:
    """Names separated by commas, the first twenty of them."""
    if not names:
        return "none"
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def undefined(item: Symbol, body: Body, known: Collection[str]) -> GrammarError:
    """The error for a name that is not defined."""
    text, name, first = body.scope.source.text, item.text, item.at
    while first and (text[first - 1].isalnum() or text[first - 1] == "_"):
        first -= 1
    word = word_at(text, first)
    flags = first and text[first - 1] in '/"' and len(word) < 4
    if word != name and not flags:
        hint = f"rules are lower case ({word.lower()}), terminals upper case ({word.upper()})"
        return body.scope.error(f"the name '{word}' is neither a rule's nor a terminal's", first, hint, "syntax")
    if flags:
        hint = "flags of a regular expression are i, m, s, u and x; a string has only i"
    elif name == STEP:
        hint = "declare it: `%declare _STEP`"
    elif name in RELATIONS:
        hint = f"it is a relation; import it: `%import relations.{name}`"
    elif name in ("or", "and"):
        hint = "alternatives are written `a | b`" if name == "or" else "a sequence is written `a b`"
    else:
        slot = f"; or, if its values are bound at run time, `%declare {name}`" if name.isupper() else ""
        hint = nearest(name, known, f"define it: `{name}: ...`{slot}")
    kind = "terminal" if name.isupper() else "rule" if item.args is None else "template"
    return body.scope.error(f"{kind} '{name}' is not defined", item.at, hint, "undefined-rule")
