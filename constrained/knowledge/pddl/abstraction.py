"""The states that actions lead through, seen through the mutex groups alone.

An abstract state says which atom of each group is true, with the atom's arguments as parameters (an abstraction in the
sense of Edelkamp, "Planning with pattern databases", 2001). An action is possible in a state unless its precondition
contradicts it; where its effect on a group is not certain, it leads to several states. So every path of the domain is a
path of abstract states.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Union

from constrained.knowledge.pddl.mutex_groups import Group, Member, NormalForms, clears, is_flag
from constrained.planning.model import ALWAYS, Action, Domain, Effect, Literal
from constrained.planning.normal_form import Disjunct

SAME = "same"
"""The atom of a group that is true stays true."""

AbstractState = tuple["Member | None", ...]
"""For each group, the kind of its true atom; None: none is true."""

End = Union[str, None, "tuple[Member, tuple[str, ...]]"]
"""What is true of a group after an action: SAME, None, or a kind of atom with its terms."""


@dataclass(frozen=True)
class StateParameter:
    """A parameter of an abstract state: an argument, by number, of its atom of a group."""

    group: int
    argument: int


@dataclass(frozen=True)
class Transition:
    """One way to do an action in an abstract state.

    Attributes
    ----------
    action : Action
    disjunct : Disjunct
    tied : dict of str to StateParameter
        Variable of the action -> the parameter of the state that it must equal.
    to : tuple of tuple
        The states it may lead to: for each group SAME, None, or (member, terms).
    """

    action: Action
    disjunct: Disjunct
    tied: dict[str, StateParameter]
    to: tuple[tuple[End, ...], ...]


def reachable_states(
    domain: Domain, forms: NormalForms, groups: list[Group], begin: list[AbstractState]
) -> dict[AbstractState, list[Transition]]:
    """The states that paths from `begin` reach, each with what can be done in it."""
    found: dict[AbstractState, list[Transition]] = {}
    work = list(begin)
    for state in work:
        if state in found:
            continue
        found[state] = []
        for action, disjuncts in forms:
            for disjunct in disjuncts:
                transition = _transition(domain, action, disjunct, groups, state)
                if transition is None:
                    continue
                if not any(
                    m.action is action and (m.tied, m.to) == (transition.tied, transition.to) for m in found[state]
                ):
                    found[state].append(transition)
                work += [after(state, ends) for ends in transition.to]
    return found


def after(state: AbstractState, ends: Sequence[End]) -> AbstractState:
    """The state that `ends` stand for, when reached from `state`."""
    return tuple(was if isinstance(end, str) else end and end[0] for was, end in zip(state, ends))


def _transition(
    domain: Domain, action: Action, disjunct: Disjunct, groups: list[Group], state: AbstractState
) -> Transition | None:
    tied = _tie(disjunct, groups, state)
    if tied is None or _contradicts(disjunct, state, tied):
        return None
    ends = [_ends(domain, action, group, member, i, tied) for i, (group, member) in enumerate(zip(groups, state))]
    return Transition(action, disjunct, tied, tuple(product(*ends)))


def _tie(disjunct: Disjunct, groups: list[Group], state: AbstractState) -> dict[str, StateParameter] | None:
    """The variables of a disjunct that the state fixes; None if the disjunct needs another state."""
    tied: dict[str, StateParameter] = {}
    for i, (group, true) in enumerate(zip(groups, state)):
        for literal in disjunct.literals:
            member = next((m for m in group if m.is_of(literal)), None)
            if member is None:
                continue
            if member != true:
                return None
            for j, term in enumerate(member.terms(literal)):
                if term.startswith("?"):
                    tied.setdefault(term, StateParameter(i, j))
    for literal in disjunct.literals * 2:  # an equality may tie what another one needs
        if literal.predicate == "=" and literal.positive:
            left, right = literal.terms
            for a, b in ((left, right), (right, left)):
                if a in tied and b.startswith("?"):
                    tied.setdefault(b, tied[a])
    return tied


def _contradicts(disjunct: Disjunct, state: AbstractState, tied: dict[str, StateParameter]) -> bool:
    """Whether a disjunct needs a fact to be false that is true in the state, or one object to be two."""
    for literal in disjunct.literals:
        if literal.predicate == "=" and not literal.positive:
            left, right = (tied.get(t, t) for t in literal.terms)
            if left == right:
                return True
        for i, true in enumerate(state):
            if true is not None and true.is_against(literal) and _equals(true.terms(literal), i, tied):
                return True
    return False


def _equals(terms: tuple[str, ...], group: int, tied: dict[str, StateParameter]) -> bool:
    """Whether the terms are certainly the arguments of the group's true atom."""
    return all(tied.get(term) == StateParameter(group, j) for j, term in enumerate(terms))


def _ends(
    domain: Domain, action: Action, group: Group, true: Member | None, i: int, tied: dict[str, StateParameter]
) -> list[End]:
    """What may be true of a group after an action."""
    adds = [(m, e) for e in action.effects for m in group if m.is_of(e.literal)]
    if is_flag(group):
        return _flag_ends(adds, true)
    for member, effect in adds:  # all of them add the one atom
        if effect.condition == ALWAYS:
            return [_end(member, effect, true, i, tied)]
    gone = [] if true is None else [_gone(domain, e, true, i, tied) for e in action.effects]
    left = [None] if True in gone else [SAME, None] if None in gone else [SAME]
    return list(dict.fromkeys([*left, *(_end(member, effect, true, i, tied) for member, effect in adds)]))


def _flag_ends(adds: list[tuple[Member, Effect]], true: Member | None) -> list[End]:
    """Whether a fact may be true after an action; of contradicting effects, the one that makes it true counts."""
    adds = sorted(adds, key=lambda pair: not pair[0].positive)
    out = []
    for member, effect in adds:
        out.append(SAME if member == true else (member, ()))
        if effect.condition == ALWAYS:
            return list(dict.fromkeys(out))
    return list(dict.fromkeys([*out, SAME]))


def _end(member: Member, effect: Effect, true: Member | None, i: int, tied: dict[str, StateParameter]) -> End:
    terms = member.terms(effect.literal)
    return SAME if member == true and _equals(terms, i, tied) else (member, terms)


def _gone(domain: Domain, effect: Effect, true: Member, i: int, tied: dict[str, StateParameter]) -> bool | None:
    """Whether an effect makes the true atom false; None: perhaps."""
    if not true.is_against(effect.literal):
        return False
    literal: Literal = effect.literal
    own = {v.name for v in effect.variables}
    certain = clears(domain, effect, true) or (
        not own & set(true.terms(literal)) and _equals(true.terms(literal), i, tied)
    )
    return True if certain and effect.condition == ALWAYS else None
