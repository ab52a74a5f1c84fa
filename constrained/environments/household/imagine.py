"""A room as one may imagine it before going anywhere: what the task needs is wherever such things are kept.

For plans that are written before anything is seen. Nothing here knows the game: the room's receptacles and
the task come from the first observation, and where things are kept is everyday knowledge (`catalogue`).
"""

from __future__ import annotations

from constrained.environments.household import aim as aims
from constrained.environments.household import catalogue
from constrained.environments.household.aim import Aim
from constrained.environments.household.game import Game
from constrained.environments.household.make import state_problem
from constrained.environments.household.memory import Memory
from constrained.environments.household.sentence import Goal
from constrained.environments.household.text import kind_of
from constrained.errors import GameError

_KINDS = {kind.lower(): kind for kind in (*catalogue.HOLDS, *catalogue.THINGS, *catalogue.LAMPS)}


def imagine(first_observation: str) -> Game:
    """A game in the room of `first_observation`, with the thing that its task names in every likely place at once.

    So the plan chooses where to look, and finds it there. Its number is a guess, too: 1, and 2 where two are
    wanted. What the task doesn't need is not there.

    Raises
    ------
    GameError
        The text names no receptacle, or no task that is understood.
    """
    told = Memory(first_observation)
    if not told.goal.kind:
        raise GameError(f"the task {told.task[:80]!r} isn't understood", "word it as ALFWorld does: put a mug in desk")
    aim = _aim(told.goal)
    kinds = [_proper(kind_of(name)) for name in told.receptacles]
    furniture = {f"{kind}_bar_{number:05}": kind for number, kind in enumerate(kinds)}
    things = {f"{aim.thing}_bar_{number}": _likely(aim, set(furniture.values())) for number in range(aim.count)}
    if aim.task_type == aims.LIGHT:
        things[f"{aim.place}_bar_0"] = set(catalogue.LAMP_STANDS)
    lying = [(t, r) for t, likely in things.items() for r, kind in furniture.items() if kind in likely]
    sites = {receptacle: f"loc_bar_{number:05}" for number, receptacle in enumerate(furniture, 1)}
    return Game.from_problem("imagined", f"{told.task}.", state_problem(aim, list(furniture), sites, lying))


def _aim(goal: Goal) -> Aim:
    """A goal read from a sentence, in the catalogue's words."""
    treatments = {aims.RESULTS[verb][0]: kind for kind, verb in aims.TREATMENTS.items()}
    kind = aims.LIGHT if goal.lamp else aims.TWO if goal.count > 1 else treatments.get(goal.state, aims.SIMPLE)
    return Aim(kind, _proper(goal.kind), _proper(goal.lamp or goal.place))


def _likely(aim: Aim, room: set[str]) -> set[str]:
    """The room's kinds of receptacles where the thing may be kept, any where nothing is known; not where it must go."""
    kept = {place for place in room if aim.thing in catalogue.HOLDS.get(place, ())}
    return kept - {aim.place} or room - {aim.place} or room


def _proper(word: str) -> str:
    """A kind in the catalogue's spelling: "sinkbasin" -> "SinkBasin"."""
    return _KINDS.get(word, word.capitalize())
