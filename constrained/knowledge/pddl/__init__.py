"""`import_pddl`: a planning domain's actions become action knowledge."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import product

from constrained.knowledge.action_knowledge import ActionKnowledge
from constrained.knowledge.pddl.abstraction import AbstractState, reachable_states
from constrained.knowledge.pddl.lark_file import LarkFile, write_lark
from constrained.knowledge.pddl.mutex_groups import Group, Member, select_groups
from constrained.knowledge.pddl.wording import NO_TEXTS, commands
from constrained.planning.model import Domain, Problem
from constrained.planning.normal_form import NormalForms, disjuncts
from constrained.planning.parser import read_domain, read_problem


@dataclass
class Imported:
    """A planning domain as action knowledge.

    Attributes
    ----------
    domain : Domain
    file : LarkFile
        The `.lark` text, and what its slots are to be bound to.
    assumed : list of str
        What must hold at the start of a problem, so that nothing possible is forbidden.
    offers : list of str
        Names that could be given as `one`, to follow more.
    """

    domain: Domain
    file: LarkFile
    assumed: list[str]
    offers: list[str]

    @property
    def text(self) -> str:
        """The `.lark` file."""
        return self.file.text

    def knowledge(self) -> ActionKnowledge:
        """The file, loaded."""
        return ActionKnowledge.from_lark(self.text)


def import_pddl(
    text: str,
    *,
    problem: str | None = None,
    texts: Mapping[str, str] = NO_TEXTS,
    one: Collection[str] = (),
    several: Collection[str] = (),
    source: str = "domain",
) -> Imported:
    """Turn a PDDL domain into action knowledge.

    Every plan of the domain is a path of the knowledge, provided that what `Imported.assumed` says holds. What can't be
    told from a path (is this door open?) is left to the slots, whose conditions the file states.

    Parameters
    ----------
    text : str
        The domain.
    problem : str, optional
        A problem of the domain, whose initial state tells which facts can be followed along a path.
    texts : mapping of str to str, optional
        Action -> its command, such as ``"go to {r}"``; by default its name and parameters.
    one : collection of str
        Types with a single object, and predicates that are true of a single object at a time.
    several : collection of str
        Types and predicates of which that must not be assumed.
    source : str
        The file's name, for messages.

    Raises
    ------
    PddlError
        The domain doesn't parse, or contains what isn't supported; with line and column.
    """
    domain = read_domain(text, source)
    stated = read_problem(problem) if problem is not None else None
    forms: NormalForms = [(action, disjuncts(action)) for action in domain.actions]
    selection = select_groups(domain, forms, stated, one, several)
    begin: list[AbstractState] = list(product(*(_begin(group, stated) for group in selection.groups)))
    states = reachable_states(domain, forms, selection.groups, begin)
    file = write_lark(domain, forms, selection, states, begin, commands(domain, texts), source)
    return Imported(domain, file, selection.assumed, selection.offers)


def _begin(group: Group, problem: Problem | None) -> list[Member]:
    """The atoms of a group that may be true at the start."""
    if problem is None:
        return list(group)
    true = {fact[0].lower() for fact in problem.init}
    return [m for m in group if (m.predicate in true) == m.positive]
