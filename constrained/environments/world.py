"""`WorldEnvironment`: play the problem in a `.lark` file with `//:` lines by the file's own physics and answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from constrained.environments.base import Binding
from constrained.environments.facts import FactsEnvironment
from constrained.errors import DataError, KnowledgeError
from constrained.knowledge import Knowledge
from constrained.knowledge.lines.tells import Tells
from constrained.knowledge.ordered_task import OrderedTask
from constrained.knowledge.world import World, read_world
from constrained.knowledge.world.belief_state import BeliefState
from constrained.knowledge.world.sentence import asked_problem, goal_sentences
from constrained.knowledge.world.shown import Shown
from constrained.knowledge.world_state import WorldState
from constrained.planning.facts import FactSet
from constrained.planning.model import ROOT, Condition, Parameter, Problem, conjunction, conjuncts, free_variables
from constrained.planning.query import NOTHING, Query
from constrained.planning.reachable import SEARCHED, require_reachable
from constrained.planning.task import GroundAction, PlanningTask
from constrained.planning.wording import condition_words, squeezed


@cache
def shipped_world(name: str) -> World:
    """The world of a `.lark` file that ships; it is read once."""
    world = read_world(name)
    assert world is not None, f"{name} has no `//:` lines"
    return world


NOTHING_HAPPENS = "Nothing happens."
DONE = "Done."
"""The answer to an action for which the file defines no answer."""


class WorldEnvironment(FactsEnvironment):
    """Play the problem of a world.

    The true facts are those of the file's `init` lines. The player knows them except those under `maybe`, which it
    learns from answers. The `tells` lines above an action's rule write the answer to it, from the state after it.

    Parameters
    ----------
    world : World
    task : str, optional
        A sentence. If it is one of the file's `goal "..."` lines, that is the goal, about the objects that it names;
        else there is no goal, and the outcome isn't judged. Default: the file's own goal.

    Attributes
    ----------
    known : BeliefState
        The facts that the player knows; for the others see `FactsEnvironment`.

    Raises
    ------
    DataError
        The file has no problem.
    KnowledgeError
        The sentence names an object that isn't there.
    """

    def __init__(self, world: World, task: str = ""):
        problem = world.problem
        if problem is None:
            raise DataError(
                f"{world.source.name} has no problem to play",
                "add its objects, the facts at the start and the goal: //: object ..., //: init ..., //: goal ...",
            )
        self._words: Mapping[str, str] = NOTHING
        if task:
            asked = asked_problem(world, task)
            self._words = NOTHING if asked is None else asked.words
            problem = replace(problem, condition=None) if asked is None else asked.problem
        self.world = world = replace(world, problem=problem)
        planning = PlanningTask(world.domain, problem)
        self._answers, self.known = Answers(world, planning), self._nothing_learned()
        require_reachable(planning)
        super().__init__(WorldState(world, planning, planning.initial), "anything")
        self.task = task or self.task

    def reset(self) -> str:
        """Start at the file's initial facts, of which the player has learned nothing yet."""
        self.known = self._nothing_learned()
        return super().reset()

    def _nothing_learned(self) -> BeliefState:
        """The player's knowledge at the start."""
        known = BeliefState(self.world)
        known.words |= self._words
        return known

    def do(self, action: str) -> str:
        """The answer of the file's `tells` lines, from which the player learns; or that of a `fails` line."""
        if self.had_effect:
            ground = min(self.facts.actions[action])
            self.facts = self.facts.in_state(self.facts.task.apply(self.facts.state, ground))
            answer = self._answers.to(ground, self.facts.state) or DONE
        else:
            answer = self.world.fails[0].write({}) if self.world.fails else NOTHING_HAPPENS
        self.known.update(action, answer, self.had_effect)
        return answer

    def lines(self) -> Iterator[str]:
        """The known facts, written by the file's `shows` lines if it has any."""
        return Shown(self.known).lines()

    def twin(self, problem: Problem, task: str) -> WorldEnvironment:
        world = replace(self.world, problem=problem)
        return WorldEnvironment(world, task if asked_problem(world, task) else "")

    def view(self) -> dict[str, Binding]:
        """The known things of each type, for slots that are named after types."""
        kinds = [*self.world.domain.types, ROOT]
        return {squeezed(kind).upper(): list(map(self.known.spell, self.known.of_kind(kind))) for kind in kinds}

    def facts_now(self) -> WorldState:
        """What the player knows, and what may be."""
        return self.known.facts_now()


def own_task(knowledge: Knowledge) -> str:
    """The goal of the problem in a `.lark` file, in words.

    Raises DataError: the file has no problem, or the problem has no goal.
    """
    world = knowledge.own_world
    if world is None:
        raise DataError(
            f"{knowledge.name} has no problem of its own", "give a task, or add `//: object`, `init` and `goal` lines"
        )
    environment = WorldEnvironment(world)
    if not environment.judged:
        tasks = ", ".join(goal_sentences(world)) or "its words, or add a `//: goal` line"
        raise DataError(f"{world.source.name} has no goal of its own", f"give a task: {tasks}")
    return environment.task


