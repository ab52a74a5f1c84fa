"""A household: what never changes in it (`House`) and what actions change (`World`).

The facts are those of ALFWorld's planning domain (``alfred.pddl``; Shridhar et
al., 2021), kept under the names that the player uses rather than under the
domain's identifiers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Mapping

from constrained.environments.household.pddl import Problem
from constrained.environments.household.text import name_things
from constrained.errors import GameError

MAX_THINGS = 5_000  # the largest room of ALFWorld's training games has 200


@dataclass(frozen=True)
class House:
    """What no action changes.

    Attributes
    ----------
    receptacles, objects : tuple of str
        Names, in the order in which the game lists them.
    order : mapping of str to int
        The place of each name in that order.
    site : mapping of str to str
        The location of each receptacle; several can share one.
    neighbours : mapping of str to tuple of str
        The receptacles at each location.
    kinds : mapping of str to str
        Type of each receptacle and object ("DrawerType").
    fits : frozenset of (str, str)
        Pairs of receptacle type and object type that may go together.
    traits : mapping of str to frozenset of str
        Names for which "openable", "cleanable", ... holds.
    inner : mapping of str to tuple of str
        What the game says lies inside an object such as a bowl.
    things : mapping of str to tuple of str
        The names of each PDDL type, which goals quantify over.
    """

    receptacles: tuple[str, ...]
    objects: tuple[str, ...]
    order: Mapping[str, int]
    site: Mapping[str, str]
    neighbours: Mapping[str, tuple[str, ...]]
    kinds: Mapping[str, str]
    fits: frozenset[tuple[str, str]]
    traits: Mapping[str, frozenset[str]]
    inner: Mapping[str, tuple[str, ...]]
    things: Mapping[str, tuple[str, ...]]


TRAITS = (
    "openable", "pickupable", "cleanable", "heatable", "coolable",
    "toggleable", "sliceable", "isReceptacleObject",
)  # fmt: skip
STATES = ("opened", "isClean", "isHot", "isCool", "isSliced", "isToggled", "isOn", "checked")


@dataclass
class World:
    """One moment of a game.

    Attributes
    ----------
    house : House
    location : str
        Where the agent stands.
    held : str or None
        The object in the agent's hand; there is only one hand.
    contents : dict of str to set of str
        The objects in or on each receptacle.  A few objects of ALFWorld's games
        are in two receptacles at once, say on a table and on its shelf.
    spots : dict of str to set of str
        The locations where each object lies on record, which is what slicing
        asks for; for some objects they differ from their receptacle's.
    states : dict of str to set of str
        Names for which "opened", "isClean", ... holds now.
    removed : set of (str, str)
        Objects with a receptacle that they were taken out of and not put back into.
    """

    house: House
    location: str
    held: str | None = None
    contents: dict[str, set[str]] = field(default_factory=dict)
    spots: dict[str, set[str]] = field(default_factory=dict)
    states: dict[str, set[str]] = field(default_factory=dict)
    removed: set[tuple[str, str]] = field(default_factory=set)

    def copy(self) -> "World":
        """Return an independent world in the same state."""
        return World(
            self.house,
            self.location,
            self.held,
            {name: set(inside) for name, inside in self.contents.items()},
            {name: set(where) for name, where in self.spots.items()},
            {state: set(names) for state, names in self.states.items()},
            set(self.removed),
        )

    def here(self) -> tuple[str, ...]:
        """Return the receptacles where the agent stands, in listing order."""
        return self.house.neighbours.get(self.location, ())

    def reachable(self, receptacle: str) -> bool:
        """Whether the agent stands at the receptacle."""
        return self.house.site.get(receptacle) == self.location

    def accessible(self, receptacle: str) -> bool:
        """Whether the receptacle lets things in and out: open, or without a door."""
        return receptacle not in self.house.traits["openable"] or receptacle in self.states["opened"]

    def listed(self, receptacle: str) -> list[str]:
        """Return the receptacle's contents in listing order."""
        return sorted(self.contents[receptacle], key=self.house.order.__getitem__)

    def holds_fact(self, predicate: str, arguments: tuple[str, ...]) -> bool:
        """Whether a ground fact of the planning domain is true now.

        Raises
        ------
        GameError
            For a predicate that the domain doesn't have.
        """
        house = self.house
        first, *others = arguments
        if predicate in self.states:
            return first in self.states[predicate]
        if predicate in house.traits:
            return first in house.traits[predicate]
        if predicate in ("objectType", "receptacleType"):
            return house.kinds.get(first) == others[0]
        if predicate == "inReceptacle":
            return first in self.contents.get(others[0], ())
        if predicate == "atLocation":
            return self.location == others[0]
        if predicate == "receptacleAtLocation":
            return house.site.get(first) == others[0]
        if predicate == "objectAtLocation":
            return others[0] in self.spots.get(first, ())
        if predicate == "holds":
            return self.held == others[0]
        if predicate == "holdsAny":
            return self.held is not None
        if predicate == "canContain":
            return (first, others[0]) in house.fits
        if predicate == "inReceptacleObject":
            return first in house.inner.get(others[0], ())
        raise GameError(
            f"the goal asks for '{predicate}', which the household doesn't know",
            hint="the household plays games of ALFWorld's domain alfred.pddl",
        )


