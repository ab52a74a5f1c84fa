"""The household's words: names of things, and the sentences that answer actions.

The sentences are those of the text grammar that ALFWorld's game files carry
(``alfred.twl2``; Shridhar et al., *ALFWorld*, 2021), and the names are
numbered as ALFWorld numbers them, so that a transcript of the original game and
one of this game are the same text.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Iterable, Sequence

NOTHING_HAPPENS = "Nothing happens."
WELCOME = "-= Welcome to TextWorld, ALFRED! =-"


def name_things(identifiers: Iterable[str]) -> dict[str, str]:
    """Give each identifier its name in the game: its kind in small letters and a number.

    Identifiers read ``Drawer_bar__plus_01_dot_63_bar_...``: the kind, then
    coordinates.  Numbers count up through the identifiers of one kind from the
    last in alphabetical order to the first.  A basin (``Sink_bar_..._SinkBasin``)
    is named apart from the furniture it is part of.

    Returns
    -------
    dict of str to str
        The name by identifier, in the order in which the game lists things: by
        kind and then by falling number.
    """
    counts: dict[str, int] = defaultdict(int)
    names: list[tuple[str, int, str]] = []
    for identifier in sorted(identifiers, reverse=True):
        kind, _, rest = identifier.partition("_bar_")
        kind = kind.lower()
        if "basin" in rest.lower() and "basin" not in kind:
            kind += "basin"
        counts[kind] += 1
        names.append((kind, -counts[kind], identifier))
    return {identifier: f"{kind} {-number}" for kind, number, identifier in sorted(names)}


def listing(names: Sequence[str]) -> str:
    """Return "a mug 2, a mug 1, and a pen 1"; the game says "a" whatever follows."""
    if not names:
        return "nothing"
    articled = [f"a {name}" for name in names]
    if len(articled) == 1:
        return articled[0]
    return ", ".join(articled[:-1]) + ", and " + articled[-1]


def introduction(receptacles: Sequence[str], task: str) -> str:
    """Return the first observation: the room, then the task."""
    return f"{WELCOME}\n\n{middle_of_room(receptacles)}\n\nYour task is to: {task}"


def middle_of_room(receptacles: Sequence[str]) -> str:
    """Return what `look` answers where there is no receptacle."""
    return (
        "You are in the middle of a room. Looking quickly around you, "
        f"you see {listing(receptacles)}."
    )


def facing(receptacles: Sequence[str], beside: Sequence[str]) -> str:
    """Return what `look` answers in front of receptacles: they, and what lies next to them."""
    return f"You are facing the {', '.join(receptacles)}. Next to it, you see {listing(beside)}."


def receptacle(name: str, contents: Sequence[str], openable: bool, opened: bool) -> str:
    """Return what arriving at a receptacle, opening it and examining it have in common."""
    if not openable:
        return f"On the {name}, you see {listing(contents)}."
    if opened:
        return f"The {name} is open. In it, you see {listing(contents)}."
    return f"The {name} is closed."


def condition(
    name: str,
    *,
    clean: bool,
    hot: bool,
    cool: bool,
    sliced: bool,
    switch: bool | None,
) -> str:
    """Return what examining an object answers.

    Parameters
    ----------
    switch : bool or None
        Whether the object was switched on; None if it has no switch.
    """
    temperature = "hot" if hot else "cool" if cool else ""
    if clean or sliced:
        # Hot objects that are clean are called "hot and clean"; an object that is
        # only sliced gets its own sentence after the lamp's, below.
        words = " and ".join(word for word in (temperature, "clean" if clean else "") if word)
        if words:
            return f"This is a {words} {'sliced ' if sliced else ''}{name}."
    elif temperature:
        return f"This is a {'hot' if hot else 'cold'} {name}."
    if switch is not None:
        return f"This {name} is {'on' if switch else 'off'}."
    if sliced:
        return f"This is a sliced {name}."
    return f"There's nothing special about {name}."
