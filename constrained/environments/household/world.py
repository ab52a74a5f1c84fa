"""A household: what never changes in it (`House`) and what actions change (`World`).

The facts are those of ALFWorld's planning domain (``alfred.pddl``; Shridhar et
al., 2021), kept under the names that the player uses rather than under the
domain's identifiers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from constrained.errors import GameError


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

    def copy(self) -> World:
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
