"""Read a planning problem against its domain, which must declare the types, objects and predicates that it names.

Problem files come from many tools, so their sections may stand in any order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from constrained.planning import model
from constrained.planning.facts import Fact
from constrained.planning.model import Domain, Formula, Problem
from constrained.planning.parser import DomainReader

MAX_CHARACTERS = 4_000_000
"""Characters of a problem; the largest of ALFWorld's game files has 104,757."""

_SECTIONS = (":domain", ":requirements", ":objects", ":init", ":goal", ":metric")


def read_problem_of(domain: Domain, text: str, source: str = "problem") -> Problem:
    """Read a problem of a domain.

    Parameters
    ----------
    domain : Domain
    text : str
    source : str
        The file's name, for messages.

    Raises
    ------
    PddlError
        The text doesn't parse, names something undeclared, or contains something that is not supported; with line,
        column and a caret.
    """
    return _ProblemReader(domain, text, source).read_problem()


class _ProblemReader(DomainReader):
    """Reads the expressions of one problem; its objects count as constants of the domain."""

    def __init__(self, domain: Domain, text: str, source: str):
        super().__init__(text, source)
        self.domain = replace(domain, constants=dict(domain.constants), spelling=dict(domain.spelling))
        self.own: dict[str, str] = {}

    def undeclared(self, word: str) -> None:
        raise self.error(word, f"no object '{word}'", "(:objects ...) must declare it")

    def read_problem(self) -> Problem:
        other = "a domain file is no problem: give the one that has objects, (:init ...) and (:goal ...)"
        define, title = self.define("problem", MAX_CHARACTERS, "give one problem, not several joined", other)
        named = [(self.section_of(part, _SECTIONS), part) for part in define[2:]]
        self.check_once(named)
        sections: dict[str, Formula] = {name: part for name, part in named if isinstance(part, tuple)}
        self.check_domain(sections.get(":domain"))
        for name in (":init", ":goal"):
            if name not in sections:
                raise self.error(define, f"the PDDL problem has no ({name} ...)", "the file may be cut short")
        # Objects first: facts and goal name them.
        self.requirements(sections.get(":requirements", ()))
        self.things(sections.get(":objects", ()), self.own)
        missing = [name for name in self.domain.undeclared if name not in self.domain.constants]
        if missing:
            what = f"the domain names the object {self.domain.spell(missing[0])}, which nothing declares"
            raise self.error(sections.get(":objects") or define, what, "declare it among the problem's (:objects ...)")
        facts = tuple(dict.fromkeys(self.facts(sections[":init"])))
        goal = sections[":goal"]
        if len(goal) != 2:
            raise self.error(goal, "(:goal ...) has exactly one condition", "join several with (and ...)")
        objects = {self.domain.spell(name): kind for name, kind in self.own.items()}
        return Problem(objects, facts, model.simplified(self.condition(goal[1], ())), title, self.place(goal))

    def check_domain(self, part: Formula | None) -> None:
        """Check that the problem names its domain, where it names one."""
        if part is None:
            return
        if len(part) != 2 or not isinstance(part[1], str):
            raise self.error(part, "(:domain NAME) has one name")
        title = self.domain.title
        if title and part[1].lower() != title.lower():
            hint = f"write (:domain {title}), or give the domain of this problem"
            raise self.error(part[1], f"this is a problem of the domain {part[1]}, not of {title}", hint)

    def facts(self, part: Formula) -> Iterator[Fact]:
        false = []
        true = set()
        for fact in part[1:]:
            head, fact = self.headed(fact, "a fact (predicate argument ...) belongs in (:init ...)")
            if head == "=" and any(isinstance(term, tuple) for term in fact[1:]):
                continue  # (= (distance a b) 3): what something costs
            if head == "at" and len(fact) == 3 and isinstance(fact[2], tuple):
                raise self.error(fact, "facts that become true later (timed initial literals) are not supported")
            # (not FACT) says nothing in a closed world; it is read only to find contradictions.
            inner = fact[1] if head == "not" and len(fact) == 2 else fact
            literal = self.literal(inner if isinstance(inner, tuple) else (), ())
            ground = (literal.predicate, *literal.terms)
            if head == "not":
                false.append((fact, ground))
            elif head == "=":
                if literal.terms[0] != literal.terms[1]:
                    raise self.error(fact, "two objects are never equal")
            else:
                true.add(ground)
                yield ground
        for fact, ground in false:
            if ground in true:
                raise self.error(fact, "(:init ...) says this fact both holds and doesn't")
