"""Conditions and values of a policy, worked out over JSON values.

They are read by the grammar of the `//:` lines (`constrained.knowledge.world.syntax`; `policy` makes Python's syntax
trees of it, which are never run by Python). What isn't known, such as a result that was never seen, makes a condition
false.
"""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from functools import cached_property, lru_cache
from typing import Any

from constrained.errors import LimitError

MAX_STEPS = 2_000_000
"""Rounds of comprehensions in working out what one memory admits."""

MAX_DEPTH = 50
"""Calls within calls of a policy's functions."""


class Unknown(Exception):
    """Something that an expression names is not known."""


_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Div: operator.truediv, ast.Mod: operator.mod,
}  # fmt: skip
_COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip


@lru_cache(maxsize=256)
def _regex(pattern: str) -> re.Pattern:
    return re.compile(pattern)


def _search(pattern: str, text: str) -> bool:
    return _regex(pattern).search(text) is not None


def _known(value: Any) -> list:
    return list(value.values()) if isinstance(value, Mapping) else list(value)


def _unique(values: Any) -> list:
    try:
        return list(dict.fromkeys(values))
    except TypeError:  # lists and objects have no hash
        return [one for i, one in enumerate(values) if one not in values[:i]]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "len": len, "sum": sum, "min": min, "max": max, "all": all, "any": any, "sorted": sorted, "round": round,
    "abs": abs, "range": range, "zip": zip, "keys": list, "values": _known, "lower": str.lower, "search": _search,
    "find_all": lambda pattern, text: _regex(pattern).findall(text),
    "unique": _unique,
    "count": lambda values, one: list(values).count(one),
}  # fmt: skip
"""What an expression may call. `search(pattern, text)` and `find_all(pattern, text)` take regular expressions."""

ARGUMENTS = {
    "min": (1, 99), "max": (1, 99), "range": (1, 3), "round": (1, 2), "zip": (2, 99), "search": (2, 2),
    "find_all": (2, 2), "count": (2, 2),
}  # fmt: skip
"""How many arguments they take, at least and at most; those that aren't named here take one."""


class Expression:
    """One expression.

    Attributes
    ----------
    text : str
        As it is written, in one line.
    at : tuple of (int, int) or None
        The line and the column where it begins.
    words : str
        Why a condition fails, where it does.
    names : frozenset of str
        The names in it that it doesn't bind itself, functions aside.
    """

    def __init__(self, tree: ast.expr, text: str = "", words: str = "", at: tuple[int, int] | None = None):
        self.tree, self.text, self.words, self.at = tree, text, words, at
        bound: set[str] = set()
        used: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name):
                (bound if isinstance(node.ctx, ast.Store) else used).add(node.id)
        self.calls = frozenset(n.func.id for n in ast.walk(self.tree) if isinstance(n, ast.Call))  # type: ignore
        self.names = frozenset(used - bound - self.calls)

    def part(self, tree: ast.expr) -> Expression:
        """A part of it, as an expression of its own."""
        part = copy(self)
        part.tree = tree
        part.__dict__.pop("_run", None)
        return part

    @cached_property
    def _run(self) -> Run:
        return compiled(self.tree)

    def value(self, names: Mapping[str, Any], scope: Scope) -> Any:
        """Its value.

        Raises
        ------
        Unknown
            A name or a member isn't there.
        """
        return self._run(names, scope)

    def holds(self, names: Mapping[str, Any], scope: Scope) -> bool:
        """Whether it is true; false where something in it isn't known."""
        try:
            return bool(self.value(names, scope))
        except Unknown:
            return False


class Definition:
    """A function of a policy: parameters and an expression."""

    def __init__(self, params: tuple[str, ...], body: Expression):
        self.params, self.body = params, body
        self.looks_at = body.names - set(params)


