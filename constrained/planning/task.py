"""A planning task: a domain and a problem as a machine that says what is applicable in a state and what follows.

The meaning is PDDL's (Fox and Long, *PDDL2.1*, 2003, without numbers and time): an action is applicable where its
precondition holds; all its effects are evaluated in the state before it, and where one effect adds a fact that another
deletes, it is true afterwards. What no fact says is false.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from constrained.errors import PddlError
from constrained.planning import model
from constrained.planning.facts import Fact, State
from constrained.planning.model import Action, Condition, Domain, Effect, Literal, Problem
from constrained.planning.query import NOTHING, Objects, Query

MAX_APPLICABLE = 100_000
"""Applicable actions of one state; PlanBench's problems have some hundreds at most."""


class GroundAction(NamedTuple):
    """An action with objects for its parameters; names in lower case."""

    action: str
    arguments: tuple[str, ...]

    def __str__(self) -> str:
        return f"({' '.join((self.action, *self.arguments))})"


@dataclass(frozen=True)
class Schema:
    """An action of a task, with its queries.

    Attributes
    ----------
    action : Action
    query : Query
        Its precondition, asked of its parameters.
    plain : tuple of Effect
        The effects that always happen.
    conditional : tuple of (Effect, Query)
        The others; the query is asked of the parameters, then of the effect's own variables.
    """

    action: Action
    query: Query
    plain: tuple[Effect, ...]
    conditional: tuple[tuple[Effect, Query], ...]


