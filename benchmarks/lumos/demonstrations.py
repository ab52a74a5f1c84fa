"""A strategy played with answers that are known: what models for it are trained on.

The strategy itself asks, so that what a model reads in training is to the letter what it will read when it plays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from constrained.agents.episode import Episode, Settings
from constrained.agents.messages import Answer
from constrained.agents.plan import Plan
from constrained.agents.scheduler import Rollout
from constrained.environments.base import Environment
from constrained.knowledge import ActionKnowledge
from constrained.models import LoadedModel
from constrained.training.encoding import Span, TrainingText


@dataclass(frozen=True)
class Demonstration:
    """A task that was played with known answers.

    Attributes
    ----------
    texts : tuple of (str, TrainingText)
        For each question the role that was asked, and the question with its answer, which is to be learned.
    failure : str
        Why it is no example to follow; empty where it is one.
    """

    texts: tuple[tuple[str, TrainingText], ...]
    failure: str = ""


def demonstrate(
    environment: Environment,
    knowledge: ActionKnowledge,
    models: Mapping[str, LoadedModel],
    settings: Settings,
    answers: Iterable[str],
) -> Demonstration:
    """Play a task, answering the strategy's questions in order.

    Parameters
    ----------
    environment : Environment
    knowledge : ActionKnowledge
    models : mapping of str to LoadedModel
        By role; their tokenizers and contexts decide how much of a prompt has room. They write nothing.
    settings : Settings
        Played without masks, so that an answer is all that a model says in a turn.
    answers : iterable of str
        One for each question, as models write it: after what the prompt ends with.
    """
    plan = Plan(environment.task, knowledge.name, settings.strategy, "demonstration", False, settings.seed)
    rollout = Rollout(Episode(models, knowledge, plan, settings, environment))
    texts: list[tuple[str, TrainingText]] = []
    rollout.start()
    for answer in answers:
        if rollout.over:
            break
        ask = rollout.ask
        texts.append((ask.role, TrainingText((Span(ask.prompt, False), Span(answer, True)))))
        rollout.answer(Answer(answer, ask.role))
    return Demonstration(tuple(texts), _failure(rollout))


def _failure(rollout: Rollout) -> str:
    plan, over = rollout.episode.plan, rollout.over
    rollout.close()
    if rollout.failure:
        return f"{type(rollout.failure).__name__}: {rollout.failure}"
    if not over:
        return "the answers come to an end before the task"
    for step in plan.steps:
        if step.verdict != "ok":
            return f"{step.verdict} action: {step.action}"
    return "" if plan.success else "the answer is wrong"
