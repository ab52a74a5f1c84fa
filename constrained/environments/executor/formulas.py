"""Exact values of formulas: sympy expressions, built from the parse tree node by node, never from text.

This runs in the worker's process (`constrained.environments.executor.worker`). Operations with a possibly huge result
are checked before they are computed; the process's limits on time and memory catch the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sympy
from sympy import Expr, Integer, Rational

from constrained.errors import ActionError

Part: TypeAlias = tuple[Any, ...]
"""A node of a parse tree as plain data: (rule, part, ...); for a token (TERMINAL, text)."""
Parts: TypeAlias = Sequence[Any]
Value: TypeAlias = Expr | tuple[Expr, ...]

_FUNCTIONS = {
    "sqrt": sympy.sqrt, "abs": sympy.Abs, "floor": sympy.floor, "ceil": sympy.ceiling, "exp": sympy.exp,
    "ln": sympy.log, "log": sympy.log, "sin": sympy.sin, "cos": sympy.cos, "tan": sympy.tan,
    "factorial": sympy.factorial, "binomial": sympy.binomial,
}  # fmt: skip
_NUMBER = re.compile(r"(-?)\s*\$?\s*([0-9][0-9,]*|(?=\.))(\.[0-9]+)?\s*(%?)\.?")


# Limits of one formula. Its depth is limited where it is parsed (`actions.MAX_DEPTH`).
LIMITS = {
    "bits": 10_000,  # of a whole number, numerators and denominators included
    "factorial": 1_000,  # greatest argument of factorial and binomial
    "terms": 2_000,  # nodes of a formula with unknowns
}


@dataclass(frozen=True)
class NameValues:
    """The values of names: results by number, unknowns by name."""

    results: Mapping[int, object]
    unknowns: Mapping[str, sympy.Symbol]


def formula(part: Part, scope: NameValues) -> Expr:
    """The value of a `formula` node.

    Raises ActionError: it has no finite real value, refers to a result that is not a number, or exceeds one of
    `LIMITS`.
    """
    return _single(_value(part, scope))


def _value(part: Part, scope: NameValues) -> Value:
    """A node's value: a number or an expression; for a result that is a list, a tuple of these."""
    rule, *parts = part
    if rule in _NODES:
        return _checked(_NODES[rule](parts, scope))
    if len(parts) == 1 and isinstance(parts[0], tuple):  # a rule with one child, such as a pair of brackets
        return _value(parts[0], scope)
    raise ActionError(f"a formula has no {rule}")


def _chain(parts: Parts, scope: NameValues) -> Value:
    """The value of a sum or a product, whose children are operands and the signs between them."""
    first, *rest = parts
    total = _value(first, scope)
    for (_, sign), part in zip(rest[::2], rest[1::2]):
        total = _checked(_combine(_single(total), sign.strip(), formula(part, scope)))
    return total


def _combine(left: Expr, sign: str, right: Expr) -> Expr:
    if sign in "+-":
        return left + right if sign == "+" else left - right
    if sign == "*":
        return left * right
    if right.is_zero:
        raise ActionError(f"{left} is divided by zero")
    if sign == "/":
        return left / right
    return sympy.floor(left / right) if sign == "//" else sympy.Mod(left, right)


def _signed(parts: Parts, scope: NameValues) -> Value:
    value = _value(parts[-1], scope)
    return -_single(value) if len(parts) == 2 else value


def _power(parts: Parts, scope: NameValues) -> Value:
    if len(parts) == 1:
        return _value(parts[0], scope)
    base, exponent = formula(parts[0], scope), formula(parts[2], scope)
    if exponent.is_Rational and base.is_Rational and base not in (-1, 0, 1):
        size = abs(exponent.p) * max(base.p.bit_length(), base.q.bit_length())
        _check("bits", size, f"{_short(base)} to the power of {_short(exponent)} is too large")
    if base.is_zero and exponent.is_negative:
        raise ActionError(f"{base} to the power of {exponent} divides by zero")
    return base**exponent


