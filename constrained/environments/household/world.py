"""A household: what never changes in it (`House`), its state (`World`), and both set up from a planning problem.

The facts are those of ALFWorld's planning domain (``alfred.pddl``; Shridhar et al., 2021), kept under the names that
the player uses instead of the domain's identifiers.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from constrained.environments.household.observations import name_things
from constrained.errors import GameError
from constrained.planning.facts import Fact
from constrained.planning.model import Problem

TRAITS = (
    "openable", "pickupable", "cleanable", "heatable", "coolable",
    "toggleable", "sliceable", "isReceptacleObject",
)  # fmt: skip
STATES = ("opened", "isClean", "isHot", "isCool", "isSliced", "isToggled", "isOn", "checked")
# The types that the domain declares for the facts that are kept.
SIGNATURES = {
    "atLocation": ("agent", "location"),
    "holds": ("agent", "object"),
    "receptacleAtLocation": ("receptacle", "location"),
    "objectAtLocation": ("object", "location"),
    "inReceptacle": ("object", "receptacle"),
    "inReceptacleObject": ("object", "object"),
    "receptacleType": ("receptacle", "rtype"),
    "objectType": ("object", "otype"),
    "canContain": ("rtype", "otype"),
}
MAX_OBJECTS = 5_000
"""Objects that a problem may declare; the largest game file of ALFWorld has 363."""


@dataclass(frozen=True)
class Treatment:
    """Cleaning, heating or cooling.

    Attributes
    ----------
    verb, state : str
        "heat" makes "hot".
    fact, trait : str
        The same in PDDL ("isHot"), and what the object must be ("heatable").
    appliance : str
        Kind of the receptacle it is done with ("Microwave").
    slot : str
        The slot of ``grammars/household.lark`` for this receptacle.
    undoes : str or None
        The fact that it ends ("isCool").
    """

    verb: str
    state: str
    fact: str
    trait: str
    appliance: str
    slot: str
    undoes: str | None = None


TREATMENTS = {
    treatment.verb: treatment
    for treatment in (
        Treatment("clean", "clean", "isClean", "cleanable", "SinkBasin", "CLEANER"),
        Treatment("heat", "hot", "isHot", "heatable", "Microwave", "HEATER", undoes="isCool"),
        Treatment("cool", "cool", "isCool", "coolable", "Fridge", "COOLER", undoes="isHot"),
    )
}


@dataclass(frozen=True)
class House:
    """What no action changes.

    Attributes
    ----------
    receptacles, objects : tuple of str
        Names, in the order in which the game lists them.
    order : mapping of str to int
        The index of each name in that order.
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
        The contents of an object such as a bowl.
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


@dataclass
class World:
    """The state of a game.

    Attributes
    ----------
    house : House
    location : str
        Where the agent stands.
    held : str or None
        The object in the agent's hand; there is only one hand.
    contents : dict of str to set of str
        The objects in or on each receptacle. A few objects of ALFWorld's games
        are in two receptacles at once, say on a table and on its shelf.
    spots : dict of str to set of str
        The locations that the facts give each object, which slicing asks for; for some objects they differ from
        their receptacle's.
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
        """Whether the receptacle lets objects in and out: open, or without a door."""
        return receptacle not in self.house.traits["openable"] or receptacle in self.states["opened"]

    def listed(self, receptacle: str) -> list[str]:
        """Return the receptacle's contents in listing order."""
        return sorted(self.contents[receptacle], key=self.house.order.__getitem__)

    def fixed_facts(self, predicates: Container[str]) -> Iterator[Fact]:
        """Those facts of the planning domain that no action changes."""
        house = self.house
        facts: dict[str, Iterable[tuple[str, ...]]] = {
            "objectType": house.kinds.items(),
            "receptacleType": house.kinds.items(),
            "receptacleAtLocation": house.site.items(),
            "canContain": house.fits,
            "inReceptacleObject": ((name, outer) for outer, inside in house.inner.items() for name in inside),
            **{trait: ((name,) for name in names) for trait, names in house.traits.items()},
        }
        return ((predicate, *terms) for predicate in facts if predicate in predicates for terms in facts[predicate])

    def changing_facts(self, predicates: Container[str]) -> set[Fact]:
        """Those that actions change."""
        agents = self.house.things.get("agent", ())
        held = [] if self.held is None else [self.held]
        facts: dict[str, Iterable[tuple[str, ...]]] = {
            "inReceptacle": ((name, where) for where, inside in self.contents.items() for name in inside),
            "objectAtLocation": ((name, where) for name, spots in self.spots.items() for where in spots),
            "atLocation": ((agent, self.location) for agent in agents),
            "holds": ((agent, name) for agent in agents for name in held),
            "holdsAny": ((agent,) for agent in agents for _ in held),
            **{state: ((name,) for name in names) for state, names in self.states.items()},
        }
        return {(predicate, *terms) for predicate in facts if predicate in predicates for terms in facts[predicate]}