def build_world(problem: Problem) -> World:
    """Set up the household that a planning problem describes.

    Raises
    ------
    GameError
        When the problem has too many objects, none to go to, no place for the
        agent to stand, or a fact about something it doesn't declare.
    """
    if len(problem.objects) > MAX_THINGS:
        raise GameError(f"the game has {len(problem.objects):,} objects, more than {MAX_THINGS:,}")
    names = name_things(i for i, kind in problem.objects.items() if kind in ("object", "receptacle"))
    names.update(name_things(i for i, kind in problem.objects.items() if kind == "location"))
    facts: dict[str, list[tuple[str, ...]]] = {}
    for predicate, *arguments in problem.init:
        for argument in arguments:
            if argument not in problem.objects:
                raise GameError(
                    f"the fact ({predicate} {' '.join(arguments)}) names {argument}, "
                    "which (:objects ...) doesn't declare",
                    hint="the file is damaged or of another domain; fetch it again",
                )
        facts.setdefault(predicate, []).append(tuple(names.get(a, a) for a in arguments))
    return _furnish(problem, names, facts)


def _furnish(problem: Problem, names: dict[str, str], facts: dict[str, list[tuple[str, ...]]]) -> World:
    order = {name: place for place, name in enumerate(names.values())}
    site = dict(_pairs(facts, "receptacleAtLocation"))
    starts = facts.get("atLocation", [])
    if not site or len(starts) != 1:
        raise GameError(
            f"the game has {len(site)} receptacles with a place and {len(starts)} agents with a place",
            hint="a household needs at least one receptacle and exactly one agent",
        )
    receptacles = tuple(sorted(site, key=order.__getitem__))
    contents: dict[str, set[str]] = {name: set() for name in receptacles}
    for thing, receptacle in _pairs(facts, "inReceptacle"):
        contents.setdefault(receptacle, set()).add(thing)
    spots: dict[str, set[str]] = {}
    for thing, location in _pairs(facts, "objectAtLocation"):
        spots.setdefault(thing, set()).add(location)
    inner: dict[str, list[str]] = {}
    for inside, outside in _pairs(facts, "inReceptacleObject"):
        inner.setdefault(outside, []).append(inside)
    neighbours: dict[str, list[str]] = {}
    for receptacle in receptacles:
        neighbours.setdefault(site[receptacle], []).append(receptacle)
    house = House(
        receptacles=receptacles,
        objects=tuple(names[i] for i in names if problem.objects[i] == "object"),
        order=order,
        site=site,
        neighbours={location: tuple(there) for location, there in neighbours.items()},
        kinds=dict(_pairs(facts, "receptacleType") + _pairs(facts, "objectType")),
        fits=frozenset(_pairs(facts, "canContain")),
        traits={t: frozenset(f[0] for f in facts.get(t, [])) for t in TRAITS},
        inner={o: tuple(sorted(i, key=order.__getitem__)) for o, i in inner.items()},
        things=_by_type(problem, names),
    )
    states = {s: {f[0] for f in facts.get(s, [])} for s in STATES}
    held = facts.get("holds")
    return World(house, starts[0][1], held[0][1] if held else None, contents, spots, states)


def _by_type(problem: Problem, names: dict[str, str]) -> dict[str, tuple[str, ...]]:
    grouped: dict[str, list[str]] = {}
    for identifier, kind in problem.objects.items():
        grouped.setdefault(kind, []).append(names.get(identifier, identifier))
    return {kind: tuple(members) for kind, members in grouped.items()}


def _pairs(facts: dict[str, list[tuple[str, ...]]], predicate: str) -> list[tuple[str, str]]:
    found = facts.get(predicate, [])
    for fact in found:
        if len(fact) != 2:
            raise GameError(f"the fact ({predicate} {' '.join(fact)}) needs two arguments")
    return found  # type: ignore[return-value]
