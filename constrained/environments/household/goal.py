"""Whether a world meets a goal written as a PDDL formula: a condition that is asked of the world's facts."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from constrained.environments.household.world import SIGNATURES, STATES, TRAITS, World
from constrained.errors import GameError
from constrained.planning.facts import State
from constrained.planning.model import (
    Condition,
    Formula,
    Junction,
    Literal,
    Parameter,
    Quantified,
    negated,
    typed_names,
)
from constrained.planning.query import Objects, Query

MAX_COMBINATIONS = 1_000_000
_ARGUMENTS = {**dict.fromkeys((*TRAITS, *STATES, "holdsAny"), 1), **{n: len(of) for n, of in SIGNATURES.items()}}


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
    condition = _condition(goal, world, {})
    query = Query(Objects(world.house.things, {}), (), condition)
    fixed = State(world.fixed_facts(query.predicates))
    return lambda now: query.holds(fixed.changed(added=now.changing_facts(query.predicates)), ())


def _condition(formula: str | Formula, world: World, scope: dict[str, int]) -> Condition:
    """A formula as a condition; `scope` are the variables declared around it, with the numbers of their values."""
    if not isinstance(formula, tuple) or not formula or not isinstance(formula[0], str):
        raise GameError(f"the goal holds {formula!r} where a condition belongs")
    head, parts = formula[0], formula[1:]
    if head in ("exists", "forall"):
        if len(parts) != 2 or not all(isinstance(part, tuple) and part for part in parts):
            raise GameError(f"({head} ...) in the goal needs a list of variables and one condition")
        declared = [Parameter(name, kind) for name, kind in typed_names(parts[0])]  # type: ignore[arg-type]
        for variable in declared:
            if variable.type not in world.house.things:
                raise GameError(f"the goal quantifies over '{variable.type}', of which the game has none")
        inner = {**scope, **{v.name: len(world.house.things[v.type]) for v in declared}}
        if prod(inner.values()) > MAX_COMBINATIONS:
            raise GameError(
                f"the goal quantifies over {prod(inner.values()):,} combinations, more than {MAX_COMBINATIONS:,}"
            )
        quantifier = "some" if head == "exists" else "every"
        return Quantified(quantifier, tuple(declared), _condition(parts[1], world, inner))
    if head in ("and", "or", "not", "imply"):
        found = tuple(_condition(part, world, scope) for part in parts)
        if head in ("and", "or"):
            return Junction(head, found)
        if len(found) != (1 if head == "not" else 2):
            raise GameError(f"({head} ...) in the goal has {len(found)} conditions")
        first = negated(found[0])
        return first if head == "not" else Junction("or", (first, found[1]))
    terms = tuple(part for part in parts if isinstance(part, str) and (part[:1] != "?" or part in scope))
    if len(terms) < len(parts):
        unknown = next(part for part in parts if part not in terms)
        raise GameError(f"({head} ...) in the goal uses {unknown!r}, which no quantifier introduces")
    if head != "=" and head not in _ARGUMENTS:
        raise GameError(
            f"the goal asks for '{head}', which the household doesn't know",
            hint="the household plays games of ALFWorld's domain alfred.pddl",
        )
    if len(terms) != _ARGUMENTS.get(head, 2):
        raise GameError(f"({head} ...) in the goal lacks arguments")
    return Literal(head, terms)
