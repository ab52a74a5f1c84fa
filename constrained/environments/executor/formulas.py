"""A formula's tree as exact mathematics: sympy expressions built node by node, never from text.

Runs in the worker's process (`constrained.environments.executor.worker`). Operations whose result could be huge are
checked before they are computed; the process's limits of time and memory catch the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import sympy
from sympy import Expr, Integer, Rational

from constrained.errors import ActionError

Part: TypeAlias = tuple[Any, ...]
"""A node of a parse tree as plain data: (rule, part, ...), or (TERMINAL, text) for a token."""

_UNARY = {
    "sqrt": sympy.sqrt, "abs": sympy.Abs, "floor": sympy.floor, "ceil": sympy.ceiling, "exp": sympy.exp,
    "ln": sympy.log, "sin": sympy.sin, "cos": sympy.cos, "tan": sympy.tan,
}  # fmt: skip
_NUMBER = re.compile(r"(-?)\s*\$?\s*([0-9][0-9,]*|(?=\.))(\.[0-9]+)?\s*(%?)\.?")


@dataclass(frozen=True)
class Bounds:
    """Limits of one formula; passing one is an `ActionError` that names it.

    Attributes
    ----------
    bits : int
        Bits of a whole number, numerators and denominators included.
    nesting : int
        Depth of a formula's tree; a pair of brackets takes five nodes.
    factorial : int
        Greatest argument of factorial and binomial.
    terms : int
        Nodes of a formula with unknowns.
    """

    bits: int = 10_000
    nesting: int = 300
    factorial: int = 1_000
    terms: int = 2_000

    def check(self, limit: str, found: int, what: str) -> None:
        if found > getattr(self, limit):
            raise ActionError(f"{what} (the limit `{limit}` is {getattr(self, limit):,})", "use smaller numbers")


@dataclass(frozen=True)
class Scope:
    """The values of names: results by number, unknowns by name; and the bounds."""

    results: Mapping[int, object]
    unknowns: Mapping[str, sympy.Symbol]
    bounds: Bounds = Bounds()


def formula(part: Part, scope: Scope, depth: int = 0) -> Expr:
    """Return the value of a `formula` node.

    Raises
    ------
    ActionError
        It has no finite real value, refers to a result that is no number, or passes a bound.
    """
    return _one(_value(part, scope, depth))


def _value(part: Part, scope: Scope, depth: int):
    """Return a node's value: a number or expression; a tuple of them for a result that is a list."""
    rule, *parts = part
    scope.bounds.check("nesting", depth, "brackets within brackets")
    if rule in _NODES:
        return _checked(_NODES[rule](parts, scope, depth + 1), scope.bounds)
    if len(parts) == 1 and isinstance(parts[0], tuple):  # a rule with one child, such as a pair of brackets
        return _value(parts[0], scope, depth)
    raise ActionError(f"a formula has no {rule}")


def _sum(parts, scope, depth):
    total, *rest = parts
    total = _value(total, scope, depth)
    for (_, sign), part in zip(rest[::2], rest[1::2]):
        term = formula(part, scope, depth)
        total = _checked(_one(total) + (term if sign.strip() == "+" else -term), scope.bounds)
    return total


def _product(parts, scope, depth):
    total, *rest = parts
    total = _value(total, scope, depth)
    for (_, sign), part in zip(rest[::2], rest[1::2]):
        total = _checked(_times(_one(total), sign.strip(), formula(part, scope, depth)), scope.bounds)
    return total


def _times(left: Expr, sign: str, right: Expr) -> Expr:
    if sign == "*":
        return left * right
    if right.is_zero:
        raise ActionError(f"{left} is divided by zero")
    if sign == "/":
        return left / right
    return sympy.floor(left / right) if sign == "//" else sympy.Mod(left, right)


def _signed(parts, scope, depth):
    value = _value(parts[-1], scope, depth)
    return -_one(value) if len(parts) == 2 else value


def _power(parts, scope, depth):
    base = _value(parts[0], scope, depth)
    if len(parts) == 1:
        return base
    base, exponent = _one(base), formula(parts[2], scope, depth)
    if exponent.is_Rational and base.is_Rational:
        size = abs(exponent.p) * max(base.p.bit_length(), base.q.bit_length())
        if base not in (-1, 0, 1):
            scope.bounds.check("bits", size, f"{_short(base)} to the power of {_short(exponent)} is too large")
    if base.is_zero and exponent.is_negative:
        raise ActionError(f"{base} to the power of {exponent} divides by zero")
    return base**exponent


