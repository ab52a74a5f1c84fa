"""The arguments of an action's rule: what its command names, what it passes on, and keys.

A slot that stands before another argument may hold its values by that argument, so a
variable stands right before one that its conditions tie it to.
"""

from __future__ import annotations

from dataclasses import dataclass

from constrained.knowledge.pddl.cases import Case, variables_of
from constrained.knowledge.pddl.commands import Command
from constrained.knowledge.pddl.domain import Action
from constrained.knowledge.pddl.places import Move


@dataclass(frozen=True)
class Layout:
    """An action's arguments.

    Attributes
    ----------
    variables : tuple of str
        In the order of the rule's parameters.
    keys : dict of str to str
        Variable -> the one after it that its values depend on.
    """

    variables: tuple[str, ...]
    keys: dict[str, str]


def lay_out(action: Action, some: list[Case], moves: list[Move], command: Command) -> Layout:
    """The arguments of an action's rule.

    Parameters
    ----------
    action : Action
    some : list of Case
    moves : list of Move
        All of this action.
    command : Command
    """
    named = [piece for piece in command if piece.startswith("?")]
    passed = [t for move in moves for ends in move.to for end in ends if end and end != "same" for t in end[1]]
    wanted = list(dict.fromkeys(v for v in [*named, *passed] if v.startswith("?")))
    free = [v for v in wanted if any(v not in move.tied for move in moves)]
    tied = [v.name for v in action.parameters if any(v.name in move.tied for move in moves)]
    tied += [v for case in some for v in (p.name for p in case.variables) if v not in tied and v in moves[0].tied]
    keys = _keys(free, [v for v in wanted if v not in free] + [v for v in tied if v not in wanted], some)
    order: list[str] = []
    for variable in wanted:
        if variable in keys.values():
            continue  # it comes right after the one whose key it is
        while variable is not None and variable not in order:
            order.append(variable)
            variable = keys.get(variable)
    return Layout(tuple(order), keys)


def _keys(free: list[str], others: list[str], some: list[Case]) -> dict[str, str]:
    """For each free variable the one it depends on: another free one, else one that a place fixes."""
    keys: dict[str, str] = {}
    for i, variable in enumerate(free):
        later = [v for v in free[i + 1 :] if v not in keys.values()]
        for key in [*later, *(v for v in others if v not in keys.values())]:
            if any(_share(case, variable, key) for case in some):
                keys[variable] = key
                break
    return keys


def _share(case: Case, first: str, second: str) -> bool:
    both = {first, second}
    return any(both <= set(lit.terms) for lit in case.literals) or any(
        both <= variables_of(whole) for whole in case.whole
    )
