"""Any number of tasks in a planning domain: walk at random, and take some facts of the walk's end as the goal.

Every task can be solved, because the walk solves it. A walk begins at the initial state of one of the given problems,
whose goals aren't read.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from constrained.environments.pddl import PddlEnvironment
from constrained.environments.suite import Suite, Task
from constrained.errors import TrainingError
from constrained.knowledge import ActionKnowledge
from constrained.planning import Domain, Fact, FactSet, PlanningTask
from constrained.planning.model import Junction, Literal, Problem
from constrained.planning.writer import PddlText

Key = tuple[frozenset[Fact], frozenset[Fact]]
"""The identity of a task: its initial facts and its goal."""

_TRIES = 200
"""Walks that are tried for one task before the problems count as too small."""


def walk_problem(domain: Domain, problems: Sequence[Problem], longest: int, seed: str) -> Problem:
    """Make a problem from a random walk.

    Parameters
    ----------
    problems : sequence of Problem
        One of them gives the objects and the state in which the walk begins.
    longest : int
        Most actions from that state to the new problem's start, and again from there to its goal.

    Raises
    ------
    TrainingError
        No walk changes a fact.
    """
    rng = random.Random(seed)
    for _ in range(_TRIES):
        # Two walks: one to a new start, and from there one to the end, some of whose facts become the goal.
        problem = rng.choice(problems)
        task = PlanningTask(domain, problem)
        start = _walk(task, task.initial, rng.randint(0, longest), rng)
        end = _walk(task, start, rng.randint(1, longest), rng)
        facts = sorted(fact for fact in end if fact[0] in domain.fluents)
        new = sorted(end.difference(start))
        if not new:
            continue
        # At least one fact that the walk made true, so that the goal doesn't hold at the start.
        goal = {rng.choice(new), *rng.sample(facts, min(len(facts), rng.randint(0, len(new))))}
        return replace(
            problem,
            objects={name.lower(): kind.lower() for name, kind in problem.objects.items()},
            init=tuple(sorted(start)),
            condition=Junction("and", tuple(Literal(fact[0], fact[1:]) for fact in sorted(goal))),
        )
    raise TrainingError("random walks from these problems change nothing", "give problems whose actions can be done")


def _walk(task: PlanningTask, state: FactSet, steps: int, rng: random.Random) -> FactSet:
    for _ in range(steps):
        actions = task.applicable(state)
        if not actions:
            break
        state = task.apply(state, rng.choice(actions))
    return state


def walk_suite(
    knowledge: ActionKnowledge,
    problems: Sequence[Problem],
    name: str,
    number: int,
    *,
    longest: int = 20,
    max_steps: int = 30,
    other_than: Collection[Key] = (),
) -> Suite:
    """Make a suite of tasks by random walks, with its name as the seed.

    Parameters
    ----------
    knowledge : ActionKnowledge
        The knowledge of the domain.
    name : str
        The suite's name; its tasks are called "NAME 1" and so on.
    number : int
        Number of tasks.
    longest : int
        Most actions of a walk.
    max_steps : int
        Most actions of a player.
    other_than : collection of tuple
        The keys (see `key`) of tasks to leave out: those of a test.

    Raises
    ------
    TrainingError
        Not enough different tasks are found.
    """
    assert knowledge.world is not None
    domain, tasks, taken = knowledge.world.domain, [], set(other_than)
    for seed in range(1, number * _TRIES):
        problem = walk_problem(domain, problems, longest, f"{name} {seed}")
        if key(problem) not in taken:
            taken.add(key(problem))
            text = PddlText(PlanningTask(domain, problem)).problem
            make = partial(PddlEnvironment, None, text, knowledge=knowledge)
            tasks.append(Task(f"{name} {seed}", "walk", make))
        if len(tasks) == number:
            return Suite(name, knowledge.name, tasks, max_steps)
    raise TrainingError(
        f"random walks make {len(tasks)} different tasks of these problems, not {number}",
        "give more or larger problems, longer walks, or ask for fewer tasks",
    )


def key(problem: Problem) -> Key:
    """The identity of a task."""
    # A goal of one fact is read as that fact alone.
    goal = problem.condition.parts if isinstance(problem.condition, Junction) else (problem.condition,)
    return frozenset(problem.init), frozenset((p.predicate, *p.terms) for p in goal if isinstance(p, Literal))


def walk_problem_of(task: Task) -> Problem:
    """The problem of a task that `walk_suite` made."""
    environment = task.make()
    assert isinstance(environment, PddlEnvironment)
    return environment.facts.task.problem
