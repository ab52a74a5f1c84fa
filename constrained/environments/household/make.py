"""Make household games from a seed: a furnished room, things in it, a task that can be done.

Solvable by construction: the room has the task's receptacle and appliance, enough
objects of the asked kind lie where they can be taken, and (for plain placing) none
lies in the asked kind of receptacle yet, so that the game isn't over before it starts.
"""

from __future__ import annotations

import random
from collections.abc import Collection

from constrained.environments.household import aim as aims
from constrained.environments.household import catalogue
from constrained.environments.household.aim import Aim
from constrained.environments.household.game import Game
from constrained.errors import GameError
from constrained.knowledge.pddl.model import Problem

# Receptacles that hold one object.
_SINGLE = ("CoffeeMachine", "HandTowelHolder", "ToiletPaperHanger", "TowelHolder")
# Kinds of receptacles that often share a place with another of their kind, and how often.
_ADJACENT = {"StoveBurner": 1.0, "Cabinet": 0.15, "Drawer": 0.2, "Shelf": 0.1}


def make_game(seed: int, task_type: str | None = None) -> Game:
    """Make a game; the same seed and task type make the same game.

    Parameters
    ----------
    seed : int
    task_type : str, optional
        One of ALFWorld's six, such as "pick_and_place_simple"; by default any.

    Raises
    ------
    GameError
        For another task type.
    """
    if task_type is not None and task_type not in aims.TASK_TYPES:
        raise GameError(f"no task type {task_type!r}", hint=f"the types are {', '.join(aims.TASK_TYPES)}")
    # A text seeds the same numbers on every platform and in every process.
    rng = random.Random(f"household game {seed} {task_type}")
    chosen = task_type or rng.choice(aims.TASK_TYPES)
    room, aim = rng.choice(_possible(chosen))
    return build_game(aim, room, rng, sentence=rng.choice(aim.sentences()), trial=f"seed_{seed}")


def build_game(aim: Aim, room: str, rng: random.Random, sentence: str, trial: str) -> Game:
    """Furnish a room for an aim and put things into it.

    Parameters
    ----------
    aim : Aim
    room : str
        A key of `catalogue.ROOMS`; what the aim needs and the room lacks is added.
    rng : random.Random
        Where all choices come from.
    sentence : str
        The task sentence.
    trial : str
        The second half of the game's name.
    """
    furniture = _furniture(aim, catalogue.ROOMS[room], rng)
    things = _things(aim, catalogue.ROOMS[room], furniture, rng)
    name = f"{aim.task_type}-{aim.thing}-None-{aim.place}/{trial}"
    return Game.from_problem(name, sentence, state_problem(aim, furniture, _sites(furniture, rng), things.items()))


def _possible(task_type: str) -> list[tuple[str, Aim]]:
    """Return each room with each aim of the type that is at home there."""
    verb = aims.TREATMENTS.get(task_type)
    found = []
    for name, room in catalogue.ROOMS.items():
        if verb is not None and catalogue.APPLIANCE[verb] not in room.furniture:
            continue
        if task_type == aims.LIGHT and not any(lamp_stand in room.furniture for lamp_stand in ("Desk", "TVStand")):
            continue  # reading lamps stand in bedrooms and living rooms
        things = [t for t in room.things if verb is None or t in catalogue.TREATABLE[verb]]
        places = catalogue.LAMPS if task_type == aims.LIGHT else tuple(room.furniture)
        for place in places:
            if task_type == aims.TWO and place in _SINGLE:
                continue
            for thing in things:
                if task_type == aims.LIGHT or thing in catalogue.HOLDS[place]:
                    found.append((name, Aim(task_type, thing, place)))
    return found


def _furniture(aim: Aim, room: catalogue.Room, rng: random.Random) -> list[str]:
    """Choose the room's receptacles: identifiers, whose kind comes before "_bar_"."""
    counts = {kind: rng.randint(least, most) for kind, (least, most) in room.furniture.items()}
    needed = [aim.place] if aim.task_type != aims.LIGHT else []
    if aim.treatment:
        needed.append(catalogue.APPLIANCE[aim.treatment])
    for kind in needed:
        counts[kind] = max(1, counts.get(kind, 0))
    if aim.task_type == aims.LIGHT:
        _ensure(counts, [k for k in catalogue.LAMP_STANDS if k in room.furniture] or ["SideTable"], rng)
    # The thing must be able to lie somewhere else than where it has to go.
    elsewhere = [k for k, held in catalogue.HOLDS.items() if aim.thing in held and k != aim.place]
    _ensure(counts, [k for k in elsewhere if k in room.furniture] or elsewhere, rng)
    return [f"{kind}_bar_{number:02d}" for kind, count in counts.items() for number in range(1, count + 1)]


