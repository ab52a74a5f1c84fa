"""New tasks for old rooms: any of the six kinds of task that a game's room allows.

ALFWorld's training games ask for few pairs of object and place. The same rooms
with other goals teach a model to read the task rather than to know it.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from constrained.environments.household import Game
from constrained.environments.household.goal import compile_goal
from constrained.environments.household.task_spec import LIGHT, TASK_TYPES, TREATED, TWO, TaskSpec
from constrained.environments.household.world import World

LAMPS = {"DeskLampType", "FloorLampType"}
TRIES = 20


def relabel(game: Game, rng: random.Random) -> Game | None:
    """The same room with another task, not done yet; None when none was found."""
    for _ in range(TRIES):
        spec = _draw(game.world, rng)
        if spec is None:
            continue
        goal = spec.goal()
        solved = compile_goal(goal, game.world)
        if not solved(game.world):
            problem = replace(game.problem, goal=goal)
            return replace(game, task=rng.choice(spec.sentences()), problem=problem, solved=solved)
    return None


def _draw(world: World, rng: random.Random) -> TaskSpec | None:
    """A task that the room has the things and the furniture for, by chance."""
    house, task_type = world.house, rng.choice(TASK_TYPES)
    treatment = TREATED.get(task_type)
    lying = {name for listed in world.contents.values() for name in listed}
    able = lying & house.traits["pickupable"] & house.traits[treatment.trait if treatment else "pickupable"]
    numbers = Counter(house.kinds[name] for name in able)
    things = sorted(kind for kind, number in numbers.items() if number >= (2 if task_type == TWO else 1))
    furniture = {house.kinds[name] for name in house.receptacles}
    if not things or (treatment and f"{treatment.appliance}Type" not in furniture):
        return None
    thing = rng.choice(things)
    if task_type == LIGHT:
        places = sorted({house.kinds[name] for name in lying & house.traits["toggleable"]} & LAMPS)
    else:
        places = sorted(place for place in furniture if (place, thing) in house.fits)
    if not places:
        return None
    return TaskSpec(task_type, thing.removesuffix("Type"), rng.choice(places).removesuffix("Type"))
