"""Decide whether a world meets a goal written as a PDDL formula.

Quantifiers are expanded over the objects of their type.  A variable's candidates
are first cut down by the goal's own unchanging conditions on it (``objectType``,
``cleanable`` ...), so that a check after each action costs microseconds rather
than the product of all objects.
"""

from __future__ import annotations

from itertools import product
from typing import Callable

from constrained.environments.household.pddl import Formula, typed_names
from constrained.environments.household.world import TRAITS, World
from constrained.errors import GameError

Test = Callable[[World, dict[str, str]], bool]

MAX_COMBINATIONS = 1_000_000
_FIXED = (*TRAITS, "objectType", "receptacleType")


def compile_goal(goal: Formula, world: World) -> Callable[[World], bool]:
    """Turn a goal into a test of worlds.

    Parameters
    ----------
    goal : Formula
        Built from and, or, not, imply, exists, forall, =, and facts.
    world : World
        The starting world: it says what there is to quantify over, and which
        unchanging facts hold.

    Raises
    ------
    GameError
        For a connective, predicate or type that isn't known, a free variable,
        or quantifiers over more than a million combinations.
    """
    test = _compile(goal, world, ())
    return lambda now: test(now, {})


def _compile(formula: Formula, world: World, scope: tuple[str, ...]) -> Test:
    if not isinstance(formula, tuple) or not formula or not isinstance(formula[0], str):
        raise GameError(f"the goal holds {formula!r} where a condition belongs")
    head, *parts = formula
    if head in ("exists", "forall"):
        return _quantified(formula, world, scope)
    if head in ("and", "or", "not", "imply"):
        tests = [_compile(part, world, scope) for part in parts]
        if head == "and":
            return lambda now, names: all(test(now, names) for test in tests)
        if head == "or":
            return lambda now, names: any(test(now, names) for test in tests)
        if head == "not" and len(tests) == 1:
            return lambda now, names: not tests[0](now, names)
        if head == "imply" and len(tests) == 2:
            return lambda now, names: not tests[0](now, names) or tests[1](now, names)
        raise GameError(f"({head} ...) in the goal has {len(tests)} conditions")
    return _fact(head, parts, world, scope)


def _fact(predicate: str, arguments: list, world: World, scope: tuple[str, ...]) -> Test:
    for argument in arguments:
        if not isinstance(argument, str) or (argument.startswith("?") and argument not in scope):
            raise GameError(f"({predicate} ...) in the goal uses {argument!r}, which no quantifier introduces")
    if predicate == "=" and len(arguments) == 2:
        left, right = arguments
        return lambda now, names: names.get(left, left) == names.get(right, right)
    try:
        world.holds_fact(predicate, tuple(arguments))
    except (ValueError, IndexError):
        raise GameError(f"({predicate} ...) in the goal lacks arguments") from None
    return lambda now, names: now.holds_fact(predicate, tuple(names.get(a, a) for a in arguments))


def _quantified(formula: Formula, world: World, scope: tuple[str, ...]) -> Test:
    if len(formula) != 3 or not isinstance(formula[1], tuple):
        raise GameError(f"({formula[0]} ...) in the goal needs a list of variables and one condition")
    quantifier, declared, body = formula
    variables = typed_names(declared)
    test = _compile(body, world, scope + tuple(name for name, _ in variables))
    candidates = []
    for variable, kind in variables:
        if kind not in world.house.things:
            raise GameError(f"the goal quantifies over '{kind}', of which the game has none")
        found = world.house.things[kind]
        if quantifier == "exists":
            fixed = [part for part in _conjuncts(body) if _is_fixed(part, variable)]
            found = tuple(
                name
                for name in found
                if all(world.holds_fact(part[0], (name, *part[2:])) for part in fixed)
            )
        candidates.append(found)
    combinations = 1
    for found in candidates:
        combinations *= len(found)
    if combinations > MAX_COMBINATIONS:
        raise GameError(f"the goal quantifies over {combinations:,} combinations, more than {MAX_COMBINATIONS:,}")
    names_of = [name for name, _ in variables]
    some = any if quantifier == "exists" else all
    return lambda now, names: some(
        test(now, {**names, **dict(zip(names_of, chosen))}) for chosen in product(*candidates)
    )


def _conjuncts(formula: Formula) -> list[Formula]:
    """Return the conditions that must all hold, those inside further exists included."""
    if formula[0] == "exists":
        return _conjuncts(formula[2])
    if formula[0] != "and":
        return [formula]
    return [part for whole in formula[1:] for part in _conjuncts(whole)]


def _is_fixed(part: Formula, variable: str) -> bool:
    return (
        part[0] in _FIXED
        and len(part) > 1
        and part[1] == variable
        and not any(str(argument).startswith("?") for argument in part[2:])
    )
