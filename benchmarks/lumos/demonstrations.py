"""Play a strategy with known answers, to make training texts for its models.

The strategy itself asks, so a model reads in training exactly what it will read in play.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from constrained.agents.episode import Episode
from constrained.agents.plan import Plan
from constrained.agents.scheduler import Rollout
from constrained.agents.settings import Settings
from constrained.decoding import Generation
from constrained.environments.base import Environment
from constrained.knowledge import ActionKnowledge
from constrained.models import LoadedModel
from constrained.training.encoding import TrainingText, prompt_and_answer


@dataclass(frozen=True)
class Demonstration:
    """A task played with known answers: role and training text of each request; why it failed, if so."""

    texts: tuple[tuple[str, TrainingText], ...]
    failure: str = ""


def demonstrate(
    environment: Environment,
    knowledge: ActionKnowledge,
    models: Mapping[str, LoadedModel],
    settings: Settings,
    answers: Iterable[str],
) -> Demonstration:
    """Play a task, giving `answers` to the strategy's requests in order.

    The models write nothing; their tokenizers and contexts decide how much of a prompt fits. The settings must be
    without masks, so that each answer is a whole turn.
    """
    plan = Plan(environment.task, knowledge.name, settings.strategy, "demonstration", False, settings.seed)
    rollout = Rollout(Episode(models, knowledge, plan, settings, environment))
    texts: list[tuple[str, TrainingText]] = []
    rollout.start()
    for answer in answers:
        if rollout.over:
            break
        request = rollout.request
        texts.append((request.role, prompt_and_answer(request.prompt, answer)))
        rollout.answer(Generation(answer, request.role))
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
