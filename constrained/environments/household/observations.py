"""The household's names of things, and how a game begins.

Names are numbered as ALFWorld numbers them (Shridhar et al., *ALFWorld*, 2021), and the sentences are those of the text
grammar in its game files: a transcript of the original game and one of this game are the same text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from constrained.knowledge.world.pattern import listed

NOTHING_HAPPENS = "Nothing happens."
WELCOME = "-= Welcome to TextWorld, ALFRED! =-"
GO = "go to "
NAME = r"[a-z]+ \d+"

ARRIVAL = re.compile(r"You arrive at [^.]*\. ")


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
    seen = f"You are in the middle of a room. Looking quickly around you, you see {listed(receptacles)}."
    return f"{WELCOME}\n\n{seen}\n\nYour task is to: {task}"
