"""Small problems of PlanBench's domains, drawn at random: not its instances, nor drawn from them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from constrained.planning import Fact
from constrained.planning.model import Problem

Drawn = tuple[dict[str, str], set[Fact]]
"""Objects with their types, and facts."""


def blocksworld(blocks: int, rng: random.Random) -> Drawn:
    """Towers of blocks."""
    names = [f"b{n}" for n in range(blocks)]
    rng.shuffle(names)
    facts: set[Fact] = {("handempty",)}
    tops: list[str] = []
    for name in names:
        place = rng.randint(0, len(tops))
        facts.add(("on", name, tops[place]) if place < len(tops) else ("ontable", name))
        tops[place : place + 1] = [name]
    return dict.fromkeys(names, "object"), facts | {("clear", name) for name in tops}


def logistics(cities: int, places: int, planes: int, packages: int, rng: random.Random) -> Drawn:
    """Cities with an airport and a truck each."""
    facts: set[Fact] = set()
    locations = []
    for city in range(cities):
        here = [f"l{city}-{n}" for n in range(places)]
        facts |= {("city", f"c{city}"), ("truck", f"t{city}"), ("airport", here[0])}
        facts |= {("at", f"t{city}", rng.choice(here))}
        facts |= {fact for name in here for fact in (("location", name), ("in-city", name, f"c{city}"))}
        locations += here
    for n in range(planes):
        facts |= {("airplane", f"a{n}"), ("at", f"a{n}", f"l{rng.randrange(cities)}-0")}
    for n in range(packages):
        facts |= {("obj", f"p{n}"), ("at", f"p{n}", rng.choice(locations))}
    return dict.fromkeys(sorted({name for fact in facts for name in fact[1:]}), "object"), facts


def depots(places: int, trucks: int, pallets: int, crates: int, rng: random.Random) -> Drawn:
    """Places with a hoist each, and crates in stacks."""
    objects: dict[str, str] = {}
    facts: set[Fact] = set()
    depot_count = rng.randint(1, max(1, places - 1))
    for n in range(places):
        objects |= {f"p{n}": "depot" if n < depot_count else "distributor", f"h{n}": "hoist"}
        facts |= {("at", f"h{n}", f"p{n}"), ("available", f"h{n}")}
    for n in range(trucks):
        objects[f"t{n}"] = "truck"
        facts.add(("at", f"t{n}", f"p{rng.randrange(places)}"))
    stacks = []
    for n in range(max(pallets, places)):
        objects[f"b{n}"] = "pallet"
        where = f"p{n if n < places else rng.randrange(places)}"
        facts.add(("at", f"b{n}", where))
        stacks.append((f"b{n}", where))
    for n in range(crates):
        objects[f"c{n}"] = "crate"
        at = rng.randrange(len(stacks))
        below, where = stacks[at]
        facts |= {("on", f"c{n}", below), ("at", f"c{n}", where)}
        stacks[at] = f"c{n}", where
    return objects, facts | {("clear", top) for top, _ in stacks}


def sokoban(size: int, boxes: int, walls: int, rng: random.Random) -> Drawn:
    """A square floor with walls; boxes not at its edge."""
    cells = {(r, c): f"f{r}-{c}f" for r in range(size) for c in range(size)}
    facts: set[Fact] = set()
    for (r, c), name in cells.items():
        for dr, dc, way in ((0, 1, "right"), (1, 0, "down"), (0, -1, "left"), (-1, 0, "up")):
            if (r + dr, c + dc) in cells:
                facts.add(("adjacent", name, cells[r + dr, c + dc], way))
    inside = [(r, c) for r, c in cells if 0 < r < size - 1 and 0 < c < size - 1]
    full = dict(zip(rng.sample(inside, boxes), (f"box{n}" for n in range(boxes))))
    free = [cell for cell in cells if cell not in full]
    closed = set(rng.sample(free, walls))
    robot = rng.choice([cell for cell in free if cell not in closed])
    facts |= {("at", name, cells[cell]) for cell, name in full.items()}
    facts |= {("clear", name) for cell, name in cells.items() if cell not in closed and cell not in full}
    facts.add(("at-robot", cells[robot]))
    objects = dict.fromkeys(("up", "down", "left", "right"), "dir") | dict.fromkeys(full.values(), "box")
    return objects | dict.fromkeys(cells.values(), "loc"), facts


SIZES: dict[str, tuple[Callable[..., Drawn], list[tuple[int, ...]]]] = {
    "blocksworld": (blocksworld, [(3,), (4,), (5,), (5,), (6,)]),
    "logistics": (
        logistics,
        [(2, 2, 1, 1), (2, 2, 1, 2), (3, 2, 1, 2), (2, 3, 1, 2), (2, 2, 2, 2), (3, 1, 1, 2), (3, 2, 2, 1), (1, 3, 1, 2),
         (2, 2, 1, 3)],
    ),
    "depots": (
        depots,
        [(2, 1, 2, 2), (2, 2, 2, 2), (3, 1, 3, 2), (3, 2, 3, 2), (2, 1, 3, 2), (2, 1, 2, 3), (3, 1, 3, 1), (1, 1, 3, 3),
         (4, 2, 4, 1)],
    ),
    "sokoban": (sokoban, [(4, 1, 0), (5, 1, 1), (5, 1, 3), (6, 1, 3), (4, 2, 0), (5, 2, 1)]),
}  # fmt: skip
"""Domain -> what draws its problems, and the sizes that all states are searched of."""

_WANTED = {"blocksworld": ("on",), "logistics": ("at",), "depots": ("on",), "sokoban": ("at",)}
"""Predicates that problems of a domain usually ask for."""


def draw_small(domain: str, rng: random.Random) -> Drawn:
    """A problem whose states can all be searched."""
    draw, sizes = SIZES[domain]
    return draw(*rng.choice(sizes), rng)


def draw_goal(domain: str, facts: Iterable[Fact], rng: random.Random) -> list[Fact]:
    """Some facts of a state: mostly of the kind that the domain's problems ask for, else any that change."""
    usual = sorted(f for f in facts if f[0] in _WANTED[domain] and (domain != "logistics" or f[1][0] == "p"))
    among = sorted(facts) if rng.random() < 0.15 or not usual else usual
    return rng.sample(among, len(among) if rng.random() < 0.5 else rng.randint(1, len(among)))


def problem(drawn: Drawn) -> Problem:
    """The drawn problem, without a goal."""
    objects, facts = drawn
    return Problem(objects, tuple(sorted(facts)))
