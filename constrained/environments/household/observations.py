"""The household's words: names of things, the sentences that answer actions.

The sentences are those of the text grammar in ALFWorld's game files (``alfred.twl2``; Shridhar et al., *ALFWorld*,
2021), and the names are numbered as ALFWorld numbers them: a transcript of the original game and one of this game are
the same text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from constrained.knowledge.world.pattern import joined, listed
from constrained.knowledge.world.world import kind_of

NOTHING_HAPPENS = "Nothing happens."
WELCOME = "-= Welcome to TextWorld, ALFRED! =-"
GO = "go to "
NAME = r"[a-z]+ \d+"

ARRIVAL = re.compile(r"You arrive at [^.]*\. ")


def number_of(name: str) -> int:
    """The number in a name: ``"desk 10"`` -> 10."""
    return int(name.rpartition(" ")[2])


def listing_order(name: str) -> tuple[str, int]:
    """The key by which the game sorts names in its lists: by kind, then by falling number."""
    return kind_of(name), -number_of(name)


def name_things(identifiers: Iterable[str]) -> dict[str, str]:
    """Give each identifier its name in the game: its kind in small letters and a number.

    Identifiers read ``Drawer_bar__plus_01_dot_63_bar_...``: the kind, then
    coordinates. Numbers count up through the identifiers of one kind from the
    last in alphabetical order to the first. A basin (``Sink_bar_..._SinkBasin``)
    has a name of its own, apart from the furniture it is part of.

    Returns
    -------
    dict of str to str
        The name by identifier, in the order in which the game lists things: by
        kind and then by falling number.
    """
    counts: dict[str, int] = defaultdict(int)
    names = {}
    for identifier in sorted(identifiers, key=str.lower, reverse=True):
        kind, _, coordinates = identifier.lower().partition("_bar_")
        if "basin" in coordinates:
            kind += "basin"
        counts[kind] += 1
        names[identifier] = f"{kind} {counts[kind]}"
    return dict(reversed(names.items()))


def introduction(receptacles: Sequence[str], task: str) -> str:
    """Return the first observation: the room, then the task."""
    return f"{WELCOME}\n\n{middle_of_room(receptacles)}\n\nYour task is to: {task}"


def middle_of_room(receptacles: Sequence[str]) -> str:
    """Return how the middle of the room looks."""
    return f"You are in the middle of a room. Looking quickly around you, you see {listed(receptacles)}."


def facing(receptacles: Sequence[str], beside: Sequence[str]) -> str:
    """Return the answer to `look` in front of receptacles: their names, and what lies next to them."""
    return f"You are facing the {joined(receptacles)}. Next to it, you see {listed(beside)}."


def receptacle(name: str, contents: Sequence[str], openable: bool, opened: bool) -> str:
    """Return how a receptacle is described: on arrival, when it is opened, when it is examined."""
    if not openable:
        return f"On the {name}, you see {listed(contents)}."
    if opened:
        return f"The {name} is open. In it, you see {listed(contents)}."
    return f"The {name} is closed."


def condition(name: str, *, clean: bool, hot: bool, cool: bool, sliced: bool, toggled: bool) -> str:
    """Return the answer to examining the held object."""
    temperature = "hot" if hot else "cool" if cool else ""
    words = " and ".join(word for word in (temperature, "clean" if clean else "") if word)
    if sliced and words:
        return f"This is a {words} sliced {name}."
    if words == "cool":
        return f"This is a cold {name}."
    if words:
        return f"This is a {words} {name}."
    if toggled:
        return f"This {name} is on."
    if sliced:
        return f"This is a sliced {name}."
    return f"There's nothing special about {name}."
