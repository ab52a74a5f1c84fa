"""Which of the possible actions may be of use to who remembers this much of a household game."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from constrained.environments.household.sentence import TOOLS, VERBS
from constrained.environments.household.text import GO, kind_of

if TYPE_CHECKING:  # it offers these functions as its own
    from constrained.environments.household.memory import Memory


def to_explore(memory: Memory, actions: Iterable[str]) -> list[str]:
    """Those that show something new: opening what is closed here, or else going where nobody has looked."""
    new = set(memory.unseen())
    openings = [f"open {name}" for name in memory.here() if memory.shut.get(name) and name in new]
    wanted = set(openings or (f"{GO}{name}" for name in new - set(memory.here())))
    return [action for action in actions if action in wanted]


def of_use(memory: Memory, actions: Iterable[str]) -> list[str]:
    """All but the moves that can't be of use, as far as is known.

    What is needed next is done where it can be done, or gone to where it is known to be. Where that isn't known,
    one looks where nobody has looked, and leaves no door closed that one has just gone to. If nothing of
    that is among `actions`, or what is in hand isn't wanted, any move may be of use.

    Parameters
    ----------
    actions : iterable of str
        Those that are possible now.

    Returns
    -------
    list of str
        In the same order; never empty where `actions` isn't. Only ``go to`` is ever left out.
    """
    actions = list(actions)
    if not memory.goal.kind or memory.held and kind_of(memory.held) != memory.goal.kind:
        return actions
    possible = set(actions)
    for purpose in _purposes(memory, possible):
        if not purpose.isdisjoint(possible):
            return [action for action in actions if action in purpose or not action.startswith(GO)]
    return actions


def _purposes(memory: Memory, possible: set[str]) -> Iterator[set[str]]:
    """What there is to do next, most urgent first: only where nothing of the one is possible comes the next."""
    needed, new, here = _needed(memory), memory.unseen(), memory.here()
    # Of what shares a place with here, maybe nobody knows that yet; but one can't go there.
    near = {place for place in needed if place in here or f"{GO}{place}" not in possible}
    yield {action for place in near for action in (*needed[place], f"open {place}")}
    yield {f"{GO}{place}" for place in needed}
    yield {f"open {memory.place}"} if memory.place in new else set()
    yield {f"{verb}{name}" for name in new for verb in (("open ", "examine ") if name in here else (GO,))}


def _needed(memory: Memory) -> dict[str, list[str]]:
    """Where the next thing is, or the one in hand must go, and what is to be done there; nothing, if not known."""
    held, needed = memory.held, {}
    if not held:
        done = memory.done()
        for name, place in memory.find(memory.goal.kind).items():
            if name not in done:
                needed.setdefault(place, []).append(f"take {name} from {place}")
    elif not memory.ready(held):
        verb, kind = VERBS[memory.goal.state], TOOLS[memory.goal.state]
        needed = {name: [f"{verb} {held} with {name}"] for name in memory.receptacles if kind_of(name) == kind}
    elif memory.goal.lamp:
        lamp = memory.lamp()
        needed = {lamp[1]: [f"use {lamp[0]}"]} if lamp else {}
    else:
        place = memory.destination()
        needed = {place: [f"put {held} in/on {place}"]} if place else {}
    return needed
