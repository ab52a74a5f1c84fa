"""The chooser and the search solve problems under masks, in other words too, and say what they can't do."""

import itertools
import random

import numpy as np
import pytest

from constrained import generate_plan
from constrained.agents.surroundings import Surroundings
from constrained.chooser import chooser as chooser_module
from constrained.chooser.chooser import GraphChooser, SearchChooser
from constrained.chooser.graphs import Encoder, FeatureVocabulary
from constrained.chooser.weights import EMBEDDED, read_weights
from constrained.decoding.choosers import Choice
from constrained.environments.pddl import PddlEnvironment
from constrained.errors import DataError, ModelError
from constrained.models import load_roles
from constrained.planning import FactSet
from constrained.planning.planner import SearchLimits
from constrained.planning.plans import judge_plan
from tests.planning_domains import BLOCKS, SUSSMAN, blocks_task, with_other_names

OTHER_WORDS = (with_other_names(BLOCKS), with_other_names(SUSSMAN))


def played(domain: str, problem: str, model, **options):
    environment = PddlEnvironment(domain, problem)
    return generate_plan(
        environment.task, environment.knowledge, environment=environment, strategy="act", model=model, **options
    )


def tower(blocks: int, seed: int) -> str:
    """A problem with so many blocks, all on the table, and a tower to build."""
    names = [f"b{n}" for n in range(blocks)]
    random.Random(seed).shuffle(names)
    facts = " ".join(f"(ontable {name}) (clear {name})" for name in names)
    goal = " ".join(f"(on {a} {b})" for a, b in itertools.pairwise(names))
    return (
        f"(define (problem tower) (:domain blocks) (:objects {' '.join(sorted(names))})"
        f" (:init (handempty) {facts}) (:goal (and {goal})))"
    )


@pytest.mark.parametrize(("domain", "problem"), [(BLOCKS, SUSSMAN), OTHER_WORDS, (BLOCKS, tower(12, 3))])
@pytest.mark.parametrize("model", ["chooser", "search"])
def test_the_goal_is_reached_at_level_state_and_a_validator_agrees(model, domain, problem):
    plan = played(domain, problem, model, max_steps=60)
    assert plan.success
    assert judge_plan(blocks_task(problem, domain), [step.action for step in plan.steps]).solved


def test_a_plan_in_other_words_is_the_same_plan():
    one, other = (played(*texts, "chooser") for texts in ((BLOCKS, SUSSMAN), OTHER_WORDS))
    assert [step.action.split()[1:] for step in one.steps] == [step.action.split()[1:] for step in other.steps]


def test_the_search_serves_a_domain_that_nothing_was_trained_for():
    problem = "(define (problem p) (:domain drive) (:objects a b c d e f) (:init (at a) (free c d)) (:goal (at f)))"
    domain = """(define (domain drive) (:predicates (at ?x) (free ?x ?y))
      (:action go :parameters (?x ?y) :precondition (at ?x) :effect (and (at ?y) (not (at ?x)))))"""
    assert played(domain, problem, "search").success


def test_a_domain_without_weights_is_an_error():
    domain = "(define (domain d) (:predicates (p ?x)) (:action a :parameters (?x) :precondition () :effect (p ?x)))"
    problem = "(define (problem p) (:domain d) (:objects x y) (:init) (:goal (p x)))"
    with pytest.raises(ModelError, match="no weights for a domain"):
        played(domain, problem, "chooser")


def test_a_choice_without_facts_is_an_error():
    for chooser in (GraphChooser(), SearchChooser()):
        with pytest.raises(ModelError, match="chooses by facts"):
            chooser.choose(Choice("task", ("a", "b")))


def test_a_search_that_passes_its_limit_says_so(monkeypatch):
    monkeypatch.setattr(chooser_module, "MAX_AHEAD", 0)
    monkeypatch.setattr(chooser_module, "AHEAD", 0)
    with pytest.raises(ModelError, match="the search gave up: no plan was found among the first 2 states"):
        played(BLOCKS, tower(6, 1), chooser_module.SearchChooser(limits=SearchLimits(states=2)))


def test_a_path_that_was_recorded_is_remembered_as_one_that_was_chosen():
    """A resumed run replays actions without asking; the next choice must be what it would have been."""
    plan = played(BLOCKS, tower(6, 1), "chooser", max_steps=30)
    actions = [step.action for step in plan.steps]
    for done in range(len(actions)):
        environment = PddlEnvironment(BLOCKS, tower(6, 1))
        world = Surroundings(environment)
        world.reset()
        for action in actions[:done]:
            world.step(action)
        facts = environment.facts_now()
        choice = Choice("", tuple(facts.actions), path=tuple(actions[:done]), facts=facts, been=world.history.tried)
        assert GraphChooser().choose(choice) == actions[done]


def test_a_sampling_chooser_draws_with_the_choices_random_numbers():
    chooser = GraphChooser()
    environment = PddlEnvironment(BLOCKS, tower(6, 1))
    environment.reset()
    facts = environment.facts_now()

    def drawn(seed: int) -> str:
        return chooser.choose(
            Choice("", tuple(facts.actions), facts=facts, temperature=50.0, random=random.Random(seed))
        )

    assert [drawn(seed) for seed in range(8)] == [drawn(seed) for seed in range(8)]
    assert len({drawn(seed) for seed in range(40)}) > 2


def test_the_weights_that_ship_are_small_and_have_planbenchs_domains():
    assert EMBEDDED.stat().st_size < 10_000_000
    assert len(read_weights(EMBEDDED)) >= 3


def test_a_file_of_weights_is_a_model(tmp_path):
    path = tmp_path / "mine.safetensors"
    path.write_bytes(EMBEDDED.read_bytes())
    assert load_roles(path)["policy"].name == "mine"
    with pytest.raises(DataError, match="no file"):
        load_roles(tmp_path / "none.safetensors")


def test_the_network_reads_facts_in_the_same_order_in_every_run():
    task = PddlEnvironment(BLOCKS, tower(30, 1)).facts.task
    encoder = Encoder(FeatureVocabulary(task.domain), task)
    shuffled = [FactSet(random.Random(seed).sample(sorted(task.initial), len(task.initial))) for seed in range(8)]
    links = [encoder.encode(state, task.applicable(state)).links.tolist() for state in shuffled]
    assert all(one == links[0] for one in links)


def test_a_large_goal_is_given_more_actions_before_a_search(monkeypatch):
    monkeypatch.setattr(chooser_module, "MAX_AHEAD", 0)
    monkeypatch.setattr(chooser_module, "search_plan", lambda *_: pytest.fail("searched"))
    environment = PddlEnvironment(BLOCKS, tower(6, 1))
    assert generate_plan(environment.task, environment=environment, strategy="act").success


def test_a_path_of_the_network_that_wanders_is_a_plan_without_superfluous_actions(monkeypatch):
    domain = """(define (domain lights) (:predicates (lit ?x) (dark ?x))
      (:action light :parameters (?x) :precondition (dark ?x) :effect (and (lit ?x) (not (dark ?x)))))"""
    problem = """(define (problem p) (:domain lights) (:objects a b c d e f)
      (:init (dark a) (dark b) (dark c) (dark d) (dark e) (dark f)) (:goal (and (lit c) (lit f))))"""
    monkeypatch.setattr(GraphChooser, "_scorer", lambda self, domain: object())
    monkeypatch.setattr(GraphChooser, "scores", lambda self, task, state, actions: -np.arange(len(actions)))
    plan = played(domain, problem, "search")
    assert plan.success and [step.action for step in plan.steps] == ["light c", "light f"]
