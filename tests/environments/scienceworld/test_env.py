"""A science task as an environment."""

import gc

import pytest

from constrained import ActionKnowledge
from constrained.agents.demonstrations import check_demonstration
from constrained.environments.scienceworld import ScienceWorldEnv
from constrained.environments.scienceworld import simulator as simulators
from constrained.environments.scienceworld.env import EXAMPLE_STEPS
from constrained.errors import GameError
from tests.environments.protocols import is_suite_environment

pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture
def env():
    env = ScienceWorldEnv("find-non-living-thing")
    yield env
    env.close()


def test_the_first_observation_holds_the_task_and_the_room(env):
    assert is_suite_environment(env)
    first = env.reset()
    assert env.task.startswith("Your task is to find a(n) non-living thing.")
    assert first.startswith(env.task) and "This room is called the " in first


def test_the_gold_actions_solve_the_task(env):
    gold = env._simulator.gold("find-non-living-thing")
    env.reset()
    rewards = []
    for action in gold:
        assert not env.done
        _, reward, done = env.step(action)
        assert env.had_effect
        rewards.append(reward)
    assert done and sum(rewards) == pytest.approx(1.0) and env.outcome() == {"success": 1.0, "score": 1.0}
    with pytest.raises(GameError, match="find-non-living-thing/0 is over"):
        env.step("look around")
    env.reset()
    assert env.outcome() == {"success": 0.0, "score": 0.0} and not env.done


def test_focusing_on_the_wrong_thing_fails_the_task_and_scores_nothing():
    env = ScienceWorldEnv("lifespan-longest-lived")
    env.reset()
    _, reward, done = env.step("focus on agent")
    assert done and reward == -1.0 and env.outcome() == {"success": 0.0, "score": 0.0}
    env.close()


def test_a_name_of_several_things_is_asked_about_and_the_answers_are_numbers(env):
    env.reset()
    answer, _, _ = env.step("look at door")
    assert answer.startswith("Ambiguous request") and env.had_effect
    choices = env.view()["NUMBER"]
    assert (
        [slot for slot, values in env.view().items() if values] == ["NUMBER"]
        and choices == [str(n) for n in range(len(choices))]
        and len(choices) > 1
    )
    answer, _, _ = env.step(choices[-1])
    assert "door" in answer and env.had_effect and not env.view()["NUMBER"]


@pytest.mark.parametrize("action", ["", "frobnicate", "open cupboardx", "go to moon", "7", "\U0001f600", "x" * 100_000])
def test_what_the_simulator_does_not_know_has_no_effect(env, action):
    env.reset()
    room = env.step("look around")[0]
    env.step(action)
    assert not env.had_effect
    assert env.step("look around")[0] == room


def test_a_task_goes_the_same_way_in_a_new_process_and_in_a_used_one(simulator, gold):
    """The order of the answers to a question is the first thing to differ where it doesn't."""
    actions = gold("grow-fruit")[:40]

    def play(one):
        one.load("grow-fruit")
        return [one.step(action) for action in actions]

    new = simulators.Simulator()
    course = play(new)
    new.close()
    assert any(observation.startswith("Ambiguous request") for observation, _, _ in course)
    assert play(simulator) == course == play(simulator)


def test_looking_at_what_is_there_does_not_change_the_game(simulator, gold):
    actions = gold("grow-fruit")[:40]

    def play(look):
        simulator.load("grow-fruit")
        return [(look and simulator.scene()) and None or simulator.step(action) for action in actions]

    assert play(True) == play(False)


def test_a_closed_environment_leaves_its_process_to_the_next(env):
    env.reset()
    process = env._simulator.process
    env.close()
    env.close()
    with pytest.raises(GameError, match="was closed"):
        env.step("look around")
    with pytest.raises(GameError, match="was closed"):
        env.view()
    assert process.usable
    other = ScienceWorldEnv("find-plant")
    assert other._simulator.process is process
    del other
    gc.collect()
    assert simulators.borrow().process is process
    assert process.usable
    process.close()
    assert env.reset().startswith(env.task)


@pytest.mark.parametrize(
    "which, message",
    [
        (("boiling", 0), "has no task 'boiling'"),
        (("boil", 30), "boil has no variation 30\n  hint: it has 0 to 29"),
        (("boil", -1), "boil has no variation -1"),
    ],
)
def test_a_task_that_is_not_there(which, message):
    with pytest.raises(GameError, match=message):
        ScienceWorldEnv(*which)


def test_simplifications():
    with pytest.raises(GameError, match="easier"):
        ScienceWorldEnv("boil", simplifications="easier")
    env = ScienceWorldEnv("boil", simplifications="openDoors")
    assert "that is open" in env.reset()
    env.close()


def test_examples_are_training_variations_as_the_package_solves_them(env):
    examples = env.demonstrations(2)
    knowledge = ActionKnowledge.from_lark("scienceworld")
    assert len(examples) == 2 and len({example.task for example in examples} | {env.task}) == 3
    for example in examples:
        assert example.first_observation.startswith(example.task) and len(example.steps) <= EXAMPLE_STEPS
        check_demonstration(example, knowledge)
    assert env.demonstrations(1) == examples[:1]


def test_tasks_that_take_many_actions_have_no_examples():
    env = ScienceWorldEnv("boil")
    assert env.demonstrations(2) == []
    env.close()
