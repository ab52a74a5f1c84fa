"""What is applicable, and what follows: against a simulator that tries everything."""

import random
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.planbench import masks
from benchmarks.planbench.simulator import Simulator
from constrained.errors import PddlError
from constrained.knowledge.pddl import import_pddl
from constrained.planning import FactSet, GroundAction, PlanningTask, read_domain, read_problem_of
from constrained.planning import query as query_module
from constrained.planning.model import Junction, Literal, Parameter, Quantified
from constrained.planning.query import Objects, Query
from tests.planning.domains import ALL, OFFICE, OFFICE_PROBLEM
from tests.planning.problems import PLANBENCH, alfworld, planbench


def compare(domain: str, problem: str, steps: int, seed: int = 0) -> int:
    """Walk at random; in every state, masks, facts, goal and the simulator must agree; returns how many actions."""
    counts = masks.compare(domain, problem, steps, seed)
    assert not any(counts[kind] for kind in masks.WRONG), counts
    return counts["actions"]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("seed", range(3))
def test_small_domains(name, seed):
    assert compare(*ALL[name], steps=25, seed=seed) > 10


@pytest.mark.parametrize("name", PLANBENCH)
def test_planbench(name):
    domain, problems = planbench(name)
    chosen = random.Random(name).sample(problems, 3)
    assert sum(compare(domain, problem, steps=6, seed=i) for i, problem in enumerate(chosen)) > 10


def test_alfworld():
    domain, problems = alfworld(2)
    assert all(compare(domain, problem, steps=3) > 50 for problem in problems)


def test_differences_are_counted(monkeypatch):
    class Other(Simulator):
        def applicable(self, state):
            found = super().applicable(state)
            return {"jump": found.pop(min(found)), **found}

        def holds(self, f, bound, state):
            return f == self.goal or super().holds(f, bound, state)

    monkeypatch.setattr(masks, "Simulator", Other)
    counts = masks.compare(*ALL["ferry"], 1)
    assert [counts[kind] for kind in masks.WRONG] == [1, 1, 0, 1] and counts["states"] == 1


def task_of(domain: str, problem: str) -> PlanningTask:
    read = read_domain(domain)
    return PlanningTask(read, read_problem_of(read, problem))


OBJECTS = {"object": ["a", "b", "c"], "t": ["a", "b"], "none": []}
TYPES = st.sampled_from(["object", "t", "t", "none"])


def conditions(scope: tuple[str, ...], depth: int) -> st.SearchStrategy:
    terms = st.sampled_from([*scope, "a", "c"])
    literals = st.one_of(
        st.builds(Literal, st.just("p"), st.tuples(terms), st.booleans()),
        st.builds(Literal, st.sampled_from(["q", "="]), st.tuples(terms, terms), st.booleans()),
    )
    if not depth:
        return literals
    inner, name = conditions(scope, depth - 1), f"?v{depth}"
    parts = st.lists(inner, max_size=3).map(tuple)
    quantified = st.builds(
        Quantified,
        st.sampled_from(["some", "every"]),
        st.tuples(st.builds(Parameter, st.just(name), TYPES)),
        conditions((*scope, name), depth - 1),
    )
    return st.one_of(literals, st.builds(Junction, st.sampled_from(["and", "or"]), parts), quantified)


def holds(condition, values, facts) -> bool:
    match condition:
        case Literal(predicate, terms, positive):
            ground = tuple(values.get(t, t) for t in terms)
            return (ground[0] == ground[1] if predicate == "=" else (predicate, *ground) in facts) == positive
        case Junction(operator, parts):
            return (all if operator == "and" else any)([holds(p, values, facts) for p in parts])
        case Quantified(quantifier, (variable,), part):
            each = [holds(part, {**values, variable.name: o}, facts) for o in OBJECTS[variable.type]]
            return any(each) if quantifier == "some" else all(each)


FACTS = st.sets(
    st.one_of(
        st.tuples(st.just("p"), st.sampled_from("abc")),
        st.tuples(st.just("q"), st.sampled_from("abc"), st.sampled_from("abc")),
    )
)


