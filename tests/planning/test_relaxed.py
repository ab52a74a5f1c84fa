"""Delete relaxation against brute force: nothing that still leads to the goal is ever taken for a dead end."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained.errors import PddlError
from constrained.planning import Domain, FactSet, PlanningTask, Problem, grounding
from constrained.planning.model import ALWAYS, Action, Effect, Junction, Literal, Parameter, Quantified
from constrained.planning.relaxed import Relaxed
from tests.planning.small import LOGISTICS, PROBLEMS, distances, task_of


def check(task: PlanningTask, limit: int = 400) -> int:
    """Hold the relaxation against brute force in every state; returns the number of states that are dead ends."""
    relaxed = Relaxed(task)
    steps, states = distances(task, limit)
    for state in states:
        bound = relaxed.distance(state)
        actions = task.applicable(state)
        kept = relaxed.without_dead_ends(state, actions)
        assert relaxed.dead_end(state) == (bound is None) == (relaxed.plan(state) is None)
        if state not in steps:
            continue
        assert bound is not None and bound <= steps[state]
        for action in actions:
            assert action in kept or task.apply(state, action) not in steps
        if steps[state]:
            assert any(steps.get(task.apply(state, action)) == steps[state] - 1 for action in kept)
            plan = relaxed.plan(state)
            assert plan is not None and plan.helpful <= set(actions) and plan.helpful
    return sum(relaxed.dead_end(state) for state in states)


@pytest.mark.parametrize("name", PROBLEMS)
def test_no_way_to_the_goal_is_cut_off(name):
    ends = check(task_of(*PROBLEMS[name]))
    assert (ends > 0) == (name in ("a road of one way", "a corner", "sokoban"))


# any domain

OBJECTS = {"a": "k", "b": "k", "c": "object"}
PREDICATES = {"p": 1, "q": 2, "r": 0}


def literals(scope: tuple[str, ...]) -> st.SearchStrategy:
    def terms(name: str) -> st.SearchStrategy:
        return st.tuples(*[st.sampled_from([*scope, "a", "b"])] * PREDICATES[name])

    plain = st.sampled_from(list(PREDICATES)).flatmap(lambda p: st.builds(Literal, st.just(p), terms(p), st.booleans()))
    equal = st.builds(Literal, st.just("="), st.tuples(st.sampled_from([*scope, "a"]), st.just("b")), st.booleans())
    return st.one_of(plain, plain, plain, equal)


def conditions(scope: tuple[str, ...], depth: int) -> st.SearchStrategy:
    if not depth:
        return literals(scope)
    new, inner = f"?v{depth}", conditions(scope, depth - 1)
    parts = st.lists(inner, min_size=1, max_size=3).map(tuple)
    variables = st.sampled_from([(Parameter(new, "k"),), (Parameter(new, "object"),)])
    quantified = st.builds(
        Quantified, st.sampled_from(["some", "every"]), variables, conditions((*scope, new), depth - 1)
    )
    return st.one_of(inner, st.builds(Junction, st.sampled_from(["and", "or"]), parts), quantified)


def effects() -> st.SearchStrategy:
    def made(variables, literal, condition) -> Effect:
        return Effect(literal, variables, condition)

    plain = st.builds(Effect, literals(("?x", "?y")).filter(lambda lit: lit.predicate != "="))
    scope = ("?x", "?y", "?z")
    each = st.builds(
        made, st.just((Parameter("?z", "object"),)), literals(scope).filter(lambda lit: lit.predicate != "="),
        conditions(scope, 1),
    )  # fmt: skip
    when = st.builds(
        made, st.just(()), literals(("?x",)).filter(lambda lit: lit.predicate != "="), conditions(("?y",), 1)
    )
    return st.lists(st.one_of(plain, plain, each, when), min_size=1, max_size=3).map(tuple)


PARAMETERS = (Parameter("?x", "k"), Parameter("?y", "object"))
ACTIONS = st.lists(
    st.tuples(st.one_of(st.just(ALWAYS), conditions(("?x", "?y"), 2)), effects()), min_size=1, max_size=3
)
FACTS = [(name, *objects) for name, arity in PREDICATES.items() for objects in product(OBJECTS, repeat=arity)]


@st.composite
def tasks(draw) -> PlanningTask:
    actions = [Action(f"act{i}", PARAMETERS, pre, eff) for i, (pre, eff) in enumerate(draw(ACTIONS))]
    predicates = {name: tuple(Parameter(f"?{i}", "object") for i in range(arity)) for name, arity in PREDICATES.items()}
    domain = Domain("any", {"k": "object"}, {}, predicates, actions)
    facts = draw(st.lists(st.sampled_from(FACTS), unique=True, max_size=5))
    return PlanningTask(domain, Problem(OBJECTS, tuple(facts), condition=draw(conditions((), 2))))


@settings(max_examples=40, deadline=None)
@given(task=tasks())
def test_no_way_to_the_goal_is_cut_off_in_any_domain(task):
    check(task, limit=60)


def naive(task: PlanningTask, state: FactSet) -> int | None:
    """The layer in which the goal holds, if each fact may be true and false at once as soon as it was either."""
    true, false = set(state), set(FACTS) - set(state)

    def holds(condition, values) -> bool:
        match condition:
            case Literal("=", terms, positive):
                one, other = (values.get(t, t) for t in terms)
                return (one == other) == positive
            case Literal(predicate, terms, positive):
                return (predicate, *(values.get(t, t) for t in terms)) in (true if positive else false)
            case Junction(operator, parts):
                return (all if operator == "and" else any)(holds(part, values) for part in parts)
            case Quantified(quantifier, variables, part):
                each = (holds(part, {**values, **more}) for more in assignments(variables))
                return any(each) if quantifier == "some" else all(each)

    def assignments(variables):
        for objects in product(*(task.of_type(v.type) for v in variables)):
            yield {v.name: name for v, name in zip(variables, objects)}

    layer = 0
    while not holds(task.goal, {}):
        new = [
            ((effect.literal.predicate, *({**values, **more}.get(t, t) for t in effect.literal.terms)), effect)
            for action in task.domain.actions
            for values in assignments(action.parameters)
            if holds(action.precondition, values)
            for effect in action.effects
            for more in assignments(effect.variables)
            if holds(effect.condition, {**values, **more})
        ]
        before = len(true), len(false)
        true |= {fact for fact, effect in new if effect.literal.positive}
        false |= {fact for fact, effect in new if not effect.literal.positive}
        if (len(true), len(false)) == before:
            return None
        layer += 1
    return layer


def test_a_fact_that_no_action_changes_can_be_missing():
    """An observation can rule it out."""
    goal = Literal("p", ("a",), True)
    action = Action("act", (), Literal("r", (), False), (Effect(goal, (), ALWAYS),))
    domain = Domain("any", {}, {}, {"p": (Parameter("?x", "object"),), "r": ()}, [action])
    task = PlanningTask(domain, Problem({"a": "object"}, (("r",),), condition=goal))
    relaxed = Relaxed(task)
    assert relaxed.dead_end(task.initial) and relaxed.distance(FactSet()) == 1


@settings(max_examples=40, deadline=None)
@given(task=tasks(), others=st.lists(st.lists(st.sampled_from(FACTS), unique=True), max_size=3))
def test_nothing_but_deletes_is_left_out(task, others):
    relaxed = Relaxed(task)
    for state in (task.initial, *map(FactSet, others)):
        assert relaxed.distance(state) == naive(task, state)


@settings(max_examples=30, deadline=None)
@given(task=tasks(), possible=st.sets(st.sampled_from(FACTS), max_size=4))
def test_what_is_unknown_is_assumed_possible(task, possible):
    relaxed, known = Relaxed(task), task.initial
    best = min(
        (d for more in product((False, True), repeat=len(possible))
         if (d := naive(task, known.changed(added=[f for f, yes in zip(sorted(possible), more) if yes]))) is not None),
        default=None,
    )  # fmt: skip
    bound = relaxed.distance(known, possible)
    assert best is None or (bound is not None and bound <= best)


def test_all_equally_cheap_ways_are_helpful():
    task = task_of(LOGISTICS, "(define (problem p) (:domain trucks) (:objects t - truck a - parcel x y z - place) "
                   "(:init (at t x) (road x y) (road x z)) (:goal (in a t)))")  # fmt: skip
    relaxed = Relaxed(task)
    assert relaxed.dead_end(task.initial) and relaxed.helpful(task.initial) == frozenset()
    plan = relaxed.plan(task.initial, {("at", "a", "y"), ("at", "a", "z")})
    assert plan is not None and {action.arguments[2] for action in plan.helpful} == {"y", "z"}


def test_too_many_actions_are_a_named_limit(monkeypatch):
    monkeypatch.setattr(grounding, "MAX_OPERATORS", 10)
    task = task_of(*PROBLEMS["blocks"])
    with pytest.raises(PddlError, match="more than 10 ground actions"):
        Relaxed.of(task)
    monkeypatch.delattr(grounding.Grounding, "__init__")  # it isn't tried again
    with pytest.raises(PddlError, match="more than 10 ground actions"):
        Relaxed.of(task)