def build_world(problem: Problem) -> World:
    """Set up the household that a planning problem describes.

    Every fact is checked here, so that the game itself never meets a name that it doesn't know.

    Raises
    ------
    GameError
        When the problem has too many objects, no receptacle to go to, no location for the
        agent, or a fact about something it doesn't declare.
    """
    if len(problem.objects) > MAX_OBJECTS:
        raise GameError(f"the game has {len(problem.objects):,} objects, more than {MAX_OBJECTS:,}")
    names = name_things(i for i, kind in problem.objects.items() if kind in ("object", "receptacle"))
    names.update(name_things(i for i, kind in problem.objects.items() if kind == "location"))
    facts: dict[str, list[tuple[str, ...]]] = {}
    for predicate, *arguments in problem.init:
        _check_fact(predicate, arguments, problem)
        facts.setdefault(predicate, []).append(tuple(names.get(a, a) for a in arguments))
    return _furnish(problem, names, facts)


def _check_fact(predicate: str, arguments: list[str], problem: Problem) -> None:
    kinds = []
    for argument in arguments:
        if argument not in problem.objects:
            raise GameError(
                f"the fact ({predicate} {' '.join(arguments)}) names {argument}, which (:objects ...) doesn't declare",
                hint="the file is damaged or of another domain; fetch it again",
            )
        kinds.append(problem.objects[argument])
    expected = SIGNATURES.get(predicate)
    if expected is None and predicate in TRAITS + STATES and len(kinds) == 1:
        return
    if tuple(kinds) != expected and predicate in (*SIGNATURES, *TRAITS, *STATES):
        wanted = " ".join(expected) if expected else "one argument"
        raise GameError(
            f"the fact ({predicate} {' '.join(arguments)}) should have {wanted}, not {' '.join(kinds) or 'nothing'}",
            hint="the file is damaged or of another domain; fetch it again",
        )


def _furnish(problem: Problem, names: dict[str, str], facts: dict[str, list[tuple[str, ...]]]) -> World:
    def pairs(predicate: str) -> list[tuple[str, str]]:
        return [(first, second) for first, second in facts.get(predicate, ())]

    def grouped(pairs: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
        groups: dict[str, list[str]] = {}
        for key, value in pairs:
            groups.setdefault(key, []).append(value)
        return groups

    order = {name: index for index, name in enumerate(names.values())}
    in_order = order.__getitem__
    site = dict(pairs("receptacleAtLocation"))
    starts = pairs("atLocation")
    if not site or len(starts) != 1:
        raise GameError(
            f"the game has {len(site)} receptacles with a location and {len(starts)} agents with a location",
            hint="a household needs at least one receptacle and exactly one agent",
        )
    receptacles = tuple(sorted(site, key=in_order))
    inside = grouped([(receptacle, name) for name, receptacle in pairs("inReceptacle")])
    inner = grouped([(outside, name) for name, outside in pairs("inReceptacleObject")])
    house = House(
        receptacles=receptacles,
        objects=tuple(names[i] for i in names if problem.objects[i] == "object"),
        order=order,
        site=site,
        neighbours={place: tuple(there) for place, there in grouped([(site[r], r) for r in receptacles]).items()},
        kinds=dict(pairs("receptacleType") + pairs("objectType")),
        fits=frozenset(pairs("canContain")),
        traits={trait: frozenset(fact[0] for fact in facts.get(trait, ())) for trait in TRAITS},
        inner={name: tuple(sorted(contents, key=in_order)) for name, contents in inner.items()},
        things={
            kind: tuple(found)
            for kind, found in grouped([(kind, names.get(i, i)) for i, kind in problem.objects.items()]).items()
        },
    )
    held = pairs("holds")
    return World(
        house,
        starts[0][1],
        held[0][1] if held else None,
        {name: set(inside.pop(name, ())) for name in receptacles}
        | {name: set(found) for name, found in inside.items()},
        {name: set(locations) for name, locations in grouped(pairs("objectAtLocation")).items()},
        {state: {fact[0] for fact in facts.get(state, ())} for state in STATES},
    )
