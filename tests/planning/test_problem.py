"""Problems are read against their domain: what is not declared or not supported is refused at its place."""

import pytest

from constrained.errors import PddlError, UnreachableError
from constrained.planning import PlanningTask, read_domain, read_problem_of
from constrained.planning.model import ALWAYS, NEVER
from constrained.planning.reachable import require_reachable
from tests.planning.domains import FERRY

BEGIN = "(define (problem p) (:domain boat)\n (:objects n s - shore van - car)\n"
INIT = " (:init (boat-at n) (at van n) (no-car-aboard))\n"
GOAL = " (:goal (at van s)))"


@pytest.mark.parametrize(
    "text, line, column, message",
    [
        (BEGIN.replace("- car", "- ship") + INIT + GOAL, 2, 30, "no type 'ship'"),
        (BEGIN.replace("van", "n") + INIT + GOAL, 2, 24, "the object n is declared twice"),
        (BEGIN + INIT.replace("at van n", "at bus n") + GOAL, 3, 25, "no object 'bus'"),
        (BEGIN + INIT.replace("at van n", "near van n") + GOAL, 3, 22, "no predicate 'near'"),
        (BEGIN + INIT.replace("at van n", "at van") + GOAL, 3, 22, "'at' has 2 arguments, not 1"),
        (BEGIN + INIT.replace("at van n", "at s n") + GOAL, 3, 25, "s is of the type shore, where 'at' takes car"),
        (
            BEGIN + INIT + GOAL.replace("at van s", "at van van"),
            4,
            17,
            "van is of the type car, where 'at' takes shore",
        ),
        (BEGIN + INIT.replace("(at van n)", "(at 5 (at van n))") + GOAL, 3, 22, "timed initial literals"),
        (BEGIN + INIT.replace("(at van n)", "(at van n) (not (at van n))") + GOAL, 3, 33, "both holds and doesn't"),
        (BEGIN + INIT + GOAL.replace("at van s", "at van west"), 4, 17, "no object 'west'"),
        (BEGIN + INIT + GOAL.replace("at van s", "at ?x s"), 4, 13, r"variable \?x is not declared here"),
        (BEGIN + INIT + GOAL.replace("at van s", "> (cost) 3"), 4, 10, "numeric conditions are not supported"),
        (BEGIN + GOAL, 1, 2, r"has no \(:init"),
        (BEGIN + INIT + ")", 1, 2, r"has no \(:goal"),
        (BEGIN + INIT + " (:constraints (always (at van n)))\n" + GOAL, 4, 3, "constraints on trajectories"),
        (BEGIN + " (:requirements :fluents)\n" + INIT + GOAL, 3, 17, "the requirement :fluents is not supported"),
        (BEGIN.replace(":domain boat", ":domain ferry") + INIT + GOAL, 1, 30, "of the domain ferry, not of boat"),
        (BEGIN.replace(":domain boat", ":domain") + INIT + GOAL, 1, 22, r"\(:domain NAME\) has one name"),
        (BEGIN.replace(":domain boat", ":domain boat ferry") + INIT + GOAL, 1, 22, r"\(:domain NAME\) has one name"),
        (
            BEGIN.replace("van", "van - car van - shore bus") + INIT + GOAL,
            2,
            34,
            "van is declared twice, as car and as",
        ),
        (BEGIN.replace("van", "?van") + INIT + GOAL, 2, 24, r"\?van is a variable's name, and no object's"),
        (BEGIN + INIT + GOAL + ")", 4, 21, "the PDDL problem that begins on line 1 has a closing parenthesis too many"),
        (BEGIN + INIT + GOAL + "\n" + FERRY, 6, 1, "something follows the PDDL problem that begins on line 1"),
        (BEGIN + INIT + GOAL + " extra", 4, 22, "something follows the PDDL problem"),
        (BEGIN + INIT + INIT + GOAL, 4, 3, r"a second \(:init ...\)"),
        (FERRY, 2, 2, r"doesn't begin with \(define \(problem NAME\)"),
        (BEGIN + INIT + " (:goal (and " + "(and " * 100, 4, 0, "nests deeper than 60"),
    ],
)
def test_a_refusal_says_what_and_where(text, line, column, message):
    with pytest.raises(PddlError, match=message) as caught:
        read_problem_of(read_domain(FERRY), text, "some.pddl")
    assert caught.value.line == line and (not column or caught.value.column == column)
    assert str(caught.value).startswith(f"some.pddl:{line}:")


