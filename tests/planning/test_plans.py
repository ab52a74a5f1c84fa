"""Written plans are judged as a validator does: the first action that fails, or what is missing at the end."""

import pytest

from constrained.planning import GroundAction
from constrained.planning.model import Literal
from constrained.planning.plans import judge_plan, read_action
from tests.planning_domains import blocks_task

SOLUTION = "(unstack c a)\n(put-down c)\n(pick-up b)\n(stack b c)\n(pick-up a)\n(stack a b)".splitlines()


def test_a_plan_that_works_is_solved():
    verdict = judge_plan(blocks_task(), SOLUTION)
    assert (verdict.outcome, verdict.solved, verdict.steps) == ("executed", True, 6)


def test_the_first_action_that_fails_is_named_with_the_conditions_that_were_missing():
    verdict = judge_plan(blocks_task(), ["(unstack c a)", "(stack c a)", "(pick-up a)", "(put-down a)"])
    assert (verdict.outcome, verdict.solved, verdict.steps, verdict.action) == ("inapplicable", False, 2, "(pick-up a)")
    assert verdict.missing == (Literal("clear", ("a",)),)


def test_a_plan_that_stops_short_misses_goal_facts():
    verdict = judge_plan(blocks_task(), SOLUTION[:4])
    assert (verdict.outcome, verdict.solved) == ("executed", False)
    assert verdict.missing == (Literal("on", ("a", "b")),)


@pytest.mark.parametrize("line", ["(fly a)", "(stack a)", "(stack a z)", "(no plan possible)", "stack (a b)", "()"])
def test_what_is_no_action_of_the_task_is_unknown(line):
    verdict = judge_plan(blocks_task(), [line, *SOLUTION])
    assert (verdict.outcome, verdict.steps, verdict.action) == ("unknown", 0, line)
    assert verdict.reason


def test_case_comments_and_empty_lines_do_not_matter():
    written = ["; a plan", "", *(line.upper() + " ; step" for line in SOLUTION)]
    assert judge_plan(blocks_task(), written).solved


def test_an_action_is_read_with_and_without_parentheses():
    assert read_action(" (Stack a  b) ") == read_action("stack a b") == GroundAction("stack", ("a", "b"))
