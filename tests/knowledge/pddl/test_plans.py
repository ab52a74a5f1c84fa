"""The oracle: every plan that a brute-force simulator can execute, the imported knowledge admits."""

from dataclasses import dataclass

import pytest

from constrained.knowledge.pddl import import_pddl
from constrained.knowledge.pddl.state import State, everything, view
from tests.knowledge.pddl.domains import ALL
from tests.knowledge.pddl.simulator import Simulator

EXCLUDED = {
    "blocks": (932, 944), "gripper": (0, 590), "one hand": (0, 504), "ferry": (276, 506), "logistics": (0, 0),
    "pushing": (0, 8120), "office": (36, 172), "hotel": (110, 171), "rovers": (0, 0),
}  # fmt: skip
"""Impossible actions that order alone excludes, with the domain known or a problem: no fewer."""


@dataclass
class Counts:
    """What became of the ground actions at all points visited."""

    possible: int = 0
    forbidden: int = 0
    impossible: int = 0
    excluded: int = 0


def walk(imported, simulator, rebind: bool, nodes: int) -> Counts:
    """Follow executable paths breadth first; at each point hold every ground action against the knowledge."""
    counts = Counts()
    ground = simulator.ground()
    state = State(imported.domain, simulator.objects, simulator.start)
    knowledge = imported.knowledge().bind_view(everything(imported.file, state))
    queue = [(simulator.start, knowledge)]
    visited = 0
    while queue and visited < nodes:
        state, place = queue.pop(0)
        visited += 1
        if rebind:
            place = place.bind_view(view(imported.file, State(imported.domain, simulator.objects, state)))
        for text, action in ground:
            after = simulator.after(action, state)
            admitted = bool(place.judge(text))
            if after is None:
                counts.impossible += 1
                counts.excluded += not admitted
                continue
            counts.possible += 1
            counts.forbidden += not admitted
            if admitted and len(queue) < nodes:
                queue.append((after, place.after(text)))
    return counts


def imported_in_lower_case(domain, problem=None):
    return import_pddl(domain.lower(), problem=problem and problem.lower())


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("known", ["domain", "problem"])
def test_no_executable_plan_is_forbidden(name, known):
    domain, problem = ALL[name]
    imported = imported_in_lower_case(domain, problem if known == "problem" else None)
    counts = walk(imported, Simulator(domain, problem), rebind=False, nodes=60)
    assert counts.forbidden == 0 and counts.possible > 30
    assert counts.excluded >= EXCLUDED[name][known == "problem"]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("known", ["domain", "problem"])
def test_bound_to_the_state_at_every_step_it_forbids_nothing_possible_either(name, known):
    domain, problem = ALL[name]
    imported = imported_in_lower_case(domain, problem if known == "problem" else None)
    counts = walk(imported, Simulator(domain, problem), rebind=True, nodes=25)
    assert counts.forbidden == 0 and counts.possible > 30
