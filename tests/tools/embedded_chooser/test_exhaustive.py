"""All states of small problems: their distances to a goal are the lengths of shortest plans."""

import random
from dataclasses import replace

import pytest

from benchmarks.planbench.masks import planbench
from benchmarks.planbench.optimum import shortest_plan
from constrained.planning import PlanningTask, read_domain
from constrained.planning.model import Junction, Literal
from tests.data import shared
from tools.embedded_chooser.exhaustive import Space
from tools.embedded_chooser.problems import draw_goal, draw_small, problem


@pytest.mark.parametrize("name", ["blocksworld", "depots", "logistics"])
def test_distances_are_the_lengths_of_shortest_plans(name):
    shared("planbench/instances.tar.xz")
    domain, rng = read_domain(planbench()[name][0], name), random.Random(1)
    drawn = problem(draw_small(name, rng))
    space = Space(PlanningTask(domain, drawn), limit=3_000)
    assert space.complete and space.state(0) == space.task.initial
    goal = draw_goal(name, space.changing(rng.randrange(len(space.states))), rng)
    condition = Junction("and", tuple(Literal(fact[0], fact[1:], True) for fact in goal))
    plan = shortest_plan(PlanningTask(domain, replace(drawn, condition=condition)))
    assert plan is not None and space.distances(goal)[0] == len(plan)
