"""Data for `constrained train sft`: conversations, Alpaca rows, FireAct's trajectories, Lumos conversations by rule.

Each turn of the assistant becomes a training text of its own: all earlier turns are read, the turn itself is learned,
and the end-of-text token follows, because agents let a model write one turn at a time.

FireAct's trajectories (Chen et al., 2023) become one text for each step, with our agent's prompt. Their actions are
rewritten as in our action knowledge (``search[x]`` becomes ``Search[x]``), and the grammars must admit each step.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path

from constrained.agents.plan import Step
from constrained.agents.prompts import ALPACA, PromptParts, build_prompt
from constrained.agents.step_formats import FIREACT, step_format, step_prompt
from constrained.agents.strategies.lumos.conversation import asked
from constrained.automaton import Grammar
from constrained.environments.data import fields, read_rows
from constrained.environments.suite import open_suite
from constrained.errors import DataError
from constrained.knowledge import ActionKnowledge, Knowledge
from constrained.models import LoadedModel
from constrained.training.annotations.convert import converted, training_conversations
from constrained.training.encoding import TrainingText, prompt_and_answer

SPACES = {"maths": ("gsm8k",), "qa": ("strategyqa",), "svamp": ("svamp",)}
"""Name -> the data sets whose solutions convert by rule to an action space of Lumos. SVAMP, which the paper only tests
on, isn't part of "maths"."""

WITH_HELD_OUT = ("gsm8k", "svamp")
"""Data sets with a part that is held out, to be played."""

ROLES = ("system", "user", "assistant")

Messages = Sequence[dict[str, str]]

_LUMOS = re.compile(r"lumos-(?P<space>\w+?)(?:-(?P<module>planner|grounder))?(?:-(?P<formulation>iterative|onetime))?")
_STEP = re.compile(r"Thought: ?(?P<thought>.*)\nAction: ?(?P<action>.*)\nObservation: ?(?P<observation>.*)\n?")
_FINISHED = re.compile(r"Episode finished, reward = (?P<won>\w+)")
_ACTION_NAME = re.compile(r"[a-z]+(?=\[)")


@dataclass
class TextsOfSource:
    """The training texts of one source."""

    texts: list[TrainingText] = field(default_factory=list)
    rows: int = 0  # rows read; each may give several texts, or none
    left_out: Counter[str] = field(default_factory=Counter)  # reason -> rows that gave no text


def read_source(data: str, loaded: LoadedModel, limit: int | None = None) -> TextsOfSource:
    """Read the texts of a file, or of a name such as ``lumos-maths-planner``.

    Parameters
    ----------
    data : str
        A name: ``lumos-maths``, ``lumos-qa`` or ``lumos-svamp``, then ``-planner`` or ``-grounder`` for one module
        (default: both, for one model in both roles, Lumos's unmodularised training), then ``-iterative`` or
        ``-onetime`` (default: both).
        Or a file for `read_rows`, of rows with "messages", or with "instruction", "input" and "output".
    loaded : LoadedModel
        The model to tune; its chat template and context determine the prompts.
    limit : int, optional
        Only this many rows.

    Raises
    ------
    DataError
        There is no such name or file, or a row is malformed; the message says which.
    """
    named = _LUMOS.fullmatch(data)
    if named and named["space"] in SPACES:
        return _lumos_source(named["space"], named["module"], named["formulation"], limit)
    if data.startswith("lumos-") and not Path(data).exists():
        known = ", ".join(f"lumos-{space}" for space in SPACES)
        raise DataError(f"no data {data!r}", f"there are {known}, with -planner or -grounder, -iterative or -onetime")
    knowledge = ActionKnowledge.from_lark("hotpotqa")
    source = TextsOfSource()
    for where, row in islice(read_rows(data), limit):
        source.rows += 1
        if "messages" in row:
            form = asked if "formulation" in row else chat_form(loaded)  # Lumos's agents use Lumos's form
            source.texts += assistant_turns(read_messages(where, row), form)
        elif "instruction" in row:
            texts = _alpaca_texts(where, row, loaded, knowledge)
            if isinstance(texts, str):
                source.left_out[texts] += 1
            else:
                source.texts += texts
        else:
            raise DataError(
                f"{where}: neither 'messages' nor 'instruction'",
                'give {"messages": [...]}, or {"instruction": ..., "input": ..., "output": ...}',
            )
    return source


