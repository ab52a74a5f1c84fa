"""A goal that can't be reached is refused with its place, and with the fact that nothing makes true."""

from dataclasses import replace

import pytest

from constrained.errors import PddlError
from constrained.planning import PlanningTask, reachable, read_domain, read_problem_of
from constrained.planning.reachable import require_reachable, unreachable
from tests.planning.domains import FERRY, FERRY_PROBLEM

DOOR = """(define (domain door) (:requirements :adl)
  (:predicates (at ?r) (open ?r) (shut ?r) (key ?r) (held) (wet ?r))
  (:action enter :parameters (?r) :precondition (open ?r) :effect (at ?r))
  (:action unlock :parameters (?r) :precondition (and (held) (not (shut ?r))) :effect (open ?r))
  (:action take :parameters () :precondition (exists (?r) (and (key ?r) (at ?r) (forall (?q) (not (wet ?q)))))
    :effect (held)))"""
PROBLEM = "(define (problem p) (:domain door) (:objects hall cellar) (:init {}) (:goal {}))"


def task(init: str, goal: str) -> PlanningTask:
    domain = read_domain(DOOR)
    return PlanningTask(domain, read_problem_of(domain, PROBLEM.format(init, goal)))


@pytest.mark.parametrize(
    "init, goal, reason",
    [
        ("(at hall) (key hall)", "(at cellar)", ""),
        ("(at hall) (key hall)", "(key cellar)", "nothing makes key cellar true"),
        ("(at hall) (key hall) (shut cellar)", "(open cellar)",
         "nothing makes shut cellar false, which unlock needs for open cellar"),
        ("(at hall) (key hall) (wet hall)", "(held)", "nothing makes wet hall false, which take needs for held"),
        ("(at hall)", "(at cellar)", "nothing makes key hall true, which take needs for held, which unlock needs for "
         "open cellar, which enter needs for at cellar"),
        ("(key cellar)", "(at hall)",
         "nothing makes held true that doesn't need it first, which unlock needs for open hall, which enter needs for "
         "at hall"),
    ],
)  # fmt: skip
def test_the_reason_goes_back_to_the_fact_that_nothing_makes_true(init, goal, reason):
    assert unreachable(task(init, goal)) == reason


def test_parts_of_a_goal_that_can_be_reached_are_not_named():
    assert unreachable(task("(at hall) (key hall) (shut cellar)", "(and (held) (at hall) (open cellar))")) == (
        "nothing makes shut cellar false, which unlock needs for open cellar"
    )


def test_a_condition_without_a_single_fact_is_named_whole():
    assert unreachable(task("(at hall)", "(or (key hall) (key cellar))")) == (
        "nothing makes key hall or key cellar true"
    )


def test_the_place_is_that_of_the_goal():
    domain = read_domain(FERRY)
    require_reachable(PlanningTask(domain, read_problem_of(domain, FERRY_PROBLEM)))
    text = FERRY_PROBLEM.replace("(boat-at north)", "")
    with pytest.raises(PddlError, match=r"^cross.pddl:3:\d+: the goal can't be reached: nothing makes ") as caught:
        require_reachable(PlanningTask(domain, read_problem_of(domain, text, "cross.pddl")))
    assert caught.value.hint


def test_a_problem_without_a_goal_is_no_error():
    without = task("(at hall)", "(at hall)")
    require_reachable(PlanningTask(without.domain, replace(without.problem, condition=None)))


def test_a_large_task_is_not_searched_before_it_is_played(monkeypatch):
    small = task("(at hall) (key hall)", "(at cellar)")
    searched = []
    monkeypatch.setattr(reachable, "find_plan", lambda *given: searched.append(given[2]) or (None, True))
    assert unreachable(small, 500) == "" and searched == [500]
    monkeypatch.setattr(reachable, "SEARCH_WORK", 10)
    assert unreachable(small, 500) == "" and searched == [500]
