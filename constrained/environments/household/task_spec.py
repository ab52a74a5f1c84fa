"""Task specs of the household: six task types, each with two wordings and a goal in PDDL.

The types, wordings and goals are ALFWorld's (Shridhar et al., 2021, table 1; ``alfred.pddl``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from constrained.environments.household.game import household_world
from constrained.knowledge.world import World, read_world
from constrained.knowledge.world.world import TaskGoal, filled
from constrained.planning.model import Condition, literals_in


class Treatment(NamedTuple):
    """Cleaning, heating or cooling an object with an appliance, from ``grammars/household_game.lark``.

    Attributes
    ----------
    verb, state : str
        The action and the state that it leads to: "heat", "hot".
    fact, trait : str
        The predicates of that state ("ishot"), and of objects that can get it ("heatable").
    appliance : str
        The kind of receptacle that does it ("Microwave").
    """

    verb: str
    state: str
    fact: str
    trait: str
    appliance: str


def _treatments() -> Iterator[Treatment]:
    domain = household_world().domain
    for action in domain.actions:
        needs = {literal.predicate: literal for literal in literals_in(action.precondition)}
        made = next((effect.literal.predicate for effect in action.effects if effect.literal.positive), "")
        if "holds" in needs and "receptacletype" in needs and made.startswith("is"):
            trait = next(predicate for predicate in needs if predicate.endswith("able"))
            kind = domain.spell(needs["receptacletype"].terms[1]).removesuffix("Type")
            yield Treatment(action.name, made.removeprefix("is"), made, trait, kind)


TREATMENTS = {treatment.verb: treatment for treatment in _treatments()}
SIMPLE = "pick_and_place_simple"
LIGHT = "look_at_obj_in_light"
TWO = "pick_two_obj_and_place"
TREATED = {f"pick_{verb}_then_place_in_recep": treatment for verb, treatment in TREATMENTS.items()}
TASK_TYPES = (SIMPLE, LIGHT, *TREATED, TWO)


@dataclass(frozen=True)
class TaskSpec:
    """What a task asks for.

    All kinds are spelled as in PDDL ("CoffeeMachine"), or all as in the game's names ("coffeemachine").

    Attributes
    ----------
    task_type : str
        One of `TASK_TYPES`; empty in `UNKNOWN`.
    object_kind : str
        The kind of the object to move or examine.
    destination : str
        The kind of the receptacle to put it in; for look_at_obj_in_light the kind of lamp.
    """

    task_type: str
    object_kind: str
    destination: str

    @property
    def treatment(self) -> Treatment | None:
        """The treatment that the object needs, if any."""
        return TREATED.get(self.task_type)

    @property
    def state(self) -> str:
        """The state that the object must be in: "clean", "hot", "cool", or empty if the task asks for none."""
        return self.treatment.state if self.treatment else ""

    @property
    def count(self) -> int:
        """The number of objects to put in the receptacle."""
        return 2 if self.task_type == TWO else 1

    def sentences(self) -> tuple[str, str]:
        """Return the two wordings of the task."""
        goal = next(goal for goal in player_world().goals if type_of(goal) == self.task_type)
        kind, end = self.object_kind.lower(), self.destination.lower()
        words = {"K": [kind], "P": [end], "L": [end]}
        first, second = (f"{pattern.write(words)}." for pattern in goal.patterns[:2])
        return first, second

    def goal(self) -> Condition:
        """Return the goal in the terms of ``grammars/household_game.lark``."""
        goal = household_world().goal_of(self.sentences()[0])
        assert goal is not None  # the file has each first wording
        return filled(goal.goal.condition, {}, {hole: f"{kind}type" for hole, kind in goal.words.items()})


UNKNOWN = TaskSpec("", "", "")
"""The spec of a task that isn't understood."""


@cache
def player_world() -> World:
    """Return the world of ``grammars/household.lark``: what a player knows of things, actions, answers and tasks."""
    world = read_world("household")
    assert world is not None  # the file that ships has `//:` lines
    return world


def type_of(goal: TaskGoal) -> str:
    """Return the task type of a goal of ``grammars/household.lark``."""
    predicates = [literal.predicate for literal in literals_in(goal.condition)]
    if "lit" in predicates:
        return LIGHT
    treated = (kind for kind, treatment in TREATED.items() if treatment.state in predicates)
    return TWO if predicates.count("in") == 2 else next(treated, SIMPLE)
