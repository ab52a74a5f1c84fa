"""The mathematical actions: arithmetic, equations, inequalities and counting, exact and over the reals.

This runs in the worker's process (`constrained.environments.executor.worker`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
from sympy import Rational, S

from constrained.environments.executor.formulas import NameValues, Part, formula
from constrained.errors import ActionError

MAX_CHARACTERS = 1_000
"""Most characters of a value's text."""
_DIGITS = 12  # shown of a number with infinitely many decimals


def perform(
    kind: str, parts: Sequence[Part], wanted: int, results: Mapping[int, object], order: Sequence[str]
) -> list[tuple[object, str]]:
    """Carry out one action, and return its values with their texts.

    Parameters
    ----------
    kind : str
        "calculator", "set_equation", ...: a rule of `grammars/lumos/maths.lark`.
    parts : sequence of nodes
        The arguments, as plain data.
    wanted : int
        The number of results that the action writes.
    results : mapping of int to value
        The results that the action names.
    order : sequence of str
        The unknowns, in the order of their definition.
    """
    unknowns = {name: sympy.Symbol(name, real=True) for name in order}
    scope = NameValues(results, unknowns)
    values = _ACTIONS[kind](parts, scope, wanted)
    return [(value, text_of(value)) for value in values]


def _calculator(parts, scope, wanted):
    """The value of a formula, or whether a comparison holds; the case of texts doesn't matter."""
    if len(parts) == 1:
        return (formula(parts[0], scope),)
    left, (_, sign), right = parts
    left, sign, right = _side(left, scope), sign.strip(), _side(right, scope)
    if isinstance(left, str) or isinstance(right, str):
        if sign not in ("==", "!="):
            raise ActionError(f"{left} and {right} have no order")
        return ((str(left).strip().casefold() == str(right).strip().casefold()) == (sign == "=="),)
    relation = sympy.Rel(left, right, sign)
    if relation not in (sympy.true, sympy.false):
        raise ActionError(f"whether {relation} holds can't be told")
    return (bool(relation),)


def _side(part, scope):
    """One side of a comparison: a number, or the text of a result that is not a number."""
    leaves = list(_leaves(part))
    # Only a side that is nothing but the name of a result may be a text.
    value = scope.results.get(int(leaves[0][1])) if len(leaves) == 1 and leaves[0][0] == "VALUE" else None
    try:
        return formula(part, scope)
    except ActionError:
        if isinstance(value, str):
            return value
        raise


def _leaves(part):
    if isinstance(part[1], str):
        yield part
    else:
        for inner in part[1:]:
            yield from _leaves(inner)


def _set_equation(parts, scope, wanted):
    left, (_, sign), right = parts
    return (Relation(formula(left, scope), sign.strip(), formula(right, scope)),)


def _solve_equation(parts, scope, wanted):
    """Solve a system of equations.

    Returns `wanted` values: one for each unknown, in the order of their definition; or for a single unknown one for
    each solution, ascending; or one for everything. A result with several solutions is a tuple.

    Raises ActionError: there is no solution, no definite solution, or another number of solutions.
    """
    # One unknown: its solutions are a set of reals, which may be listed. Several: tuples that solve all equations.
    equations = [relation.left - relation.right for relation in _relations(parts, scope, True)]
    unknowns = _unknowns(equations, scope, "the equation")
    values = _single(equations, unknowns[0]) if len(unknowns) == 1 else _system(equations, unknowns)
    if wanted == len(values):
        return tuple(values)
    if wanted == 1:
        return (tuple(values),)
    raise ActionError(f"there are {len(values)} solutions for {wanted} results", f"name {len(values)}, or one for all")


def _solve_inequality(parts, scope, wanted):
    """The real numbers that satisfy all inequalities. Raises ActionError: they don't have just one unknown."""
    relations = _relations(parts, scope, False)
    unknowns = _unknowns([relation.left - relation.right for relation in relations], scope, "the inequality")
    if len(unknowns) > 1:
        raise ActionError(f"the inequality has the unknowns {', '.join(map(str, unknowns))}", "use only one unknown")
    region = S.Reals
    for relation in relations:
        condition = sympy.Rel(relation.left, relation.right, relation.sign)
        # Where the unknown cancels out, sympy says at once whether the condition holds.
        if condition == sympy.false:
            return (S.EmptySet,)
        if condition != sympy.true:
            region = region.intersect(sympy.solve_univariate_inequality(condition, unknowns[0], relational=False))
    return (region,)


def _relations(parts, scope, equations: bool) -> list[Relation]:
    relations = [scope.results[int(token[1])] for _, token in parts]
    for value, (_, token) in zip(relations, parts):
        if not isinstance(value, Relation) or (value.sign == "=") != equations:
            what = "equation" if equations else "inequality"
            raise ActionError(f"R{token[1]} is no {what}", "SetEquation sets one up")
    return relations


def _count(parts, scope, wanted):
    """Count the given formulas; or, of one result, the elements of a list or the whole numbers of a range."""
    if parts[0][0] == "listed":
        return (sympy.Integer(_size(scope.results[int(parts[0][1][1])])),)
    for part in parts:
        formula(part, scope)
    return (sympy.Integer(len(parts)),)


