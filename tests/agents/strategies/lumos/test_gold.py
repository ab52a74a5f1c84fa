"""Solutions of GSM8K and SVAMP, converted by rule, played through the strategies: they reach the answer."""

from fractions import Fraction
from itertools import islice

import pytest

from constrained import ActionKnowledge
from constrained.agents.episode import Episode
from constrained.agents.plan import Plan
from constrained.agents.scheduler import Rollout
from constrained.agents.settings import Settings
from constrained.agents.strategies.lumos.conversation import KEEP, STOP, Turn, conversation, numbered
from constrained.environments.executor.actions import read_turn
from constrained.environments.maths.env import MathsEnv
from constrained.environments.maths.problems import GSM8K, SVAMP
from constrained.models import load
from constrained.training.annotations.annotation import conversations
from constrained.training.annotations.convert import converted
from tests.agents.scripted import answer_with
from tests.data import shared
from tests.decoding.tiny import tiny

MODELS = {"policy": load((tiny(context=1 << 14).model, tiny().tokenizer))}
FILES = {"gsm8k": GSM8K, "svamp": SVAMP}
KNOWLEDGE = ActionKnowledge.from_lark("lumos/maths")


def rollout(annotation, strategy):
    plan = Plan(annotation.task, KNOWLEDGE.name, strategy, "script", True, 0)
    environment = MathsEnv(annotation.task, Fraction(annotation.answer))
    return Rollout(Episode(MODELS, KNOWLEDGE, plan, Settings(strategy, "react"), environment))


def actions(turn):
    """A turn's actions as they are asked for: one by one, each with the space before it."""
    return [f"{' ' if i else ''}{action.text}" for i, action in enumerate(read_turn("maths", turn))]


def rows(dataset, every):
    """One in so many of a data set's rows that convert."""
    shared(FILES[dataset])
    kept = (row for row in converted(dataset, limit=24 * every) if row.annotation and not row.failure)
    return islice(kept, 0, None, every)


def noting(prompts, text):
    def answer(request):
        prompts[request.role] = request.prompt + text
        return text

    return answer


@pytest.mark.parametrize("dataset", ["gsm8k", "svamp"])
def test_the_iterative_conversations_reach_the_answer(dataset):
    for row in rows(dataset, 5):
        texts, prompts = [], {}
        for n, step in enumerate(row.annotation.steps, 1):
            texts += [(KEEP if n > 1 else "") + numbered(n, step.subgoal), *actions(step.turn)]
        plan = answer_with(rollout(row.annotation, "lumos"), *(noting(prompts, text) for text in [*texts, STOP]))
        assert plan.success and plan.invalid == plan.misordered == 0, row.name
        read = {
            c["module"]: c["messages"]
            for c in conversations(row.annotation, row.results)
            if c["formulation"] == "iterative"
        }
        for module, messages in read.items():  # what the strategy shows is what is trained on
            assert prompts[module] + "\n" == _text(messages), row.name


@pytest.mark.parametrize("dataset", ["gsm8k", "svamp"])
def test_the_onetime_conversations_reach_the_answer(dataset):
    for row in rows(dataset, 5):
        subgoals = "; ".join(numbered(n, step.subgoal) for n, step in enumerate(row.annotation.steps, 1))
        turn = "; ".join(step.turn for step in row.annotation.steps)
        plan = answer_with(rollout(row.annotation, "lumos_onetime"), subgoals, *actions(turn))
        assert plan.success and plan.invalid == plan.misordered == 0, row.name


def _text(messages):
    users, answers = messages[::2], messages[1::2]
    return conversation([Turn(u["content"], a["content"]) for u, a in zip(users, answers)])
