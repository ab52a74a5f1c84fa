"""Conditions and values of a policy: a small, safe part of Python's expressions.

They are parsed by Python's own parser and worked out here, never by `eval`: constants, names, ``a.b`` and ``a[b]`` on
JSON values, arithmetic, comparisons, ``and``/``or``/``not``, conditional expressions, lists, tuples, comprehensions,
and calls of the functions below and of a policy's own. What isn't known, such as a result that was never seen, makes a
condition false.
"""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from constrained.errors import KnowledgeError, LimitError

MAX_STEPS = 2_000_000
"""Nodes that are worked out for one condition."""

MAX_CHARACTERS = 10_000
"""Characters of one expression."""


class Unknown(Exception):
    """Something that an expression names is not known."""


_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
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


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "len": len, "sum": sum, "min": min, "max": max, "all": all, "any": any, "sorted": sorted, "round": round,
    "abs": abs, "unique": lambda values: list(dict.fromkeys(values)), "search": _search, "values": _known,
    "find_all": lambda pattern, text: _regex(pattern).findall(text), "lower": str.lower, "keys": list, "zip": zip,
    "range": range, "count": lambda values, one: list(values).count(one), "min_of": lambda values, other: min(values, default=other),
}  # fmt: skip
"""What an expression may call. `search(pattern, text)` and `find_all(pattern, text)` take regular expressions."""

_NODES = (
    ast.Constant, ast.Name, ast.Load, ast.Attribute, ast.Subscript, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not,
    ast.USub, ast.BinOp, ast.Mult, ast.Compare, ast.IfExp, ast.List, ast.Tuple, ast.Call, ast.GeneratorExp, ast.ListComp,
    ast.comprehension, ast.Store, ast.Dict, *_BINARY, *_COMPARE,
)  # fmt: skip


class Expression:
    """One expression.

    Attributes
    ----------
    text : str
    names : frozenset of str
        The names in it that it doesn't bind itself, functions aside.
    """

    def __init__(self, text: str, where: str = ""):
        self.text = text.strip()
        try:
            if len(text) > MAX_CHARACTERS:
                raise SyntaxError(f"it has more than {MAX_CHARACTERS} characters")
            self.tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            problem = error.msg if isinstance(error, SyntaxError) else "it is nested too deeply"
            raise KnowledgeError(f"{where}{self.text[:80]!r} is no condition: {problem}") from None
        bound: set[str] = set()
        used: set[str] = set()
        for node in ast.walk(self.tree):
            if not isinstance(node, _NODES) or (isinstance(node, ast.Call) and not isinstance(node.func, ast.Name)):
                kind = type(node).__name__
                raise KnowledgeError(f"{where}{kind} can't stand in a condition: {self.text[:80]!r}", _HINT)
            if isinstance(node, ast.Name):
                (bound if isinstance(node.ctx, ast.Store) else used).add(node.id)
        self.calls = frozenset(n.func.id for n in ast.walk(self.tree) if isinstance(n, ast.Call))  # type: ignore
        self.names = frozenset(used - bound - self.calls)

    def part(self, tree: ast.expr) -> Expression:
        """A part of it, as an expression of its own."""
        part = Expression.__new__(Expression)
        part.text, part.tree, part.names, part.calls = self.text, tree, self.names, self.calls
        return part

    def value(self, names: Mapping[str, Any], functions: Mapping[str, Definition]) -> Any:
        """Its value.

        Raises
        ------
        Unknown
            A name or a member isn't there.
        """
        return _Evaluation(functions).of(self.tree, names)

    def holds(self, names: Mapping[str, Any], functions: Mapping[str, Definition]) -> bool:
        """Whether it is true; false where something in it isn't known."""
        try:
            return bool(self.value(names, functions))
        except Unknown:
            return False


_HINT = "conditions are simple Python expressions; see the page about tool agents"


class Definition:
    """A function of a policy: parameters and an expression."""

    def __init__(self, params: tuple[str, ...], body: Expression):
        self.params, self.body = params, body


