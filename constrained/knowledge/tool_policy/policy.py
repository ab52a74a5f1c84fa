"""A policy: the `//:` lines of a `.lark` file whose actions are tools.

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
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lark import Token

from constrained.errors import GrammarError, KnowledgeError
from constrained.grammar.lark_outline import RULE, read_outline
from constrained.grammar.source import Source, read_source
from constrained.knowledge.tool_policy.expression import FUNCTIONS, Definition, Expression, Scope, Unknown, json_key
from constrained.knowledge.tool_policy.json_path import found_at, read_path
from constrained.knowledge.tool_policy.memory import Memory, read_result
from constrained.knowledge.world.pattern import Pattern
from constrained.knowledge.world.syntax import ParseTree, parse_world, rules_below


@dataclass(frozen=True)
class Tells:
    """What a result tells: each value at `path` is kept as `name`, under the values at `keys` if there are any.

    `member` is an argument of the call that objects get as a member.
    """

    name: str
    keys: tuple[str, ...]
    path: str
    tools: frozenset[str]
    condition: Expression | None = None
    member: str = ""


@dataclass(frozen=True)
class Makes:
    """What a call changes: the place that `target` names gets `value`; with `each`, once for each `variable` in it."""

    target: ast.expr
    value: Expression
    variable: str = ""
    each: Expression | None = None


@dataclass
class Policy:
    """What tool calls need, tell and change.

    Attributes
    ----------
    source : Source
        Its rules are an ordinary `.lark` file, one rule for each tool.
    tells : list of Tells
    needs : dict of str to list of Expression
        Tool -> its conditions, all of which must hold.
    makes : dict of str to list of Makes
    functions : dict of str to Definition
    initial : Memory
    message : str
        The tool that speaks to the user; empty if there is none.
    order : dict of str to list of str
        Tool -> the order in which its arguments are written, if that is not its schema's.
    fails : list of Pattern
    facts : dict of str to int
        Fact -> how many things it is about. The memory holds those that are true, as a list.
    """

    source: Source
    tells: list[Tells] = field(default_factory=list)
    needs: dict[str, list[Expression]] = field(default_factory=dict)
    makes: dict[str, list[Makes]] = field(default_factory=dict)
    functions: dict[str, Definition] = field(default_factory=dict)
    initial: Memory = field(default_factory=Memory)
    message: str = ""
    order: dict[str, list[str]] = field(default_factory=dict)
    fails: list[Pattern] = field(default_factory=list)
    facts: dict[str, int] = field(default_factory=dict)

    def failed(self, result: str) -> bool:
        """Whether a result begins like one that says that nothing was done."""
        return any(pattern.begins(result) for pattern in self.fails)

    def told(self, memory: Memory, tool: str, arguments: Mapping[str, Any], result: str) -> Memory:
        """The memory after a call and its result.

        Parameters
        ----------
        memory : Memory
        tool : str
        arguments : mapping
        result : str
            As the tool gave it: JSON, or any text.
        """
        if self.failed(result):
            return memory
        data = result if tool == self.message else read_result(result)
        names = {**memory, **arguments, "arguments": dict(arguments), "result": data}
        scope = memory.scope(self.functions)
        after = memory
        for telling in self.tells:
            if tool in telling.tools:
                after = self._tell(after, telling, names, data, scope)
        for change in self.makes.get(tool, ()):
            try:
                each = [None] if change.each is None else change.each.value(names, scope)
                for one in each:
                    inner = names if change.each is None else {**names, change.variable: one}
                    place = tuple(self._place(change.target, inner, scope))
                    after = after.with_place(place, change.value.value(inner, scope))
            except (Unknown, KeyError, IndexError, TypeError):
                continue  # it changes what was never seen
        return after.since(memory)

    def _tell(self, memory: Memory, telling: Tells, names: Mapping[str, Any], data: Any, scope: Scope) -> Memory:
        for value in found_at(telling.path, data):
            if telling.member and isinstance(value, dict) and telling.member in names:
                value = {telling.member: names[telling.member], **value}
            if telling.condition is not None and not telling.condition.holds({**names, "it": value}, scope):
                continue
            if telling.name.isupper():
                if value not in memory.get(telling.name, []):
                    memory = memory.with_values(**{telling.name: [*memory.get(telling.name, []), value]})
            elif telling.keys:
                keys = [next(found_at(key, value), None) for key in telling.keys]
                if None not in keys:
                    key = keys[0] if len(keys) == 1 else json_key(tuple(keys))
                    memory = memory.with_values(**{telling.name: {**memory.get(telling.name, {}), key: value}})
            else:
                memory = memory.with_values(**{telling.name: value})
        return memory

    def _place(self, target: ast.expr, names: Mapping[str, Any], scope: Scope) -> list[Any]:
        if isinstance(target, ast.Name):
            return [target.id]
        if isinstance(target, ast.Attribute):
            return [*self._place(target.value, names, scope), target.attr]
        assert isinstance(target, ast.Subscript)
        key = Expression(target.slice).value(names, scope)
        return [*self._place(target.value, names, scope), json_key(key) if isinstance(key, tuple) else key]

    def check_names(self, arguments: Mapping[str, Sequence[str]]) -> None:
        """Raise KnowledgeError if a condition or a function names what nothing tells; tool -> its arguments."""
        known = {*self.initial, *(telling.name for telling in self.tells), "i"}
        known |= {n.id for made in self.makes.values() for one in made for n in _roots(one.target)}
        named = [(f"the function {name}", one.looks_at, known) for name, one in self.functions.items()]
        for tool, conditions in self.needs.items():
            named += [(f"`needs {one.text}`", one.names, known.union(arguments[tool])) for one in conditions]
        for where, names, there in named:
            for name in sorted(names - there):
                raise KnowledgeError(
                    f"{self.source.name}: {where} looks at {name!r}, which nothing tells", _near(name, there)
                )

    def unmet(self, memory: Memory, tool: str, arguments: Mapping[str, Any]) -> list[str]:
        """The conditions of a call that don't hold: in the words behind them, else as they are written."""
        names = {**memory, **arguments}
        return [
            one.words or one.text
            for one in self.needs.get(tool, ())
            if not _holds(one, names, memory.scope(self.functions))
        ]


