"""Mutex groups: atoms of which at most one is true at a time, whatever is done; and which groups to follow.

The synthesis is Helmert's ("Concise finite-domain representations for PDDL planning tasks", Artificial Intelligence
173, 2009, section 5), for groups without parameters of their own: a candidate is balanced if no action makes more of
its atoms true than it makes false, and an unbalanced one is refined by an atom that the action needs and makes false.

Three things differ. A negated fact may be an atom of a group if its predicate has no arguments that count, so that
`holding o` and `not holding-anything` form one. An argument whose type has a single object does not count. And without
the problem, the number of atoms that are true at the start is an assumption: it is made only if the domain suggests it,
and is reported.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from math import prod

from constrained.errors import PddlError
from constrained.planning.model import ALWAYS, Action, Domain, Effect, Literal, Problem
from constrained.planning.normal_form import NormalForms

MAX_MEMBERS = 5
"""Kinds of atom in one group."""

MAX_CANDIDATES = 500
"""Candidates looked at."""


@dataclass(frozen=True)
class Member:
    """All atoms of a predicate, or the negation of its one atom.

    Attributes
    ----------
    predicate : str
    positive : bool
    counted : tuple of int
        The arguments that can differ.
    """

    predicate: str
    positive: bool
    counted: tuple[int, ...]

    def is_of(self, literal: Literal) -> bool:
        """Whether the literal makes an atom of this kind true."""
        return (literal.predicate, literal.positive) == (self.predicate, self.positive)

    def is_against(self, literal: Literal) -> bool:
        """Whether the literal makes an atom of this kind false."""
        return self.is_of(literal.negated)

    def terms(self, literal: Literal) -> tuple[str, ...]:
        """The arguments of a literal that can differ."""
        return tuple(literal.terms[i] for i in self.counted)


Group = tuple[Member, ...]


def is_flag(group: Group) -> bool:
    """Whether the group is one fact and its negation, of which exactly one is always true."""
    return len(group) == 2 and group[0].predicate == group[1].predicate


def find_groups(domain: Domain, forms: NormalForms, single: set[str]) -> list[Group]:
    """The balanced groups, and the flags (facts without arguments that count) that preconditions ask for.

    Parameters
    ----------
    domain : Domain
    forms : list of (Action, list of Disjunct)
    single : set of str
        Types with one object.
    """
    needed = {
        (lit.predicate, lit.positive) for _, disjuncts in forms for disjunct in disjuncts for lit in disjunct.literals
    }
    fluents = domain.fluents
    flags: list[Group] = []
    begin: list[Group] = []
    for predicate in domain.predicates:
        member = member_of(domain, predicate, True, single)
        if predicate not in fluents or not {(predicate, True), (predicate, False)} & needed:
            continue
        begin.append((member,))
        if not member.counted:
            flags.append((member, Member(predicate, False, ())))
            begin.append((Member(predicate, False, ()),))
    return _balanced(domain, forms, single, begin) + flags


def member_of(domain: Domain, predicate: str, positive: bool, single: set[str]) -> Member:
    """The kind of atom that a predicate's literals are."""
    arguments = domain.predicates[predicate]
    return Member(predicate, positive, tuple(i for i, a in enumerate(arguments) if a.type not in single))


def _balanced(domain: Domain, forms: NormalForms, single: set[str], begin: list[Group]) -> list[Group]:
    found: dict[frozenset[Member], Group] = {}
    seen = {frozenset(group) for group in begin}
    work = deque(begin)
    while work:
        group = work.popleft()
        refined = _first_unbalanced(domain, forms, single, group)
        if refined is None:
            found[frozenset(group)] = group
            continue
        for member in refined:
            larger = (*group, member)
            if len(larger) <= MAX_MEMBERS and frozenset(larger) not in seen and len(seen) < MAX_CANDIDATES:
                seen.add(frozenset(larger))
                work.append(larger)
    return list(found.values())