def own_world(knowledge: Knowledge, task: str) -> tuple[WorldEnvironment, str]:
    """The world of a `.lark` file, with the goal that a task asks for: a sentence, or the file's own goal in words.

    Parameters
    ----------
    knowledge : Knowledge
        Its file has a problem (`Knowledge.own_world`).
    task : str

    Returns
    -------
    environment : WorldEnvironment
    note : str
        "", or that the task is none of the file's goals, and which these are; then there is no goal.

    Raises
    ------
    KnowledgeError
        A slot can have no values, or the sentence names an object that isn't there.
    PddlError
        The goal can't be reached in the order that the rules allow.
    """
    world = knowledge.own_world
    assert world is not None and world.problem is not None
    named = {squeezed(kind) for kind in world.wording.means}
    for slot in sorted(knowledge.grammar.unbound()):
        if slot not in knowledge.slot_types and squeezed(slot) not in named:
            types = ", ".join(kind.upper().replace("-", "_") for kind in world.domain.types)
            raise KnowledgeError(
                f"the slot {slot} of {knowledge.name} is named after no type, so nothing can stand there",
                f"name it after a type ({types}), or bind it: bind({slot}=[...])",
            )
    environment, note = WorldEnvironment(world, task), ""
    if not environment.judged:
        goals, own = goal_sentences(world), world.problem.condition
        words = "" if own is None else condition_words(own, environment.facts.task)
        if own is not None and task.strip() == words:
            environment = WorldEnvironment(world)
        else:
            goals = [*([f'"{words}"'] if words else []), *goals]
            listed = f"its goals are {', '.join(goals)}" if goals else "it has no `//: goal` lines"
            note = f"the task {task[:80]!r} is no goal of {world.source.name}: {listed}"
    require_reachable(OrderedTask.of(environment.facts.task, knowledge).task, SEARCHED)
    return environment, note


class Answers:
    """Writes the answers to actions, by the world's `tells` lines and the state after the action.

    Parameters
    ----------
    world : World
    task : PlanningTask
        A problem of the world.
    """

    def __init__(self, world: World, task: PlanningTask):
        self.world, self.task = world, task
        self._order = {name: number for number, name in enumerate(task.objects)}
        self._queries: dict[Condition, tuple[list[str], Query]] = {}

    def to(self, action: GroundAction, state: FactSet) -> str:
        """The answer to an action that has led to a state; empty if no line gives one."""
        values = self.task.values(action)
        lines = (tells for tells in self.world.tells if tells.rules and action.action in tells.rules)
        texts = (text for tells in lines for text in self._texts(tells, values, state))
        # The action succeeded, so texts that announce a failure are left out.
        return " ".join(text for text in texts if not any(fails.found_in(text) for fails in self.world.fails))

    def _texts(self, tells: Tells, values: Mapping[str, str], state: FactSet) -> Iterator[str]:
        """Yield the texts that one `tells` line gives in a state: one for each way to fill the holes of its pattern."""
        pattern = tells.patterns[0]
        lists = {f"?{hole.lower()}" for hole, is_list in pattern.holes.items() if is_list}
        literals = (told.literal for told in tells.facts if told.literal.predicate in self.world.domain.predicates)
        parts = [*literals, *conjuncts(tells.condition)]
        plain = conjunction(part for part in parts if lists.isdisjoint(free_variables(part)))
        for assignment in self._assignments(tells, plain, values, state):
            names = {v: [self.task.spell(value)] for v, value in assignment.items()}
            for variable in lists:
                about = conjunction(part for part in parts if variable in free_variables(part))
                given = {v: value for v, value in assignment.items() if v != variable}
                listed = self._assignments(tells, about, given, state)
                names[variable] = [self.task.spell(entry[variable]) for entry in listed]
            holes = {hole: names.get(f"?{hole.lower()}", []) for hole in pattern.holes}
            if all(holes[hole] or is_list for hole, is_list in pattern.holes.items()):
                yield pattern.write(holes)

    def _assignments(
        self, tells: Tells, condition: Condition, given: Mapping[str, str], state: FactSet
    ) -> list[dict[str, str]]:
        """The assignments that extend `given` and satisfy a condition, in the objects' order."""
        if condition not in self._queries:
            variables = sorted(free_variables(condition))
            parameters = tuple(Parameter(v, tells.types.get(v, ROOT)) for v in variables)
            self._queries[condition] = variables, self.task.query(parameters, condition)
        variables, query = self._queries[condition]
        answers = query.answers(state, {v: given[v] for v in variables if v in given})
        in_order = sorted(answers, key=lambda answer: [self._order[value] for value in answer])
        return [{**given, **dict(zip(variables, answer))} for answer in in_order]
