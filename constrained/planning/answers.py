"""The answers to a condition over facts, found plainly: what `query` compiles to joins, and what lines of text show.

A condition is answered from left to right: a literal binds its variables to each fact that agrees, in their order.
Whatever else a conjunction has is tested once its facts have bound its variables: `or`, `not`, `some` and `every` bind
no variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Protocol

from constrained.planning.facts import Fact
from constrained.planning.model import Condition, Junction, Literal, Parameter, bound_by, free_variables, negated

Values = Mapping[str, str]
"""Variable -> object."""


class Facts(Protocol):
    """What conditions are asked of."""

    def matching(self, literal: Literal[str], given: Values) -> Iterable[Values]:
        """The values, extending those given, for which a fact holds, whatever the literal's sign."""

    def things(self, kind: str) -> Iterable[str]:
        """The objects of a type."""

    def is_of(self, name: str, kind: str) -> bool:
        """Whether an object is of a type."""


def answers(condition: Condition, given: Values, facts: Facts) -> Iterable[Values]:
    """The values, extending those given, for which a condition holds."""
    match condition:
        case Literal("=", terms, positive):
            left, right = (given.get(term, term) for term in terms)
            return (given,) if (left == right) == positive else ()
        case Literal(positive=True):
            return facts.matching(condition, given)
        case Literal():
            return () if any(True for _ in facts.matching(condition, given)) else (given,)
        case Junction("and", parts):
            found: Iterable[Values] = (given,)
            for part in _ordered(parts):
                found = [answer for values in found for answer in answers(part, values, facts)]
            return found
        case Junction(_, parts):
            return (given,) if any(True for part in parts for _ in answers(part, given, facts)) else ()
    some = condition.quantifier == "some"
    part = condition.part if some else negated(condition.part)
    return (given,) if _some(condition.variables, part, given, facts) == some else ()


def unified(terms: Sequence[str], fact: Fact, given: Values) -> Values | None:
    """The values, extending those given, with which a literal's terms equal a fact's; None if there are none."""
    new: dict[str, str] = {}
    for term, value in zip(terms, fact[1:]):
        term = given.get(term, term)
        if term != value and (term[0] != "?" or new.setdefault(term, value) != value):
            return None
    return {**given, **new}


def _some(variables: Sequence[Parameter], part: Condition, given: Values, facts: Facts) -> bool:
    """Whether a condition holds for some objects of the types of its variables."""
    outer = {name: value for name, value in given.items() if all(name != v.name for v in variables)}
    # Variables that no fact binds go through the objects of their type.
    bound = bound_by(part)
    loose = [v for v in variables if v.name not in bound]
    for chosen in product(*(facts.things(v.type) for v in loose)):
        for values in answers(part, {**outer, **dict(zip((v.name for v in loose), chosen))}, facts):
            if all(v.name not in values or facts.is_of(values[v.name], v.type) for v in variables):
                return True
    return False


@lru_cache(4096)
def _ordered(parts: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """The parts of a conjunction, each test behind the facts that bind its variables."""
    ordered: list[Condition] = []
    left = list(parts)
    while left:
        later = set().union(*map(bound_by, left))
        part = next(part for part in left if bound_by(part) or not free_variables(part) & later)
        left.remove(part)
        ordered.append(part)
    return tuple(ordered)
