"""Read a policy: the `//:` lines of a `.lark` file whose actions are tools.

The file's rules say which tool may follow which; the lines say what results tell, and what each call needs. They are
those of a world (`constrained.knowledge.world`), with values beside facts:

//: fact asked(order)                             what can be true; `needs`, `makes` and `init` say it as in a world
//: tells order[@.order_id] = $ by get_order      a result, or each value at a JSON path, is kept under a name
//: tells flight[@.number, @.date] = $[*] with date by search    the call's `date` becomes a member of each
//: tells ORDER = $.orders[*] by get_user         a name in capitals collects every value it was ever told
//: init changed = []                             what holds at the beginning
//: let total(o) = sum(i.price for i in order[o].items)
//: fails by "Error"                              results that begin like this tell and change nothing
//: message respond                               the tool that speaks to the user, whose answers are its results
//: write book: user_id, cabin, flights           in which order arguments are written
//: needs order[order_id].status == "pending"     // (above a rule) a condition; the note says why, if it fails
//: makes order[order_id].status = "cancelled"    (above a rule) what a call changes
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lark import Token

from constrained.errors import GrammarError
from constrained.grammar.lark_outline import RULE, read_outline
from constrained.grammar.source import Source, read_source
from constrained.knowledge.tool_policy.expression import ARGUMENTS, FUNCTIONS, Definition, Expression, Scope, Unknown
from constrained.knowledge.tool_policy.json_path import read_path
from constrained.knowledge.tool_policy.policy import Makes, Policy, Tells, near
from constrained.knowledge.world.pattern import Pattern, PatternError
from constrained.knowledge.world.syntax import MAX_DEPTH, ParseTree, parse_world, rules_below


def read_policy(text_or_path: str | Path | Source) -> Policy:
    """Read a policy: a `.lark` file, its text, or a name that ships, such as "tau_retail".

    Raises
    ------
    GrammarError
        There is no such file, or a line can't be read; the message says which.
    """
    source = read_source(text_or_path)
    statements = parse_world(source)
    lines = {d.span.line: d.name for d in read_outline(source).definitions if d.kind == RULE and d.how == "define"}
    return _Reader(source).read(list(rules_below(source, statements, lines)))


def read_condition(text: str) -> Expression:
    """A condition on its own."""
    source = Source(f"//: needs {text}", "condition", None)
    return _Reader(source).expression(parse_world(source)[0].children[0])


class _Reader:
    def __init__(self, source: Source):
        self.source = source
        self.policy = Policy(source)
        self.depth = 0

    def read(self, statements: Sequence[tuple[ParseTree, str | None]]) -> Policy:
        for statement, _ in statements:
            if statement.data == "fact":
                for predicate in statement.children:
                    self.named(predicate.children[0])
                    self.policy.facts[str(predicate.children[0])] = len([c for c in predicate.children[1:] if c])
            elif statement.data == "let":
                name, *params, _ = (child for child in statement.children if child is not None)
                if str(name) in FUNCTIONS:
                    raise self.error(name, f"`{name}` is a function that every policy has", "take another name")
                known = Definition(tuple(map(str, params)), Expression(ast.Constant(None)))
                self.policy.functions[str(name)] = known
        self.policy.initial = self.policy.initial.with_values(**{name: [] for name in self.policy.facts})
        for statement, rule in statements:
            read = getattr(self, statement.data, None)
            if read is None:
                raise self.error(statement, f"a policy of tools has no `{statement.data}`", "it is of worlds")
            read(statement, rule)
        return self.policy

    def error(self, where: ParseTree | Token, message: str, hint: str = "") -> GrammarError:
        token = where if isinstance(where, Token) else next(where.tokens(), None)
        return self.source.error(message, hint, *((token.line, token.column) if token else ()))

    def above(self, statement: ParseTree, rule: str | None) -> str:
        if rule is None:
            hint = "put it in the comment directly above the tool's rule"
            raise self.error(statement, f"`{statement.data}` stands above no rule", hint)
        self.named(next(statement.tokens()), rule)
        return rule

    def named(self, token: Token, name: str | None = None) -> str:
        """The name of a fact or a tool; where it stands is kept."""
        self.policy.places.setdefault(name or str(token), (token.line or 0, token.column or 0))
        return str(token)

    # statements

    def fact(self, statement: ParseTree, rule: str | None) -> None:
        """It was noted before all others."""

    def needs(self, statement: ParseTree, rule: str | None) -> None:
        conditions = [self.expression(one) for one in statement.children[0].children]
        last = max(statement.tokens(), key=lambda token: token.end_pos or 0)
        line = self.source.text[last.end_pos : self.source.text.find("\n", last.end_pos)]
        for condition in conditions:
            condition.words = line.partition("//")[2].strip()
        self.policy.needs.setdefault(self.above(statement, rule), []).extend(conditions)

    def makes(self, statement: ParseTree, rule: str | None) -> None:
        found = self.policy.makes.setdefault(self.above(statement, rule), [])
        found += self.changes(statement.children[0])

    def init(self, statement: ParseTree, rule: str | None) -> None:
        for one in statement.children:
            change = self.change(one if one.data == "assignment" else ParseTree("change", [None, one, None]))
            place = tuple(self.policy.place_of(change.target, {}, Scope(self.policy.functions, {})))
            try:
                value = change.value.value(self.policy.initial, Scope(self.policy.functions, {}))
            except Unknown as error:
                raise self.error(
                    statement, f"nothing is known yet of {error}", "give a value: init said = []"
                ) from None
            self.policy.initial = self.policy.initial.with_place(place, value)

    def keeps(self, statement: ParseTree, rule: str | None) -> None:
        place, path, member, condition, *tools = statement.children
        name, *keys = (child for child in place.children if child is not None)
        for one in (*keys, path):
            read_path(str(one))
        only_if = None if condition is None else self.expression(condition)
        named = frozenset(map(self.named, tools))
        self.policy.tells.append(Tells(str(name), tuple(map(str, keys)), str(path), named, only_if, str(member or "")))

    def tells(self, statement: ParseTree, rule: str | None) -> None:
        """Facts that a text tells become changes, where the text is found."""
        *told, condition, patterns = statement.children
        found = self.patterns(patterns)
        if holes := [hole for pattern in found for hole in pattern.holes]:
            raise self.error(statement, f"a result's text has no hole {{{holes[0]}}}", "tell values by JSON path")
        where = ast.BoolOp(ast.Or(), [_call("search", ast.Constant(one.regex), _name("result")) for one in found])
        if condition is not None:
            where = ast.BoolOp(ast.And(), [where, self.value(condition)])
        for one in told:
            mark, atom = one.children
            if mark == "all":
                raise self.error(one, "`all` is of a world's things", "leave it out")
            change = self.change(ParseTree("change", [mark, atom, None]))
            told_here = replace(change, condition=Expression(where))
            self.policy.makes.setdefault(self.above(statement, rule), []).append(told_here)

    def let(self, statement: ParseTree, rule: str | None) -> None:
        name, *params, body = (child for child in statement.children if child is not None)
        self.policy.functions[str(name)] = Definition(tuple(map(str, params)), self.expression(body))

    def fails(self, statement: ParseTree, rule: str | None) -> None:
        self.policy.fails += self.patterns(statement.children[0])

    def message(self, statement: ParseTree, rule: str | None) -> None:
        self.policy.message = self.named(statement.children[0])

    def write(self, statement: ParseTree, rule: str | None) -> None:
        tool, *names = statement.children
        self.policy.order[self.named(tool)] = [*map(str, names)]

    def patterns(self, tree: ParseTree) -> list[Pattern]:
        found = []
        for token in tree.children:
            try:
                found.append(Pattern(_text(token)))
            except PatternError as error:
                raise self.error(token, error.args[0]) from None
        return found

    # what is changed

    def changes(self, effects: ParseTree) -> Iterator[Makes]:
        for effect in effects.children:
            if effect.data == "each":
                raise self.error(effect, "`every` is of a list here", "every x in LIST: (...)")
            if effect.data == "each_of":
                _, variable, values, inner = effect.children
                for one in self.changes(inner):
                    yield replace(one, variable=str(variable), each=self.expression(values))
            else:
                yield self.change(effect)

    def change(self, effect: ParseTree) -> Makes:
        """A place that gets a value; a fact that is made true, or with `not` false."""
        if effect.data == "assignment":
            target, value = effect.children
            if target.data not in ("atom", "member", "item"):
                raise self.error(target, "no place that can be changed", 'makes order[id].status = "cancelled"')
            return Makes(self.value(target), self.expression(value))
        negative, atom, condition = effect.children
        name, given = str(atom.children[0]), self.terms(atom)
        if name not in self.policy.facts:
            raise self.error(atom, f"no fact `{name}`", near(name, self.policy.facts))
        now, other = _name(name), _name("it")
        if negative is None:
            made: ast.expr = _call("unique", ast.BinOp(now, ast.Add(), ast.List([given], ast.Load())))
        else:
            test = ast.Compare(other, [ast.NotEq()], [given])
            made = ast.ListComp(other, [ast.comprehension(ast.Name("it", ast.Store()), now, [test], 0)])
        return Makes(now, Expression(made), condition=None if condition is None else self.expression(condition))

    # values

    def expression(self, tree: ParseTree | Token) -> Expression:
        tokens = [tree] if isinstance(tree, Token) else list(tree.tokens())
        first, last = (
            min((t.start_pos or 0 for t in tokens), default=0),
            max((t.end_pos or 0 for t in tokens), default=0),
        )
        begins = min(tokens, key=lambda token: token.start_pos or 0, default=None)
        at = None if begins is None else (begins.line or 0, begins.column or 0)
        return Expression(self.value(tree), " ".join(self.source.text[first:last].split()), at=at)

    def terms(self, atom: ParseTree) -> ast.expr:
        """The one term of a fact, a list of several, or true for none."""
        given = [self.value(one) for one in atom.children[1:] if one is not None]
        count = self.policy.facts.get(str(atom.children[0]))
        if count is not None and count != len(given):
            raise self.error(atom, f"`{atom.children[0]}` has {count} argument{'s' * (count != 1)}, not {len(given)}")
        return ast.Constant(True) if not given else given[0] if len(given) == 1 else ast.List(given, ast.Load())

    def value(self, tree: ParseTree | Token) -> ast.expr:
        """A value or a condition as Python's syntax tree of the same meaning."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(tree, f"values stand deeper than {MAX_DEPTH} in each other", "split them with `let`")
        found = self.part(tree)
        self.depth -= 1
        return found

    def part(self, tree: ParseTree | Token) -> ast.expr:
        if isinstance(tree, Token):
            if tree.type == "NUMBER":
                return ast.Constant(float(tree) if "." in tree else int(tree))
            if tree.type == "ANY":
                raise self.error(tree, "`*` stands for a thing of a world only", "say which")
            return ast.Constant(_text(tree))
        parts = [part for part in tree.children if part is not None]
        match tree.data:
            case "atom" | "call":
                return self.atom(tree)
            case "conditions" if len(parts) == 1:
                return self.value(parts[0])
            case "either" | "both" | "conditions":
                return ast.BoolOp(ast.Or() if tree.data == "either" else ast.And(), [self.value(one) for one in parts])
            case "negation":
                return ast.UnaryOp(ast.Not(), self.value(parts[1]))
            case "equality":
                return ast.Compare(self.value(parts[0]), [_COMPARE[str(parts[1])]()], [self.value(parts[2])])
            case "contained":
                sign = ast.In() if len(parts) == 2 else ast.NotIn()
                return ast.Compare(self.value(parts[0]), [sign], [self.value(parts[-1])])
            case "sum" | "product":
                return ast.BinOp(self.value(parts[0]), _ARITHMETIC[str(parts[1])](), self.value(parts[2]))
            case "minus":
                return self.signed(parts)
            case "choice":
                value, condition, other = map(self.value, parts)
                return ast.IfExp(condition, value, other)
            case "member":
                return ast.Attribute(self.value(parts[0]), str(parts[1]), ast.Load())
            case "item":
                keys = [self.value(one) for one in parts[1:]]
                return ast.Subscript(self.value(parts[0]), keys[0] if len(keys) == 1 else ast.Tuple(keys, ast.Load()))
            case "list":
                if parts and isinstance(parts[0], ParseTree) and parts[0].data == "listing":
                    return ast.ListComp(*self.listing(parts[0]))
                return ast.List([self.value(one) for one in parts], ast.Load())
            case "listing":
                return ast.GeneratorExp(*self.listing(tree))
            case "mapping":
                pairs = [tuple(map(self.value, one.children)) for one in parts]
                return ast.Dict([key for key, _ in pairs], [value for _, value in pairs])
        raise self.error(tree, "a quantifier is of a world's things", "any(... for x in ...), all(... for x in ...)")

    def atom(self, tree: ParseTree) -> ast.expr:
        """A name, a fact, or a call of a function."""
        name, parts = str(tree.children[0]), [part for part in tree.children[1:] if part is not None]
        if name in self.policy.facts:
            return ast.Compare(self.terms(tree), [ast.In()], [_name(name)])
        if not parts and tree.data == "atom":
            return ast.Constant(_CONSTANTS[name]) if name in _CONSTANTS else _name(name)
        if name not in self.policy.functions and name not in FUNCTIONS:
            known = (*self.policy.facts, *self.policy.functions, *FUNCTIONS)
            raise self.error(tree, f"no fact or function `{name}`", near(name, known))
        own = self.policy.functions.get(name)
        least, most = ARGUMENTS.get(name, (1, 1)) if own is None else (len(own.params),) * 2
        if not least <= len(parts) <= most:
            takes = f"{least}{f' to {most}' if most != least else ''} argument{'s' * (most != 1)}"
            raise self.error(tree, f"`{name}` takes {takes}, not {len(parts)}", "see its `let`, or docs/tool_agents.md")
        given = [self.value(one) for one in parts]
        if name in ("search", "find_all") and isinstance(given[0], ast.Constant):
            try:
                re.compile(str(given[0].value))
            except re.error as error:
                raise self.error(tree, f"{given[0].value!r} is no regular expression: {error}") from None
        return _call(name, *given)

    def signed(self, parts: Sequence[Any]) -> ast.expr:
        sign, value = parts
        return ast.UnaryOp(ast.USub(), self.value(value)) if str(sign) == "-" else self.value(value)

    def listing(self, tree: ParseTree) -> tuple[ast.expr, list[ast.comprehension]]:
        element, *names, values, condition = tree.children
        stored: list[ast.expr] = [ast.Name(str(name), ast.Store()) for name in names]
        target = stored[0] if len(stored) == 1 else ast.Tuple(stored, ast.Store())
        tests = [] if condition is None else [self.value(condition)]
        return self.value(element), [ast.comprehension(target, self.value(values), tests, 0)]


_COMPARE: dict[str, type[ast.cmpop]] = {
    "=": ast.Eq, "==": ast.Eq, "!=": ast.NotEq, "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE,
}  # fmt: skip
_ARITHMETIC: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "%": ast.Mod,
}  # fmt: skip
_CONSTANTS = {"true": True, "false": False, "null": None}


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _call(function: str, *given: ast.expr) -> ast.Call:
    return ast.Call(_name(function), list(given), [])


def _text(token: Token) -> str:
    """What a text in quotes says."""
    return re.sub(r"\\([\"\\])", r"\1", token[1:-1])
