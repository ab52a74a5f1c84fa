"""Prompts: the text that a model reads before a step, shortened to fit its context.

The embedded model reads the memory alone, as it was trained to. Any other model reads the action knowledge as text and
the steps so far, in its own chat format if it has one. For FireAct it reads the task in Alpaca's form, the form that
FireAct's models are tuned on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from constrained.agents.plan import Step, step_lines
from constrained.decoding.request import Message

if TYPE_CHECKING:  # torch takes seconds to import
    from constrained.models import LoadedModel

KEPT_STEPS = (12, 6, 3, 1, 0)
"""Numbers of past steps that a prompt may show: the first that fits the context is taken."""

ROOM = 0.3
"""Share of a model's context that a prompt leaves for the step."""

_FORM = {
    "act": "Answer with one line: `Action n: ` and the action.",
    "react": "Answer with two lines: `Thought n: ` with a short reason, then `Action n: ` with the action.",
    "knowagent": "Answer with three lines: `ActionPath n: ` with the actions done so far, `Thought n: ` with a "
    "short reason, then `Action n: ` with the action.",
    "cot": "Nothing can be looked up. Answer with two lines: `Thought: ` with all your reasoning, step by step, then "
    "`Action: ` with the answer that follows from it.",
}

ALPACA = (
    "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{task}\n\n### Response:\n",
    "Below is an instruction that describes a task, paired with an input that provides further context. "
    "Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{task}\n\n### Input:\n{known}\n\n### Response:\n",
)
"""The form of Stanford Alpaca's data (Taori et al., 2023), without and with an input; verbatim, because models are
tuned on it."""


def build_prompt(
    loaded: LoadedModel, knowledge_text: str, task: str, step_format: str, memory: str, history, hints: str = ""
) -> str:
    """Build the prompt before a step's own lines.

    Parameters
    ----------
    knowledge_text : str
        `ActionKnowledge.to_text()`.
    memory : str
        Remembered facts as lines; may be empty.
    hints : str
        What a strategy found out, as lines; the embedded model doesn't read them.
    """
    if loaded.is_embedded and memory:
        return memory + "\n"
    known = "\n".join(filter(None, [memory, hints]))
    # Ever less is shown: fewer steps, then no action knowledge, then no hints.
    tries = [(knowledge_text, known, k) for k in KEPT_STEPS] + [
        ("", known, KEPT_STEPS[-1]),
        ("", memory, KEPT_STEPS[-1]),
    ]
    return first_that_fits(
        loaded,
        (
            _prompt(loaded, text, task, step_format, told, history[max(len(history) - k, 0) :])
            for text, told, k in tries
        ),
    )


def build_messages(
    knowledge_text: str, task: str, step_format: str, memory: str, history: Sequence[Step], hints: str = ""
) -> list[Message]:
    """Build the conversation that a server's model reads before a step: a turn for each action and each observation.

    The parameters are those of `build_prompt`. Memory and hints come in the last turn, because they change.
    """
    form = _FORM[step_format] if step_format != "act" else "Answer with the next action and nothing else."
    turns: list[Message] = [{"role": "system", "content": "\n\n".join(filter(None, [knowledge_text, form]))}]
    said = [f"Task: {task}"]
    for step in history[max(len(history) - KEPT_STEPS[0], 0) :]:
        turns.append({"role": "user", "content": "\n\n".join(said)})
        written = step_lines(step)[:-1] if step.observation is not None else step_lines(step)
        content = step.action if step_format == "act" else "\n".join(written)
        turns.append({"role": "assistant", "content": content})
        said = [step.observation or ""]
    known = "\n".join(filter(None, [memory, hints]))
    if known:
        said.append(f"What is known:\n{known}")
    return [*turns, {"role": "user", "content": "\n\n".join(filter(None, said)) or "Go on."}]


def first_that_fits(loaded: LoadedModel, prompts: Iterable[str]) -> str:
    """The first prompt that fits the model's context; the last if none does."""
    for prompt in prompts:
        if leaves_room(loaded, prompt):
            break
    return prompt


def instruction_that_fits(loaded: LoadedModel, instructions: Iterable[str]) -> str:
    """The first instruction, in the model's chat format, that fits the context; the last if none does."""
    return first_that_fits(loaded, (in_chat_form(loaded, instruction) for instruction in instructions))


def leaves_room(loaded: LoadedModel, prompt: str) -> bool:
    """Whether the prompt and a step fit the model's context."""
    context = loaded.max_context
    return context is None or len(loaded.tokenizer.encode(prompt, verbose=False)) <= context * (1 - ROOM)


def _prompt(loaded: LoadedModel, knowledge_text: str, task: str, step_format: str, known: str, history) -> str:
    so_far = "".join(f"{line}\n" for step in history for line in step_lines(step))
    if step_format == "fireact":
        form = ALPACA[bool(known)].format(task=task, known=known)
        return form + re.sub(r"^(Thought|Action|Observation) \d+:", r"\1:", so_far, flags=re.MULTILINE)
    known = f"What is known:\n{known}" if known else ""
    instruction = "\n\n".join(filter(None, [knowledge_text, _FORM[step_format], f"Task: {task}", known]))
    return in_chat_form(loaded, instruction) + so_far


def in_chat_form(loaded: LoadedModel, instruction: str) -> str:
    """An instruction in the model's chat format, up to where the answer begins; plain text if it has none."""
    if getattr(loaded.tokenizer, "chat_template", None):
        turns = [{"role": "user", "content": instruction}]
        return loaded.tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
    return f"{instruction}\n\n"
