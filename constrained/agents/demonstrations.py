"""Which worked examples the prompts of an episode show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from constrained.agents.plan import Plan
from constrained.agents.prompts import Example
from constrained.agents.settings import Settings
from constrained.environments.base import Environment, WithDemonstrations
from constrained.environments.facts import FactsEnvironment
from constrained.environments.twin import twin_demonstrations
from constrained.errors import ConstrainedError, KnowledgeError
from constrained.knowledge import Knowledge
from constrained.knowledge.demonstration import Demonstrated, Demonstration

SHOWN = {"act": 5, "react": 4, "knowagent": 4}
"""Step format -> how many examples a prompt shows unless told otherwise; the other formats show none."""

LONG = 2
"""How many an environment with long episodes of its own is asked for."""


def examples_for(knowledge: Knowledge, environment: Environment | None, settings: Settings) -> Sequence[Example]:
    """The examples in the knowledge's file; without any, the environment's, or examples made from tools' schemas."""
    shown = SHOWN.get(settings.step_format, 0)
    count = shown if settings.demonstrations is None else settings.demonstrations
    if count and knowledge.demonstrations:
        for demonstration in knowledge.demonstrations[:count]:
            check_demonstration(demonstration, knowledge, f"an example in {knowledge.name}")
        return knowledge.demonstrations[:count]
    if count and isinstance(environment, FactsEnvironment):
        return twin_demonstrations(environment, count)
    if count and isinstance(environment, WithDemonstrations):
        return environment.demonstrations(min(count, LONG) if settings.demonstrations is None else count)
    return knowledge.invented_examples(count) if count else ()


def read_examples(given: Iterable[Any], knowledge: Knowledge) -> list[Example]:
    """Read the examples that a user gives: demonstrations, plans, or conversations.

    Raises
    ------
    ConstrainedError
        One is something else.
    KnowledgeError
        The knowledge doesn't admit a step of one.
    """
    examples: list[Example] = []
    for number, one in enumerate(given, 1):
        if isinstance(one, Plan):
            one = of_plan(one)
        if isinstance(one, Demonstration):
            check_demonstration(one, knowledge, f"demonstration {number}")
        elif not _is_conversation(one):
            raise ConstrainedError(
                f"demonstration {number} is {one!r:.80}",
                'give a Plan, a Demonstration, or a list of messages: {"role": "user", "content": "..."}',
            )
        examples.append(one)
    return examples


def check_demonstration(demonstration: Demonstration, knowledge: Knowledge, name: str = "the demonstration") -> None:
    """Raise KnowledgeError, which names the step, if the rules don't admit a demonstration.

    Its objects are its own: slots are bound to what its actions name, and what is known of the world doesn't count.
    """
    if not demonstration.steps:
        raise KnowledgeError(f"{name} has no actions", hint="a line such as `// > look up A17` is an action")
    actions = [step.action for step in demonstration.steps]
    report = knowledge.without_facts.bind_view(actions).check(actions)
    for number, judgement in enumerate(report.steps, 1):
        if not judgement:
            raise KnowledgeError(
                f"step {number} of {name}, {judgement.text!r:.80}, is {judgement.verdict}: {judgement.reason}",
                hint="a demonstration must be written as the actions are",
            )


def of_plan(plan: Plan) -> Demonstration:
    """A plan as a demonstration: the actions of its last phase that had an effect."""
    done = [step for step in plan.last_phase if step.had_effect is not False] if plan.steps else []
    steps = tuple(Demonstrated(step.action, step.observation or "", step.thought) for step in done)
    return Demonstration(plan.task, steps, plan.first_observation)


def _is_conversation(value: Any) -> bool:
    return isinstance(value, Sequence) and all(
        isinstance(turn, Mapping) and isinstance(turn.get("role"), str) and isinstance(turn.get("content"), str)
        for turn in value
    )