def _lumos_source(space: str, module: str | None, formulation: str | None, limit: int | None) -> TextsOfSource:
    """The conversations of a space's data sets, without the problems that are held out to be played."""
    source = TextsOfSource()
    for dataset in SPACES[space]:
        held_out: set[str] = set()
        if dataset in WITH_HELD_OUT:
            held_out = {task.name for task in open_suite(dataset, split="held_out").tasks}
        for row in converted(dataset, limit=limit):
            source.rows += 1
            if row.name in held_out:
                source.left_out["held out, to be played"] += 1
                continue
            if row.failure:
                source.left_out[row.failure] += 1
            for conversation in training_conversations(row):
                if module in (None, conversation["module"]) and formulation in (None, conversation["formulation"]):
                    source.texts += assistant_turns(conversation["messages"], asked)
    return source


def read_messages(where: str, row: dict) -> list[dict[str, str]]:
    """The messages of a row. Raises DataError: they are malformed, or the assistant says nothing."""
    (messages,) = fields(where, row, messages=list)
    for number, message in enumerate(messages, 1):
        here = f"{where}, message {number}"
        if not isinstance(message, dict):
            raise DataError(f"{here}: not an object but a {type(message).__name__}")
        role, _ = fields(here, message, role=str, content=str)
        if role not in ROLES:
            raise DataError(f"{here}: the role {role!r} is none of {', '.join(ROLES)}")
    if not any(message["role"] == "assistant" and message["content"] for message in messages):
        raise DataError(f"{where}: the assistant says nothing, so there is nothing to learn")
    return messages


def chat_form(loaded: LoadedModel) -> Callable[[Messages], str]:
    """The function that writes a conversation for a model: by its chat template, or else in Lumos's form."""
    if not getattr(loaded.tokenizer, "chat_template", None):
        return asked
    return lambda messages: loaded.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)


def assistant_turns(messages: Messages, form: Callable[[Messages], str]) -> list[TrainingText]:
    """One text for each turn of the assistant, in which only that turn is learned."""
    return [
        prompt_and_answer(form(messages[:number]), message["content"])
        for number, message in enumerate(messages)
        if message["role"] == "assistant" and message["content"]
    ]


def _alpaca_texts(where: str, row: dict, loaded: LoadedModel, knowledge: Knowledge) -> list[TrainingText] | str:
    """A row's response as one text; if it consists of FireAct's steps, a text for each, or why there is none."""
    row = {"input": "", **row}
    task, known, output = fields(where, row, instruction=str, input=str, output=str)
    if not output.strip():
        raise DataError(f"{where}: the output is empty, so there is nothing to learn")
    # FireAct's rows have no input, and a response that consists of steps; anything else is an ordinary Alpaca row.
    steps = None if known else fireact_steps(output)
    if steps is None:
        return [prompt_and_answer(ALPACA[bool(known)].format(task=task, known=known), output)]
    if problem := _why_not(steps, knowledge):
        return problem
    head = step_prompt("", FIREACT, 1).strip()
    return [
        prompt_and_answer(
            build_prompt(loaded, PromptParts(task, knowledge, "", FIREACT, steps=steps[:number])) + head,
            f" {step.thought}\nAction: {step.action}",
        )
        for number, step in enumerate(steps)
    ]


def fireact_steps(output: str) -> list[Step] | None:
    """The steps of a FireAct response, or None if it has another form."""
    steps: list[Step] = []
    end = 0
    while match := _STEP.match(output, end):
        action = _ACTION_NAME.sub(lambda name: name[0].capitalize(), match["action"].strip(), count=1)
        steps.append(Step(len(steps) + 1, match["thought"].strip(), action, "ok", observation=match["observation"]))
        end = match.end()
    return steps if steps and not output[end:].strip() else None


def _why_not(steps: list[Step], knowledge: Knowledge) -> str | None:
    """Why a FireAct trajectory is left out; None if it isn't."""
    finished = _FINISHED.match(steps[-1].observation or "")
    if not finished or finished["won"] != "True":
        return "the episode doesn't end with the right answer"
    for step in steps:
        judgement = knowledge.judge(step.action)
        if not judgement:
            return f"{judgement.verdict} action: {judgement.reason}"
        if not _step_grammar(knowledge.next_action()).matches(f"Thought: {step.thought}\nAction: {step.action}"):
            return f"not in the step format ({FIREACT}): its thought is empty or too long"
        knowledge = knowledge.after(step.action)
    return None


@lru_cache(maxsize=16)
def _step_grammar(action: Grammar) -> Grammar:
    return step_format(FIREACT).bind(ACTION=action)
