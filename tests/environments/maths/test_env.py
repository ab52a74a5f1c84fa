"""A word problem: what computes, what is the answer, and that nothing which is written does harm."""

from fractions import Fraction

import pytest

from constrained import ActionKnowledge
from constrained.agents.demonstrations import check_demonstration
from constrained.environments.maths.env import MathsEnv, gsm8k
from constrained.environments.maths.problems import GSM8K, is_held_out, load_gsm8k
from constrained.errors import GameError
from tests.data import shared
from tests.environments.protocols import is_suite_environment

QUESTION = "Half of 48 friends bought two clips each. How many clips?"


@pytest.fixture
def env():
    return MathsEnv(QUESTION, Fraction(48))


def test_it_is_a_text_environment(env):
    assert is_suite_environment(env) and env.reset() == env.task == QUESTION


def test_one_computes_step_by_step_and_finishes(env):
    assert env.step("Calculator[48 / 2]") == ("R1 = 24", 0.0, False)
    assert env.step("Calculator[R1 * 2]") == ("R2 = 48", 0.0, False)
    assert env.step("Finish[48]") == ("Answer is CORRECT", 1.0, True)
    assert env.outcome() == {"success": 1.0}
    with pytest.raises(GameError, match="has been given"):
        env.step("Finish[48]")
    env.reset()
    assert env.outcome() == {"success": 0.0} and env.answer == ""


def test_a_given_answer_counts_and_not_the_last_result(env):
    env.step("Calculator[24 * 2]")
    assert env.step("Finish[2]") == ("Answer is INCORRECT", 0.0, True)
    assert env.outcome() == {"success": 0.0}


def test_lumos_actions_end_with_their_last_result(env):
    for action in ("R1 = Define(x)", "R2 = SetEquation(x / 2 = 24)", "R3 = SolveEquation(R2)"):
        observation, _, done = env.step(action)
        assert env.had_effect and not done
    assert observation == env.answer == "48" and env.outcome() == {"success": 1.0}


@pytest.mark.parametrize("action", [
    "Calculator[1 / 0]", "Calculator[R7]", "Calculator[9 ** 9 ** 9 ** 9]", "Calculator[x]", "R2 = Calculator(R1)",
    "R1 = Calculator(2", "R1 = Code(print(1))", "__import__('os').system('true')", "", "Finish", "\x00\ud7ff🦆",
    "(" * 9000, "Calculator[]",
])  # fmt: skip
def test_what_cant_be_computed_is_answered_with_the_reason(env, action):
    observation, reward, done = env.step(action)
    assert observation.startswith("Error: ") and not (env.had_effect or reward or done)
    assert len(observation) < 500 and env.view() == MathsEnv(QUESTION).view()
    assert env.step("Calculator[6 * 8]")[0] == "R1 = 48"


def test_results_are_bound_as_they_come(env):
    knowledge = ActionKnowledge.from_lark("word_problems").bind_view(env.view())
    assert not knowledge.judge("Calculator[R1 + 1]")
    for n in range(1, 11):
        env.step(f"Calculator[{n}]")
    knowledge = knowledge.after("Calculator[1]").bind_view(env.view())
    assert knowledge.judge("Calculator[R1 + R10]") and knowledge.judge("Finish[-3.5]")
    assert not knowledge.judge("Calculator[R11]") and not knowledge.judge("Finish[R1]")
    assert env.step("Calculator[R10 - R1]")[0] == "R11 = 9"


def test_without_an_answer_nothing_is_right():
    env = MathsEnv(QUESTION)
    assert env.step("Finish[48]")[1] == 0.0 and env.outcome() == {"success": 0.0}


def test_worked_examples_are_other_training_problems_and_win_as_they_are_written(env):
    shared(GSM8K)
    problems = {problem.question: problem for problem in load_gsm8k()}
    knowledge = ActionKnowledge.from_lark("word_problems")
    examples = env.demonstrations(8)
    assert len(examples) == 8 and env.demonstrations(2) == examples[:2]
    for example in examples:
        problem = problems[example.task]
        assert not is_held_out(problem)
        check_demonstration(example, knowledge)
        played = MathsEnv(problem.question, problem.answer)
        assert [played.step(step.action)[0] for step in example.steps] == [step.observation for step in example.steps]
        assert played.outcome() == {"success": 1.0}
    assert any("R1" in step.action for example in examples for step in example.steps)


def test_a_training_problem_is_not_its_own_example():
    shared(GSM8K)
    for task in gsm8k(split="train", limit=12).tasks:
        env = task.make()
        assert env.task not in [example.task for example in env.demonstrations(8)]


def test_without_the_data_there_are_no_examples(env, tmp_path, monkeypatch):
    monkeypatch.setenv("CONSTRAINED_DATA", str(tmp_path))
    assert env.demonstrations(2) == []
