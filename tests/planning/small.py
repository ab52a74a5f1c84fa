"""Small problems of three domains, whose states can all be tried."""

from itertools import pairwise, product
from random import Random

from constrained.planning import FactSet, PlanningTask, read_domain, read_problem_of

BLOCKS = """(define (domain blocks) (:requirements :strips)
(:predicates (clear ?x) (table ?x) (free) (held ?x) (on ?x ?y))
(:action up :parameters (?b) :precondition (and (clear ?b) (table ?b) (free))
  :effect (and (held ?b) (not (clear ?b)) (not (table ?b)) (not (free))))
(:action down :parameters (?b) :precondition (held ?b)
  :effect (and (clear ?b) (free) (table ?b) (not (held ?b))))
(:action stack :parameters (?b ?c) :precondition (and (clear ?c) (held ?b))
  :effect (and (free) (clear ?b) (on ?b ?c) (not (clear ?c)) (not (held ?b))))
(:action unstack :parameters (?b ?c) :precondition (and (on ?b ?c) (clear ?b) (free))
  :effect (and (held ?b) (clear ?c) (not (on ?b ?c)) (not (clear ?b)) (not (free)))))"""

LOGISTICS = """(define (domain trucks) (:requirements :typing) (:types truck parcel - thing place)
(:predicates (at ?t - thing ?p - place) (in ?p - parcel ?t - truck) (road ?p ?q - place))
(:action load :parameters (?p - parcel ?t - truck ?l - place) :precondition (and (at ?t ?l) (at ?p ?l))
  :effect (and (in ?p ?t) (not (at ?p ?l))))
(:action unload :parameters (?p - parcel ?t - truck ?l - place) :precondition (and (at ?t ?l) (in ?p ?t))
  :effect (and (at ?p ?l) (not (in ?p ?t))))
(:action drive :parameters (?t - truck ?l ?m - place) :precondition (and (at ?t ?l) (road ?l ?m))
  :effect (and (at ?t ?m) (not (at ?t ?l)))))"""

SOKOBAN = """(define (domain sokoban) (:requirements :typing) (:types cell way)
(:predicates (next ?a ?b - cell ?w - way) (you ?a - cell) (box ?a - cell) (clear ?a - cell))
(:action walk :parameters (?a ?b - cell ?w - way) :precondition (and (you ?a) (next ?a ?b ?w) (clear ?b))
  :effect (and (you ?b) (not (you ?a)) (clear ?a) (not (clear ?b))))
(:action push :parameters (?a ?b ?c - cell ?w - way)
  :precondition (and (you ?a) (box ?b) (next ?a ?b ?w) (next ?b ?c ?w) (clear ?c))
  :effect (and (you ?b) (box ?c) (clear ?a) (not (you ?a)) (not (box ?b)) (not (clear ?c)))))"""


def room(*rows: str) -> str:
    """A problem of sokoban: `@` you, `$` a box, `.` where a box is wanted, `#` a wall."""
    cells = {(x, y): sign for y, row in enumerate(rows) for x, sign in enumerate(row) if sign != "#"}
    name = {cell: f"c{cell[0]}{cell[1]}" for cell in cells}
    facts = [f"({'you' if sign == '@' else 'box' if sign == '$' else 'clear'} {name[c]})" for c, sign in cells.items()]
    for (x, y), (way, dx, dy) in product(cells, [("e", 1, 0), ("w", -1, 0), ("s", 0, 1), ("n", 0, -1)]):
        if (x + dx, y + dy) in cells:
            facts.append(f"(next {name[x, y]} {name[x + dx, y + dy]} {way})")
    goal = " ".join(f"(box {name[cell]})" for cell, sign in cells.items() if sign == ".")
    return (
        f"(define (problem p) (:domain sokoban) (:objects {' '.join(name.values())} - cell e w s n - way) "
        f"(:init {' '.join(facts)}) (:goal (and {goal})))"
    )


