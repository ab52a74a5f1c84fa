"""The actions of a household: when each is possible, what it changes, what it answers.

One function an action, after the action's schema in ALFWorld's ``alfred.pddl``.
A function returns the answer, or None when the action isn't possible now; only
in the first case has it changed the world.
"""

from __future__ import annotations

from collections.abc import Callable

from constrained.environments.household import text
from constrained.environments.household.world import World

KNIVES = ("KnifeType", "ButterKnifeType")
# Verb: (trait the object needs, type of receptacle it needs, state gained, state lost).
TREATMENTS = {
    "clean": ("cleanable", "SinkBasinType", "isClean", None),
    "heat": ("heatable", "MicrowaveType", "isHot", "isCool"),
    "cool": ("coolable", "FridgeType", "isCool", "isHot"),
}


def describe(world: World, receptacle: str) -> str:
    """Return how the game describes a receptacle as it is now."""
    return text.receptacle(
        receptacle,
        world.listed(receptacle),
        receptacle in world.house.traits["openable"],
        receptacle in world.states["opened"],
    )


def go(world: World, receptacle: str) -> str | None:
    """Walk to a receptacle; walking to where one stands is no action (it changes nothing)."""
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


def take(world: World, thing: str, receptacle: str) -> str | None:
    """Take an object out of a receptacle, with an empty hand."""
    possible = (
        world.held is None
        and world.reachable(receptacle)
        and thing in world.contents[receptacle]
        and thing in world.house.traits["pickupable"]
        and world.accessible(receptacle)
    )
    if not possible:
        return None
    world.contents[receptacle].discard(thing)
    world.removed.add((thing, receptacle))
    world.spots.get(thing, set()).discard(world.location)
    world.held = thing
    return f"You pick up the {thing} from the {receptacle}."


def put(world: World, thing: str, receptacle: str) -> str | None:
    """Put the held object into or onto a receptacle of a type that takes it."""
    if world.held != thing or not can_put(world, receptacle):
        return None
    world.contents[receptacle].add(thing)
    world.removed.discard((thing, receptacle))
    world.spots.setdefault(thing, set()).add(world.location)
    world.held = None
    return f"You put the {thing} in/on the {receptacle}."


def can_put(world: World, receptacle: str) -> bool:
    """Whether the held object could be put there now."""
    kinds = world.house.kinds
    return (
        world.reachable(receptacle)
        and world.accessible(receptacle)
        and (kinds.get(receptacle), kinds.get(world.held or "")) in world.house.fits
    )


def treat(verb: str, world: World, thing: str, receptacle: str) -> str | None:
    """Clean, heat or cool the held object; the appliance may be closed."""
    if world.held != thing or not can_treat(world, verb, receptacle):
        return None
    _, _, gained, lost = TREATMENTS[verb]
    world.states[gained].add(thing)
    if lost:
        world.states[lost].discard(thing)
    return f"You {verb} the {thing} using the {receptacle}."


def can_treat(world: World, verb: str, receptacle: str) -> bool:
    """Whether the held object could be cleaned, heated or cooled with the receptacle now."""
    trait, kind, _, _ = TREATMENTS[verb]
    return (
        world.held in world.house.traits[trait]
        and world.house.kinds.get(receptacle) == kind
        and world.reachable(receptacle)
    )


def use(world: World, thing: str) -> str | None:
    """Switch an object that lies here; behind a closed door does too."""
    if not can_use(world, thing):
        return None
    world.states["isOn"] ^= {thing}
    # Once toggled an object counts as toggled for good, so the answer is always "on".
    world.states["isToggled"].add(thing)
    return f"You turn on the {thing}."


def can_use(world: World, thing: str) -> bool:
    """Whether the object has a switch and lies in or on a receptacle here."""
    return thing in world.house.traits["toggleable"] and any(
        thing in world.contents[receptacle] for receptacle in world.here()
    )


def slice_(world: World, thing: str, knife: str) -> str | None:
    """Slice an object on record at this location, with the held knife."""
    if world.held != knife or not can_slice(world, thing):
        return None
    world.states["isSliced"].add(thing)
    return f"You sliced the {thing} with the {knife}."


def can_slice(world: World, thing: str) -> bool:
    """Whether the object could be sliced now with what is in the hand."""
    return (
        world.house.kinds.get(world.held or "") in KNIVES
        and thing in world.house.traits["sliceable"]
        and world.location in world.spots.get(thing, ())
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
        return f"This is a normal {name}. In it, you see {text.listing(world.house.inner.get(name, ()))}."
    return text.condition(
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
    isn't in that one.  It names the object once for each such receptacle.  Before the
    first move it sees nothing: the program lists the receptacles at the agent's location.
    """
    here = world.here()
    if not here:
        return text.middle_of_room([])
    beside = [
        thing
        for thing, receptacle in world.removed
        if receptacle in here and world.location in world.spots.get(thing, ())
    ]
    return text.facing(here, sorted(beside, key=world.house.order.__getitem__))


def inventory(world: World) -> str:
    """Say what the agent carries."""
    if world.held is None:
        return "You are not carrying anything."
    return f"You are carrying: {text.listing([world.held])}."


_ONE: dict[str, Callable[[World, str], str | None]] = {
    "open": open_,
    "close": close,
    "use": use,
    "examine": examine,
}
_TWO: dict[str, tuple[str, Callable[[World, str, str], str | None]]] = {
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
        thing, _, receptacle = rest.partition(" with ")
        return treat(verb, world, thing, receptacle)
    if (one := _ONE.get(verb)) is not None:
        return one(world, rest)
    if (two := _TWO.get(verb)) is not None:
        between, action = two
        first, _, second = rest.partition(between)
        return action(world, first, second)
    return None