class Scope:
    """What a policy's functions see: the memory and each other; what they gave for some arguments is kept.

    Parameters
    ----------
    functions : mapping of str to Definition
    memory : mapping
    """

    def __init__(self, functions: Mapping[str, Definition], memory: Mapping[str, Any]):
        self.functions, self.memory = functions, memory
        self.steps = 0
        self.depth = 0
        self._known: dict[tuple, Any] = {}

    def call(self, name: str, given: list[Any]) -> Any:
        own = self.functions[name]
        key = (name, *[one if type(one) is str else _identity(one) for one in given])
        if key in self._known:
            found = self._known[key][0]
        else:
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise LimitError(
                    "policy_steps", MAX_DEPTH, f"{name} calls itself without end", "functions don't recurse"
                )
            try:
                names = {name: self.memory[name] for name in own.looks_at if name in self.memory}
                names.update(zip(own.params, given))
                found = own.body.value(names, self)
            except Unknown as error:
                found = error
            finally:
                self.depth -= 1
            self._known[key] = found, given  # what is known by its id stays
        if isinstance(found, Unknown):
            raise found
        return found

    def step(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise LimitError("policy_steps", MAX_STEPS, "a condition takes too many steps", "make it simpler")


def _identity(value: Any) -> Any:
    """A key for a value: two values of one key are equal."""
    if isinstance(value, (list, tuple)):
        return type(value), *map(_identity, value)
    return id(value) if isinstance(value, dict) else (type(value), value)


Run = Callable[[Mapping[str, Any], Scope], Any]

_ERRORS = (TypeError, KeyError, IndexError, ValueError, ZeroDivisionError, OverflowError, AttributeError, re.error)


def compiled(node: ast.expr) -> Run:
    """A function that works out an expression; what goes wrong in it makes it `Unknown`."""
    inner = _compiled(node)

    def run(names: Mapping[str, Any], scope: Scope) -> Any:
        try:
            return inner(names, scope)
        except _ERRORS as error:
            raise Unknown(str(error)) from None

    return run


def _compiled(node: ast.expr) -> Run:
    match node:
        case ast.Constant(value):
            return lambda names, scope: value
        case ast.Name(name):
            return lambda names, scope: names[name]
        case ast.Attribute(inner, name):
            of = _compiled(inner)
            return lambda names, scope: of(names, scope)[name]
        case ast.Subscript(inner, ast.Tuple(elts)):
            of, parts = _compiled(inner), [_compiled(one) for one in elts]
            return lambda names, scope: of(names, scope)[json_key(tuple(one(names, scope) for one in parts))]
        case ast.Subscript(inner, index):
            of, key = _compiled(inner), _compiled(index)
            return lambda names, scope: of(names, scope)[key(names, scope)]
        case ast.BoolOp(op, values):
            return _either([compiled(one) for one in values], isinstance(op, ast.Or))
        case ast.UnaryOp(ast.Not(), inner):
            of = _compiled(inner)
            return lambda names, scope: not of(names, scope)
        case ast.UnaryOp(_, inner):
            of = _compiled(inner)
            return lambda names, scope: -of(names, scope)
        case ast.BinOp(left, op, right):
            first, second = _compiled(left), _compiled(right)
            work = _times if isinstance(op, ast.Mult) else _BINARY[type(op)]
            return lambda names, scope: work(first(names, scope), second(names, scope))
        case ast.Compare(left, [op], [right]):
            first, second, compare = _compiled(left), _compiled(right), _COMPARE[type(op)]
            return lambda names, scope: compare(first(names, scope), second(names, scope))
        case ast.IfExp(test, body, orelse):
            asked, then, other = _compiled(test), _compiled(body), _compiled(orelse)
            return lambda names, scope: (then if asked(names, scope) else other)(names, scope)
        case ast.List(elts):
            items = [_compiled(one) for one in elts]
            return lambda names, scope: [one(names, scope) for one in items]
        case ast.Tuple(elts):
            items = [_compiled(one) for one in elts]
            return lambda names, scope: tuple(one(names, scope) for one in items)
        case ast.Dict(keys, values):
            pairs = [(_compiled(k), _compiled(v)) for k, v in zip(keys, values) if k is not None]
            return lambda names, scope: {k(names, scope): v(names, scope) for k, v in pairs}
        case ast.GeneratorExp(element, generators):
            return _loop(element, generators)
        case ast.ListComp(element, generators):
            each = _loop(element, generators)
            return lambda names, scope: list(each(names, scope))
        case ast.Call(ast.Name(name), [only]) if name in FUNCTIONS:
            function, one = FUNCTIONS[name], _compiled(only)
            return lambda names, scope: function(one(names, scope))
        case ast.Call(ast.Name(name), given):
            items = [_compiled(one) for one in given]
            if name in FUNCTIONS:
                function = FUNCTIONS[name]
                return lambda names, scope: function(*[one(names, scope) for one in items])
            return lambda names, scope: scope.call(name, [one(names, scope) for one in items])
    raise TypeError(f"no such node in a condition: {node!r}")


def _either(parts: list[Run], wanted: bool) -> Run:
    """`or` (wanted True) and `and` (False); what is unknown decides nothing if another part does."""

    def run(names: Mapping[str, Any], scope: Scope) -> bool:
        unknown: Unknown | None = None
        for part in parts:
            try:
                if bool(part(names, scope)) is wanted:
                    return wanted
            except Unknown as error:
                if not wanted:
                    raise
                unknown = error
        if unknown is not None:
            raise unknown
        return not wanted

    return run


def _loop(element: ast.expr, generators: list[ast.comprehension]) -> Run:
    first, *others = generators
    source, tests = _compiled(first.iter), [_compiled(one) for one in first.ifs]
    inner = _loop(element, others) if others else _compiled(element)
    targets = first.target.elts if isinstance(first.target, ast.Tuple) else [first.target]
    bound = [one.id for one in targets if isinstance(one, ast.Name)]
    single = bound[0] if not isinstance(first.target, ast.Tuple) else None

    def run(names: Mapping[str, Any], scope: Scope) -> Iterator[Any]:
        here = dict(names)
        for value in source(names, scope):
            scope.step()
            if single is not None:
                here[single] = value
            else:
                here.update(zip(bound, value))
            if all(test(here, scope) for test in tests):
                if others:
                    yield from inner(here, scope)
                else:
                    yield inner(here, scope)

    return run


def _times(left: Any, right: Any) -> Any:
    if not all(isinstance(one, (int, float)) for one in (left, right)):
        raise Unknown("only numbers are multiplied")  # a text times a number may be as long as memory
    return left * right


def json_key(parts: tuple) -> str:
    """The key of a fact about several things: their JSON."""
    return json.dumps(list(parts))
