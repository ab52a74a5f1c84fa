"""Generate household games: from a seed, for a task's sentence, or as a prior for a room that hasn't been seen yet.

A generated game can be solved by construction: the room has the task's receptacle and appliance, enough objects of the
task's kind lie where they can be taken, and (for plain placing) none lies in its destination yet, so that the game
isn't over before it starts.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence

from constrained.environments.household import commonsense
from constrained.environments.household.commonsense import HOLDS, LAMP_STANDS, LAMPS, OBJECTS, ROOMS, TRAITS, Room
from constrained.environments.household.game import Game
from constrained.environments.household.task_spec import (
    LIGHT,
    TASK_TYPES,
    TREATED,
    TWO,
    UNKNOWN,
    TaskSpec,
    parse_task,
    player_world,
    resolve_task,
)
from constrained.environments.memory import WorldMemory
from constrained.errors import GameError
from constrained.knowledge.world.world import kind_of
from constrained.planning.model import Problem

# Receptacles that hold only one object.
_SINGLE = ("CoffeeMachine", "HandTowelHolder", "ToiletPaperHanger", "TowelHolder")
# Kinds of receptacles that share a location with another of their kind, with the probability of that.
_ADJACENT = {"StoveBurner": 1.0, "Cabinet": 0.15, "Drawer": 0.2, "Shelf": 0.1}
_SPELLING = {kind.lower(): kind for kind in (*HOLDS, *OBJECTS, *LAMPS)}


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
        There is no such task type.
    """
    if task_type is not None and task_type not in TASK_TYPES:
        raise GameError(f"no task type {task_type!r}", hint=f"the types are {', '.join(TASK_TYPES)}")
    # A string gives the same random numbers on every platform and in every process.
    rng = random.Random(f"household game {seed} {task_type}")
    chosen = task_type or rng.choice(TASK_TYPES)
    room, spec = rng.choice(_possible(chosen))
    return build_game(spec, room, rng, sentence=rng.choice(spec.sentences()), trial=f"seed_{seed}")


def game_for_task(task: str, seed: int = 0) -> Game:
    """Make a game for a task's sentence.

    Parameters
    ----------
    task : str
        Such as "put a clean mug in the coffeemachine".
    seed : int, optional
        What the room looks like and where things lie.

    Returns
    -------
    Game
        Its task is the sentence in ALFWorld's own wording.

    Raises
    ------
    GameError
        The sentence, an object or a receptacle isn't understood, or the household's rules don't allow the task; the
        hint says what is possible.
    """
    spec, wording = resolve_task(task)
    # This text must not change: as the seed it determines what the room of a task looks like.
    aim = f"Aim(task_type={spec.task_type!r}, thing={spec.object_kind!r}, place={spec.destination!r})"
    rng = random.Random(f"household stage {seed} {aim}")
    return build_game(spec, rng.choice(_rooms(spec)), rng, spec.sentences()[wording], f"staged_{seed}")


def prior_game(first_observation: str) -> Game:
    """Make a game in the room of `first_observation`, with the task's object in every likely place at once.

    It is for plans that are written before anything is seen: the plan chooses where to look, and finds the object
    there. The object's number is a guess: 1, and 2 if the task needs two. There are no other objects. Nothing here
    knows the real game: receptacles and task come from the text, and where things are kept is common sense.

    Raises
    ------
    GameError
        The text names no receptacle, or no task that is understood.
    """
    seen = WorldMemory(player_world(), first_observation)
    parsed = parse_task(seen.task)
    if parsed == UNKNOWN:
        raise GameError(f"the task {seen.task[:80]!r} isn't understood", "word it as ALFWorld does: put a mug in desk")
    spec = TaskSpec(parsed.task_type, _pddl_kind(parsed.object_kind), _pddl_kind(parsed.destination))
    kinds = [_pddl_kind(kind_of(name)) for name in seen.shown.things("receptacle")]
    # Identifiers in the order of the text, so that the game gives them the same names again.
    furniture = {f"{kind}_bar_{number:05}": kind for number, kind in enumerate(kinds)}
    locations = {f"{spec.object_kind}_bar_{number}": _likely(spec, set(kinds)) for number in range(spec.count)}
    if spec.task_type == LIGHT:
        locations[f"{spec.destination}_bar_0"] = set(LAMP_STANDS)
    lying = [(name, r) for name, likely in locations.items() for r, kind in furniture.items() if kind in likely]
    sites = {receptacle: f"loc_bar_{number:05}" for number, receptacle in enumerate(furniture, 1)}
    return Game.from_problem("prior", f"{seen.task}.", state_problem(spec, list(furniture), sites, lying))