@pytest.mark.parametrize("requirement", [":fluents", ":durative-actions", ":derived-predicates", ":preferences"])
def test_a_domain_with_an_unsupported_requirement_is_refused(requirement):
    with pytest.raises(PddlError, match=rf"domain:3:\d+: the requirement {requirement} is not supported"):
        read_domain(FERRY.replace(":typing", requirement))


@pytest.mark.parametrize(
    "effect, message",
    [
        ("(increase (fuel) 1)", "numeric effects are not supported"),
        ("(decrease (total-cost) 1)", "numeric effects are not supported"),
        ("(increase (total-cost) inf)", "a cost is a finite number"),
        ("(increase (total-cost) (/ 1 0))", "it isn't computed"),
        ("(increase (total-cost) ())", "it isn't computed"),
        ("(increase (total-cost) -1)", "a cost is a finite number"),
    ],
)
def test_numeric_effects_are_refused_but_for_costs(effect, message):
    text = "(define (domain d) (:predicates (p)) (:action a :parameters () :effect (and (p) {})))"
    assert len(read_domain(text.format("(increase (total-cost) 2)")).actions[0].effects) == 1
    with pytest.raises(PddlError, match=message) as caught:
        read_domain(text.format(effect))
    assert caught.value.column and caught.value.column > 80


def test_names_know_no_case_and_keep_their_spelling():
    domain = read_domain(
        "(define (domain d) (:predicates (Über ?x)) (:action Gehe :parameters (?X) :effect (über ?x)))"
    )
    text = "(define (problem p) (:domain d) (:objects Äpfel) (:init) (:goal (ÜBER äpfel)))"
    task = PlanningTask(domain, read_problem_of(domain, text))
    [action] = task.applicable(task.initial)
    assert (task.spell(action.action), task.spell(action.arguments[0])) == ("Gehe", "Äpfel")
    assert task.reached_goal(task.apply(task.initial, action))


def test_an_object_that_the_domain_names_must_be_declared():
    domain = read_domain("(define (domain d) (:predicates (p ?x)) (:action a :parameters () :effect (p lamp)))")
    text = "(define (problem p) (:domain d) (:objects {}) (:init) (:goal (p lamp)))"
    assert PlanningTask(domain, read_problem_of(domain, text.format("lamp"))).objects == {"lamp": "object"}
    with pytest.raises(PddlError, match="the domain names the object lamp, which nothing declares"):
        read_problem_of(domain, text.format("desk"))


@pytest.mark.parametrize("more", ["van - car", "VAN - car", "van van - car n - shore"])
def test_an_object_may_be_declared_again_with_its_type(more):
    text = BEGIN.replace("van - car", f"van - car {more}") + INIT + GOAL
    assert set(read_problem_of(read_domain(FERRY), text).objects.values()) == {"shore", "car"}


@pytest.mark.parametrize("named", ["(:domain BOAT)", ""])
def test_the_domain_is_named_in_any_case_or_not_at_all(named):
    text = BEGIN.replace("(:domain boat)", named) + INIT + GOAL
    assert read_problem_of(read_domain(FERRY), text).name == "p"


@pytest.mark.parametrize(
    "goal", ["(and)", "()", "(and (and) (and))", "(or (and) (at van s))", "(forall (?c - car) (and))"]
)
def test_the_empty_goal_holds_at_once(goal):
    domain = read_domain(FERRY)
    task = PlanningTask(domain, read_problem_of(domain, BEGIN + INIT + f"(:goal {goal}))"))
    assert task.goal == ALWAYS and task.reached_goal(task.initial)


@pytest.mark.parametrize("goal", ["(or)", "(not (and))", "(and (at van n) (or))", "(exists (?c - car) (or))"])
def test_a_goal_without_a_way_to_hold_never_does(goal):
    domain = read_domain(FERRY)
    task = PlanningTask(domain, read_problem_of(domain, BEGIN + INIT + f"(:goal {goal}))"))
    assert task.goal == NEVER and not task.reached_goal(task.initial)
    with pytest.raises(UnreachableError, match="an empty .or. never holds"):
        require_reachable(task)
