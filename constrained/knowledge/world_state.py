"""The facts at one point of a path, and the actions whose conditions hold there.

Actions are texts in action knowledge and ground actions in a planning task. A text may leave arguments out ("go to
shelf 2" doesn't say from where), so a text can stand for several ground actions; if they lead to different states, that
is an error, never a guess.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import islice, product

from constrained.errors import KnowledgeError, PddlError
from constrained.knowledge.world.world import World
from constrained.planning.facts import Fact, FactSet
from constrained.planning.model import Condition
from constrained.planning.task import GroundAction, PlanningTask
from constrained.planning.wording import condition_words, readings, written

MAX_READINGS = 2_000
"""How many ground actions a text is tried as to explain why it is not possible."""


class WorldState:
    """The facts at one point of a path; immutable.

    `state`: the facts known to be true. `optimistic`: unknown facts that may hold.
    """

    def __init__(self, world: World, task: PlanningTask, state: FactSet, optimistic: Collection[Fact] = ()):
        self.world, self.task, self.state, self.optimistic = world, task, state, optimistic
        self._texts: dict[GroundAction, str] = {}

    @cached_property
    def actions(self) -> dict[str, list[GroundAction]]:
        """The text of each action that is possible, or may be -> the ground actions that it stands for."""
        texts: dict[str, list[GroundAction]] = {}
        for action in self.task.applicable(self.hopeful):
            texts.setdefault(self.write(action), []).append(action)
        return texts

    @cached_property
    def hopeful(self) -> FactSet:
        """The state in which all facts hold that may hold."""
        return self.state.changed(added=self.optimistic) if self.optimistic else self.state

    @property
    def reached_goal(self) -> bool:
        """Whether the goal holds; True if there is no goal."""
        return self.task.goal is None or self.task.reached_goal(self.state)

    def write(self, action: GroundAction) -> str:
        """An action's text, cached for later states, too."""
        text = self._texts.get(action)
        if text is None:
            values = {name: self.task.spell(value) for name, value in self.task.values(action).items()}
            text = self._texts[action] = written(self.world.commands[action.action], values)
        return text

    def rule(self, text: str) -> str | None:
        """The grammar's rule for the text of a possible action; None if the action is not possible here."""
        return self.world.rules[self.actions[text][0].action] if text in self.actions else None

    def ground(self, text: str) -> GroundAction | None:
        """The ground action of a text: a possible one, or else the one with the fewest unmet conditions."""
        if text in self.actions:
            return self.actions[text][0]
        readings = islice(self._readings(text), MAX_READINGS)
        return min(readings, key=lambda action: len(self.task.unmet(self.hopeful, action)), default=None)

    def after(self, text: str) -> WorldState:
        """The facts after a possible action.

        Raises KnowledgeError: it is not possible here. Raises PddlError: the text stands for actions that lead to
        different states.
        """
        if text not in self.actions:
            raise KnowledgeError(f"{text!r} is not possible here: {self.why_not(text)}")
        states = list(dict.fromkeys(self.task.apply(self.state, action) for action in self.actions[text]))
        if len(states) > 1:
            first, second, *_ = self.actions[text]
            raise PddlError(
                f"{text!r} stands for {first} and {second}, which lead to different states",
                "let the action's text name the argument in which they differ",
            )
        return self.in_state(states[0], self.optimistic)

    def in_state(self, state: FactSet, optimistic: Collection[Fact] = ()) -> WorldState:
        """The same task in another state."""
        other = WorldState(self.world, self.task, state, optimistic)
        other._texts = self._texts
        return other

    def why_not(self, text: str) -> str:
        """Why an action is not possible, in words."""
        action = None if text in self.actions else self.ground(text)
        return "there is no such action" if action is None else self._needing(self.task.unmet(self.hopeful, action))

    def _needing(self, unmet: Collection[Condition]) -> str:
        return f"it needs {' and '.join(condition_words(part, self.task) for part in unmet)}"

    def impossible(self, beginning: str = "") -> dict[str, str]:
        """Texts of actions that are not possible here -> what they need, in words; the fewest unmet conditions first.

        For each action schema, the first `MAX_READINGS` choices of objects are tried.
        """
        unmet_of: dict[str, list[Condition]] = {}
        for name, schema in self.task.schemas.items():
            choices = (self.task.of_type(p.type) for p in schema.action.parameters)
            for action in (GroundAction(name, values) for values in islice(product(*choices), MAX_READINGS)):
                text = self.write(action)
                if text.startswith(beginning) and text not in self.actions:
                    unmet = self.task.unmet(self.hopeful, action)
                    if text not in unmet_of or len(unmet) < len(unmet_of[text]):
                        unmet_of[text] = unmet
        return {text: self._needing(unmet_of[text]) for text in sorted(unmet_of, key=lambda text: len(unmet_of[text]))}

    def _readings(self, text: str) -> Iterator[GroundAction]:
        """The ground actions that a text may stand for, whether or not they are possible."""
        task = self.task
        for name, command in self.world.commands.items():
            parameters = task.schemas[name].action.parameters
            for values in readings(command, text, task.objects):
                if all(p.name not in values or values[p.name] in task.of_type(p.type) for p in parameters):
                    choices = [(values[p.name],) if p.name in values else task.of_type(p.type) for p in parameters]
                    for arguments in product(*choices):
                        yield GroundAction(name, arguments)
