"""Episodes of the baselines, to be answered by a script."""

from dataclasses import replace

from constrained import ActionKnowledge
from constrained.agents.episode import Episode
from constrained.agents.plan import Plan
from constrained.agents.scheduler import Rollout
from constrained.agents.settings import Settings
from constrained.agents.strategies import STEP_FORMATS
from constrained.environments.household import HouseholdEnv
from constrained.environments.question.env import QuestionEnv
from constrained.environments.question.index import LocalIndex
from constrained.models import load
from tests.agents.random_model import RANDOM
from tests.agents.scripted import answer_with, may
from tests.environments.household.small_house import small_house
from tests.environments.question.small import QUESTION, SMALL

GENERAL = load((RANDOM.model, RANDOM.tokenizer))
"""A model that is not the embedded one; scripts answer in its place."""


def question(strategy, knowledge="hotpotqa", model=GENERAL, asked=QUESTION, **settings):
    """A rollout of the small index's question; each call opens the same one anew."""
    environment = QuestionEnv(asked, LocalIndex(SMALL))
    return _player(strategy, ActionKnowledge.from_lark(knowledge), environment, model, settings)


def house(strategy, model=GENERAL, **settings):
    """A rollout of the small house."""
    return _player(strategy, ActionKnowledge.from_lark("household"), HouseholdEnv(small_house()), model, settings)


def _player(strategy, knowledge, environment, model, settings):
    settings = replace(Settings(strategy, STEP_FORMATS[strategy], max_steps=6), **settings)
    plan = Plan(environment.task, knowledge.name, strategy, "script", settings.constrained, settings.seed)
    return Rollout(Episode({"policy": model}, knowledge, plan, settings, environment))


def says(rollout, *texts):
    """Answer with whole texts, of which the prompt may hold the beginning already."""
    return answer_with(rollout, *(lambda request, text=text: text.removeprefix(request.begun) for text in texts))


def may_say(rollout, text):
    """Whether `text` is one that the masks let be written next."""
    if rollout.request is None:
        rollout.start()
    return may(rollout, text.removeprefix(rollout.request.begun))


def resumed_anywhere(play, answers):
    """Whether a run that has been broken off after any of its `answers` comes to the same when it goes on."""
    whole = _steps(play(), answers)
    return all(_steps(play(), answers, recorded=done) == whole for done in range(len(answers) + 1))


def _steps(rollout, answers, recorded=0):
    rollout._recorded = answers[:recorded]
    rollout.start()
    for answer in answers[recorded:]:
        assert not rollout.over
        rollout.answer(answer)
    assert rollout.over and rollout.failure is None
    return rollout.episode.plan.steps
