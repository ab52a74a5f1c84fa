"""A planning task: a domain and a problem as a transition system.

The semantics are PDDL's (Fox and Long, *PDDL2.1*, 2003, without numbers and time): an action is applicable if its
precondition holds; all its effects are evaluated in the state before it; a fact that one effect adds and another
deletes is true afterwards. Facts that are not in a state are false.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from constrained.errors import PddlError
from constrained.planning import model
from constrained.planning.facts import Fact, FactSet
from constrained.planning.model import Action, Condition, Domain, Effect, Literal, Problem, conjuncts, renamed
from constrained.planning.query import Objects, Query

MAX_APPLICABLE = 100_000
"""Applicable actions of one state; in PlanBench's problems there are some hundreds at most."""


class GroundAction(NamedTuple):
    """An action with objects for its parameters; names in lower case."""

    action: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return f"({' '.join((self.action, *self.arguments))})"


@dataclass(frozen=True)
class ActionSchema:
    """An action schema of a task, with its queries.

    Attributes
    ----------
    action : Action
    query : Query
        Its precondition, over its parameters.
    plain : tuple of Effect
        The unconditional effects.
    conditional : tuple of (Effect, Query)
        The other effects, with their conditions over the parameters and the effect's variables.
    """

    action: Action
    query: Query
    plain: tuple[Effect, ...]
    conditional: tuple[tuple[Effect, Query], ...]


