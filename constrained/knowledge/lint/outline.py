"""What a `.lark` file defines and uses, and where, whether or not it can be loaded.

lark's own parser of its grammar language reads the file; where it stops, each statement is
read by itself, so that one mistake doesn't hide all that stands after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from lark import Token, Tree
from lark.exceptions import GrammarError as LarkGrammarError
from lark.exceptions import UnexpectedInput, UnexpectedToken
from lark.load_grammar import _get_parser

from constrained.errors import GrammarError
from constrained.grammar.source import Source, blank_comments

_STATEMENT = re.compile(r"[ \t]*(?:%[a-z]+|[?!]*(?P<name>\w+)[ \t]*(?:\{[^}\n]*\}[ \t]*)?(?:\.[ \t]*-?\d+[ \t]*)?:)")
_NAME = re.compile(r"(?<![\w/\"\\])[a-zA-Z_]\w*")
_SYNTAX = "a rule is written `name: ...`, a terminal `NAME: ...`; text stands in double quotes"
MAX_FAULTS = 10
"""Statements that don't parse which are told of one file; finding out why takes milliseconds each."""

RULE, TERMINAL, SLOT, IMPORT = "rule", "terminal", "slot", "import"


@dataclass(frozen=True)
class Definition:
    """One definition: a rule, a terminal, a declared slot, or an imported name.

    Attributes
    ----------
    name : Token
    kind : str
    params : tuple of Token
        A template's parameters.
    body : Tree or None
    how : str
        "", "override" or "extend".
    priority : Token or None
    library : str
        What is imported: its path with dots, one in front where it is relative.
    """

    name: Token
    kind: str
    params: tuple[Token, ...] = ()
    body: Tree | None = None
    how: str = ""
    priority: Token | None = None
    library: str = ""


@dataclass
class Outline:
    """Definitions and uses of one file.

    Attributes
    ----------
    definitions : list of Definition
    ignored : list of Tree
        What stands after each `%ignore`.
    faults : list of GrammarError
        Statements that don't parse.
    guessed : set of str
        Names that stand in those.
    """

    definitions: list[Definition] = field(default_factory=list)
    ignored: list[Tree] = field(default_factory=list)
    faults: list[GrammarError] = field(default_factory=list)
    guessed: set[str] = field(default_factory=set)

    @cached_property
    def by_name(self) -> dict[str, list[Definition]]:
        """Name -> its definitions, in the file's order."""
        out: dict[str, list[Definition]] = {}
        for definition in self.definitions:
            out.setdefault(str(definition.name), []).append(definition)
        return out

    @cached_property
    def declared(self) -> dict[str, Token]:
        """Slot -> where it is declared (`_STEP` is among them)."""
        return {str(d.name): d.name for d in self.definitions if d.kind == SLOT}

    @cached_property
    def users(self) -> dict[str, list[str]]:
        """Name -> the other names whose definitions use it, in the file's order."""
        out: dict[str, dict[str, None]] = {}
        for definition in self.definitions:
            for name in self.uses(definition):
                if name != definition.name:
                    out.setdefault(str(name), {})[str(definition.name)] = None
        return {name: list(users) for name, users in out.items()}

    def uses(self, definition: Definition) -> Iterator[Token]:
        """Names of rules and terminals that stand in a definition, parameters aside."""
        params = set(map(str, definition.params))
        return (t for t in names_in(definition.body) if str(t) not in params)

    def reachable(self, start: str) -> set[str]:
        """Names that a text of `start` can pass through, and those of `%ignore`."""
        work = [start, *(str(t) for tree in self.ignored for t in names_in(tree))]
        found: set[str] = set()
        while work:
            name = work.pop()
            if name not in found:
                found.add(name)
                work += [str(t) for d in self.by_name.get(name, ()) for t in self.uses(d)]
        return found

    def place(self, name: str) -> Token | None:
        """Where `name` is defined first."""
        found = self.by_name.get(name)
        return found[0].name if found else None


