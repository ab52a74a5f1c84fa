"""Planning problems of others: PlanBench's, and ALFWorld's games."""

from __future__ import annotations

import json
import tarfile
from functools import cache

from tests.data import shared

PLANBENCH = "blocksworld mystery_blocksworld logistics obfuscated_randomized_logistics depots sokoban".split()
"""Those with instances; blocksworld_hard has blocksworld's domain."""


@cache
def planbench(name: str) -> tuple[str, dict[str, str]]:
    """A domain's text, and its problems' texts by file."""
    path = shared("planbench/instances.tar.xz")
    with tarfile.open(path) as archive:
        texts = {
            member.name.removeprefix(f"{name}/"): archive.extractfile(member).read().decode()
            for member in archive
            if member.isfile() and member.name.startswith(f"{name}/")
        }
    return texts.pop("domain.pddl"), texts


@cache
def alfworld(count: int) -> tuple[str, list[str]]:
    """alfred.pddl, and the problems of some games of the seen validation split."""
    domain = shared("alfworld/logic_2.1.1/alfred.pddl").read_text()
    problems = []
    with tarfile.open(shared("alfworld/games_2.1.1_valid_seen.tar.xz")) as archive:
        for member in archive:
            if member.isfile() and len(problems) < count:
                problems.append(json.load(archive.extractfile(member))["pddl_problem"])
    return domain, problems