class PlanningTask:
    """A planning task.

    Parameters
    ----------
    domain : Domain
    problem : Problem

    Attributes
    ----------
    objects : dict of str to str
        Object, in lower case -> type: the domain's constants, then the problem's objects.
    initial : FactSet
    goal : Condition or None
        None: the problem has no goal.
    schemas : dict of str to Schema
        Action's name -> its schema.

    Raises
    ------
    PddlError
        The problem names a type, predicate or object that isn't declared.
    """

    def __init__(self, domain: Domain, problem: Problem):
        self.domain, self.problem = domain, problem
        self.objects = {
            **domain.constants,
            **{name.lower(): kind.lower() for name, kind in problem.objects.items()},
        }
        self._spelling = {name.lower(): name for name in problem.objects}
        self.initial = FactSet(tuple(word.lower() for word in fact) for fact in problem.init)
        of: dict[str, list[str]] = {kind: [] for kind in (model.ROOT, *domain.types)}
        for name, kind in self.objects.items():
            for wider in domain.wider(kind):
                of[wider].append(name)
        counts = {predicate: len(table.facts) for predicate, table in self.initial.tables.items()}
        self._objects = Objects(of, counts)
        self.goal = problem.condition
        self._goal = None if self.goal is None else Query(self._objects, (), self.goal)
        self.schemas = {action.name: self._schema(action) for action in domain.actions}

    def _schema(self, action: Action) -> ActionSchema:
        query = Query(self._objects, action.parameters, action.precondition)
        plain = tuple(effect for effect in action.effects if effect.plain)
        conditional = tuple(
            (effect, Query(self._objects, (*action.parameters, *effect.variables), effect.condition))
            for effect in action.effects
            if not effect.plain
        )
        return ActionSchema(action, query, plain, conditional)

    # objects

    def of_type(self, kind: str) -> tuple[str, ...]:
        """The objects of a type, including subtypes, in the order of their declaration."""
        return self._objects.of.get(kind, ())

    def spell(self, name: str) -> str:
        """The name of an object, action or predicate in the spelling of its file."""
        return self._spelling.get(name) or self.domain.spell(name)

    def values(self, action: GroundAction) -> dict[str, str]:
        """Parameter of an action -> its object."""
        return dict(zip((p.name for p in self.schemas[action.action].action.parameters), action.arguments))

    @cached_property
    def static(self) -> frozenset[str]:
        """The predicates that no action changes."""
        return frozenset(self.domain.predicates) - self.domain.fluents

    def query(self, variables: tuple[model.Parameter, ...], condition: Condition) -> Query:
        """Compile a condition into a query; `variables` include its free variables."""
        return Query(self._objects, variables, condition)

    # what is possible

    def applicable(self, state: FactSet) -> list[GroundAction]:
        """The actions whose precondition holds, in the order of the domain, then of their arguments.

        They are found by joins over the facts. If the state was made by `apply` from one whose applicable actions are
        cached, only matches of the changed facts are computed.

        Raises
        ------
        PddlError
            There are more than `MAX_APPLICABLE`.
        """
        return [
            GroundAction(name, arguments)
            for name, found in self._applicable(state).items()
            for arguments in sorted(found)
        ]

    def _applicable(self, state: FactSet) -> dict[str, set[tuple[str, ...]]]:
        """Action's name -> the arguments for which it is applicable; cached with the state."""
        cached = state.known.get(self)
        if isinstance(cached, dict):
            return cached
        step = cached if isinstance(cached, _Step) else None
        applicable = {name: self._arguments(name, schema.query, state, step) for name, schema in self.schemas.items()}
        if sum(map(len, applicable.values())) > MAX_APPLICABLE:
            raise PddlError(f"more than {MAX_APPLICABLE:,} actions are applicable in this state")
        state.known[self] = applicable
        return applicable

    def _arguments(self, name: str, query: Query, state: FactSet, step: _Step | None) -> set[tuple[str, ...]]:
        """The arguments for which an action is applicable; updated from the state before `step` if there is one."""
        if step is not None and not step.predicates & query.predicates:
            return step.applicable[name]
        if step is None or not query.joined:
            return query.answers(state)
        lost = query.answers_with(step.state, step.deleted, True) | query.answers_with(step.state, step.added, False)
        kept = step.applicable[name] - {arguments for arguments in lost if not query.holds(state, arguments)}
        return kept | query.answers_with(state, step.added, True) | query.answers_with(state, step.deleted, False)

    def is_applicable(self, state: FactSet, action: GroundAction) -> bool:
        """Whether an action's precondition holds; False also if its arguments don't fit."""
        return not self._misfits(action) and self.schemas[action.action].query.holds(state, action.arguments)

    def apply(self, state: FactSet, action: GroundAction) -> FactSet:
        """The state after an action, whether or not its precondition holds.

        Raises
        ------
        PddlError
            No such action, or arguments that don't fit its parameters.
        """
        self._check(action)
        deleted, added = self.changes(state, action)
        after = state.changed(deleted, added)
        applicable = state.known.get(self)
        if isinstance(applicable, dict):
            gone, new = state.difference(after), after.difference(state)
            predicates = frozenset(fact[0] for fact in (*gone, *new))
            after.known[self] = _Step(state, applicable, gone, new, predicates)
        return after

    def states(self, state: FactSet, actions: Iterable[GroundAction]) -> dict[FactSet, GroundAction]:
        """Each state on a path -> the action that is done there."""
        path = {}
        for action in actions:
            path[state] = action
            state = self.apply(state, action)
        return path

    def changes(self, state: FactSet, action: GroundAction) -> tuple[set[Fact], set[Fact]]:
        """The facts that an action's effects delete and add in a state; a fact in both is true afterwards."""
        schema = self.schemas[action.action]
        values = self.values(action)
        deleted: set[Fact] = set()
        added: set[Fact] = set()
        for effect in schema.plain:
            (added if effect.literal.positive else deleted).add(ground(effect.literal, values))
        for effect, query in schema.conditional:
            names = [*values, *(v.name for v in effect.variables)]
            for answer in query.answers(state, values):
                fact = ground(effect.literal, dict(zip(names, answer)))
                (added if effect.literal.positive else deleted).add(fact)
        return deleted, added

    def reached_goal(self, state: FactSet) -> bool:
        """Whether the goal holds; False if the problem has none."""
        return self._goal is not None and self._goal.holds(state, ())

    # explaining

    def unmet(self, state: FactSet, action: GroundAction) -> list[Condition]:
        """The parts of an action's precondition that don't hold in a state, with the action's arguments.

        Raises
        ------
        PddlError
            No such action, or arguments that don't fit its parameters.
        """
        self._check(action)
        values, precondition = self.values(action), self.schemas[action.action].action.precondition
        parts = (renamed(part, values) for part in conjuncts(precondition))
        return [part for part in parts if not self.holds(state, part)]

    def unmet_goal(self, state: FactSet) -> list[Condition]:
        """The parts of the goal that don't hold in a state."""
        return [] if self.goal is None else [part for part in conjuncts(self.goal) if not self.holds(state, part)]

    def holds(self, state: FactSet, condition: Condition) -> bool:
        """Whether a condition without free variables holds."""
        if isinstance(condition, Literal) and condition.predicate != "=":
            return ((condition.predicate, *condition.terms) in state) == condition.positive
        return Query(self._objects, (), condition).holds(state, ())

    def _check(self, action: GroundAction) -> None:
        if wrong := self._misfits(action):
            raise PddlError(f"{action} is not an action of this task: {wrong}")

    def _misfits(self, action: GroundAction) -> str:
        """Why a ground action is not an action of this task; "" if it is."""
        schema = self.schemas.get(action.action)
        if schema is None:
            return f"the actions are {', '.join(map(self.spell, self.schemas))}"
        parameters = schema.action.parameters
        if len(parameters) != len(action.arguments):
            return f"{self.spell(action.action)} has {len(parameters)} arguments, not {len(action.arguments)}"
        for parameter, value in zip(parameters, action.arguments):
            if value not in self.objects:
                return f"there is no {value}"
            if value not in self._objects.sets[parameter.type]:
                return f"{self.spell(value)} is not of the type {parameter.type}"
        return ""


class _Step(NamedTuple):
    """The step to a state from one whose applicable actions are cached."""

    state: FactSet
    applicable: dict[str, set[tuple[str, ...]]]
    deleted: set[Fact]
    added: set[Fact]
    predicates: frozenset[str]


def ground(literal: Literal, values: Mapping[str, str]) -> Fact:
    """The fact of a literal, whatever its sign."""
    return literal.predicate, *(values.get(term, term) for term in literal.terms)