def _first_unbalanced(domain: Domain, forms: NormalForms, single: set[str], group: Group) -> list[Member] | None:
    """What could balance the first action that adds too much; None if no action does."""
    for action, disjuncts in forms:
        adds = [(m, e) for e in action.effects for m in group if m.is_of(e.literal)]
        if not adds:
            continue
        member, add = adds[0]
        atoms = {(m, m.terms(e.literal)) for m, e in adds}
        many = {v.name for v in add.variables} & set(member.terms(add.literal))
        undone = not member.positive and any(e.literal == add.literal.negated for e in action.effects)
        if len(atoms) > 1 or many or undone:
            return []
        if _all_cleared(domain, action, group, member, add):
            continue
        for disjunct in disjuncts:
            given_up = [lit for lit in disjunct.literals if _made_false(action, lit, single, domain)]
            if any(m.is_of(lit) for lit in given_up for m in group):
                continue
            if any(member.is_of(lit) and member.terms(lit) == member.terms(add.literal) for lit in disjunct.literals):
                continue  # true before
            wider = [member_of(domain, lit.predicate, lit.positive, single) for lit in given_up]
            return [m for m in dict.fromkeys(wider) if m.positive or not m.counted]
    return None


def _made_false(action: Action, literal: Literal, single: set[str], domain: Domain) -> bool:
    if literal.predicate == "=":
        return False
    member = member_of(domain, literal.predicate, literal.positive, single)
    return any(
        e.plain and member.is_against(e.literal) and member.terms(e.literal) == member.terms(literal)
        for e in action.effects
    )


def _all_cleared(domain: Domain, action: Action, group: Group, added: Member, add: Effect) -> bool:
    """Whether every other atom of the group is made false when `added` is made true."""
    return all(
        (member == added and not member.counted) or any(
            clears(domain, e, member)
            and (e.condition == ALWAYS or (not e.variables and e.condition == add.condition))
            for e in action.effects
        )
        for member in group
    )  # fmt: skip


def clears(domain: Domain, effect: Effect, member: Member) -> bool:
    """Whether the effect, if its condition holds, makes every atom of this kind false."""
    if not member.is_against(effect.literal):
        return False
    types = {v.name: v.type for v in effect.variables}
    terms = member.terms(effect.literal)
    wanted = [domain.predicates[member.predicate][i].type for i in member.counted]
    return len(set(terms)) == len(terms) and all(
        term in types and domain.is_subtype(kind, types[term]) for term, kind in zip(terms, wanted)
    )


def weight(group: Group, problem: Problem) -> int:
    """How many atoms of the group are true in a problem's initial state."""
    facts = {tuple(word.lower() for word in fact) for fact in problem.init}
    total = 0
    for member in group:
        true = sum(fact[0] == member.predicate for fact in facts)
        total += true if member.positive else not true
    return total


MAX_STATES = 48
"""Abstract states that the groups make together; groups that would make more are left out."""

AGENT = ("agent", "player")
"""Types of the acting agent: taken to have one object if the domain names none of theirs."""


@dataclass(frozen=True)
class Selection:
    """The groups to follow, and what they rest on, in words.

    Attributes
    ----------
    groups : list of Group
    single : set of str
        Types with one object.
    assumed : list of str
        What must hold at the start of a problem, so that nothing possible is forbidden.
    offers : list of str
        Names that could be given as `one`, to follow more.
    """

    groups: list[Group]
    single: set[str]
    assumed: list[str]
    offers: list[str]


def select_groups(
    domain: Domain,
    forms: NormalForms,
    problem: Problem | None = None,
    one: Collection[str] = (),
    several: Collection[str] = (),
) -> Selection:
    """Select the groups to follow.

    Parameters
    ----------
    domain, forms
    problem : Problem, optional
        Its initial state decides; then nothing is assumed.
    one : collection of str
        Types with one object, and predicates of which one atom is true.
    several : collection of str
        Types and predicates of which that must not be assumed.

    Raises
    ------
    PddlError
        `one` or `several` names no type or predicate.
    """
    one_lower, several_lower = ({name.lower() for name in names} for names in (one, several))
    for name in sorted(one_lower | several_lower):
        if name not in domain.types and name not in domain.predicates:
            known = ", ".join(domain.spell(n) for n in [*domain.types, *domain.predicates])
            raise PddlError(f"no type or predicate '{name}'", f"{domain.name} has {known}")
    single = _single_types(domain, forms, problem, one_lower, several_lower)
    found = [g for g in find_groups(domain, forms, single) if len(g) > 1 or g[0].counted]
    sure = [g for g in found if _is_sure(domain, forms, g, single, problem, one_lower, several_lower)]
    sure.sort(key=lambda g: (is_flag(g), -_use(forms, g), len(g)))
    groups: list[Group] = []
    for group in sure:
        taken = {m.predicate for other in groups for m in other}
        states = prod(len(g) for g in [*groups, group])
        if _use(forms, group) and states <= MAX_STATES and not taken & {m.predicate for m in group}:
            groups.append(group)
    assumed = [] if problem else [_assumption(domain, g) for g in groups if not is_flag(g)]
    if not problem:
        assumed = [f"there is one {domain.spell(t)}" for t in sorted(single)] + assumed
    offers = [] if problem else _offers(domain, forms, single, found, groups, several_lower)
    return Selection(groups, single, assumed, [domain.spell(name) for name in offers])