def _define(parts, scope, wanted):
    ((kind, *inner),) = parts
    if kind == "NAME":
        if inner[0] == "pi":
            raise ActionError("pi is a number, no unknown", "choose another name")
        return (scope.unknowns[inner[0]],)
    *minus, (_, digits) = inner
    return (-Rational(digits) if minus else Rational(digits),)


_ACTIONS: dict[str, Callable[[Sequence[Any], NameValues, int], tuple]] = {
    "calculator": _calculator,
    "set_equation": _set_equation,
    "solve_equation": _solve_equation,
    "solve_inequality": _solve_inequality,
    "count": _count,
    "define": _define,
}


def text_of(value) -> str:
    """A value as text for the planner.

    Numbers that aren't whole are written as decimals: exactly if they end, else to 12 digits.
    """
    if isinstance(value, tuple):
        text = ", ".join(map(text_of, value))
    elif isinstance(value, sympy.Expr) and value.is_number:
        text = _number_text(value)
    elif isinstance(value, sympy.Set):
        text = _region_text(value)
    else:
        text = str(value)
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}..."


def _number_text(value) -> str:
    if value.is_Integer or not value.is_finite:
        return str(value)
    if value.is_Rational:
        places = next((places for places in range(1, 19) if 10**places % value.q == 0), None)
        if places:
            whole, fraction = divmod(abs(value.p) * 10**places // value.q, 10**places)
            return f"{'-' if value < 0 else ''}{whole}.{fraction:0{places}}"
    text = str(value.evalf(_DIGITS))
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def _region_text(region: sympy.Set) -> str:
    """Ranges such as ``(-2, 3] or [5, oo)``."""
    if isinstance(region, sympy.Union):
        return " or ".join(map(_region_text, region.args))
    if isinstance(region, sympy.Interval):
        left, right = "(" if region.left_open else "[", ")" if region.right_open else "]"
        return f"{left}{text_of(region.start)}, {text_of(region.end)}{right}"
    if isinstance(region, sympy.FiniteSet):
        return f"{{{', '.join(map(text_of, sorted(region)))}}}"
    return "nothing" if region is sympy.S.EmptySet else str(region)


@dataclass(frozen=True)
class Relation:
    """An equation (``=``) or an inequality (``<``, ``<=``, ``>``, ``>=``)."""

    left: sympy.Expr
    sign: str
    right: sympy.Expr

    def __str__(self) -> str:
        return f"{self.left} {self.sign} {self.right}"


def _unknowns(expressions: Sequence[sympy.Expr], scope: NameValues, what: str) -> list[sympy.Symbol]:
    """The unknowns in expressions, in the order of their definition."""
    used = set().union(*(expression.free_symbols for expression in expressions))
    if not used:
        raise ActionError(f"{what} doesn't depend on an unknown", "define one and use it: R1 = Define(x)")
    return [symbol for symbol in scope.unknowns.values() if symbol in used]


def _single(equations: Sequence[sympy.Expr], unknown: sympy.Symbol) -> list:
    """All real solutions of equations in one unknown, ascending."""
    solutions = S.Reals
    for equation in equations:
        solutions = solutions.intersect(sympy.solveset(equation, unknown, S.Reals))
    if solutions is S.EmptySet:
        raise ActionError(f"no real {unknown} solves it")
    if not isinstance(solutions, sympy.FiniteSet):
        everything = solutions == S.Reals
        raise ActionError(f"every {unknown} solves it" if everything else f"its solutions can't be listed: {solutions}")
    return sorted(solutions)


def _system(equations: Sequence[sympy.Expr], unknowns: Sequence[sympy.Symbol]) -> list:
    """The value of each unknown, or a tuple of its values if there are several solutions."""
    solutions = sympy.solve(equations, unknowns, dict=True)
    solutions = [solution for solution in solutions if all(value.is_real is not False for value in solution.values())]
    if not solutions:
        raise ActionError("no real numbers solve the equations together")
    if any(len(s) < len(unknowns) or any(value.free_symbols for value in s.values()) for s in solutions):
        raise ActionError(
            f"{len(equations)} equations don't determine {', '.join(map(str, unknowns))}", "set up another equation"
        )
    if len(solutions) == 1:
        return [solutions[0][unknown] for unknown in unknowns]
    return [tuple(solution[unknown] for solution in solutions) for unknown in unknowns]


def _size(value: object) -> int:
    """The number of elements of a list, or of whole numbers in a range; a single value counts as one."""
    if isinstance(value, tuple):
        return len(value)
    if isinstance(value, sympy.Expr):
        return 1
    if not isinstance(value, sympy.Set):
        raise ActionError(f"{str(value)[:60]!r} is no list and no range")
    # The whole numbers of a union of intervals are a union of ranges, which are counted piece by piece.
    whole = value.intersect(S.Integers)
    pieces = whole.args if isinstance(whole, sympy.Union) else (whole,)
    total = 0
    for piece in pieces:
        if isinstance(piece, sympy.Range) and piece.size.is_finite:
            total += int(piece.size)
        elif isinstance(piece, (sympy.FiniteSet, sympy.sets.sets.EmptySet)):
            total += len(piece)
        else:
            raise ActionError(f"{value} holds infinitely many whole numbers, or they can't be counted")
    return total
