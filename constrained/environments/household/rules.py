"""The actions of a household (when possible, what they change and answer), those admissible now, and the slots.

One function an action, after the action's schema in ALFWorld's ``alfred.pddl``. A function returns the answer, or None
when the action isn't possible now; only in the first case has it changed the world. `admissible` asks the
same predicates, and the slots follow from it, so a command that the slots admit is one that the game answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from constrained.environments.base import Binding
from constrained.environments.household import observations
from constrained.environments.household.world import TREATMENTS, World
from constrained.knowledge.world.pattern import listed

KNIVES = ("KnifeType", "ButterKnifeType")


def describe(world: World, receptacle: str) -> str:
    """Return how the game describes a receptacle as it is now."""
    return observations.receptacle(
        receptacle,
        world.listed(receptacle),
        receptacle in world.house.traits["openable"],
        receptacle in world.states["opened"],
    )


def go(world: World, receptacle: str) -> str | None:
    """Walk to a receptacle; not possible where the agent stands already."""
    site = world.house.site.get(receptacle)
    if site is None or site == world.location:
        return None
    world.location = site
    return describe(world, receptacle)


def open_(world: World, receptacle: str) -> str | None:
    """Open a receptacle that has a door and is closed."""
    if not world.reachable(receptacle) or world.accessible(receptacle):
        return None
    world.states["opened"].add(receptacle)
    return f"You open the {receptacle}. {describe(world, receptacle)}"


def close(world: World, receptacle: str) -> str | None:
    """Close a receptacle that is open."""
    if not world.reachable(receptacle) or receptacle not in world.states["opened"]:
        return None
    world.states["opened"].discard(receptacle)
    return f"You close the {receptacle}."


def take(world: World, name: str, receptacle: str) -> str | None:
    """Take an object out of a receptacle, with an empty hand."""
    possible = (
        world.held is None
        and world.reachable(receptacle)
        and name in world.contents[receptacle]
        and name in world.house.traits["pickupable"]
        and world.accessible(receptacle)
    )
    if not possible:
        return None
    world.contents[receptacle].discard(name)
    world.removed.add((name, receptacle))
    world.spots.get(name, set()).discard(world.location)
    world.held = name
    return f"You pick up the {name} from the {receptacle}."


def put(world: World, name: str, receptacle: str) -> str | None:
    """Put the held object into or onto a receptacle of a type that takes it."""
    if world.held != name or not can_put(world, receptacle):
        return None
    world.contents[receptacle].add(name)
    world.removed.discard((name, receptacle))
    world.spots.setdefault(name, set()).add(world.location)
    world.held = None
    return f"You put the {name} in/on the {receptacle}."


def can_put(world: World, receptacle: str) -> bool:
    """Whether the held object could be put there now."""
    kinds = world.house.kinds
    return (
        world.reachable(receptacle)
        and world.accessible(receptacle)
        and (kinds.get(receptacle), kinds.get(world.held or "")) in world.house.fits
    )


def treat(verb: str, world: World, name: str, receptacle: str) -> str | None:
    """Clean, heat or cool the held object; the appliance may be closed."""
    if world.held != name or not can_treat(world, verb, receptacle):
        return None
    treatment = TREATMENTS[verb]
    world.states[treatment.fact].add(name)
    if treatment.undoes:
        world.states[treatment.undoes].discard(name)
    return f"You {verb} the {name} using the {receptacle}."


def can_treat(world: World, verb: str, receptacle: str) -> bool:
    """Whether the held object could be cleaned, heated or cooled with the receptacle now."""
    treatment = TREATMENTS[verb]
    return (
        world.held in world.house.traits[treatment.trait]
        and world.house.kinds.get(receptacle) == f"{treatment.appliance}Type"
        and world.reachable(receptacle)
    )


def use(world: World, name: str) -> str | None:
    """Switch an object here, even behind a closed door."""
    if not can_use(world, name):
        return None
    world.states["isOn"] ^= {name}
    # Once toggled an object counts as toggled for good, so the answer is always "on".
    world.states["isToggled"].add(name)
    return f"You turn on the {name}."


def can_use(world: World, name: str) -> bool:
    """Whether the object has a switch and lies in or on a receptacle here."""
    return name in world.house.traits["toggleable"] and any(
        name in world.contents[receptacle] for receptacle in world.here()
    )


def slice_(world: World, name: str, knife: str) -> str | None:
    """Slice an object that the facts locate here, with the held knife."""
    if world.held != knife or not can_slice(world, name):
        return None
    world.states["isSliced"].add(name)
    return f"You sliced the {name} with the {knife}."


def can_slice(world: World, name: str) -> bool:
    """Whether the object could be sliced now with what is in the hand."""
    return (
        world.house.kinds.get(world.held or "") in KNIVES
        and name in world.house.traits["sliceable"]
        and world.location in world.spots.get(name, ())
    )


def examine(world: World, name: str) -> str | None:
    """Look closely at a receptacle here, or at the object in hand.

    The planning domain would allow any object in view, but the original program
    answers only for the held one: its other branch never becomes a command.
    """
    if world.reachable(name):
        return describe(world, name)
    if name != world.held:
        return None
    if name in world.house.traits["isReceptacleObject"]:
        return f"This is a normal {name}. In it, you see {listed(world.house.inner.get(name, ()))}."
    return observations.condition(
        name,
        clean=name in world.states["isClean"],
        hot=name in world.states["isHot"],
        cool=name in world.states["isCool"],
        sliced=name in world.states["isSliced"],
        toggled=name in world.states["isToggled"],
    )


def look(world: World) -> str:
    """Look around from where the agent stands.

    What lies "next to" a receptacle is an object put down here that was once taken
    out of another receptacle here: only then does the original program know that it
    isn't in that one. It names the object once for each such receptacle. Before the
    first move it sees nothing: the program lists the receptacles at the agent's location.
    """
    here = world.here()
    if not here:
        return observations.middle_of_room([])
    beside = [
        name for name, receptacle in world.removed if receptacle in here and world.location in world.spots.get(name, ())
    ]
    return observations.facing(here, sorted(beside, key=world.house.order.__getitem__))


def inventory(world: World) -> str:
    """Say what the agent carries."""
    if world.held is None:
        return "You are not carrying anything."
    return f"You are carrying: {listed([world.held])}."


_ONE_ARGUMENT: dict[str, Callable[[World, str], str | None]] = {
    "open": open_,
    "close": close,
    "use": use,
    "examine": examine,
}
_TWO_ARGUMENTS: dict[str, tuple[str, Callable[[World, str, str], str | None]]] = {
    "take": (" from ", take),
    "put": (" in/on ", put),
    "slice": (" with ", slice_),
}


def act(world: World, command: str) -> str | None:
    """Carry out a command as the player writes it, such as ``take mug 1 from desk 1``.

    Returns
    -------
    str or None
        The game's answer; None, with the world unchanged, if the command isn't
        exactly one that is possible now.
    """
    if command == "look":
        return look(world)
    if command == "inventory":
        return inventory(world)
    verb, _, rest = command.partition(" ")
    if verb == "go":
        return go(world, rest[3:]) if rest.startswith("to ") else None
    if verb in TREATMENTS:
        name, _, receptacle = rest.partition(" with ")
        return treat(verb, world, name, receptacle)
    if (one := _ONE_ARGUMENT.get(verb)) is not None:
        return one(world, rest)
    if (two := _TWO_ARGUMENTS.get(verb)) is not None:
        between, action = two
        first, _, second = rest.partition(between)
        return action(world, first, second)
    return None


def admissible(world: World) -> list[str]:
    """Return every command that would have an effect now, in alphabetical order."""
    here, held = world.here(), world.held
    inside = {name for receptacle in here for name in world.contents[receptacle]}
    commands = ["look", "inventory", *(f"examine {receptacle}" for receptacle in here)]
    commands += [f"go to {receptacle}" for receptacle in world.house.receptacles if receptacle not in here]
    commands += [f"open {receptacle}" for receptacle in here if not world.accessible(receptacle)]
    commands += [f"close {receptacle}" for receptacle in here if receptacle in world.states["opened"]]
    commands += [f"use {name}" for name in inside if can_use(world, name)]
    if held is None:
        commands += [f"take {name} from {where}" for where, names in takeable(world).items() for name in names]
    else:
        commands.append(f"examine {held}")
        commands += [f"put {held} in/on {receptacle}" for receptacle in here if can_put(world, receptacle)]
        commands += [f"slice {name} with {held}" for name in world.spots if can_slice(world, name)]
        for verb in TREATMENTS:
            commands += [
                f"{verb} {held} with {receptacle}" for receptacle in here if can_treat(world, verb, receptacle)
            ]
    return sorted(commands)


def takeable(world: World) -> dict[str, list[str]]:
    """Return what could be taken with an empty hand, by receptacle."""
    pickupable = world.house.traits["pickupable"]
    found = {
        receptacle: [name for name in world.listed(receptacle) if name in pickupable]
        for receptacle in world.here()
        if world.accessible(receptacle)
    }
    return {receptacle: names for receptacle, names in found.items() if names}


def slots(
    admissible: Sequence[str],
    receptacles: Sequence[str],
    takeable: Mapping[str, Sequence[str]],
    standing_at: str | None,
) -> dict[str, Binding]:
    """Return the values of the slots of ``grammars/household.lark``, for any engine that lists its admissible commands.

    Parameters
    ----------
    admissible : sequence of str
        The admissible commands.
    receptacles : sequence of str
        All there are, in the order of the first observation.
    takeable : mapping of str to sequence of str
        What could be taken with an empty hand, by receptacle.
    standing_at : str or None
        The receptacle that the last successful "go to" named. Slots that depend
        on where the player stands are mappings with this one key.

    Returns
    -------
    dict
        RECEPTACLE: where one can go; REACH, CLOSED, OPENED: receptacles here;
        OBJECT: what can be taken, by receptacle; FITS, CLEANER, HEATER, COOLER:
        receptacles here that the held object can be put in or treated with;
        LAMP, SLICEABLE, EXAMINABLE: what can be used, sliced, examined here;
        HELD: what is in the hand. A slot without values is an empty mapping or left out.
    """

    def things(verb: str, last: bool = False) -> list[str]:
        """The first or the last name in the commands with a verb, receptacles before objects."""
        commands = (command.removeprefix(f"{verb} ") for command in admissible if command.startswith(f"{verb} "))
        found = (re.split(" (?:in/on|with) ", command)[-1 if last else 0] for command in commands)
        return sorted(found, key=lambda n: (0, order[n]) if n in order else (1, observations.listing_order(n)))

    order = {name: number for number, name in enumerate(receptacles)}
    examinable = things("examine")
    here = {
        "REACH": [name for name in examinable if name in order],
        "CLOSED": things("open"),
        "OPENED": things("close"),
        "EXAMINABLE": examinable,
        "LAMP": things("use"),
        "FITS": things("put", last=True),
        "SLICEABLE": things("slice"),
        **{treatment.slot: things(verb, last=True) for verb, treatment in TREATMENTS.items()},
    }
    everywhere = {"RECEPTACLE": things("go to"), "HELD": [name for name in examinable if name not in order]}
    return {
        "OBJECT": {r: sorted(takeable[r], key=observations.listing_order) for r in receptacles if takeable.get(r)},
        **{slot: {standing_at: names} if standing_at is not None and names else {} for slot, names in here.items()},
        **{slot: names for slot, names in everywhere.items() if names},
    }
