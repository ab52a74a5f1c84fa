"""`.lark` text -> rules. lark itself reads the file (imports, templates, escapes, errors);
here its tree becomes nodes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from lark.exceptions import GrammarError as LarkGrammarError
from lark.exceptions import LarkError
from lark.grammar import NonTerminal, Terminal
from lark.lexer import PatternRE, PatternStr
from lark.load_grammar import _literal_to_pattern, load_grammar

from constrained.errors import GrammarError
from constrained.grammar import nodes
from constrained.grammar.charset import charset
from constrained.grammar.nodes import Call, Chars, Node, Rule, Slot, Var
from constrained.grammar.regex import regex_node

_PACKAGE = Path(__file__).resolve().parent.parent
SHIPPED = next(
    (f for f in (_PACKAGE / "grammars", _PACKAGE.parent / "grammars") if f.is_dir()), _PACKAGE / "grammars"
)
"""The grammars that ship: inside the package in a wheel, beside it in a checkout."""
IGNORED = "$ignore"
"""The rule of what `%ignore` admits after a text's last token."""

MAX_SOURCE = 1_000_000
"""Characters of a grammar's own text; more is refused."""

_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE, "l": 0, "u": 0}
_DEFINITION = re.compile(r"[ \t]*(?:%(?:override|extend)[ \t]+)?[?!]*(\w+)[ \t]*(?:\{[^}]*\}[ \t]*)?(?:\.[ \t]*-?\d+[ \t]*)?:")
_OPERATORS = {"?": (0, 1), "*": (0, None), "+": (1, None)}


@dataclass(frozen=True)
class Source:
    """A grammar's text and the name it goes by in messages."""

    text: str
    name: str
    path: Path | None

    def error(self, message: str, name: str | None = None, hint: str | None = None, line=None, column=None):
        """A GrammarError at `line`/`column`, or where `name` first stands in the text."""
        if line is None and name:
            found = re.search(rf"(?<![\w]){re.escape(name)}(?![\w])", _blank_comments(self.text))
            if found:
                line = self.text.count("\n", 0, found.start()) + 1
                column = found.start() - (self.text.rfind("\n", 0, found.start()) + 1) + 1
        if line is not None and column is None:
            column = 1
        context = ""
        lines = self.text.split("\n")
        if line is not None and 1 <= line <= len(lines):
            context = f"{lines[line - 1]}\n{' ' * ((column or 1) - 1)}^"
        return GrammarError(
            message, line=line, column=column, context=context, hint=hint, source=self.name
        )


def read_source(text_or_path) -> Source:
    """Grammar text, a path, or the name of a grammar that ships, as a :class:`Source`."""
    if isinstance(text_or_path, Path) or (
        isinstance(text_or_path, str) and "\n" not in text_or_path and ":" not in text_or_path
    ) or (isinstance(text_or_path, str) and "\n" not in text_or_path and text_or_path.endswith(".lark")):
        path = Path(text_or_path)
        try:
            if not path.is_file() and (SHIPPED / f"{text_or_path}.lark").is_file():
                path = SHIPPED / f"{text_or_path}.lark"
            return Source(path.read_text(encoding="utf-8"), path.name, path)
        except UnicodeDecodeError as error:
            raise GrammarError(f"{path} is not UTF-8 text: {error}") from None
        except (OSError, ValueError) as error:
            shipped = ", ".join(shipped_names())
            raise GrammarError(
                f"no grammar file {str(text_or_path)!r}: {error}",
                hint=f"give grammar text, a path, or one that ships: {shipped}",
            ) from None
    if not isinstance(text_or_path, str):
        raise GrammarError(f"a grammar is text or a path, not {type(text_or_path).__name__}")
    return Source(text_or_path, "<string>", None)


def shipped_names() -> list[str]:
    """The grammars that ship, by the name `from_lark` takes."""
    return sorted(str(p.relative_to(SHIPPED).with_suffix("")) for p in SHIPPED.rglob("*.lark"))