def read_outline(source: Source) -> Outline:
    """The outline of a file; never raises for what is wrong in it."""
    outline = Outline()
    try:
        _add(outline, _parse(source.text))
    except (UnexpectedInput, LarkGrammarError):
        _statement_by_statement(source, outline)
    except RecursionError:
        outline.faults.append(source.error("groups are nested too deeply", hint="name the inner ones as rules"))
    return outline


def names_in(tree: Tree | None) -> Iterator[Token]:
    """The names of rules and terminals used in a tree, as they stand."""
    for node in inner_first(tree):
        if node.data in ("nonterminal", "terminal"):
            yield node.children[0]


def inner_first(tree: Tree | None) -> Iterator[Tree]:
    """Every tree in `tree`, from left to right; an alias is a name for the reader, and left out."""
    if tree is None:
        return
    work = [tree]
    while work:
        top = work.pop()
        yield top
        parts = top.children[:1] if top.data == "alias" else top.children
        work.extend(part for part in reversed(parts) if isinstance(part, Tree))


def _parse(text: str) -> Tree:
    return _get_parser().parse(text + "\n", "start")


def _statement_by_statement(source: Source, outline: Outline) -> None:
    lines = source.text.split("\n")
    bare = blank_comments(source.text).split("\n")
    begins = [i for i, line in enumerate(bare) if _STATEMENT.match(line)]
    for first, after in zip([0, *begins], [*begins, len(lines)]):
        text = "\n".join(lines[first:after])
        if not text.strip():
            continue
        try:
            _add(outline, _parse("\n" * first + text))
        except (UnexpectedInput, LarkGrammarError, RecursionError) as error:
            outline.guessed |= set(_NAME.findall("\n".join(bare[first:after])))
            outline.faults.append(_fault(source, error, first))
            if len(outline.faults) >= MAX_FAULTS:
                outline.guessed |= set(_NAME.findall("\n".join(bare[after:])))
                return


def _fault(source: Source, error: Exception, first: int) -> GrammarError:
    if isinstance(error, RecursionError):
        return source.error("groups are nested too deeply", line=first + 1, hint="name the inner ones as rules")
    if isinstance(error, UnexpectedInput):
        early = isinstance(error, UnexpectedToken) and error.token.type in ("_NL", "$END")
        message = "the line ends too early" if early else "this can't stand here"
        return source.error(message, hint=_SYNTAX, line=error.line, column=error.column)
    place = re.search(r"line (\d+),? column (\d+)", str(error))
    line, column = map(int, place.groups()) if place else (first + 1, 1)
    return source.error("this can't stand here", hint=_SYNTAX, line=line, column=column)


def _add(outline: Outline, tree: Tree) -> None:
    for item in tree.children:
        kind = item.data
        if kind in ("override", "extend"):
            outline.definitions.append(_definition(item.children[0], kind))
        elif kind in ("rule", "term"):
            outline.definitions.append(_definition(item))
        elif kind == "ignore":
            outline.ignored.append(item.children[0])
        elif kind == "declare":
            outline.definitions += [
                Definition(s.children[0], SLOT if s.data == "terminal" else RULE) for s in item.children
            ]
        elif kind == "import":
            outline.definitions += _imported(*item.children)


def _definition(item: Tree, how: str = "") -> Definition:
    if item.data == "term":
        name, *priority, body = item.children
        return Definition(name, TERMINAL, body=body, how=how, priority=priority[0] if priority else None)
    _, name, params, priority, body = item.children
    first = priority.children[0] if priority.children else None
    return Definition(name, RULE, tuple(params.children), body, how, first)


def _imported(path: Tree, names=None) -> list[Definition]:
    library = list(map(str, path.children))
    relative = "." if path.data == "import_rel" else ""
    if isinstance(names, Tree):  # several at once
        return [Definition(n, IMPORT, library=relative + ".".join([*library, n])) for n in names.children]
    return [Definition(names or path.children[-1], IMPORT, library=relative + ".".join(library))]
