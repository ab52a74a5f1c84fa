"""Strategies played with known answers: what is learned is what the agents ask, and what fails is no example."""

import re
from fractions import Fraction

import pytest

from benchmarks.lumos.dataset import demonstrate
from constrained import ActionKnowledge
from constrained.agents.episode import Episode
from constrained.agents.plan import Plan
from constrained.agents.scheduler import Rollout
from constrained.agents.settings import Settings
from constrained.environments.maths.env import MathsEnv
from constrained.models import load
from tests.agents.scripted import answer_with
from tools.embedded_model.pretraining import Recipe, make_model
from tools.embedded_model.tokenizer import train_tokenizer

QUESTION = "Half of 48 friends bought two clips each. How many clips?"
ITERATIVE = (
    "Subgoal 1: Halve 48.", "R1 = Calculator(48 / 2)", "No, I will keep planning. Subgoal 2: Double it.",
    "R2 = Calculator(R1 * 2)", "Yes, I will stop planning.",
)  # fmt: skip
ONETIME = ("Subgoal 1: Halve 48.; Subgoal 2: Double it.", "R1 = Calculator(48 / 2); R2 = Calculator(R1 * 2)")
ANSWERS = {
    ("lumos", "react", "lumos/maths_given"): ITERATIVE,
    ("lumos_onetime", "react", "lumos/maths_given"): ONETIME,
    ("cot", "cot", "word_problems"): (" 48 / 2 = 24. 24 * 2 = 48.\nAction: Finish[48]",),
    ("cot", "act", "word_problems"): (" Finish[48]",),
}


@pytest.fixture(scope="module")
def model():
    sizes = Recipe(hidden=16, layers=1, heads=2, inner=16)
    tokenizer = train_tokenizer([QUESTION, *ITERATIVE], 300, digits=True, context=4096)
    return load((make_model(sizes, tokenizer, 4096), tokenizer))


def demonstrated(model, how, answers, masks=False, right=48):
    strategy, step_format, knowledge = how
    settings = Settings(strategy, step_format, masks, max_steps=8, max_subgoals=4)
    env = MathsEnv(QUESTION, Fraction(right))
    return demonstrate(env, ActionKnowledge.from_lark(knowledge), {"policy": model}, settings, answers)


@pytest.mark.parametrize("how", ANSWERS, ids=lambda how: f"{how[0]}, {how[1]}")
def test_what_is_learned_is_what_agents_ask(model, how):
    made = demonstrated(model, how, ANSWERS[how])
    assert made.failure == "" and len(made.texts) == len(ANSWERS[how])
    assert [text.spans[1].text for _, text in made.texts] == list(ANSWERS[how])
    assert all(text.spans[1].learned and not text.spans[0].learned and text.ends for _, text in made.texts)
    strategy, step_format, name = how
    settings = Settings(strategy, step_format, True, max_steps=8, max_subgoals=4)
    plan, knowledge = Plan(QUESTION, name, strategy, "", True, 0), ActionKnowledge.from_lark(name)
    rollout = Rollout(Episode({"policy": model}, knowledge, plan, settings, MathsEnv(QUESTION, Fraction(48))))
    asked, learned = [], [text.spans[0].text for _, text in made.texts]
    for answer in ANSWERS[how]:
        for piece in re.split(r"(?<=;)(?= R)", answer):  # with masks on a turn's actions are asked for one by one
            answer_with(rollout, lambda request, piece=piece: asked.append(request.prompt) or piece)
    assert plan.success and [prompt for prompt in asked if prompt in learned] == learned


def test_roles_are_told_apart(model):
    made = demonstrated(model, ("lumos", "react", "lumos/maths_given"), ITERATIVE)
    assert [role for role, _ in made.texts] == ["planner", "grounder", "planner", "grounder", "planner"]


@pytest.mark.parametrize(
    "answers, right, failure",
    [
        (ITERATIVE, 47, "the answer is wrong"),
        (ITERATIVE[:3], 48, "the answers come to an end before the task"),
        ((), 48, "the answers come to an end before the task"),
        ((ITERATIVE[0], "R1 = Calculator(47 + 1)", ITERATIVE[4]), 48, "invalid action: R1 = Calculator(47 + 1)"),
        ((ITERATIVE[0], "R1 = Calculator(R7)", ITERATIVE[4]), 48, "invalid action: R1 = Calculator(R7)"),
    ],
)
def test_what_fails_is_no_example(model, answers, right, failure):
    assert demonstrated(model, ("lumos", "react", "lumos/maths_given"), answers, right=right).failure == failure