def _roots(target: ast.expr) -> Iterator[ast.Name]:
    while not isinstance(target, ast.Name):
        target = target.value  # type: ignore[attr-defined]
    yield target


def _holds(condition: Expression, names: Mapping[str, Any], scope: Scope) -> bool:
    """Whether a condition holds; one about ``x[i]`` holds if it does for every element of x, those before it known."""
    roots = [n.value.id for n in ast.walk(condition.tree) if is_element(n)]  # type: ignore[attr-defined]
    if not roots or "i" not in condition.names:
        return condition.holds(names, scope)
    tree = condition.tree
    root = next((n.value.id for n in ast.walk(getattr(tree, "left", tree)) if is_element(n)), roots[0])  # type: ignore
    listed = names.get(root)
    if not isinstance(listed, list) or not isinstance(tree, ast.Compare):
        return False
    whole = is_element(tree.left)  # else a member, and the other side may look at the element's others
    for i in range(len(listed)):
        before = {**names, root: listed[: i + (not whole)], "i": i}
        try:
            left = condition.part(tree.left).value({**names, "i": i}, scope)
            other = ast.Compare(ast.Name("left", ast.Load()), tree.ops, tree.comparators)
            if whole and isinstance(left, dict):
                right = condition.part(tree.comparators[0]).value(before, scope)
                if not any(all(one.get(k) == v for k, v in left.items()) for one in right):
                    return False
            elif not condition.part(other).value({**before, "left": left}, scope):
                return False
        except Unknown:
            return False
    return True


