"""Decide whether a world meets a goal written as a PDDL formula.

An existential quantifier is a search over the objects of its variables' types, one
variable after the other. A variable's candidates are first filtered by the goal's
unchanging conditions on it (``objectType``, ``cleanable`` ...), and each other
condition is tested as soon as its variables are bound: a check after each action
then costs microseconds, where the product of all objects would cost milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from constrained.environments.household.world import TRAITS, World
from constrained.errors import GameError
from constrained.planning.model import Formula, typed_names

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


def _compile(formula: str | Formula, world: World, scope: tuple[str, ...]) -> Test:
    if not isinstance(formula, tuple) or not formula or not isinstance(formula[0], str):
        raise GameError(f"the goal holds {formula!r} where a condition belongs")
    head, parts = formula[0], formula[1:]
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


def _fact(predicate: str, arguments: Sequence[str | Formula], world: World, scope: tuple[str, ...]) -> Test:
    terms = []
    for argument in arguments:
        if not isinstance(argument, str) or (argument.startswith("?") and argument not in scope):
            raise GameError(f"({predicate} ...) in the goal uses {argument!r}, which no quantifier introduces")
        terms.append(argument)
    if predicate == "=" and len(terms) == 2:
        left, right = terms
        return lambda now, names: names.get(left, left) == names.get(right, right)
    try:
        world.holds_fact(predicate, terms)
    except (ValueError, IndexError):
        raise GameError(f"({predicate} ...) in the goal lacks arguments") from None
    return lambda now, names: now.holds_fact(predicate, [names.get(term, term) for term in terms])


def _quantified(formula: Formula, world: World, scope: tuple[str, ...]) -> Test:
    quantifier, *parts = formula
    conditions = [part for part in parts if isinstance(part, tuple) and part]
    if len(parts) != 2 or len(conditions) != 2:
        raise GameError(f"({quantifier} ...) in the goal needs a list of variables and one condition")
    declared, body = conditions
    if quantifier == "forall":
        counterexample = _quantified(("exists", declared, ("not", body)), world, scope)
        return lambda now, names: not counterexample(now, names)
    stages: list[tuple[str, tuple[str, ...], list[Test]]] = []
    waiting: list[str | Formula] = list(body[1:]) if body[:1] == ("and",) else [body]
    for variable, kind in typed_names(declared):
        scope += (variable,)
        ready = [part for part in waiting if _variables(part) <= set(scope)]
        waiting = [part for part in waiting if part not in ready]
        tests = [_compile(part, world, scope) for part in ready]
        stages.append((variable, _candidates(variable, kind, body, world), tests))
    for part in waiting:  # these use a variable that nothing introduces
        _compile(part, world, scope)
    combinations = prod(len(found) for _, found, _ in stages)
    if combinations > MAX_COMBINATIONS:
        raise GameError(f"the goal quantifies over {combinations:,} combinations, more than {MAX_COMBINATIONS:,}")

    def search(now: World, names: dict[str, str], depth: int = 0) -> bool:
        if depth == len(stages):
            return True
        variable, found, tests = stages[depth]
        for name in found:
            bound = {**names, variable: name}
            if all(test(now, bound) for test in tests) and search(now, bound, depth + 1):
                return True
        return False

    return search


def _candidates(variable: str, kind: str, body: Formula, world: World) -> tuple[str, ...]:
    """Return the names of a type that meet the body's unchanging conditions on the variable."""
    if kind not in world.house.things:
        raise GameError(f"the goal quantifies over '{kind}', of which the game has none")
    fixed = [part for part in _conjuncts(body) if _is_fixed(part, variable)]
    return tuple(
        name
        for name in world.house.things[kind]
        if all(world.holds_fact(str(part[0]), (name, *map(str, part[2:]))) for part in fixed)
    )


def _variables(formula: str | Formula) -> set[str]:
    """Return the free variables of a formula."""
    if isinstance(formula, str):
        return {formula} if formula.startswith("?") else set()
    if formula[:1] in (("exists",), ("forall",)) and len(formula) == 3 and isinstance(formula[1], tuple):
        return _variables(formula[2]) - {name for name, _ in typed_names(formula[1])}
    return set().union(*map(_variables, formula))


def _conjuncts(formula: str | Formula) -> list[Formula]:
    """Return the conditions that must all hold, those inside further exists included."""
    if isinstance(formula, str):
        return []
    if formula[:1] == ("exists",) and len(formula) == 3:
        return _conjuncts(formula[2])
    if formula[:1] != ("and",):
        return [formula]
    return [part for conjunction in formula[1:] for part in _conjuncts(conjunction)]


def _is_fixed(part: Formula, variable: str) -> bool:
    return (
        len(part) > 1
        and part[0] in _FIXED
        and part[1] == variable
        and not any(str(argument).startswith("?") for argument in part[2:])
    )