def _ensure(counts: dict[str, int], kinds: list[str], rng: random.Random) -> None:
    """See to it that the room has a receptacle of one of these kinds."""
    if not any(counts.get(kind) for kind in kinds):
        counts[rng.choice(kinds)] = 1


def _things(aim: Aim, room: catalogue.Room, furniture: list[str], rng: random.Random) -> dict[str, str]:
    """Choose the objects and where each lies."""
    counts = {kind: rng.randint(0, most) for kind, most in room.things.items()}
    counts[aim.thing] = max(aim.count, counts.get(aim.thing, 0))
    lying: dict[str, str] = {}
    for kind, count in counts.items():
        places = [r for r in furniture if kind in catalogue.HOLDS[_kind(r)]]
        if kind == aim.thing and aim.treatment is None:
            places = [r for r in places if _kind(r) != aim.place]
        weights = [catalogue.CROWDED.get(_kind(r), 1) for r in places]
        for number in range(1, count + 1 if places else 1):
            lying[f"{kind}_bar_{number:02d}"] = rng.choices(places, weights)[0]
    standing = dict(room.scenery)
    if aim.task_type == aims.LIGHT:
        stands = [r for r in furniture if _kind(r) in catalogue.LAMP_STANDS]
        standing[aim.place] = _kind(rng.choice(stands))
    for kind, under in standing.items():
        places = [r for r in furniture if _kind(r) == under]
        if places:
            lying[f"{kind}_bar_01"] = rng.choice(places)
    return lying


def _sites(furniture: list[str], rng: random.Random) -> dict[str, str]:
    """Give each receptacle a location; neighbours of a kind sometimes share one, as in ALFWorld."""
    sites: dict[str, str] = {}
    last: dict[str, str] = {}
    for number, receptacle in enumerate(furniture, 1):
        kind = _kind(receptacle)
        if kind in last and rng.random() < _ADJACENT.get(kind, 0.0):
            sites[receptacle] = last.pop(kind)  # two share a place, not three
        else:
            sites[receptacle] = last[kind] = f"loc_bar_{number:02d}"
    return sites


def state_problem(aim: Aim, furniture: list[str], sites: dict[str, str], lying: Collection[tuple[str, str]]) -> Problem:
    """State a room as a planning problem of ALFWorld's domain.

    Parameters
    ----------
    aim : Aim
    furniture : list of str
        Identifiers, whose kind comes before "_bar_".
    sites : dict of str to str
        The location of each.
    lying : collection of (str, str)
        Each thing's identifier with the furniture it lies in or on; one may lie in several places.
    """
    start = "loc_bar_00"
    thing_kinds = sorted({_kind(thing) for thing, _ in lying})
    place_kinds = sorted({_kind(receptacle) for receptacle in furniture})
    objects = {"agent1": "agent", start: "location"}
    objects.update(dict.fromkeys(sites.values(), "location"))
    objects.update({f"{kind}Type": "otype" for kind in thing_kinds})
    objects.update({f"{kind}Type": "rtype" for kind in place_kinds})
    objects.update({thing: "object" for thing, _ in lying})
    objects.update(dict.fromkeys(furniture, "receptacle"))
    init: list[tuple[str, ...]] = [("atLocation", "agent1", start)]
    for receptacle in furniture:
        kind = _kind(receptacle)
        init += [("receptacleType", receptacle, f"{kind}Type"), ("receptacleAtLocation", receptacle, sites[receptacle])]
        if kind in catalogue.OPENABLE:
            init.append(("openable", receptacle))
    for place in place_kinds:
        init += [("canContain", f"{place}Type", f"{t}Type") for t in thing_kinds if t in catalogue.HOLDS.get(place, ())]
    for thing, receptacle in lying:
        init += [("objectType", thing, f"{_kind(thing)}Type"), ("inReceptacle", thing, receptacle)]
        init.append(("objectAtLocation", thing, sites[receptacle]))
        init += [(trait, thing) for trait in _traits(_kind(thing))]
    return Problem(objects, tuple(init), aim.goal())


def _traits(kind: str) -> list[str]:
    """Return what the planning domain says of objects of a kind."""
    if kind in catalogue.LAMPS:
        return ["toggleable"]
    if kind not in catalogue.THINGS:
        return []  # scenery
    traits = ["pickupable"]
    traits += [aims.RESULTS[verb][2] for verb, kinds in catalogue.TREATABLE.items() if kind in kinds]
    traits += ["sliceable"] * (kind in catalogue.SLICEABLE)
    traits += ["isReceptacleObject"] * (kind in catalogue.VESSELS)
    return traits


def _kind(identifier: str) -> str:
    return identifier.partition("_bar_")[0]