@settings(max_examples=300, deadline=None)
@given(conditions(("?x", "?y"), 3), TYPES, TYPES, FACTS)
def test_any_condition_has_the_answers_that_trying_everything_finds(condition, first, second, facts):
    query = Query(Objects(OBJECTS, {}), (Parameter("?x", first), Parameter("?y", second)), condition)
    every = product(OBJECTS[first], OBJECTS[second])
    expected = {(x, y) for x, y in every if holds(condition, {"?x": x, "?y": y}, facts)}
    state = FactSet(facts)
    assert query.answers(state) == expected
    assert all(
        query.holds(state, values) == (values in expected) for values in product(OBJECTS[first], OBJECTS[second])
    )


def test_an_effect_that_adds_wins_over_one_that_deletes():
    domain = (
        "(define (domain d) (:predicates (p ?x)) (:action a :parameters (?x ?y) :effect (and (not (p ?x)) (p ?y))))"
    )
    task = task_of(domain, "(define (problem q) (:domain d) (:objects o u) (:init (p o)) (:goal (p o)))")
    assert ("p", "o") in task.apply(task.initial, GroundAction("a", ("o", "o")))
    assert ("p", "o") not in task.apply(task.initial, GroundAction("a", ("o", "u")))


def test_a_variable_of_an_effect_hides_those_around_it():
    domain = """(define (domain d) (:types t u) (:predicates (p ?x) (q ?x ?y) (r ?x)) (:action go :parameters (?x - t)
        :precondition (p ?x) :effect (and (r ?x) (forall (?x - u) (when (r ?x) (forall (?x ?y - t) (q ?x ?y)))))))"""
    problem = "(define (problem d) (:domain d) (:objects a b - t c - u) (:init (p a) (r c)) (:goal (p b)))"
    simulator, task = Simulator(domain, problem), task_of(domain, problem)
    (action,) = task.applicable(task.initial)
    after = simulator.after(simulator.applicable(simulator.start)["go a"], simulator.start)
    assert set(task.apply(task.initial, action)) == after
    assert set(import_pddl(domain).knowledge().for_problem(problem).after("go a").facts.state) == after


def test_what_is_missing_is_named():
    task = task_of(OFFICE, OFFICE_PROBLEM)
    action = GroundAction("study", ("letter", "bill"))
    missing = task.unmet(task.initial, action)
    assert Literal("lamp-on", ()) in missing and len(missing) == 3
    assert not task.is_applicable(task.initial, action)
    assert task.unmet_goal(task.initial) == [Literal("read", ("letter",))]


@pytest.mark.parametrize(
    "action, message",
    [
        (GroundAction("fly", ()), "the actions are go, pack"),
        (GroundAction("go", ("me",)), "go has 2 arguments, not 1"),
        (GroundAction("go", ("me", "moon")), "there is no moon"),
        (GroundAction("go", ("me", "mug")), "mug is not of the type room"),
    ],
)
def test_an_action_that_does_not_fit_is_refused(action, message):
    task = task_of(OFFICE, OFFICE_PROBLEM)
    assert not task.is_applicable(task.initial, action)
    for call in (task.apply, task.unmet):
        with pytest.raises(PddlError, match=message):
            call(task.initial, action)


def test_too_many_cases_are_a_named_limit(monkeypatch):
    monkeypatch.setattr(query_module, "MAX_EXAMINED", 50)
    domain = "(define (domain d) (:predicates (p ?x)) (:action a :parameters (?x ?y) :precondition (not (p ?x))))"
    objects = " ".join(f"o{i}" for i in range(10))
    task = task_of(domain, f"(define (problem q) (:domain d) (:objects {objects}) (:init) (:goal (p o1)))")
    with pytest.raises(PddlError, match="more than 50 cases"):
        task.applicable(task.initial)


def test_a_state_keeps_what_did_not_change_and_equals_one_made_anew():
    state = FactSet([("p", "a"), ("q", "a", "b"), ("q", "b", "b")])
    assert sorted(state.table("q").where(2, "b")) == [("q", "a", "b"), ("q", "b", "b")]
    after = state.changed(deleted=[("q", "a", "b"), ("p", "x")], added=[("q", "c", "c")])
    assert after.table("p") is state.table("p")
    assert sorted(after.table("q").where(2, "b")) == [("q", "b", "b")] and len(after) == 3
    assert after == FactSet([("p", "a"), ("q", "b", "b"), ("q", "c", "c")]) and len({after, FactSet(after)}) == 1
    assert after.difference(state) == {("q", "c", "c")}
    assert state.changed(deleted=[("p", "a")]).tables.keys() == {"q"}
