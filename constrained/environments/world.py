"""`WorldEnvironment`: the problem in a `.lark` file with `//:` lines, played as the file says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from constrained.environments.base import Binding
from constrained.environments.facts import FactsEnvironment
from constrained.errors import DataError
from constrained.knowledge.world import World
from constrained.knowledge.world.known import Known
from constrained.knowledge.world.shown import Shown
from constrained.knowledge.world.world import Tells, every_part, join
from constrained.knowledge.world_state import WorldState
from constrained.planning.facts import State
from constrained.planning.model import ROOT, Condition, Parameter, free_variables
from constrained.planning.query import Query
from constrained.planning.task import GroundAction, Task
from constrained.planning.wording import condition_words, squeezed

NOTHING_HAPPENS = "Nothing happens."
DONE = "Done."
"""The answer to an action of which the file says no answer."""


class WorldEnvironment(FactsEnvironment):
    """Play the problem of a world.

    The true facts are those of the file's `init` lines. The player knows them, too, except those under `maybe`: these
    it learns from answers. An action's answer is what the `tells` lines above its rule say of the state after it.

    Parameters
    ----------
    world : World

    Attributes
    ----------
    task : str
        The goal in words.
    known : Known
        What the player knows.
    had_effect : bool
        Whether the last action was possible.
    done : bool
        Whether the goal holds.

    Raises
    ------
    DataError
        The file has no problem.
    """

    def __init__(self, world: World):
        if world.problem is None:
            raise DataError(
                f"{world.source.name} has no problem to play",
                "add what there is and what holds at the start: //: object ..., //: init ..., //: goal ...",
            )
        self.world = world
        task = Task(world.domain, world.problem)
        self._start = WorldState(world, task, task.initial)
        self._answers = Answers(world, task)
        self.task = condition_words(task.goal, task) if task.goal is not None else "anything"
        self.reset()

    def reset(self) -> str:
        """Start at the file's initial facts; the answer names objects, known facts and goal."""
        self._truth = self._start
        self.known = Known(self.world)
        self.had_effect, self.done = True, self._goal_holds()
        return "\n".join([*self.lines(), f"Your task is to: {self.task}"])

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do an action; what is not possible changes nothing."""
        ground = min(self._truth.actions.get(action, ()), default=None)
        self.had_effect = ground is not None
        if ground is None:
            answer = self.world.fails[0].write({}) if self.world.fails else NOTHING_HAPPENS
        else:
            self._truth = self._truth.told(self._truth.task.apply(self._truth.state, ground))
            answer = self._answers.to(ground, self._truth.state) or DONE
        if self.had_effect or self.world.fails:
            self.known.update(action, answer)
        self.done = self._goal_holds()
        return answer, float(self.done), self.done

    def _goal_holds(self) -> bool:
        return self._truth.task.reached_goal(self._truth.state)

    def lines(self) -> Iterator[str]:
        """What is known, as the file's `shows` lines say it, or else all of it."""
        return Shown(self.known).lines()

    def view(self) -> dict[str, Binding]:
        """The things known of each type, for the slots named after types."""
        kinds = [*self.world.domain.types, ROOT]
        return {squeezed(kind).upper(): list(map(self.known.spell, self.known.of_kind(kind))) for kind in kinds}

    def facts_now(self) -> WorldState:
        """What the player knows, and what may be."""
        return self.known.facts_now()


class Answers:
    """What actions answer: what the `tells` lines say of the state after them.

    Parameters
    ----------
    world : World
    task : Task
        A problem in it.
    """

    def __init__(self, world: World, task: Task):
        self.world, self.task = world, task
        self._order = {name: number for number, name in enumerate(task.objects)}
        self._queries: dict[Condition, tuple[list[str], Query]] = {}

    def to(self, action: GroundAction, state: State) -> str:
        """The answer to an action that has led to a state; "" if no line says one."""
        parameters = self.task.schemas[action.action].action.parameters
        values = {p.name: value for p, value in zip(parameters, action.arguments)}
        own = (tells for tells in self.world.tells if tells.rule == action.action)
        said = (text for tells in own for text in self._said(tells, values, state))
        # what a failure tells is no answer to what was done
        return " ".join(text for text in said if not any(fails.found_in(text) for fails in self.world.fails))

    def _said(self, tells: Tells, values: Mapping[str, str], state: State) -> Iterator[str]:
        pattern = tells.patterns[0]
        lists = {f"?{hole.lower()}" for hole, is_list in pattern.holes.items() if is_list}
        literals = (told.literal for told in tells.facts if told.literal.predicate in self.world.domain.predicates)
        parts = [*literals, *every_part(tells.condition)]
        plain = join(tuple(part for part in parts if lists.isdisjoint(free_variables(part))))
        for found in self._answers(tells, plain, values, state):
            names = {v: [self.task.spell(value)] for v, value in found.items()}
            for variable in lists:
                about = join(tuple(part for part in parts if variable in free_variables(part)))
                answers = self._answers(tells, about, {v: x for v, x in found.items() if v != variable}, state)
                names[variable] = [self.task.spell(answer[variable]) for answer in answers]
            holes = {hole: names.get(f"?{hole.lower()}", []) for hole in pattern.holes}
            if all(holes[hole] or is_list for hole, is_list in pattern.holes.items()):
                yield pattern.write(holes)

    def _answers(
        self, tells: Tells, condition: Condition, given: Mapping[str, str], state: State
    ) -> list[dict[str, str]]:
        """The values of a condition's variables for which it holds, with those given, in the objects' order."""
        if condition not in self._queries:
            asked = sorted(free_variables(condition))
            parameters = tuple(Parameter(v, tells.types.get(v, ROOT)) for v in asked)
            self._queries[condition] = asked, self.task.query(parameters, condition)
        asked, query = self._queries[condition]
        found = query.answers(state, {v: given[v] for v in asked if v in given})
        in_order = sorted(found, key=lambda answer: [self._order[value] for value in answer])
        return [{**given, **dict(zip(asked, answer))} for answer in in_order]