def _likely(spec: TaskSpec, room: set[str]) -> set[str]:
    """The kinds of receptacles that may hold the object, without its destination; if none is known, any."""
    kinds = {kind for kind in room if spec.object_kind in HOLDS.get(kind, ())}
    return kinds - {spec.destination} or room - {spec.destination} or room


def _pddl_kind(word: str) -> str:
    """A kind in PDDL's spelling: "sinkbasin" -> "SinkBasin"."""
    return _SPELLING.get(word, word.capitalize())


def build_game(spec: TaskSpec, room: str, rng: random.Random, sentence: str, trial: str) -> Game:
    """Furnish a room for a task and put objects into it.

    Parameters
    ----------
    spec : TaskSpec
    room : str
        A key of `commonsense.ROOMS`; furniture that the task needs is added.
    rng : random.Random
        The source of all choices.
    sentence : str
        The task sentence.
    trial : str
        The second half of the game's name.
    """
    furniture = _furniture(spec, ROOMS[room], rng)
    lying = _objects(spec, ROOMS[room], furniture, rng)
    name = f"{spec.task_type}-{spec.object_kind}-None-{spec.destination}/{trial}"
    return Game.from_problem(name, sentence, state_problem(spec, furniture, _sites(furniture, rng), lying.items()))


def _possible(task_type: str) -> list[tuple[str, TaskSpec]]:
    """Every (room, task) of a task type that the room's furniture and objects allow."""
    treatment = TREATED.get(task_type)
    result = []
    for name, room in ROOMS.items():
        if treatment is not None and treatment.appliance not in room.furniture:
            continue
        if task_type == LIGHT and not _has_reading_lamps(room):
            continue
        kinds = [kind for kind in room.objects if treatment is None or treatment.trait in TRAITS[kind]]
        for destination in LAMPS if task_type == LIGHT else tuple(room.furniture):
            if task_type == TWO and destination in _SINGLE:
                continue
            for kind in kinds:
                if task_type == LIGHT or kind in HOLDS[destination]:
                    result.append((name, TaskSpec(task_type, kind, destination)))
    return result


def _rooms(spec: TaskSpec) -> list[str]:
    """The rooms that lack the fewest of the things that the task needs."""

    def lacking(room: Room) -> int:
        absent = sum(kind not in room.furniture for kind in _needed_furniture(spec)) + (
            spec.object_kind not in room.objects
        )
        return absent + (spec.task_type == LIGHT and not _has_reading_lamps(room))

    least = min(map(lacking, ROOMS.values()))
    return [name for name, room in ROOMS.items() if lacking(room) == least]


def _has_reading_lamps(room: Room) -> bool:
    """Whether the room is a bedroom or a living room."""
    return "Desk" in room.furniture or "TVStand" in room.furniture


def _needed_furniture(spec: TaskSpec) -> list[str]:
    return [
        *([] if spec.task_type == LIGHT else [spec.destination]),
        *([spec.treatment.appliance] if spec.treatment else []),
    ]


def _furniture(spec: TaskSpec, room: Room, rng: random.Random) -> list[str]:
    """Choose the room's receptacles, as identifiers that begin with the kind and "_bar_"."""
    # What the room usually has, and then what the task needs and it may lack.
    counts = {kind: rng.randint(least, most) for kind, (least, most) in room.furniture.items()}
    for kind in _needed_furniture(spec):
        counts[kind] = max(1, counts.get(kind, 0))
    if spec.task_type == LIGHT:
        _ensure(counts, [k for k in LAMP_STANDS if k in room.furniture] or ["SideTable"], rng)
    # There must be a place for the object other than its destination.
    elsewhere = [k for k, held in HOLDS.items() if spec.object_kind in held and k != spec.destination]
    _ensure(counts, [k for k in elsewhere if k in room.furniture] or elsewhere, rng)
    return [f"{kind}_bar_{number:02d}" for kind, count in counts.items() for number in range(1, count + 1)]


