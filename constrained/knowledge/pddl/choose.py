"""Which invariant groups the imported knowledge follows, and what is taken for granted of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import prod

from constrained.errors import PddlError
from constrained.knowledge.pddl.domain import Domain
from constrained.knowledge.pddl.invariants import Cased, Group, Member, find_groups, flag, weight
from constrained.knowledge.pddl.places import MAX_PLACES
from constrained.knowledge.pddl.problem import Problem

AGENT = ("agent", "player")
"""Types that are taken to have one object where the domain names none of theirs: whoever acts."""


@dataclass(frozen=True)
class Choice:
    """Groups, and in words what they rest on.

    Attributes
    ----------
    groups : list of Group
    single : set of str
        Types with one object.
    assumed : list of str
        What must be so at the start, for the knowledge to forbid nothing that is possible.
    offers : list of str
        Names that `one` could take, to follow more.
    """

    groups: list[Group]
    single: set[str]
    assumed: list[str]
    offers: list[str]


def choose_groups(
    domain: Domain,
    cased: Cased,
    problem: Problem | None = None,
    one: Collection[str] = (),
    several: Collection[str] = (),
) -> Choice:
    """Choose what to follow.

    Parameters
    ----------
    domain, cased
    problem : Problem, optional
        Its initial state decides; nothing is taken for granted then.
    one : collection of str
        Types with one object, and predicates of which one atom is true.
    several : collection of str
        Types and predicates of which that must not be assumed.

    Raises
    ------
    PddlError
        `one` or `several` names no type or predicate.
    """
    one, several = ({name.lower() for name in names} for names in (one, several))
    for name in sorted(one | several):
        if name not in domain.types and name not in domain.predicates:
            known = ", ".join(domain.spelling.get(n, n) for n in [*domain.types, *domain.predicates])
            raise PddlError(f"no type or predicate '{name}'", f"{domain.name} has {known}")
    single = _single_types(domain, cased, problem, one, several)
    found = [g for g in find_groups(domain, cased, single) if len(g) > 1 or g[0].counted]
    sure = [g for g in found if _is_sure(domain, cased, g, single, problem, one, several)]
    sure.sort(key=lambda g: (flag(g), -_use(cased, g), len(g)))
    groups: list[Group] = []
    for group in sure:
        taken = {m.predicate for other in groups for m in other}
        places = prod(len(g) for g in [*groups, group])
        if _use(cased, group) and places <= MAX_PLACES and not taken & {m.predicate for m in group}:
            groups.append(group)
    assumed = [] if problem else [_assumption(domain, g) for g in groups if not flag(g)]
    if not problem:
        assumed = [f"there is one {domain.spelling.get(t, t)}" for t in sorted(single)] + assumed
    offers = [] if problem else _offers(domain, cased, single, found, groups, several)
    return Choice(groups, single, assumed, [domain.spelling.get(name, name) for name in offers])


def _offers(domain: Domain, cased: Cased, single, found: list[Group], groups: list[Group], several) -> list[str]:
    """Types and predicates that could be followed if there is one of them."""
    taken = {m.predicate for g in groups for m in g}
    predicates = [g[0].predicate for g in found if len(g) == 1 and g[0].predicate not in taken]
    types = [t for t in _each_takes_one(domain, cased) if t not in single]
    return [name for name in types + predicates if name not in several]


def _single_types(domain: Domain, cased: Cased, problem: Problem | None, one: set[str], several: set[str]) -> set[str]:
    if problem:
        kinds = [kind.lower() for kind in problem.objects.values()] + list(domain.constants.values())
        count = {t: sum(domain.within(kind, t) for kind in kinds) for t in domain.types}
        return {t for t, number in count.items() if number == 1}
    kinds = [*domain.types.values(), *domain.constants.values()]
    named = {t for t in AGENT if t in _each_takes_one(domain, cased) and t not in kinds}
    return (named | (one & domain.types.keys())) - several


def _each_takes_one(domain: Domain, cased: Cased) -> list[str]:
    """Types of which each action has exactly one parameter."""
    return [t for t in domain.types if all([p.type for p in a.parameters].count(t) == 1 for a, _ in cased)]


def _is_sure(domain, cased: Cased, group: Group, single, problem, one: set[str], several: set[str]) -> bool:
    """Whether exactly one atom of the group is true at the start, for all that is known."""
    if flag(group):
        return True
    if problem:
        return weight(group, problem) == 1
    names = {m.predicate for m in group}
    if names & several:
        return False
    agents = all(len(m.counted) < len(domain.predicates[m.predicate]) for m in group if m.counted)
    return bool(names & one) or agents or _two_way(cased, group)


def _two_way(cased: Cased, group: Group) -> bool:
    """A fact that each other member of the group is given up for: `handempty` for `holding x`."""
    facts = [m for m in group if not m.counted]
    return bool(facts) and all(_given_up_for(cased, m, facts) for m in group if m.counted)


def _given_up_for(cased: Cased, member: Member, facts: list[Member]) -> bool:
    return any(
        any(f.is_of(e.literal) for e in action.effects for f in facts)
        and any(member.is_against(e.literal) for e in action.effects)
        and any(member.is_of(lit) for case in some for lit in case.literals)
        for action, some in cased
    )


def _use(cased: Cased, group: Group) -> int:
    """How many cases ask for an atom of the group, or against a fact of it."""
    return sum(
        any(m.is_of(lit) or (not m.counted and m.is_against(lit)) for lit in case.literals for m in group)
        for _, some in cased
        for case in some
    )


def _assumption(domain: Domain, group: Group) -> str:
    return "exactly one is true at the start: " + " | ".join(member_words(domain, m) for m in group)


def member_words(domain: Domain, member: Member) -> str:
    """A kind of atom as the domain declares it: "(holds ?a ?o)"."""
    names = [domain.spelling.get(p.name, p.name) for p in domain.predicates[member.predicate]]
    atom = f"({' '.join([domain.spelling.get(member.predicate, member.predicate), *names])})"
    return atom if member.positive else f"(not {atom})"
