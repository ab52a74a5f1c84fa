"""What the network reads has no names in it: renamed objects, predicates and actions get the same scores.

All scores are those that play, without torch; one test holds them against the network that is trained.
"""

import random

import numpy as np
import pytest
import torch

from constrained.chooser.graphs import Encoder, FeatureVocabulary
from constrained.chooser.network import Network, collate, imitation_loss
from constrained.chooser.scorer import Scorer
from constrained.chooser.signature import signature
from constrained.chooser.weights import load_scorer, save_scorers
from constrained.errors import DataError
from constrained.planning import FactSet, GroundAction, PlanningTask, read_domain
from tests.planning_domains import BLOCKS, SUSSMAN, blocks_task, with_other_names


def walk(task: PlanningTask, steps: int, seed: int) -> FactSet:
    rng, state = random.Random(seed), task.initial
    for _ in range(steps):
        state = task.apply(state, rng.choice(task.applicable(state)))
    return state


def scores(scorer: Scorer, task: PlanningTask, state: FactSet) -> dict[GroundAction, float]:
    actions = task.applicable(state)
    return dict(zip(actions, scorer(Encoder(scorer.vocabulary, task).encode(state, actions)).tolist()))


@pytest.fixture(scope="module")
def network() -> Network:
    torch.manual_seed(0)
    return Network(FeatureVocabulary(read_domain(BLOCKS)), width=16).eval()


@pytest.fixture(scope="module")
def scorer(network) -> Scorer:
    return network.scorer()


def test_without_torch_the_scores_are_those_of_the_network_that_is_trained(network):
    # The facts of the second domain have one argument, so nothing is linked; the third's network is the shipped one.
    switches = """(define (domain switches) (:predicates (on ?x) (broken ?x))
        (:action press :parameters (?x) :precondition (not (broken ?x)) :effect (on ?x)))"""
    pressed = "(define (problem p) (:domain switches) (:objects a b c) (:init (on a) (broken c)) (:goal (and (on b))))"
    for task, trained in (
        (blocks_task(), network),
        (blocks_task(pressed, switches), Network(FeatureVocabulary(read_domain(switches)), width=16)),
        (blocks_task(), Network.of(load_scorer(read_domain(BLOCKS)))),
    ):
        for seed in range(5):
            state = walk(task, seed, seed)
            actions = task.applicable(state)
            batch = collate(trained.vocabulary, [Encoder(trained.vocabulary, task).encode(state, actions)])
            with torch.inference_mode():
                expected = dict(zip(actions, trained(batch).tolist()))
            assert scores(trained.scorer(), task, state) == pytest.approx(expected, abs=1e-5)


def test_renamed_objects_get_the_same_scores(scorer):
    renamed = SUSSMAN.replace("a b c)", "z y x)", 1)
    for name, other in (("(on c a)", "(on x z)"), ("(ontable a)", "(ontable z)"), ("(ontable b)", "(ontable y)"),
                        ("(clear c)", "(clear x)"), ("(clear b)", "(clear y)"), ("(on a b)", "(on z y)"),
                        ("(on b c)", "(on y x)")):  # fmt: skip
        renamed = renamed.replace(name, other)
    names = str.maketrans("abc", "zyx")
    for seed in range(5):
        one, other = blocks_task(), blocks_task(renamed)
        here = walk(one, seed, seed)
        there = FactSet((fact[0], *(name.translate(names) for name in fact[1:])) for fact in here)
        expected = {
            GroundAction(a.action, tuple(n.translate(names) for n in a.arguments)): score
            for a, score in scores(scorer, one, here).items()
        }
        assert scores(scorer, other, there) == pytest.approx(expected, abs=1e-5)


def test_renamed_predicates_and_actions_get_the_same_scores(scorer, tmp_path):
    save_scorers(tmp_path / "w.safetensors", [scorer])
    mystery = blocks_task(with_other_names(SUSSMAN), with_other_names(BLOCKS))
    again = load_scorer(mystery.domain, tmp_path / "w.safetensors")
    assert again is not None
    found = scores(again, mystery, mystery.initial)
    expected = scores(scorer, blocks_task(), blocks_task().initial)
    assert {a.arguments: s for a, s in found.items()} == pytest.approx({a.arguments: s for a, s in expected.items()})
    assert {a.action for a in found} == {"feast", "attack"}


def test_the_order_of_a_domains_parts_does_not_matter():
    actions = BLOCKS.split("  (:action ")
    turned = actions[0] + "".join(f"  (:action {part}" for part in [actions[3], actions[4].rstrip()[:-1], actions[2]])
    turned += f"  (:action {actions[1]})"
    assert signature(read_domain(turned)).key == signature(read_domain(BLOCKS)).key


def test_declarations_that_no_action_mentions_do_not_matter(tmp_path, scorer):
    declared = "(:constants a z) (:predicates (unused ?x) (never)"
    wider = blocks_task(SUSSMAN, BLOCKS.replace("(:predicates", declared))
    save_scorers(tmp_path / "w.safetensors", [scorer])
    again = load_scorer(wider.domain, tmp_path / "w.safetensors")
    assert again is not None and len(scores(again, wider, wider.initial)) == 2


def test_another_domain_has_another_signature(tmp_path, scorer):
    other = read_domain(BLOCKS.replace("(on ?x ?y) (not (clear ?y))", "(on ?x ?y)"))
    assert signature(other).key != signature(read_domain(BLOCKS)).key
    save_scorers(tmp_path / "w.safetensors", [scorer])
    assert load_scorer(other, tmp_path / "w.safetensors") is None


def test_a_batch_gives_what_each_state_gives_alone(network, scorer):
    tasks = [
        blocks_task(),
        blocks_task(SUSSMAN.replace("a b c)", "a b c d e)").replace("(clear b)", "(clear b) (clear d)")),
    ]
    states = [walk(tasks[0], 3, 1), tasks[1].initial]
    examples = [
        Encoder(network.vocabulary, task).encode(state, task.applicable(state)) for task, state in zip(tasks, states)
    ]
    with torch.inference_mode():
        both = network(collate(network.vocabulary, examples), 10).tolist()
    alone = [score for task, state in zip(tasks, states) for score in scores(scorer, task, state).values()]
    assert both == pytest.approx(alone, abs=1e-5)


def test_the_loss_is_that_of_choosing_any_good_action(network):
    task = blocks_task()
    actions = task.applicable(task.initial)
    batch = collate(network.vocabulary, [Encoder(network.vocabulary, task).encode(task.initial, actions)])
    values = torch.tensor([1.0, 2.0])
    assert len(actions) == 2
    chosen = torch.softmax(values, 0)
    good = torch.from_numpy(np.array([True, False]))
    assert imitation_loss(values, batch, good).item() == pytest.approx(-chosen[0].log().item(), abs=1e-5)
    assert imitation_loss(values, batch, ~good | good).item() == pytest.approx(0, abs=1e-5)


def test_a_file_that_holds_no_weights_is_an_error(tmp_path):
    path = tmp_path / "w.safetensors"
    with pytest.raises(DataError, match="no file"):
        load_scorer(read_domain(BLOCKS), path)
    path.write_bytes(b"no weights")
    with pytest.raises(DataError, match="can't read"):
        load_scorer(read_domain(BLOCKS), path)
