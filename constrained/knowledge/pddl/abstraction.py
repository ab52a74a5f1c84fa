"""Places: which atom of each invariant group is true, and where actions lead from there.

A place is a state seen through the groups alone (an abstraction in the sense of Edelkamp,
"Planning with pattern databases", 2001), with the arguments of the true atoms as parameters.
An action is possible at a place unless its precondition contradicts it; where its effect on a
group is not certain, it leads to several. So every path of the domain is a path of places.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from constrained.knowledge.pddl.model import ALWAYS, Action, Domain, Effect, Literal
from constrained.knowledge.pddl.mutex_groups import Cased, Group, Member, clears, flag
from constrained.knowledge.pddl.normal_form import Case

Place = tuple["Member | None", ...]
"""For each group, the kind of its true atom; None: none is true."""


@dataclass(frozen=True)
class Fixed:
    """A parameter of a place: argument `argument` of its atom of group `group`."""

    group: int
    argument: int


@dataclass(frozen=True)
class Move:
    """One way for an action to be done at a place.

    Attributes
    ----------
    action : Action
    case : Case
    tied : dict of str to Fixed
        Variable of the action -> the parameter of the place that it must equal.
    to : tuple of tuple
        The places it may lead to: for each group "same", None, or (member, terms).
    """

    action: Action
    case: Case
    tied: dict[str, Fixed]
    to: tuple[tuple, ...]


SAME = "same"


def explore(domain: Domain, cased: Cased, groups: list[Group], begin: list[Place]) -> dict[Place, list[Move]]:
    """The places that paths from `begin` come to, and what can be done there."""
    found: dict[Place, list[Move]] = {}
    work = list(begin)
    while work:
        place = work.pop(0)
        if place in found:
            continue
        found[place] = []
        for action, some in cased:
            for case in some:
                move = _move(domain, action, case, groups, place)
                if move is None:
                    continue
                if not any(m.action is action and (m.tied, m.to) == (move.tied, move.to) for m in found[place]):
                    found[place].append(move)
                work += [_arrived(place, ends) for ends in move.to]
    return found


def _arrived(place: Place, ends: tuple) -> Place:
    return tuple(was if end == SAME else end and end[0] for was, end in zip(place, ends))


def _move(domain: Domain, action: Action, case: Case, groups: list[Group], place: Place) -> Move | None:
    tied = _tie(case, groups, place)
    if tied is None or _contradicts(case, groups, place, tied):
        return None
    ends = [_ends(domain, action, group, member, i, tied) for i, (group, member) in enumerate(zip(groups, place))]
    return Move(action, case, tied, tuple(product(*ends)))


def _tie(case: Case, groups: list[Group], place: Place) -> dict[str, Fixed] | None:
    """What the place fixes of a case's variables; None if it needs another place."""
    tied: dict[str, Fixed] = {}
    for i, (group, true) in enumerate(zip(groups, place)):
        for literal in case.literals:
            member = next((m for m in group if m.is_of(literal)), None)
            if member is None:
                continue
            if member != true:
                return None
            for j, term in enumerate(member.terms(literal)):
                if term.startswith("?"):
                    tied.setdefault(term, Fixed(i, j))
    for literal in case.literals * 2:  # an equality may tie what another one needs
        if literal.predicate == "=" and literal.positive:
            left, right = literal.terms
            for a, b in ((left, right), (right, left)):
                if a in tied and b.startswith("?"):
                    tied.setdefault(b, tied[a])
    return tied


def _contradicts(case: Case, groups: list[Group], place: Place, tied: dict[str, Fixed]) -> bool:
    """Whether a case needs a fact to be false that is true at the place, or a thing to be two."""
    for literal in case.literals:
        if literal.predicate == "=" and not literal.positive:
            left, right = (tied.get(t, t) for t in literal.terms)
            if left == right:
                return True
        for i, (group, true) in enumerate(zip(groups, place)):
            if true is not None and true.is_against(literal) and _equals(true.terms(literal), i, tied):
                return True
    return False


def _equals(terms: tuple[str, ...], group: int, tied: dict[str, Fixed]) -> bool:
    """Whether the terms are certainly the arguments of the group's true atom."""
    return all(tied.get(term) == Fixed(group, j) for j, term in enumerate(terms))


def _ends(domain: Domain, action: Action, group: Group, true: Member | None, i: int, tied: dict) -> list:
    """What may be true of a group after an action: "same", None, or (member, terms)."""
    adds = [(m, e) for e in action.effects for m in group if m.is_of(e.literal)]
    if flag(group):
        return _flag_ends(adds, true)
    for member, effect in adds:  # all of them add the one atom
        if effect.condition == ALWAYS:
            return [_end(member, effect, true, i, tied)]
    gone = [] if true is None else [_gone(domain, e, true, i, tied) for e in action.effects]
    left = [None] if True in gone else [SAME, None] if None in gone else [SAME]
    return list(dict.fromkeys([*left, *(_end(member, effect, true, i, tied) for member, effect in adds)]))


def _flag_ends(adds: list[tuple[Member, Effect]], true: Member | None) -> list:
    """What a fact may be after an action; of effects both ways, the one that makes it true counts."""
    adds = sorted(adds, key=lambda pair: not pair[0].positive)
    out = []
    for member, effect in adds:
        out.append(SAME if member == true else (member, ()))
        if effect.condition == ALWAYS:
            return list(dict.fromkeys(out))
    return list(dict.fromkeys([*out, SAME]))


def _end(member: Member, effect: Effect, true: Member | None, i: int, tied: dict):
    terms = member.terms(effect.literal)
    return SAME if member == true and _equals(terms, i, tied) else (member, terms)


def _gone(domain: Domain, effect: Effect, true: Member, i: int, tied: dict) -> bool | None:
    """Whether an effect makes the true atom false: yes, no, or None for maybe."""
    if not true.is_against(effect.literal):
        return False
    literal: Literal = effect.literal
    own = {v.name for v in effect.variables}
    certain = clears(domain, effect, true) or (
        not own & set(true.terms(literal)) and _equals(true.terms(literal), i, tied)
    )
    return True if certain and effect.condition == ALWAYS else None
