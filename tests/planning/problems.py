"""Planning problems of others: PlanBench's, and ALFWorld's games."""

from __future__ import annotations

from functools import cache

from benchmarks.planbench import masks
from tests.data import shared

PLANBENCH = "blocksworld mystery_blocksworld logistics obfuscated_randomized_logistics depots sokoban".split()


@cache
def planbench(name: str) -> tuple[str, list[str]]:
    """A domain's text, and its problems' texts."""
    shared("planbench/instances.tar.xz")
    return masks.planbench()[name]


def alfworld(count: int) -> tuple[str, list[str]]:
    """alfred.pddl, and the problems of some games of the seen validation split."""
    shared("alfworld/logic_2.1.1/alfred.pddl")
    shared("alfworld/games_2.1.1_valid_seen.tar.xz")
    return masks.alfred(count)