def is_element(node: ast.AST) -> bool:
    """Whether a node is ``x[i]``."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and isinstance(node.slice, ast.Name)
        and node.slice.id == "i"
    )


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

    def read(self, statements: Sequence[tuple[ParseTree, str | None]]) -> Policy:
        for statement, _ in statements:
            if statement.data == "fact":
                for predicate in statement.children:
                    self.policy.facts[str(predicate.children[0])] = len([c for c in predicate.children[1:] if c])
            elif statement.data == "let":
                name, *_ = statement.children
                if str(name) in FUNCTIONS:
                    raise self.error(name, f"`{name}` is a function that every policy has", "take another name")
                self.policy.functions[str(name)] = Definition((), Expression(ast.Constant(None)))
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
        return rule

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
            place = tuple(self.policy._place(change.target, {}, Scope(self.policy.functions, {})))
            value = change.value.value(self.policy.initial, Scope(self.policy.functions, {}))
            self.policy.initial = self.policy.initial.with_place(place, value)

    def keeps(self, statement: ParseTree, rule: str | None) -> None:
        place, path, member, condition, *tools = statement.children
        name, *keys = (child for child in place.children if child is not None)
        for one in (*keys, path):
            read_path(str(one))
        only_if = None if condition is None else self.expression(condition)
        named = frozenset(map(str, tools))
        self.policy.tells.append(Tells(str(name), tuple(map(str, keys)), str(path), named, only_if, str(member or "")))

    def tells(self, statement: ParseTree, rule: str | None) -> None:
        """Facts that a text tells become changes, where the text is found."""
        *told, condition, patterns = statement.children
        found = [Pattern(_text(token)) for token in patterns.children]
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
            made = ast.IfExp(where, change.value.tree, change.target)
            self.policy.makes.setdefault(self.above(statement, rule), []).append(Makes(change.target, Expression(made)))

    def let(self, statement: ParseTree, rule: str | None) -> None:
        name, *params, body = (child for child in statement.children if child is not None)
        self.policy.functions[str(name)] = Definition(tuple(map(str, params)), self.expression(body))

    def fails(self, statement: ParseTree, rule: str | None) -> None:
        self.policy.fails += [Pattern(_text(token)) for token in statement.children[0].children]

    def message(self, statement: ParseTree, rule: str | None) -> None:
        self.policy.message = str(statement.children[0])

    def write(self, statement: ParseTree, rule: str | None) -> None:
        tool, *names = map(str, statement.children)
        self.policy.order[tool] = names

    # what is changed

    def changes(self, effects: ParseTree) -> Iterator[Makes]:
        for effect in effects.children:
            if effect.data == "each":
                raise self.error(effect, "`every` is of a list here", "every x in LIST: (...)")
            if effect.data == "each_of":
                _, variable, values, inner = effect.children
                for one in self.changes(inner):
                    yield Makes(one.target, one.value, str(variable), self.expression(values))
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
            raise self.error(atom, f"no fact `{name}`", _near(name, self.policy.facts))
        now, other = _name(name), _name("it")
        if negative is None:
            made: ast.expr = _call("unique", ast.BinOp(now, ast.Add(), ast.List([given], ast.Load())))
        else:
            test = ast.Compare(other, [ast.NotEq()], [given])
            made = ast.ListComp(other, [ast.comprehension(ast.Name("it", ast.Store()), now, [test], 0)])
        if condition is not None:
            made = ast.IfExp(self.value(condition), made, now)
        return Makes(now, Expression(made))

    # values

    def expression(self, tree: ParseTree | Token) -> Expression:
        tokens = [tree] if isinstance(tree, Token) else list(tree.tokens())
        first, last = (
            min((t.start_pos or 0 for t in tokens), default=0),
            max((t.end_pos or 0 for t in tokens), default=0),
        )
        return Expression(self.value(tree), " ".join(self.source.text[first:last].split()))

    def terms(self, atom: ParseTree) -> ast.expr:
        """The one term of a fact, a list of several, or true for none."""
        given = [self.value(one) for one in atom.children[1:] if one is not None]
        count = self.policy.facts.get(str(atom.children[0]))
        if count is not None and count != len(given):
            raise self.error(atom, f"`{atom.children[0]}` has {count} arguments, not {len(given)}")
        return ast.Constant(True) if not given else given[0] if len(given) == 1 else ast.List(given, ast.Load())

    def value(self, tree: ParseTree | Token) -> ast.expr:
        """A value or a condition as Python's syntax tree of the same meaning."""
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
            raise self.error(tree, f"no fact or function `{name}`", _near(name, known))
        return _call(name, *map(self.value, parts))

    def signed(self, parts: Sequence[Any]) -> ast.expr:
        sign, value = parts
        return ast.UnaryOp(ast.USub(), self.value(value)) if str(sign) == "-" else self.value(value)

    def listing(self, tree: ParseTree) -> tuple[ast.expr, list[ast.comprehension]]:
        element, *names, values, condition = tree.children
        stored = [ast.Name(str(name), ast.Store()) for name in names]
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


def _near(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean {near[0]}?" if near else f"there are: {', '.join(sorted(known)[:12])}"
