"""Write planning domains and problems as PDDL text, for planners and validators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import count

from constrained.planning.model import (
    ALWAYS,
    ROOT,
    Action,
    Condition,
    Effect,
    Junction,
    Literal,
    Parameter,
    Quantified,
    parts_in,
)
from constrained.planning.task import PlanningTask

_OPERATORS = {"every": "forall", "some": "exists"}


class PddlText:
    """A task as PDDL text.

    PDDL's names have no spaces: "mug 1" becomes ``mug-1``, with a number appended if that name is taken.

    Parameters
    ----------
    task : PlanningTask

    Attributes
    ----------
    names : dict of str to str
        Name in the task, in lower case -> name in the files.
    """

    def __init__(self, task: PlanningTask):
        domain = task.domain
        used = [*domain.types, *domain.predicates, *(action.name for action in domain.actions), *task.objects]
        self.names = _pddl_names(used, task)
        self._task = task

    @cached_property
    def domain(self) -> str:
        """The text of the domain file."""
        return "\n".join(self._domain_lines()) + "\n"

    @cached_property
    def problem(self) -> str:
        """The text of the problem file."""
        return "\n".join(self._problem_lines()) + "\n"

    def _domain_lines(self) -> Iterator[str]:
        domain = self._task.domain
        yield f"(define (domain {_pddl_name(domain.title or domain.name) or 'domain'})"
        yield f"  (:requirements {' '.join(self._requirements())})"
        if domain.types:
            yield f"  (:types {self._typed(domain.types)})"
        if domain.constants:
            yield f"  (:constants {self._typed(domain.constants)})"
        yield "  (:predicates"
        for predicate, arguments in domain.predicates.items():
            yield f"    ({' '.join([self._name(predicate), *self._parameters(arguments)])})"
        yield "  )"
        for action in domain.actions:
            yield from self._action_lines(action)
        yield ")"

    def _action_lines(self, action: Action) -> Iterator[str]:
        yield f"  (:action {self._name(action.name)}"
        yield f"    :parameters ({' '.join(self._parameters(action.parameters))})"
        yield f"    :precondition {self._condition(action.precondition)}"
        yield f"    :effect (and {' '.join(map(self._effect, action.effects))}))"

    def _problem_lines(self) -> Iterator[str]:
        task = self._task
        objects = {name: kind for name, kind in task.objects.items() if name not in task.domain.constants}
        yield f"(define (problem {_pddl_name(task.problem.name) or 'problem'})"
        yield f"  (:domain {_pddl_name(task.domain.title or task.domain.name) or 'domain'})"
        yield f"  (:objects {self._typed(objects)})"
        yield "  (:init"
        for fact in sorted(task.initial):
            yield f"    ({' '.join(map(self._name, fact))})"
        yield "  )"
        yield f"  (:goal {self._condition(task.goal or ALWAYS)})"
        yield ")"

    def _requirements(self) -> list[str]:
        actions = self._task.domain.actions
        conditions = [condition for action in actions for condition in action.conditions]
        parts = [part for condition in (*conditions, self._task.goal or ALWAYS) for part in parts_in(condition)]
        found = {
            ":negative-preconditions": any(isinstance(p, Literal) and not p.positive for p in parts),
            ":equality": any(isinstance(p, Literal) and p.predicate == "=" for p in parts),
            ":disjunctive-preconditions": any(isinstance(p, Junction) and p.operator == "or" for p in parts),
            ":universal-preconditions": any(isinstance(p, Quantified) and p.quantifier == "every" for p in parts),
            ":existential-preconditions": any(isinstance(p, Quantified) and p.quantifier == "some" for p in parts),
            ":conditional-effects": not all(effect.plain for action in actions for effect in action.effects),
        }
        return [":strips", ":typing", *(name for name, needed in found.items() if needed)]

    def _name(self, name: str) -> str:
        return self.names.get(name, name)

    def _typed(self, kinds: Mapping[str, str]) -> str:
        return " ".join(f"{self._name(name)} - {self._name(kind)}" for name, kind in kinds.items())

    def _parameters(self, parameters: Iterable[Parameter]) -> list[str]:
        return [f"{_variable(p.name)} - {self._name(p.type)}" for p in parameters]

    def _condition(self, condition: Condition) -> str:
        match condition:
            case Literal(positive=positive):
                return self._atom(condition) if positive else f"(not {self._atom(condition)})"
            case Junction(operator, parts):
                return f"({' '.join([operator, *map(self._condition, parts)])})"
            case Quantified(quantifier, variables, part):
                listed = " ".join(self._parameters(variables))
                return f"({_OPERATORS[quantifier]} ({listed}) {self._condition(part)})"

    def _effect(self, effect: Effect) -> str:
        text = self._condition(effect.literal)
        if effect.condition != ALWAYS:
            text = f"(when {self._condition(effect.condition)} {text})"
        if effect.variables:
            text = f"(forall ({' '.join(self._parameters(effect.variables))}) {text})"
        return text

    def _atom(self, literal: Literal) -> str:
        terms = (_variable(term) if term.startswith("?") else self._name(term) for term in literal.terms)
        return f"({' '.join([self._name(literal.predicate), *terms])})"


def _pddl_names(names: Iterable[str], task: PlanningTask) -> dict[str, str]:
    written: dict[str, str] = {ROOT: ROOT}
    taken = {ROOT}
    for name in dict.fromkeys(names):
        base = _pddl_name(task.spell(name)) or "thing"
        new = next(new for i in count(1) if (new := base if i == 1 else f"{base}-{i}").lower() not in taken)
        taken.add(new.lower())
        written.setdefault(name, new)
    return written


def _pddl_name(name: str) -> str:
    """A name without the characters that PDDL names can't have; a name from PDDL stays as it is."""
    if re.fullmatch(r"[\w-]+", name):
        return name
    kept = re.sub(r"[^\w-]+", "-", name).strip("-_")
    return kept if not kept or kept[0].isalpha() else f"n{kept}"


def _variable(name: str) -> str:
    return f"?{_pddl_name(name[1:]) or 'x'}"