PROBLEMS = {
    "blocks": (BLOCKS, "(define (problem p) (:domain blocks) (:objects a b c d) (:init (free) (table a) (on b a) "
               "(on c b) (clear c) (table d) (clear d)) (:goal (and (on a b) (on b c) (on c d))))"),
    "logistics": (LOGISTICS, "(define (problem p) (:domain trucks) (:objects t - truck a b - parcel x y z - place) "
                  "(:init (at t x) (at a y) (at b x) (road x y) (road y z) (road z x)) "
                  "(:goal (and (at a z) (at b z))))"),
    "a road of one way": (LOGISTICS, "(define (problem p) (:domain trucks) (:objects t - truck a b - parcel x y z - "
                          "place) (:init (at t x) (at a x) (at b x) (road x y) (road y x) (road y z)) "
                          "(:goal (and (at a z) (at b z))))"),
    "sokoban": (SOKOBAN, room("#  ##", "@$  .", "# $  ", "##.##")),
    "a corner": (SOKOBAN, room("   ", "@$ ", "  .")),
}  # fmt: skip


def task_of(domain: str, problem: str) -> PlanningTask:
    read = read_domain(domain)
    return PlanningTask(read, read_problem_of(read, problem))


def distances(task: PlanningTask, limit: int) -> tuple[dict[FactSet, int], list[FactSet]]:
    """The steps to the goal from each state that reaches it, and all states, by trying everything."""
    states, parents = [task.initial], {task.initial: []}
    for state in states:
        for action in task.applicable(state):
            after = task.apply(state, action)
            if after not in parents:
                parents[after] = []
                states.append(after)
            parents[after].append(state)
        if len(states) > limit:
            break
    known = len(states) <= limit
    found = {state: 0 for state in states if task.reached_goal(state)}
    work = list(found)
    for state in work:
        for parent in parents[state]:
            if parent not in found:
                found[parent] = found[state] + 1
                work.append(parent)
    return found, states if known else [state for state in states if state in found]


def drawn(domain: str, dice: Random) -> tuple[str, str]:
    """A domain of PROBLEMS, and a small problem of it that was drawn; its goal may be out of reach."""
    if domain == "sokoban":
        cells = list("@$.##           ")
        dice.shuffle(cells)
        return SOKOBAN, room(*("".join(cells[4 * row : 4 * row + 4]) for row in range(4)))
    if domain == "logistics":
        places = ["x", "y", "z", "u"]
        roads = dice.sample([(one, other) for one in places for other in places if one != other], 5)
        at = " ".join(f"(at {thing} {dice.choice(places)})" for thing in ("t", "a", "b"))
        goal = " ".join(f"(at {thing} {dice.choice(places)})" for thing in ("a", "b"))
        ways = " ".join(f"(road {one} {other})" for one, other in roads)
        return LOGISTICS, (
            "(define (problem p) (:domain trucks) (:objects t - truck a b - parcel x y z u - place) "
            f"(:init {at} {ways}) (:goal (and {goal})))"
        )
    towers, goal = _towers(dice), _towers(dice)
    clear = " ".join(f"(clear {tower[-1]})" for tower in towers)
    table = " ".join(f"(table {tower[0]})" for tower in towers)
    return BLOCKS, (
        f"(define (problem p) (:domain blocks) (:objects a b c d) (:init (free) {clear} {table} {_on(towers)}) "
        f"(:goal (and (free) {_on(goal)})))"
    )


def _towers(dice: Random) -> list[list[str]]:
    towers: list[list[str]] = []
    for block in dice.sample("abcd", 4):
        chosen = dice.choice([*towers, []])
        chosen.append(block)
        towers += [chosen] if len(chosen) == 1 else []
    return towers


def _on(towers: list[list[str]]) -> str:
    return " ".join(f"(on {upper} {lower})" for tower in towers for lower, upper in pairwise(tower))
