"""`LineReader`: what reading a world and reading a policy have in common, and which of the two a file has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from lark import Token

from constrained.errors import GrammarError
from constrained.grammar.lark_outline import RULE, read_outline
from constrained.grammar.lark_syntax import Alternatives, Name, Quoted, Range, walk
from constrained.grammar.lark_tokens import comments
from constrained.grammar.source import Source
from constrained.knowledge.lines.expression import Expression
from constrained.knowledge.lines.pattern import Pattern, PatternError
from constrained.knowledge.lines.syntax import MAX_DEPTH, ParseTree
from constrained.knowledge.lines.syntax_errors import OF_WORLDS


class LineReader:
    """Reads statements of `//:` lines; worlds and policies say what names and facts stand for.

    Parameters
    ----------
    source : Source

    Attributes
    ----------
    rules : dict of str to OutlineEntry
        The rules that the file defines.
    """

    def __init__(self, source: Source):
        self.source = source
        self.outline = read_outline(source)
        defined = [entry for entry in self.outline.definitions if entry.kind == RULE and entry.how == "define"]
        self.rules = {entry.name: entry for entry in defined}
        self._rule_at = {entry.span.line: entry.name for entry in defined}
        self._depth = 0

    def error(self, where: ParseTree | Token, message: str, hint: str = "") -> GrammarError:
        """An error at the beginning of a piece of a line."""
        place: Any = where if isinstance(where, Token) else next(where.tokens(), where.meta)
        return self.source.error(message, hint, place.line, place.column)

    def below(self, statements: Iterable[ParseTree]) -> Iterator[tuple[ParseTree, str | None]]:
        """Each statement with the rule right below its comment, or None."""
        alone = {comment.line for comment in comments(self.source.text) if comment.alone}
        for statement in statements:
            line = statement.meta.end_line
            while line + 1 in alone:
                line += 1
            yield statement, self._rule_at.get(line + 1)

    def patterns(self, tree: ParseTree) -> list[Pattern]:
        """The patterns in a list of texts. Raises GrammarError: a pattern can't be read."""
        patterns = []
        for token in tree.children:
            try:
                patterns.append(Pattern(plain(token)))
            except PatternError as error:
                offset = (token.start_pos or 0) + 1 + min(error.args[1], max(len(token) - 2, 0))
                raise self.source.span(offset).error(error.args[0]) from None
        return patterns

    # expressions

    def expression(self, tree: ParseTree | Token) -> Expression:
        """A condition or a value with its text and place."""
        place: Any = tree if isinstance(tree, Token) else tree.meta  # lark's types say that a line may be missing
        text = " ".join(self.source.text[place.start_pos : place.end_pos].split())
        return Expression(self.form(tree), text, at=(place.line, place.column))

    def form(self, tree: ParseTree | Token) -> Any:
        """A condition or a value in the forms of `constrained.knowledge.lines.expression`."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.error(tree, f"values nest deeper than {MAX_DEPTH}", "state it flatter, or split it with `let`")
        found = self.leaf(tree) if isinstance(tree, Token) else self._form(tree)
        self._depth -= 1
        return found

    def _form(self, tree: ParseTree) -> ParseTree:
        parts = [part for part in tree.children if part is not None]
        match tree.data, parts:
            case "atom" | "call", _:
                return self.atom(tree)
            case "quantified" | "asks", _:
                return self.of_facts(tree)
            case "conditions", [inner]:
                return self.form(inner)
            case "negation", [_, inner]:
                return ParseTree("negation", [self.form(inner)], tree.meta)
            case "equality" | "sum" | "product", [left, sign, right]:
                kind = "compare" if tree.data == "equality" else "calculate"
                sign = sign.update(value="==") if sign == "=" else sign
                return ParseTree(kind, [self.form(left), sign, self.form(right)], tree.meta)
            case "contained", [left, *negative, right]:
                sign = "not in" if negative else "in"
                return ParseTree("compare", [self.form(left), sign, self.form(right)], tree.meta)
            case "minus", [sign, inner]:
                return ParseTree("minus", [self.form(inner)], tree.meta) if sign == "-" else self.form(inner)
            case "member", [inner, name]:
                return ParseTree("member", [self.form(inner), str(name)], tree.meta)
            case "listing", _:
                element, *names, values, condition = tree.children
                test = None if condition is None else self.form(condition)
                forms = [self.form(element), [*map(str, names)], self.form(values), test]
                return ParseTree("listing", forms, tree.meta)
            case "mapping", _:
                pairs = [self.form(part) for pair in parts for part in pair.children]
                return ParseTree("mapping", pairs, tree.meta)
        # What is left has parts that are conditions or values themselves.
        forms = [self.form(part) for part in parts]
        if tree.data == "list" and [getattr(part, "data", "") for part in forms] == ["listing"]:
            return ParseTree("listed", forms, tree.meta)
        return ParseTree("both" if tree.data == "conditions" else tree.data, forms, tree.meta)

    def leaf(self, token: Token) -> Any:
        """The form of a text, a number or `*`."""
        return token

    def atom(self, tree: ParseTree) -> ParseTree:
        """The form of a name, with or without arguments."""
        return tree

    def of_facts(self, tree: ParseTree) -> ParseTree:
        """The form of a condition with a quantifier, or of one on what a goal asks for."""
        return tree


def plain(token: Token) -> str:
    """A name, or a text without its quotes and escapes."""
    return re.sub(r"\\([\"\\])", r"\1", token[1:-1]) if token.type in ("STRING", "EMPTY") else str(token)


def is_policy(source: Source, statements: Iterable[ParseTree]) -> bool:
    """Whether a file's lines are a policy of tools: some rule writes a slot of its own name, which stands for calls.

    In a world, too, a rule may write nothing but a slot; so lines that only worlds have decide first.
    """
    if any(statement.data in OF_WORLDS for statement in statements):
        return False
    outline = read_outline(source)
    own = ((entry.name.upper(), entry) for entry in outline.definitions if entry.kind == RULE)
    return any(slot in outline.declared and _begins_with(slot, entry.options) for slot, entry in own)


def _begins_with(slot: str, options: Alternatives) -> bool:
    """Whether some alternative begins with a slot."""
    for items in options.items:
        pieces = (item for item in walk(Alternatives([items])) if isinstance(item, (Name, Quoted, Range)))
        first = next(pieces, None)
        if isinstance(first, Name) and first.text == slot:
            return True
    return False