def read_lark(source: Source) -> tuple[dict[str, Rule], frozenset[str]]:
    """Rules by name, and the names of the declared slots.

    Raises
    ------
    GrammarError
        With line, column, the line itself and a caret where lark tells them.
    """
    if len(source.text) > MAX_SOURCE:
        raise source.error(f"grammar text of {len(source.text)} characters; the limit is {MAX_SOURCE}")
    name = str(source.path) if source.path else "<string>"
    try:
        loaded, _ = load_grammar(source.text, name, [str(SHIPPED)], True)
        return _Reader(source, loaded).read()
    except GrammarError:
        raise
    except LarkGrammarError as error:
        raise _explain(source, str(error)) from None
    except (LarkError, OSError, ValueError) as error:
        raise source.error(str(error) or type(error).__name__) from None
    except RecursionError:
        raise source.error("groups are nested too deeply", hint="name the inner ones as rules") from None


def _explain(source: Source, message: str) -> GrammarError:
    place = re.search(r"line (\d+),? column (\d+)", message)
    if place:
        head = message.split("\n", 1)[0]
        head = re.sub(r",? ?(at )?line \d+,? column \d+( in \S+)?:?", "", head).strip(" ,:") or "does not parse"
        hint = "see the Lark grammar reference; a rule is `name: expansion`, a terminal `NAME: ...`"
        return source.error(head, line=int(place[1]), column=int(place[2]), hint=hint)
    named = re.search(r"'(\w+)'", message)
    hint = None
    if "used but not defined" in message:
        hint = "define it, or `%declare` it if it is a slot bound at run time"
    if "Recursion in terminal" in message:
        named = re.search(r"terminal '?(\w+)", message)
        hint = "terminals can't be recursive: make it a rule (lower case)"
    return source.error(message.split("\n", 1)[0], name=named[1] if named else None, hint=hint)


def _rule_lines(text: str) -> dict[str, int]:
    """Rule -> the line its definition begins on."""
    lines: dict[str, int] = {}
    for number, line in enumerate(_blank_comments(text).split("\n"), 1):
        found = _DEFINITION.match(line)
        if found:
            lines.setdefault(found[1], number)
    return lines


def _blank_comments(text: str) -> str:
    return re.sub(r"(?m)^[ \t]*(//|#).*$", lambda m: " " * len(m[0]), text)


