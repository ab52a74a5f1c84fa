"""What a household's observations say, as triples: their form is known, so no model need read them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from constrained.environments.base import IN_ON
from constrained.environments.household.memory import CLOSED, CONTENTS
from constrained.environments.household.sentence import read_goal
from constrained.environments.household.text import NAME, kind_of

EXPLORING = ("goto", "open", "look", "examine")
"""The actions that move no object: what they show is there again when the game begins anew."""


def triples(observation: str) -> list[tuple[str, str, str]]:
    """What is in or on what ("nothing", it may be), and what can be opened, as (head, relation, tail)."""
    places = [(flat or openable, listing) for flat, openable, listing in CONTENTS.findall(observation)]
    found = [(thing, IN_ON, place) for place, listing in places for thing in re.findall(NAME, listing) or ["nothing"]]
    return found + [(name or closed, "can be", "opened") for name, closed in CLOSED.findall(observation)]


def entities(task: str, names: Iterable[str]) -> list[str]:
    """The names that a task is about: first the things wanted, then the lamp or the place for them.

    Of a task in other words than the game's own, all whose kind is a word of it.
    """
    goal, names = read_goal(task), list(names)
    kinds = filter(None, (goal.kind, goal.lamp, goal.place)) if goal.kind else re.findall(r"[a-z]+", task.lower())
    return [name for kind in dict.fromkeys(kinds) for name in names if kind_of(name) == kind]
