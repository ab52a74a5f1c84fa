"""`LineReader`: what reading a world and reading a policy have in common, and which of the two a file has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from lark import Token

from constrained.errors import GrammarError
from constrained.grammar.lark_outline import RULE, read_outline
from constrained.grammar.lark_syntax import Expansions, Quoted, Range, Symbol, walk
from constrained.grammar.lark_tokens import comments
from constrained.grammar.source import Source, SourceSpan
from constrained.knowledge.lines.expression import Expression
from constrained.knowledge.lines.forms import (
    Calculate,
    Compare,
    Comprehension,
    Conditional,
    Form,
    ListComprehension,
    ListOf,
    MappingOf,
    Member,
    Minus,
    Subscript,
    negation,
)
from constrained.knowledge.lines.pattern import Pattern, PatternError
from constrained.knowledge.lines.syntax import MAX_DEPTH, ParseTree
from constrained.knowledge.lines.syntax_errors import OF_WORLDS
from constrained.knowledge.lines.tells import Tells, Told
from constrained.planning.model import ALWAYS, Junction, Literal, conjunction

_PATTERNS = "write {name}, {name, ...} (a list), (a|b) or [optional]; a backslash before a sign makes it plain text"
"""What a text with holes may have."""


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

    def span(self, token: Token) -> SourceSpan:
        """The place of a token."""
        assert token.start_pos is not None
        return self.source.span(token.start_pos, len(token))

    def span_of(self, tree: ParseTree) -> SourceSpan:
        """The place where a tree begins."""
        return self.span(next(tree.tokens()))

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
                patterns.append(Pattern(unquoted(token)))
            except PatternError as error:
                offset = (token.start_pos or 0) + 1 + min(error.args[1], max(len(token) - 2, 0))
                raise self.source.span(offset).error(error.args[0], _PATTERNS) from None
        return patterns

    # what answers tell

    def tells_of(self, statement: ParseTree, scope: Any = None) -> Tells:
        """What a `tells` line says."""
        *told, condition, by = statement.children
        if told[0].data == "stored":
            if by.data != "tools":
                raise self.error(by, "values are told by tools", "name the tools: by get_order, list_orders")
            tells = self.stored_by(told[0], by)
        else:
            if by.data == "tools":
                raise self.error(by, "a fact is told by a text in an answer", 'write the text in quotes: by "yes"')
            patterns = tuple(self.patterns(by))
            tells = Tells(ALWAYS, self.span_of(by), tuple(self.told_fact(fact, scope) for fact in told), patterns)
        return tells if condition is None else replace(tells, condition=self.form(condition, scope))

    def told_fact(self, tree: ParseTree, scope: Any) -> Told:
        """A fact that a `tells` line tells."""
        mark, atom = tree.children
        literal = self.fact_of(atom, scope)
        return Told(literal.negated if mark == "not" else literal, mark == "all")

    def fact_of(self, atom: ParseTree, scope: Any) -> Literal:
        """A fact that is made or told."""
        raise NotImplementedError

    def stored_by(self, stored: ParseTree, tools: ParseTree) -> Tells:
        """What the results of some tools tell."""
        raise NotImplementedError

    # expressions

    def expression(self, tree: ParseTree | Token) -> Expression:
        """A condition or a value with its text and place."""
        place: Any = tree if isinstance(tree, Token) else tree.meta  # lark's types say that a line may be missing
        text = " ".join(self.source.text[place.start_pos : place.end_pos].split())
        return Expression(self.form(tree), text, at=(place.line, place.column))

    def form(self, tree: ParseTree | Token, scope: Any = None) -> Form:
        """A condition or a value, in which names stand for what `scope` says."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.error(tree, f"values nest deeper than {MAX_DEPTH}", "state it flatter, or split it with `let`")
        found = self.leaf(tree) if isinstance(tree, Token) else self._form(tree, scope)
        self._depth -= 1
        return found

    def _form(self, tree: ParseTree, scope: Any) -> Form:
        parts = [part for part in tree.children if part is not None]
        match tree.data, parts:
            case "atom" | "call", _:
                return self.atom(tree, scope)
            case "quantified" | "asks", _:
                return self.of_facts(tree, scope)
            case "conditions" | "both", _:
                return conjunction([self.form(part, scope) for part in parts])
            case "either", _:
                return Junction("or", tuple(self.form(part, scope) for part in parts))
            case "negation", [_, inner]:
                return negation(self.form(inner, scope))
        return self.of_values(tree, scope)

    def of_values(self, tree: ParseTree, scope: Any) -> Form:
        """A comparison or a value."""

        def form(part: ParseTree | Token) -> Form:
            return self.form(part, scope)

        parts = [part for part in tree.children if part is not None]
        match tree.data, parts:
            case "equality", [left, sign, right]:
                return Compare(form(left), "==" if sign == "=" else str(sign), form(right))
            case "contained", [left, *negative, right]:
                return Compare(form(left), "not in" if negative else "in", form(right))
            case "sum" | "product", [left, sign, right]:
                return Calculate(form(left), str(sign), form(right))
            case "minus", [sign, inner]:
                return Minus(form(inner)) if sign == "-" else form(inner)
            case "member", [inner, name]:
                return Member(form(inner), str(name))
            case "item", [inner, *keys]:
                return Subscript(form(inner), tuple(map(form, keys)))
            case "choice", [value, condition, other]:
                return Conditional(form(value), form(condition), form(other))
            case "listing", _:
                element, *names, values, condition = tree.children
                test = None if condition is None else form(condition)
                return Comprehension(form(element), tuple(map(str, names)), form(values), test)
            case "list", _:
                listed = tuple(map(form, parts))
                return (
                    ListComprehension(listed[0])
                    if len(listed) == 1 and isinstance(listed[0], Comprehension)
                    else ListOf(listed)
                )
            case "mapping", _:
                pairs = (pair.children for pair in parts)
                return MappingOf(tuple((form(key), form(value)) for key, value in pairs))
        raise AssertionError(tree.data)

    def leaf(self, token: Token) -> Form:
        """The form of a text, a number or `*`."""
        raise NotImplementedError

    def atom(self, tree: ParseTree, scope: Any) -> Form:
        """The form of a name, with or without arguments."""
        raise NotImplementedError

    def of_facts(self, tree: ParseTree, scope: Any) -> Form:
        """The form of a condition with a quantifier, or of one on what a goal asks for."""
        raise NotImplementedError


def unquoted(token: Token) -> str:
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


def _begins_with(slot: str, options: Expansions) -> bool:
    """Whether some alternative begins with a slot."""
    for items in options.items:
        pieces = (item for item in walk(Expansions([items])) if isinstance(item, (Symbol, Quoted, Range)))
        first = next(pieces, None)
        if isinstance(first, Symbol) and first.text == slot:
            return True
    return False