class _Evaluation:
    def __init__(self, functions: Mapping[str, Definition]):
        self.functions = functions
        self.steps = 0
        self.depth = 0

    def of(self, node: ast.expr, names: Mapping[str, Any]) -> Any:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise LimitError("policy_steps", MAX_STEPS, "a condition takes too many steps", "make it simpler")
        kind = type(node)
        if kind is ast.Name:
            if node.id in names:  # type: ignore[attr-defined]
                return names[node.id]  # type: ignore[attr-defined]
            raise Unknown(node.id)  # type: ignore[attr-defined]
        if kind is ast.Constant:
            return node.value  # type: ignore[attr-defined]
        try:
            return getattr(self, kind.__name__)(node, names)
        except (TypeError, KeyError, IndexError, ValueError, ZeroDivisionError, OverflowError, re.error) as error:
            raise Unknown(str(error)) from None

    def Attribute(self, node: ast.Attribute, names):  # noqa: N802  # named as Python's own nodes
        return self.of(node.value, names)[node.attr]

    def Subscript(self, node: ast.Subscript, names):  # noqa: N802
        of, key = self.of(node.value, names), self.of(node.slice, names)
        return of[json_key(key) if isinstance(key, tuple) else key]

    def BoolOp(self, node: ast.BoolOp, names):  # noqa: N802
        wanted = isinstance(node.op, ast.Or)
        unknown: Unknown | None = None
        for part in node.values:
            try:
                if bool(self.of(part, names)) is wanted:
                    return wanted
            except Unknown as error:
                unknown = error
        if unknown is not None:
            raise unknown
        return not wanted

    def UnaryOp(self, node: ast.UnaryOp, names):  # noqa: N802
        value = self.of(node.operand, names)
        return not value if isinstance(node.op, ast.Not) else -value

    def BinOp(self, node: ast.BinOp, names):  # noqa: N802
        left, right = self.of(node.left, names), self.of(node.right, names)
        if isinstance(node.op, ast.Mult):
            if not all(isinstance(one, (int, float)) for one in (left, right)):
                raise Unknown("only numbers are multiplied")
            return left * right
        return _BINARY[type(node.op)](left, right)

    def Compare(self, node: ast.Compare, names):  # noqa: N802
        left = self.of(node.left, names)
        for op, other in zip(node.ops, node.comparators):
            right = self.of(other, names)
            if not _COMPARE[type(op)](left, right):
                return False
            left = right
        return True

    def IfExp(self, node: ast.IfExp, names):  # noqa: N802
        return self.of(node.body if self.of(node.test, names) else node.orelse, names)

    def List(self, node: ast.List, names):  # noqa: N802
        return [self.of(one, names) for one in node.elts]

    def Tuple(self, node: ast.Tuple, names):  # noqa: N802
        return tuple(self.of(one, names) for one in node.elts)

    def Dict(self, node: ast.Dict, names):  # noqa: N802
        return {self.of(k, names): self.of(v, names) for k, v in zip(node.keys, node.values) if k is not None}

    def GeneratorExp(self, node: ast.GeneratorExp, names):  # noqa: N802
        return self._each(node.elt, node.generators, dict(names))

    def ListComp(self, node: ast.ListComp, names):  # noqa: N802
        return list(self._each(node.elt, node.generators, dict(names)))

    def _each(self, element: ast.expr, generators: list[ast.comprehension], names: dict[str, Any]) -> Iterator[Any]:
        if not generators:
            yield self.of(element, names)
            return
        first, *others = generators
        for value in self.of(first.iter, names):
            if isinstance(first.target, ast.Tuple):
                inner = {**names, **{t.id: v for t, v in zip(first.target.elts, value)}}  # type: ignore[attr-defined]
            else:
                inner = {**names, first.target.id: value}  # type: ignore[attr-defined]
            if all(self.of(test, inner) for test in first.ifs):
                yield from self._each(element, others, inner)

    def Call(self, node: ast.Call, names):  # noqa: N802
        name = node.func.id  # type: ignore[attr-defined]
        given = [self.of(one, names) for one in node.args]
        own = self.functions.get(name)
        if own is None:
            return FUNCTIONS[name](*given)
        self.depth += 1
        if self.depth > 50:
            raise LimitError("policy_steps", 50, f"{name} calls itself without end", "policies don't recurse")
        try:
            return self.of(own.body.tree, {**names, **dict(zip(own.params, given))})
        finally:
            self.depth -= 1


def json_key(parts: tuple) -> str:
    """The key of a fact about several things: their JSON."""
    return json.dumps(list(parts))
