"""`import_pddl`: a planning domain's actions become action knowledge."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import product

from constrained.knowledge.action_knowledge import ActionKnowledge
from constrained.knowledge.pddl.abstraction import explore
from constrained.knowledge.pddl.lark_file import LarkFile, write_lark
from constrained.knowledge.pddl.model import Domain, Problem
from constrained.knowledge.pddl.mutex_groups import Group, Member, choose_groups
from constrained.knowledge.pddl.normal_form import cases
from constrained.knowledge.pddl.parser import read_domain, read_problem
from constrained.knowledge.pddl.wording import commands


@dataclass
class Imported:
    """What became of a planning domain.

    Attributes
    ----------
    domain : Domain
    file : LarkFile
        The `.lark` text, and what its slots are to be bound to.
    assumed : list of str
        What must be so at the start of a problem, for nothing possible to be forbidden.
    offers : list of str
        Names that `one` could take, to follow more.
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
    texts: Mapping[str, str] = {},
    one: Collection[str] = (),
    several: Collection[str] = (),
    source: str = "domain",
) -> Imported:
    """Turn a PDDL domain into action knowledge.

    Every plan of the domain is a path of the knowledge, provided what `Imported.assumed`
    says. What can't be told from a path (is this door open?) the knowledge leaves to its
    slots, whose conditions the file states.

    Parameters
    ----------
    text : str
        The domain.
    problem : str, optional
        A problem of the domain: its initial state tells what can be followed.
    texts : mapping of str to str, optional
        Action -> its command, such as ``"go to {r}"``; by default its name and parameters.
    one : collection of str
        Types with a single object, and predicates true of a single thing at a time.
    several : collection of str
        Types and predicates that must not be taken to be so.
    source : str
        The file's name, for messages.

    Raises
    ------
    PddlError
        The domain doesn't parse, or holds what isn't supported; with line and column.
    """
    domain = read_domain(text, source)
    stated = read_problem(problem) if problem is not None else None
    cased = [(action, cases(action)) for action in domain.actions]
    choice = choose_groups(domain, cased, stated, one, several)
    begin = list(product(*(_begin(group, stated) for group in choice.groups)))
    places = explore(domain, cased, choice.groups, begin)
    file = write_lark(domain, cased, choice, places, begin, commands(domain, texts), source)
    return Imported(domain, file, choice.assumed, choice.offers)


def _begin(group: Group, problem: Problem | None) -> list[Member]:
    """The atoms of a group that may be true at the start."""
    if problem is None:
        return list(group)
    true = {fact[0].lower() for fact in problem.init}
    return [m for m in group if (m.predicate in true) == m.positive]
