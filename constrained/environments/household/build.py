"""Set up a household from a planning problem: names for identifiers, facts into tables.

What a file gets wrong is refused here, fact by fact, so that the game itself never
meets a thing that it doesn't know.
"""

from __future__ import annotations

from constrained.environments.household.text import name_things
from constrained.environments.household.world import STATES, TRAITS, House, World
from constrained.errors import GameError
from constrained.knowledge.pddl.model import Problem

MAX_THINGS = 5_000  # the largest game file of ALFWorld declares 363

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
    order = {name: place for place, name in enumerate(names.values())}
    site = dict(facts.get("receptacleAtLocation", []))
    starts = facts.get("atLocation", [])
    if not site or len(starts) != 1:
        raise GameError(
            f"the game has {len(site)} receptacles with a place and {len(starts)} agents with a place",
            hint="a household needs at least one receptacle and exactly one agent",
        )
    receptacles = tuple(sorted(site, key=order.__getitem__))
    contents: dict[str, set[str]] = {name: set() for name in receptacles}
    for thing, receptacle in facts.get("inReceptacle", []):
        contents.setdefault(receptacle, set()).add(thing)
    spots: dict[str, set[str]] = {}
    for thing, location in facts.get("objectAtLocation", []):
        spots.setdefault(thing, set()).add(location)
    inner: dict[str, list[str]] = {}
    for inside, outside in facts.get("inReceptacleObject", []):
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
        kinds=dict(facts.get("receptacleType", []) + facts.get("objectType", [])),
        fits=frozenset(facts.get("canContain", [])),
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