def _call(parts, scope, depth):
    (_, name), *arguments = parts
    values = [_value(argument, scope, depth) for argument in arguments]
    if name in ("min", "max", "gcd", "lcm"):
        flat = [one for value in values for one in (value if isinstance(value, tuple) else (value,))]
        if name in ("gcd", "lcm"):
            flat = [_whole(one, name) for one in flat]
        return {"min": sympy.Min, "max": sympy.Max, "gcd": sympy.igcd, "lcm": sympy.ilcm}[name](*flat)
    first, *others = map(_one, values)
    if name == "log":
        return sympy.log(first, *others)
    if name == "round":  # halves are rounded away from zero, as in word problems
        return sympy.sign(first) * sympy.floor(sympy.Abs(first) + Rational(1, 2))
    if name in ("factorial", "binomial"):
        arguments = [_whole(one, name) for one in (first, *others)]
        scope.bounds.check("factorial", int(max(map(abs, arguments))), f"{name} of {_short(arguments[0])}")
        if min(arguments) < 0:
            raise ActionError(f"{name} of {min(arguments)} is not defined")
        return getattr(sympy, name)(*arguments)
    return _UNARY[name](first)


def _reference(parts, scope, _):
    number = int(parts[0][1])
    if number not in scope.results:
        raise ActionError(f"there is no result R{number}")
    value = scope.results[number]
    if isinstance(value, str):
        return number_in(value, f"R{number}")
    if isinstance(value, (Expr, tuple)):
        return value
    raise ActionError(f"R{number} is no number")


def _unknown(parts, scope, _):
    name = parts[0][1]
    if name not in scope.unknowns:
        raise ActionError(f"there is no unknown {name!r}", f"define it: R1 = Define({name})")
    return scope.unknowns[name]


def _atom(parts, scope, depth):
    (kind, text, *_), *_ = parts
    if kind == "NUMBER":
        return decimal(text)
    if kind == "CONSTANT":
        return sympy.pi
    return _value(parts[0], scope, depth)


_NODES = {
    "formula": _sum,
    "product": _product,
    "signed": _signed,
    "power": _power,
    "call": _call,
    "reference": _reference,
    "unknown": _unknown,
    "atom": _atom,
    "percent": lambda parts, *_: decimal(parts[0][1]) / 100,
}


def decimal(text: str) -> Rational:
    """Return the exact value of digits with a decimal point."""
    whole, _, fraction = text.partition(".")
    return Rational(int(f"{whole}{fraction}" or 0), 10 ** len(fraction))


def number_in(text: str, where: str) -> Rational:
    """Return the number that a text is, such as ``1,200``, ``$5`` or ``20%``.

    Raises
    ------
    ActionError
        It is something else.
    """
    found = _NUMBER.fullmatch(text.strip()) if len(text) <= 60 else None
    if not found:
        raise ActionError(f"{where} is {text[:60]!r}, which is no number")
    sign, whole, fraction, percent = found.groups()
    value = decimal(whole.replace(",", "") + (fraction or ""))
    return (-value if sign else value) / (100 if percent else 1)


def _one(value: Expr | tuple[Expr, ...]) -> Expr:
    if isinstance(value, tuple):
        raise ActionError(f"there are {len(value)} values where one is needed", "name a result for each of them")
    return value


def _whole(value: Expr | tuple[Expr, ...], name: str) -> Integer:
    value = _one(value)
    if not value.is_Integer:
        raise ActionError(f"{name} of {_short(value)}, which is no whole number")
    return value


def _checked(value, bounds: Bounds):
    """Return `value` if it is a real number or an expression within the bounds."""
    if isinstance(value, tuple):
        return value
    value = value if isinstance(value, sympy.Basic) else Integer(value)  # igcd gives Python numbers
    if value.is_Rational:
        bounds.check("bits", max(value.p.bit_length(), value.q.bit_length()), "a number grows too large")
        return value
    if value.is_finite is False or value.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
        raise ActionError("a value is not finite", "avoid division by zero and the logarithm of zero")
    if value.is_real is False:
        raise ActionError(f"{_short(value)} is no real number")
    bounds.check("terms", sum(1 for _ in sympy.preorder_traversal(value)), "a formula with unknowns grows too long")
    return value


def _short(value: Expr) -> str:
    if value.is_Integer and value.p.bit_length() > 200:
        return f"a number of {value.p.bit_length():,} bits"
    return str(value)[:60]
