"""Suites as Lumos plays them: in its own action spaces (section 4.1), within the released limits."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from benchmarks.lumos.questions import GroundedQuestion
from constrained.environments.suite import Suite, Task

STRATEGIES = ("lumos", "lumos_onetime")
"""Strategies that play a suite in Lumos's own action space, if it has one."""

MOST_SUBGOALS = {"gsm8k": 8, "svamp": 2, "strategyqa": 5, "hotpotqa": 5, "mind2web": 15, "webshop": 5}
"""Subgoals after which the released agents stop planning, by dataset."""

MATHS = ("gsm8k", "svamp")
QUESTIONS = ("hotpotqa", "strategyqa")

ACTIONS = 4
"""Actions for each subgoal that a plan may have, on average: equations take as many."""


def grounded(suite: Suite) -> Suite:
    """`suite` in the action space that Lumos has for it; unchanged if it has none."""
    family = _family(suite)
    most = MOST_SUBGOALS.get(family, 0) * ACTIONS
    if family in MATHS:
        return replace(suite, knowledge="lumos/maths", max_steps=most)
    if family in QUESTIONS:
        tasks = [Task(task.name, task.kind, partial(GroundedQuestion, task.make)) for task in suite.tasks]
        return replace(suite, knowledge="lumos/qa", max_steps=most, tasks=tasks)
    return suite


def most_subgoals(suite: Suite) -> int | None:
    """Subgoals after which the released agents stop planning; None if none is known."""
    return MOST_SUBGOALS.get(_family(suite))


def _family(suite: Suite) -> str:
    return suite.name.partition("/")[0]