def _offers(domain: Domain, forms: NormalForms, single, found: list[Group], groups: list[Group], several) -> list[str]:
    """Types and predicates that could be followed if there were one of each."""
    taken = {m.predicate for g in groups for m in g}
    predicates = [g[0].predicate for g in found if len(g) == 1 and g[0].predicate not in taken]
    types = [t for t in _each_takes_one(domain, forms) if t not in single]
    return [name for name in types + predicates if name not in several]


def _single_types(
    domain: Domain, forms: NormalForms, problem: Problem | None, one: set[str], several: set[str]
) -> set[str]:
    if problem:
        kinds = [kind.lower() for kind in problem.objects.values()] + list(domain.constants.values())
        count = {t: sum(domain.is_subtype(kind, t) for kind in kinds) for t in domain.types}
        return {t for t, number in count.items() if number == 1}
    kinds = [*domain.types.values(), *domain.constants.values()]
    named = {t for t in AGENT if t in _each_takes_one(domain, forms) and t not in kinds}
    return (named | (one & domain.types.keys())) - several


def _each_takes_one(domain: Domain, forms: NormalForms) -> list[str]:
    """The types of which every action has exactly one parameter."""
    return [t for t in domain.types if all([p.type for p in a.parameters].count(t) == 1 for a, _ in forms)]


def _is_sure(domain, forms: NormalForms, group: Group, single, problem, one: set[str], several: set[str]) -> bool:
    """Whether exactly one atom of the group is known, or suggested by the domain, to be true at the start."""
    if is_flag(group):
        return True
    if problem:
        return weight(group, problem) == 1
    names = {m.predicate for m in group}
    if names & several:
        return False
    agents = all(len(m.counted) < len(domain.predicates[m.predicate]) for m in group if m.counted)
    return bool(names & one) or agents or _two_way(forms, group)


def _two_way(forms: NormalForms, group: Group) -> bool:
    """Whether the group has a fact for which each other member is given up: `handempty` for `holding x`."""
    facts = [m for m in group if not m.counted]
    return bool(facts) and all(_given_up_for(forms, m, facts) for m in group if m.counted)


def _given_up_for(forms: NormalForms, member: Member, facts: list[Member]) -> bool:
    return any(
        any(f.is_of(e.literal) for e in action.effects for f in facts)
        and any(member.is_against(e.literal) for e in action.effects)
        and any(member.is_of(lit) for disjunct in disjuncts for lit in disjunct.literals)
        for action, disjuncts in forms
    )


def _use(forms: NormalForms, group: Group) -> int:
    """How many disjuncts need an atom of the group to be true, or a fact of it to be false."""
    return sum(
        any(m.is_of(lit) or (not m.counted and m.is_against(lit)) for lit in disjunct.literals for m in group)
        for _, disjuncts in forms
        for disjunct in disjuncts
    )


def _assumption(domain: Domain, group: Group) -> str:
    return "exactly one is true at the start: " + " | ".join(member_words(domain, m) for m in group)


def member_words(domain: Domain, member: Member) -> str:
    """A kind of atom as the domain declares it: "(holds ?a ?o)"."""
    names = [domain.spell(p.name) for p in domain.predicates[member.predicate]]
    atom = f"({' '.join([domain.spell(member.predicate), *names])})"
    return atom if member.positive else f"(not {atom})"
