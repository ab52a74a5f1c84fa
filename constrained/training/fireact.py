"""FireAct's trajectories (Chen et al., 2023) as texts to tune on: one a step, as its agent is asked here.

Its actions are written in our action knowledge's words (``search[x]`` becomes ``Search[x]``), and each step must be one
that the grammars admit where it stands. Thoughts and actions are learned; observations are the environment's.
"""

from __future__ import annotations

import re
from functools import lru_cache

from constrained.agents.plan import Step
from constrained.agents.prompts import build_prompt
from constrained.agents.step_formats import step_format
from constrained.agents.steps import step_prompt
from constrained.grammar import Grammar
from constrained.knowledge import ActionKnowledge
from constrained.models.load import LoadedModel
from constrained.training.encoding import Span, TrainingText

FORMAT = "fireact"

KNOWLEDGE = "hotpotqa"

_STEP = re.compile(r"Thought: ?(?P<thought>.*)\nAction: ?(?P<action>.*)\nObservation: ?(?P<observation>.*)\n?")
_OVER = re.compile(r"Episode finished, reward = (?P<won>\w+)")
_NAME = re.compile(r"[a-z]+(?=\[)")


def steps_in(output: str) -> list[Step] | None:
    """The steps of a response, the last without its observation; None if it isn't made of steps alone.

    Names of actions begin with a capital letter, as our grammars have them.
    """
    steps: list[Step] = []
    at = 0
    while found := _STEP.match(output, at):
        action = _NAME.sub(lambda name: name[0].capitalize(), found["action"].strip(), count=1)
        steps.append(Step(len(steps) + 1, found["thought"].strip(), action, "ok", observation=found["observation"]))
        at = found.end()
    return steps if steps and not output[at:].strip() else None


def why_not(steps: list[Step], knowledge: ActionKnowledge) -> str | None:
    """Why a trajectory is no example to follow; None if it is one."""
    over = _OVER.match(steps[-1].observation)
    if not over or over["won"] != "True":
        return "the episode doesn't end with the right answer"
    for step in steps:
        judgement = knowledge.judge(step.action)
        if not judgement:
            return f"{judgement.verdict} action: {judgement.reason}"
        if not _written(knowledge.next_action()).matches(f"Thought: {step.thought}\nAction: {step.action}"):
            return f"not in the step format ({FORMAT}): its thought is empty or too long"
        knowledge = knowledge.after(step.action)
    return None


@lru_cache(maxsize=16)
def _written(action: Grammar) -> Grammar:
    """A step with one of these actions."""
    return step_format(FORMAT).bind(ACTION=action)


def texts_of(loaded: LoadedModel, task: str, steps: list[Step]) -> list[TrainingText]:
    """A text for each step: the prompt as `build_prompt` makes it for the agent, and the step."""
    head = step_prompt("", FORMAT, 1).strip()
    made = []
    for number, step in enumerate(steps):
        prompt = build_prompt(loaded, "", task, FORMAT, "", steps[:number])
        made.append(TrainingText((Span(prompt + head, False), Span(f" {step.thought}\nAction: {step.action}", True))))
    return made