class Task:
    """A planning task.

    Parameters
    ----------
    domain : Domain
    problem : Problem

    Attributes
    ----------
    objects : dict of str to str
        Object, in lower case -> type; the domain's constants, then the problem's objects.
    initial : State
    goal : Condition or None
        None: the problem has no goal.
    schemas : dict of str to Schema
        By action's name.

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
        self.initial = State(tuple(word.lower() for word in fact) for fact in problem.init)
        of: dict[str, list[str]] = {kind: [] for kind in (model.ROOT, *domain.types)}
        for name, kind in self.objects.items():
            for wider in domain.wider(kind):
                of[wider].append(name)
        counts = {predicate: len(table.facts) for predicate, table in self.initial.tables.items()}
        self._objects = Objects(of, counts)
        self.goal = problem.condition
        self._goal = None if self.goal is None else Query(self._objects, (), self.goal)
        self.schemas = {action.name: self._schema(action) for action in domain.actions}

    def _schema(self, action: Action) -> Schema:
        query = Query(self._objects, action.parameters, action.precondition)
        plain = tuple(effect for effect in action.effects if effect.plain)
        conditional = tuple(
            (effect, Query(self._objects, (*action.parameters, *effect.variables), effect.condition))
            for effect in action.effects
            if not effect.plain
        )
        return Schema(action, query, plain, conditional)

    # objects

    def of_type(self, kind: str) -> tuple[str, ...]:
        """The objects of a type, in the order of their declaration; subtypes' included."""
        return self._objects.of.get(kind, ())

    def spell(self, name: str) -> str:
        """An object's, action's or predicate's name as its file spells it."""
        return self._spelling.get(name) or self.domain.spell(name)

    @cached_property
    def static(self) -> frozenset[str]:
        """The predicates that no action changes."""
        return frozenset(self.domain.predicates) - self.domain.fluents

    def query(self, variables: tuple[model.Parameter, ...], condition: Condition) -> Query:
        """A condition to be asked of states; every free variable of it is among `variables`."""
        return Query(self._objects, variables, condition)

    # what is possible

    def applicable(self, state: State) -> list[GroundAction]:
        """The actions whose precondition holds, sorted by their place in the domain and their arguments.

        Found by joins over the facts; where the state came about by `apply` from one whose applicable actions are
        known, only what the changed facts take part in is looked at.

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

    def _applicable(self, state: State) -> dict[str, set[tuple[str, ...]]]:
        """Action's name -> the arguments for which it is applicable; kept with the state."""
        known = state.known.get(self)
        if isinstance(known, dict):
            return known
        found: dict[str, set[tuple[str, ...]]] = {}
        for name, schema in self.schemas.items():
            found[name] = (
                self._changed(name, schema.query, known, state)
                if isinstance(known, _Step)
                else schema.query.answers(state)
            )
        if sum(map(len, found.values())) > MAX_APPLICABLE:
            raise PddlError(f"more than {MAX_APPLICABLE:,} actions are applicable in this state")
        state.known[self] = found
        return found

    def _changed(self, name: str, query: Query, step: _Step, state: State) -> set[tuple[str, ...]]:
        """The arguments with which an action is applicable, from those before the step that led to the state."""
        before = step.applicable[name]
        if not step.predicates & query.predicates:
            return before
        if not query.joined:
            return query.answers(state)
        lost = query.answers_with(step.state, step.deleted, True) | query.answers_with(step.state, step.added, False)
        found = before - {arguments for arguments in lost if not query.holds(state, arguments)}
        found |= query.answers_with(state, step.added, True)
        return found | query.answers_with(state, step.deleted, False)

    def is_applicable(self, state: State, action: GroundAction) -> bool:
        """Whether an action's precondition holds; False also where its arguments don't fit."""
        return not self._misfits(action) and self.schemas[action.action].query.holds(state, action.arguments)

    def apply(self, state: State, action: GroundAction) -> State:
        """The state after an action, whether or not its precondition holds.

        Raises
        ------
        PddlError
            No such action, or arguments that don't fit its parameters.
        """
        wrong = self._misfits(action)
        if wrong:
            raise PddlError(f"{action} is no action of this task: {wrong}")
        deleted, added = self.changes(state, action)
        after = state.changed(deleted, added)
        applicable = state.known.get(self)
        if isinstance(applicable, dict):
            gone, new = state.difference(after), after.difference(state)
            predicates = frozenset(fact[0] for fact in (*gone, *new))
            after.known[self] = _Step(state, applicable, gone, new, predicates)
        return after

    def states(self, state: State, actions: Iterable[GroundAction]) -> dict[State, GroundAction]:
        """Each state on a path, and the action that is done there."""
        found = {}
        for action in actions:
            found[state] = action
            state = self.apply(state, action)
        return found

    def changes(self, state: State, action: GroundAction) -> tuple[set[Fact], set[Fact]]:
        """The facts that an action's effects delete and add in a state; one in both is true afterwards."""
        schema = self.schemas[action.action]
        parameters = [p.name for p in schema.action.parameters]
        values = dict(zip(parameters, action.arguments))
        deleted: set[Fact] = set()
        added: set[Fact] = set()
        for effect in schema.plain:
            (added if effect.literal.positive else deleted).add(ground(effect.literal, values))
        for effect, query in schema.conditional:
            names = [*parameters, *(v.name for v in effect.variables)]
            for found in query.answers(state, values):
                fact = ground(effect.literal, dict(zip(names, found)))
                (added if effect.literal.positive else deleted).add(fact)
        return deleted, added

    def reached_goal(self, state: State) -> bool:
        """Whether the goal holds; False if the problem has none."""
        return self._goal is not None and self._goal.holds(state, ())

    # explaining

    def unmet(self, state: State, action: GroundAction) -> list[Condition]:
        """The parts of an action's precondition, with its arguments put in, that don't hold in a state.

        Raises
        ------
        PddlError
            No such action, or arguments that don't fit its parameters: the message says which.
        """
        wrong = self._misfits(action)
        if wrong:
            raise PddlError(f"{action} is no action of this task: {wrong}")
        declared = self.schemas[action.action].action
        names = dict(zip((p.name for p in declared.parameters), action.arguments))
        return [part for part in self.parts(declared.precondition, names) if not self.holds(state, part)]

    def unmet_goal(self, state: State) -> list[Condition]:
        """The parts of the goal that don't hold in a state."""
        return [] if self.goal is None else [part for part in self.parts(self.goal) if not self.holds(state, part)]

    def parts(self, condition: Condition, names: Mapping[str, str] = NOTHING) -> Iterator[Condition]:
        """The conditions that a conjunction consists of, with its free variables replaced."""
        if isinstance(condition, model.Junction) and condition.operator == "and":
            for part in condition.parts:
                yield from self.parts(part, names)
        else:
            yield model.renamed(condition, names)

    def holds(self, state: State, condition: Condition) -> bool:
        """Whether a condition without free variables holds."""
        if isinstance(condition, Literal) and condition.predicate != "=":
            return ((condition.predicate, *condition.terms) in state) == condition.positive
        return Query(self._objects, (), condition).holds(state, ())

    def _misfits(self, action: GroundAction) -> str:
        """Why a ground action can't be one of this task; "" if it can."""
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
                return f"{self.spell(value)} is no {parameter.type}"
        return ""


class _Step(NamedTuple):
    """How a state came about from one whose applicable actions are known."""

    state: State
    applicable: dict[str, set[tuple[str, ...]]]
    deleted: set[Fact]
    added: set[Fact]
    predicates: frozenset[str]


def ground(literal: Literal, values: Mapping[str, str]) -> Fact:
    """The fact that a literal, whatever its sign, is about."""
    return literal.predicate, *(values.get(term, term) for term in literal.terms)
