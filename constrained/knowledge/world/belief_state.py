"""What is known of a world: what its answers told, and what the actions done have changed.

Facts that no answer told are unknown. An unknown fact under `maybe` may hold as long as nothing contradicts it; all
others are assumed to be false. An object that a task names but that hasn't been seen yet is imagined, so that a plan
can look for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain, product

from constrained.knowledge.lines.pattern import Pattern
from constrained.knowledge.lines.tells import Tells
from constrained.knowledge.world.store import FactStore
from constrained.knowledge.world.world import TaskGoal, World, filled
from constrained.knowledge.world_state import WorldState
from constrained.planning.facts import Fact, FactSet
from constrained.planning.model import (
    ALWAYS,
    ROOT,
    Condition,
    Literal,
    Parameter,
    Problem,
    Quantified,
    conjunction,
    free_variables,
    literals_in,
    parts_in,
)
from constrained.planning.query import NOTHING
from constrained.planning.task import GroundAction, PlanningTask

Lists = Mapping[str, list[str]]
"""Variable -> the objects that an answer names for it."""


class BeliefState(FactStore):
    """What is known of a world.

    Parameters
    ----------
    world : World
    task : str, optional
        A sentence; if it matches one of the world's goals, that is the goal.

    Attributes
    ----------
    goal : Condition or None
    asked : Asked or None
        The goal that the sentence matches.
    words : dict of str to str
        Hole of the sentence -> the type or object in it.
    """

    def __init__(self, world: World, task: str = ""):
        super().__init__(world)
        self.goal: Condition | None = None
        self.words: dict[str, str] = {}
        self._task: PlanningTask | None = None
        self._state: FactSet | None = None
        self._now: WorldState | None = None
        unknown = {maybe.literal.predicate for maybe in world.maybe}
        if world.problem is not None:
            for name, kind in world.problem.objects.items():
                self.add_object(name, kind)
            for fact in world.problem.init:
                if fact[0] not in unknown and fact[0] not in world.kinds:
                    self.hold(*fact)
            self.goal = world.problem.condition
        self.asked = world.goal_of(task) if task else None
        if self.asked is not None:
            self._want(self.asked.goal, self.asked.words)

    def _want(self, asked: TaskGoal, holes: Mapping[str, str]) -> None:
        """Fill the holes of a goal with the words of a sentence: objects where they name one, else types."""
        objects = {name: words.lower() for name, words in holes.items() if words.lower() in self.objects}
        types = {
            name: self.kind_named(words, asked.wider[name]) for name, words in holes.items() if name not in objects
        }
        self.words = {**types, **objects}
        self.goal = filled(asked.condition, types, objects)
        self.changed(things=True)

    @property
    def sentence(self) -> str:
        """The task in the first wording of its goal; "" if there is no such goal."""
        if self.asked is None:
            return ""
        pattern = self.asked.goal.patterns[0]
        return pattern.write({hole: [self.words[hole.lower()]] for hole in pattern.holes})

    # actions and answers

    def update(self, action: str, answer: str, had_effect: bool = True) -> bool:
        """Note an action and the answer to it; returns whether the action had an effect, as far as the answer tells."""
        failed = not had_effect or any(pattern.found_in(answer) for pattern in self.world.fails)
        name, values = self.action(action.strip()) or (None, {})
        if name is not None and not failed:
            ground = self._ground(name, values)
            if ground is not None:
                deleted, added = self.task.changes(self.state, ground)
                for fact in sorted(deleted - added):
                    self.drop(*fact)
                for fact in sorted(added):
                    self.hold(*fact)
        self.read(answer, name, values)
        return not failed

    def action(self, text: str) -> tuple[str, dict[str, str]] | None:
        """(name, parameter -> object) of the action that a text says; None if there is none.

        If there are several, the first that is possible as far as is known.
        """
        readings = list(self.world.read(text))
        # "take the saw off the wall" isn't about a thing called "saw off the wall" if the saw and the wall are known.
        known = [(name, values) for name, values in readings if self.objects.keys() >= set(values.values())]
        for name, values in known or readings:
            declared = next(a for a in self.world.domain.actions if a.name == name)
            for parameter in declared.parameters:
                if parameter.name in values:
                    self.add_object(values[parameter.name], parameter.type)
        readings = [(name, values) for name, values in readings if self.objects.keys() >= set(values.values())]
        if len(readings) < 2:
            return readings[0] if readings else None
        return next((reading for reading in readings if self._values(*reading)), readings[0])

    def _values(self, name: str, given: Mapping[str, str], hopeful: bool = False) -> tuple[str, ...] | None:
        """Arguments with which an action is possible now; if `hopeful`, with which it may be."""
        query = self.task.schemas[name].query
        state = self.state.changed(added=self._possible(self.task, self.state)) if hopeful else self.state
        return min(query.answers(state, given), default=None)

    def _ground(self, name: str, given: Mapping[str, str]) -> GroundAction | None:
        values = self._values(name, given)
        if values is None:  # it was possible, though its conditions were not known to hold
            parameters = self.task.schemas[name].action.parameters
            if all(p.name in given for p in parameters):
                values = tuple(given[p.name] for p in parameters)
            else:
                values = self._values(name, given, hopeful=True)
        return None if values is None else GroundAction(name, values)

    def read(self, answer: str, action: str | None = None, values: Mapping[str, str] = NOTHING) -> None:
        """Note what an answer tells. If it answers an action, `values` are the action's arguments by parameter."""
        given = {variable: [value] for variable, value in values.items()}
        for tells in self.world.tells:
            if tells.rules is None or action in tells.rules:
                matches = [self._named(tells, p, holes) for p in tells.patterns for holes in p.find(answer)]
                self._tell(tells, [({**given, **lists}, listed) for lists, listed in matches])

    def _named(self, tells: Tells, pattern: Pattern, holes: Mapping[str, list[str]]) -> tuple[Lists, set[str]]:
        """The objects in a pattern's holes, by variable, and the variables of lists."""
        lists = {
            variable: [self.add_object(name, tells.types.get(variable, ROOT)) for name in names]
            for variable, names in ((f"?{hole.lower()}", names) for hole, names in holes.items())
            if variable in tells.types
        }
        return lists, {f"?{hole.lower()}" for hole, is_list in pattern.holes.items() if is_list}

    def _tell(self, tells: Tells, matches: Sequence[tuple[Lists, set[str]]]) -> None:
        for told in (told for told in tells.facts if told.all):
            # rule out whatever the answer's lists don't name
            if told.literal.predicate in self.types and matches:
                self._complete.add(told.literal.predicate)
                self.changed(things=True)
                continue
            for lists, listed in matches:
                single = {variable: names for variable, names in lists.items() if variable not in listed}
                for values in self._values_of(tells, told.literal, single):
                    named = (None if term in listed else values.get(term, term) for term in told.literal.terms)
                    self.rule_out((told.literal.predicate, *named))
        for told in tells.facts:
            if told.literal.predicate in self.types:
                continue  # the object's type was noted with the object
            note = self.hold if told.literal.positive else self.drop
            for lists, _ in matches:
                for values in self._values_of(tells, told.literal, lists):
                    terms = tuple(values.get(term, term) for term in told.literal.terms)
                    if self.fits(told.literal.predicate, terms):
                        note(told.literal.predicate, *terms)

    def _values_of(self, tells: Tells, literal: Literal, lists: Lists) -> Iterator[dict[str, str]]:
        """The values of variables for which an answer tells a fact."""
        asked = free_variables(tells.condition)
        variables = [v for v in lists if v in literal.terms or v in asked]
        for chosen in product(*(lists[v] for v in variables)):
            given = dict(zip(variables, chosen))
            for answer in self._answers(tells, given):
                yield {**given, **answer}

    def _answers(self, tells: Tells, given: Mapping[str, str]) -> Iterator[dict[str, str]]:
        """The values of variables for which the condition of a `tells` line holds."""
        if tells.condition == ALWAYS:
            yield {}
            return
        asked = free_variables(tells.condition)
        variables = tuple(Parameter(v, tells.types.get(v, ROOT)) for v in sorted(asked))
        query = self.task.query(variables, tells.condition)
        for answer in sorted(query.answers(self.state, {v: given[v] for v in asked & given.keys()})):
            yield dict(zip((v.name for v in variables), answer))

    # as a planning task

    def changed(self, things: bool = False) -> None:
        self._state = None
        if things:
            self._task = None

    @property
    def task(self) -> PlanningTask:
        """The world as a planning task, with all known and imagined objects."""
        if self._task is None:
            self._task = self._task_with({**self.objects, **self.imagined()})
        return self._task

    @property
    def state(self) -> FactSet:
        """The facts that are known to hold."""
        if self._state is None:
            self._state = FactSet(chain(self.facts, self.task.initial))
        return self._state

    def _task_with(self, objects: Mapping[str, str]) -> PlanningTask:
        domain = replace(self.world.domain, types=dict(self.types))
        named = {self.spell(name): kind for name, kind in objects.items()}
        kinds = (
            (wide, name) for name, kind in objects.items() for wide in self.world.kinds if self.is_kind(kind, wide)
        )
        return PlanningTask(domain, Problem(named, tuple(kinds), self.goal, domain.name))

    def imagined(self) -> dict[str, str]:
        """Objects that the task asks for and that may be in places not seen yet: as many of a type as it asks for."""
        if self.asked is None or self.goal is None:
            return {}
        wanted: dict[str, int] = {}
        for variable in _variables(self.goal):
            wanted[variable.type] = wanted.get(variable.type, 0) + 1
        unseen = {
            self.world.domain.predicates[maybe.literal.predicate][i].type
            for maybe in self.world.maybe
            for i in range(len(maybe.literal.terms))
        }
        return {
            f"{kind} ?{number}": kind
            for kind, count in wanted.items()
            if any(self.is_kind(kind, wide) for wide in unseen)
            and not any(self.is_kind(kind, wide) for wide in self._complete)
            for number in range(1, count + 1)
        }

    def facts_now(self) -> WorldState:
        """The facts that hold and that may hold, as a planning task with a state.

        If more objects of a type may turn up, those that the task doesn't ask for are left out: there may be hundreds.
        """
        # Of types that may have more objects, keep those that the task is about or that are in hand.
        objects = {**self.objects, **self.imagined()}
        if self.asked is not None:
            open_types = [kind for kind in self.asked.goal.wider.values() if kind not in self._complete]
            in_hand = {fact[1] for name, of in self.world.single.items() if 0 in of for fact in self.of(name)}
            objects = {
                name: kind
                for name, kind in objects.items()
                if not any(self.is_kind(kind, wide) for wide in open_types)
                or any(self.is_kind(kind, asked) for asked in self.words.values())
                or name in {*in_hand, *self.words.values()}
            }
        # The task is kept as long as its objects are the same: what is cached with it is expensive.
        if self._now is None or self._now.task.objects != objects:
            self._now = WorldState(self.world, self._task_with(objects), FactSet())
        task = self._now.task
        facts = (fact for fact in self.facts if all(term in objects for term in fact[1:]))
        state = FactSet(chain(facts, task.initial))
        possible = frozenset(self._possible(task, state))
        if task.reached_goal(state.changed(added=possible)):  # it isn't reached, so these facts can't all hold
            possible = frozenset(fact for fact in possible if not self.asks(fact[0], fact[1:], objects))
        self._now = self._now.in_state(state, possible)
        return self._now

    def asks(self, predicate: str, terms: Sequence[str | None], kinds: Mapping[str, str] | None = None) -> bool:
        """Whether the goal asks for a fact about these objects or others of their types; None stands for any object.

        `kinds`: the objects' types; default: `objects`.
        """
        kinds = self.objects if kinds is None else kinds

        def fits(term: str | None, asked: str) -> bool:
            is_type = asked == ROOT or asked in self.types
            return term in (None, asked) or (term in kinds and is_type and self.is_kind(kinds[term], asked))

        return any(predicate == wanted and all(map(fits, terms, asked)) for wanted, *asked in self._wanted)

    @cached_property
    def _wanted(self) -> list[Fact]:
        """The facts that the goal asks for, with types in place of variables."""
        if self.goal is None:
            return []
        types = {v.name: v.type for v in _variables(self.goal)}
        return [
            (literal.predicate, *(types.get(term, term) for term in literal.terms))
            for literal in literals_in(self.goal)
            if literal.positive
        ]

    def _possible(self, task: PlanningTask, state: FactSet) -> Iterator[Fact]:
        """The facts that may hold: those under `maybe` that nothing contradicts."""
        for maybe in self.world.maybe:
            literal = maybe.literal
            variables = tuple(Parameter(name, kind) for name, kind in maybe.types.items())
            taken = {pattern for fact in self.of(literal.predicate) for pattern in self.one_of(fact)}
            query = task.query(variables, conjunction((maybe.condition, literal.negated)))
            for answer in query.answers(state):
                values = dict(zip(maybe.types, answer))
                fact = (literal.predicate, *(values.get(term, term) for term in literal.terms))
                if not self.ruled_out(fact) and not any(pattern in taken for pattern in self.one_of(fact)):
                    yield fact


def _variables(condition: Condition) -> Iterator[Parameter]:
    """The variables of `some` in a condition."""
    for part in parts_in(condition):
        if isinstance(part, Quantified) and part.quantifier == "some":
            yield from part.variables