class _Reader:
    def __init__(self, source: Source, loaded):
        self.source = source
        self.loaded = loaded
        self.term_trees = {name: tree for name, (tree, _) in loaded.term_defs}
        self.slots = frozenset(n for n, t in self.term_trees.items() if t is None)
        self.rule_names = {name for name, *_ in loaded.rule_defs}
        self.terms: dict[str, Node] = {}
        self.rule = ""
        self.params: tuple[str, ...] = ()
        self.token_params: set[tuple[str, str]] = set()  # (rule, parameter) that may stand for a token
        self.in_terminal = False
        self.gap: Node | None = None  # what %ignore admits between tokens

    def read(self) -> tuple[dict[str, Rule], frozenset[str]]:
        if self.loaded.ignore:
            ignored = [self.terminal(name) for name in self.loaded.ignore]
            self.gap = nodes.repeat(nodes.alt(ignored), 0, None)
            self.token_params = self.find_token_params()
        lines = _rule_lines(self.source.text)
        rules = {}
        for name, params, tree, _ in self.loaded.rule_defs:
            self.params = tuple(params)
            if tree is None:
                raise self.source.error(f"rule '{name}' is declared but not defined", name)
            self.rule = name
            rules[name] = Rule(name, self.node(tree), self.params, lines.get(name))
        if self.gap is not None:
            rules[IGNORED] = Rule(IGNORED, self.gap)
        return rules, self.slots

    def find_token_params(self) -> set[tuple[str, str]]:
        """Template parameters that come to stand for a token, handed on from rule to rule or not."""
        params = {name: tuple(p) for name, p, *_ in self.loaded.rule_defs}
        found, handed_on = set(), []
        for name, own, tree, _ in self.loaded.rule_defs:
            for use in tree.find_data("template_usage") if tree is not None else ():
                for param, arg in zip(params.get(use.children[0].name, ()), use.children[1:]):
                    target = use.children[0].name, param
                    while getattr(arg, "data", None) == "value":
                        arg = arg.children[0]
                    if isinstance(arg, NonTerminal) and arg.name in own:
                        handed_on.append(((name, arg.name), target))
                    elif not isinstance(arg, NonTerminal) and getattr(arg, "data", None) != "template_usage":
                        found.add(target)
        for _ in handed_on:
            found |= {target for source, target in handed_on if source in found}
        return found

    def terminal(self, name: str) -> Node:
        if name in self.slots:
            return Slot(name)
        if name not in self.terms:
            outer, self.in_terminal = self.in_terminal, True
            self.terms[name] = self.node(self.term_trees[name])
            self.in_terminal = outer
        return self.terms[name]

    def token(self, node: Node) -> Node:
        if self.gap is None or self.in_terminal:
            return node
        return nodes.seq([self.gap, node])

    def node(self, tree) -> Node:
        if isinstance(tree, Terminal):
            term = self.terminal(tree.name)
            return term if tree.name == "_STEP" else self.token(term)
        if isinstance(tree, NonTerminal):
            if tree.name not in self.params:
                return Call(tree.name)
            value = Var(tree.name)
            return self.token(value) if (self.rule, tree.name) in self.token_params else value
        kind, parts = tree.data, tree.children
        if kind == "expansions":
            return nodes.alt([self.node(p) for p in parts])
        if kind == "expansion":
            return nodes.seq([self.node(p) for p in parts])
        if kind == "alias":
            return self.node(parts[0])
        if kind == "value":
            return self.node(parts[0])
        if kind == "maybe":
            return nodes.repeat(self.node(parts[0]), 0, 1)
        if kind == "expr":
            return self.expression(*parts)
        if kind == "literal":
            return self.token(self.literal(parts[0]))
        if kind == "range":
            return self.token(self.range(*parts))
        if kind == "template_usage":
            return self.template(parts[0], parts[1:])
        raise self.source.error(f"unknown construct {kind!r}")

    def expression(self, item, operator, *numbers) -> Node:
        if operator in _OPERATORS:
            low, high = _OPERATORS[operator]
        else:
            low, high = int(numbers[0]), int(numbers[-1])
            if high < low or low < 0:
                raise self.source.error(
                    f"repeat ~{low}..{high} can never be met",
                    line=operator.line, column=operator.column, hint="write two counts, the smaller one first",
                )
        return nodes.repeat(self.node(item), low, high)

    def literal(self, token) -> Node:
        pattern = _literal_to_pattern(token)
        flags = 0
        for letter in pattern.flags:
            flags |= _FLAGS[letter]
        if isinstance(pattern, PatternStr) and not flags:
            try:
                return nodes.literal(pattern.value)
            except UnicodeEncodeError:
                raise self.source.error(
                    "a lone surrogate is not text", line=token.line, column=token.column
                ) from None
        text = pattern.value if isinstance(pattern, PatternRE) else re.escape(pattern.value)
        try:
            return regex_node(text, flags)
        except GrammarError as error:
            hint = error.hint
            column = token.column + (error.column if error.line is not None else 0)
            message = error.message.split("\n")[0].removeprefix("regex:1:").lstrip("0123456789: ")
            raise self.source.error(message, line=token.line, column=column, hint=hint) from None

    def range(self, first, last) -> Node:
        ends = [_literal_to_pattern(t).value for t in (first, last)]
        if any(len(e) != 1 for e in ends):
            raise self.source.error(
                f"a range goes from one character to another, not {first}..{last}",
                line=first.line, column=first.column,
            )
        if ends[0] > ends[1]:
            raise self.source.error(
                f"empty range {first}..{last}", line=first.line, column=first.column,
                hint="the first character must not come after the second",
            )
        chars = charset([(ord(ends[0]), ord(ends[1]))])
        if not chars:
            raise self.source.error("lone surrogates are not text", line=first.line, column=first.column)
        return Chars(chars)

    def template(self, name: NonTerminal, args) -> Node:
        if name.name in self.params:
            raise self.source.error(f"parameter '{name.name}' is used as a template", name.name)
        gap, self.gap = self.gap, None  # the gap belongs where the argument is used
        values = tuple(self.node(a) for a in args)
        self.gap = gap
        return Call(name.name, values)
