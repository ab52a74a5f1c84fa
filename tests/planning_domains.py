"""A planning domain that tests share, and the same in other words."""

from __future__ import annotations

from constrained.planning import PlanningTask, read_domain, read_problem_of

BLOCKS = """
(define (domain blocks) (:requirements :strips)
  (:predicates (clear ?x) (ontable ?x) (handempty) (holding ?x) (on ?x ?y))
  (:action pick-up :parameters (?x)
    :precondition (and (clear ?x) (ontable ?x) (handempty))
    :effect (and (holding ?x) (not (clear ?x)) (not (ontable ?x)) (not (handempty))))
  (:action put-down :parameters (?x)
    :precondition (holding ?x)
    :effect (and (clear ?x) (handempty) (ontable ?x) (not (holding ?x))))
  (:action stack :parameters (?x ?y)
    :precondition (and (clear ?y) (holding ?x))
    :effect (and (handempty) (clear ?x) (on ?x ?y) (not (clear ?y)) (not (holding ?x))))
  (:action unstack :parameters (?x ?y)
    :precondition (and (on ?x ?y) (clear ?x) (handempty))
    :effect (and (holding ?x) (clear ?y) (not (on ?x ?y)) (not (clear ?x)) (not (handempty)))))
"""

SUSSMAN = """
(define (problem sussman) (:domain blocks) (:objects a b c)
  (:init (handempty) (ontable a) (ontable b) (on c a) (clear c) (clear b))
  (:goal (and (on a b) (on b c))))
"""

OTHER_NAMES = {
    "pick-up": "attack", "put-down": "succumb", "unstack": "feast", "stack": "overcome", "clear": "province",
    "ontable": "planet", "handempty": "harmony", "holding": "pain", "(on ": "(craves ",
}  # fmt: skip
"""The words of BLOCKS -> others, as in "mystery" blocksworld."""


def with_other_names(text: str) -> str:
    """A text of BLOCKS, in other words."""
    for name, other in OTHER_NAMES.items():
        text = text.replace(name, other)
    return text


def blocks_task(problem: str = SUSSMAN, domain: str = BLOCKS) -> PlanningTask:
    """The task of a problem."""
    read = read_domain(domain)
    return PlanningTask(read, read_problem_of(read, problem))