def _ensure(counts: dict[str, int], kinds: Sequence[str], rng: random.Random) -> None:
    """Add a receptacle of one of these kinds if there is none."""
    if not any(counts.get(kind) for kind in kinds):
        counts[rng.choice(kinds)] = 1


def _objects(spec: TaskSpec, room: Room, furniture: Sequence[str], rng: random.Random) -> dict[str, str]:
    """Choose the objects, and the receptacle in or on which each of them is."""
    # How many of each kind there are, enough of the task's.
    counts = {kind: rng.randint(0, most) for kind, most in room.objects.items()}
    counts[spec.object_kind] = max(spec.count, counts.get(spec.object_kind, 0))
    lying: dict[str, str] = {}
    for kind, count in counts.items():
        options = [r for r in furniture if kind in HOLDS[_kind(r)]]
        # None of the task's objects may lie in its destination yet; one that must be treated first may.
        if kind == spec.object_kind and spec.treatment is None:
            options = [r for r in options if _kind(r) != spec.destination]
        weights = [commonsense.CROWDED.get(_kind(r), 1) for r in options]
        for number in range(1, count + 1 if options else 1):
            lying[f"{kind}_bar_{number:02d}"] = rng.choices(options, weights)[0]
    # What can't be moved stands last; the order of all draws from `rng` determines the game and must not change.
    standing = dict(room.scenery)
    if spec.task_type == LIGHT:
        stands = [r for r in furniture if _kind(r) in LAMP_STANDS]
        standing[spec.destination] = _kind(rng.choice(stands))
    for kind, under in standing.items():
        options = [r for r in furniture if _kind(r) == under]
        if options:
            lying[f"{kind}_bar_01"] = rng.choice(options)
    return lying


def _sites(furniture: Sequence[str], rng: random.Random) -> dict[str, str]:
    """Give each receptacle a location; as in ALFWorld, two of one kind sometimes share a location."""
    sites: dict[str, str] = {}
    last: dict[str, str] = {}
    for number, receptacle in enumerate(furniture, 1):
        kind = _kind(receptacle)
        if kind in last and rng.random() < _ADJACENT.get(kind, 0.0):
            sites[receptacle] = last.pop(kind)  # never three
        else:
            sites[receptacle] = last[kind] = f"loc_bar_{number:02d}"
    return sites


def state_problem(
    spec: TaskSpec, furniture: Sequence[str], sites: Mapping[str, str], lying: Collection[tuple[str, str]]
) -> Problem:
    """State a room as a planning problem of ALFWorld's domain.

    Parameters
    ----------
    spec : TaskSpec
    furniture : sequence of str
        Identifiers that begin with the kind and "_bar_".
    sites : mapping of str to str
        The location of each piece of furniture.
    lying : collection of (str, str)
        Each object's identifier with the furniture it lies in or on; an object may lie in several.
    """
    # First the objects with their types; then facts: of the agent, the furniture, what holds what, what lies where.
    start = "loc_bar_00"
    object_kinds = sorted({_kind(name) for name, _ in lying})
    receptacle_kinds = sorted({_kind(receptacle) for receptacle in furniture})
    objects = {"agent1": "agent", start: "location"}
    objects.update(dict.fromkeys(sites.values(), "location"))
    objects.update({f"{kind}Type": "otype" for kind in object_kinds})
    objects.update({f"{kind}Type": "rtype" for kind in receptacle_kinds})
    objects.update({name: "object" for name, _ in lying})
    objects.update(dict.fromkeys(furniture, "receptacle"))
    init: list[tuple[str, ...]] = [("atLocation", "agent1", start)]
    for receptacle in furniture:
        kind = _kind(receptacle)
        init += [("receptacleType", receptacle, f"{kind}Type"), ("receptacleAtLocation", receptacle, sites[receptacle])]
        init += [(trait, receptacle) for trait in TRAITS.get(kind, ())]
    for into in receptacle_kinds:
        init += [("canContain", f"{into}Type", f"{kind}Type") for kind in object_kinds if kind in HOLDS.get(into, ())]
    for name, receptacle in lying:
        init += [("objectType", name, f"{_kind(name)}Type"), ("inReceptacle", name, receptacle)]
        init.append(("objectAtLocation", name, sites[receptacle]))
        init += [(trait, name) for trait in TRAITS.get(_kind(name), ())]
    return Problem(objects, tuple(init), spec.goal())


def _kind(identifier: str) -> str:
    return identifier.partition("_bar_")[0]
