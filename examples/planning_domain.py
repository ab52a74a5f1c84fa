"""A planning domain (PDDL) imported as action knowledge, and plans judged by it."""

from constrained.knowledge.pddl import import_pddl
from constrained.knowledge.pddl.state import State, view

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
    imported = import_pddl(DOMAIN, problem=PROBLEM)
    objects = {"kitchen": "room", "hall": "room", "red": "ball", "blue": "ball"}
    facts = [("robot-at", "kitchen"), ("at", "red", "kitchen"), ("at", "blue", "kitchen"), ("free",)]
    initial = State(imported.domain, objects, facts)
    knowledge = imported.knowledge().bind_view(view(imported.file, initial))
    print(knowledge.to_table(), end="\n\n")
    good = ["pick red kitchen", "move kitchen hall", "drop red hall", "move hall kitchen"]
    for plan in (good, ["pick red kitchen", "pick blue kitchen"], ["move hall kitchen"]):
        print(knowledge.check(plan), end="\n\n")
    return knowledge


if __name__ == "__main__":
    main()