def _call(parts: Parts, scope: NameValues) -> Value:
    (_, name), *children = parts
    values = [_value(child, scope) for child in children]
    if name in ("min", "max", "gcd", "lcm"):
        flat = [item for value in values for item in (value if isinstance(value, tuple) else (value,))]
        if name in ("gcd", "lcm"):
            flat = [_whole(item, name) for item in flat]
        return {"min": sympy.Min, "max": sympy.Max, "gcd": sympy.igcd, "lcm": sympy.ilcm}[name](*flat)
    arguments = [_single(value) for value in values]
    if name == "round":  # halves are rounded away from zero, as in word problems
        return sympy.sign(arguments[0]) * sympy.floor(sympy.Abs(arguments[0]) + Rational(1, 2))
    if name in ("factorial", "binomial"):
        numbers = [_whole(argument, name) for argument in arguments]
        _check("factorial", int(max(map(abs, numbers))), f"{name} of {_short(numbers[0])}")
        if min(numbers) < 0:
            raise ActionError(f"{name} of {min(numbers)} is not defined")
    return _FUNCTIONS[name](*arguments)


def _reference(parts: Parts, scope: NameValues) -> Value:
    number = int(parts[0][1])
    if number not in scope.results:
        raise ActionError(f"there is no result R{number}")
    value = scope.results[number]
    if isinstance(value, str):
        return number_in(value, f"R{number}")
    if isinstance(value, (Expr, tuple)):
        return value
    raise ActionError(f"R{number} is no number")


def _unknown(parts: Parts, scope: NameValues) -> Value:
    name = parts[0][1]
    if name not in scope.unknowns:
        raise ActionError(f"there is no unknown {name!r}", f"define it: R1 = Define({name})")
    return scope.unknowns[name]


def _atom(parts: Parts, scope: NameValues) -> Value:
    kind, text = parts[0][:2]
    if kind == "NUMBER":
        return Rational(text)
    return sympy.pi if kind == "CONSTANT" else _value(parts[0], scope)


_NODES: dict[str, Callable[[Parts, NameValues], Value]] = {
    "formula": _chain,
    "product": _chain,
    "signed": _signed,
    "power": _power,
    "call": _call,
    "reference": _reference,
    "unknown": _unknown,
    "atom": _atom,
    "percent": lambda parts, _: Rational(parts[0][1]) / 100,
}


def number_in(text: str, where: str) -> Rational:
    """The number in a text such as ``1,200``, ``$5`` or ``20%``. Raises ActionError: it isn't just a number."""
    match = _NUMBER.fullmatch(text.strip()) if len(text) <= 60 else None
    if not match:
        raise ActionError(f"{where} is {text[:60]!r}, which is no number")
    sign, whole, fraction, percent = match.groups()
    value = Rational(whole.replace(",", "") + (fraction or ""))
    return (-value if sign else value) / (100 if percent else 1)


def _single(value: Value) -> Expr:
    if isinstance(value, tuple):
        raise ActionError(f"there are {len(value)} values where one is needed", "name a result for each of them")
    return value


def _whole(value: Value, name: str) -> Integer:
    value = _single(value)
    if not value.is_Integer:
        raise ActionError(f"{name} of {_short(value)}, which is no whole number")
    return value


def _checked(value: Value) -> Value:
    """`value` if it is a real number or an expression within the limits. Raises ActionError: it isn't."""
    if isinstance(value, tuple):
        return value
    value = value if isinstance(value, sympy.Basic) else Integer(value)  # igcd gives Python numbers
    if value.is_Rational:
        _check("bits", max(value.p.bit_length(), value.q.bit_length()), "a number grows too large")
        return value
    if value.is_finite is False or value.has(sympy.nan, sympy.zoo, sympy.oo, -sympy.oo):
        raise ActionError("a value is not finite", "avoid division by zero and the logarithm of zero")
    if value.is_real is False:
        raise ActionError(f"{_short(value)} is no real number")
    _check("terms", sum(1 for _ in sympy.preorder_traversal(value)), "a formula with unknowns grows too long")
    return value


def _check(limit: str, found: int, what: str) -> None:
    if found > LIMITS[limit]:
        raise ActionError(f"{what} (the limit `{limit}` is {LIMITS[limit]:,})", "use smaller numbers")


def _short(value: Expr) -> str:
    if value.is_Integer and value.p.bit_length() > 200:
        return f"a number of {value.p.bit_length():,} bits"
    return str(value)[:60]
