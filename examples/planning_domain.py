"""A planning domain (PDDL) imported as action knowledge, and plans judged by it."""

from constrained import generate_plan
from constrained.environments.pddl import PddlEnvironment

DOMAIN = """
(define (domain gripper)
  (:requirements :typing)
  (:types room ball)
  (:predicates (robot-at ?r - room) (at ?b - ball ?r - room) (carry ?b - ball) (free))
  (:action move :parameters (?from ?to - room)
    :precondition (robot-at ?from)
    :effect (and (robot-at ?to) (not (robot-at ?from))))
  (:action pick :parameters (?b - ball ?r - room)
    :precondition (and (at ?b ?r) (robot-at ?r) (free))
    :effect (and (carry ?b) (not (at ?b ?r)) (not (free))))
  (:action drop :parameters (?b - ball ?r - room)
    :precondition (and (carry ?b) (robot-at ?r))
    :effect (and (at ?b ?r) (free) (not (carry ?b)))))
"""

PROBLEM = """
(define (problem two-balls) (:domain gripper)
  (:objects kitchen hall - room red blue - ball)
  (:init (robot-at kitchen) (at red kitchen) (at blue kitchen) (free))
  (:goal (and (at red hall) (at blue hall))))
"""


def main():
    environment = PddlEnvironment(DOMAIN, PROBLEM)
    knowledge = environment.knowledge
    print(knowledge.to_table(), end="\n\n")
    good = ["pick red kitchen", "move kitchen hall", "drop red hall", "move hall kitchen"]
    for plan in (good, ["pick red kitchen", "pick blue kitchen"], ["move hall kitchen"]):
        print(knowledge.check(plan), end="\n\n")
    whole = generate_plan(environment.task, knowledge, strategy="act", max_steps=20)  # nothing is executed
    print(whole.path, whole.success, whole.note)
    return knowledge


if __name__ == "__main__":
    main()
