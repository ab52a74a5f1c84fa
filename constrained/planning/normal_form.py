"""The disjunctive normal form of a condition.

A disjunct is a set of literals that hold together; a variable of a positive `exists` becomes a variable of the disjunct
(as in Pednault, "ADL: Exploring the middle ground between STRIPS and the situation calculus", 1989). A condition that
has no such form, or would multiply the disjuncts beyond a limit, stays whole beside the literals.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from constrained.planning.model import Condition, Junction, Literal, Parameter, Quantified, renamed

MAX_DISJUNCTS = 32
"""Disjuncts of one condition; a disjunction with more of them stays whole."""


@dataclass(frozen=True)
class Disjunct:
    """One disjunct: all of it must hold.

    Attributes
    ----------
    literals : tuple of Literal
    whole : tuple of Condition
        Conditions that aren't literals, such as `forall`.
    variables : tuple of Parameter
        The variables of `exists`, renamed to be unique.
    """

    literals: tuple[Literal, ...] = ()
    whole: tuple[Condition, ...] = ()
    variables: tuple[Parameter, ...] = ()

    def joined(self, other: Disjunct) -> Disjunct:
        """The conjunction of two disjuncts."""
        return Disjunct(
            tuple(dict.fromkeys(self.literals + other.literals)),
            tuple(dict.fromkeys(self.whole + other.whole)),
            tuple(dict.fromkeys(self.variables + other.variables)),
        )


def disjuncts_of(condition: Condition, taken: set[str]) -> list[Disjunct]:
    """The disjuncts of a condition; variables of `exists` get names that are not in `taken`.

    A disjunction at the top is always split, however many parts it has.
    """
    if isinstance(condition, Junction) and condition.operator == "or":
        return list(dict.fromkeys(d for part in condition.parts for d in disjuncts_of(part, taken)))
    return list(dict.fromkeys(_disjuncts(condition, {}, set(taken))))


def _disjuncts(condition: Condition, names: Mapping[str, str], taken: set[str]) -> list[Disjunct]:
    """The disjuncts of `condition` with its variables renamed by `names`; `taken` are the names used so far."""
    match condition:
        case Literal(predicate, terms, positive):
            return [Disjunct((Literal(predicate, tuple(names.get(term, term) for term in terms), positive),))]
        case Junction("and", parts):
            return _product([(part, _disjuncts(part, names, taken)) for part in parts], names)
        case Junction("or", parts):
            disjuncts = [disjunct for part in parts for disjunct in _disjuncts(part, names, taken)]
            if len(disjuncts) <= MAX_DISJUNCTS:
                return disjuncts
        case Quantified("some", declared, part):
            inner = {**names, **{v.name: _fresh(v.name, taken) for v in declared}}
            variables = tuple(Parameter(inner[v.name], v.type) for v in declared)
            return [d.joined(Disjunct(variables=variables)) for d in _disjuncts(part, inner, taken)]
    return [Disjunct(whole=(renamed(condition, names),))]


def _product(parts: Sequence[tuple[Condition, list[Disjunct]]], names: Mapping[str, str]) -> list[Disjunct]:
    """All combinations of one disjunct of each part."""
    out = [Disjunct()]
    for part, disjuncts in sorted(parts, key=lambda pair: len(pair[1])):
        if len(out) * len(disjuncts) > MAX_DISJUNCTS:
            disjuncts = [Disjunct(whole=(renamed(part, names),))]
        out = [a.joined(b) for a in out for b in disjuncts]
    return out


def _fresh(name: str, taken: set[str]) -> str:
    new = next(new for i in count(1) if (new := name if i == 1 else f"{name}{i}") not in taken)
    taken.add(new)
    return new
