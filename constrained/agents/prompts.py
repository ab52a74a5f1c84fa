"""Prompts: what a model reads before a step, shortened to fit its context.

The embedded model reads the memory alone, as it was trained to. Any other model reads a conversation: the action
knowledge, worked examples, the task, then a turn for each action and each answer. It is the same for a model on this
machine, which reads it in its chat template, and for one behind a server. A model without a template reads plain text.
For FireAct a model reads the task in Alpaca's form, the form that FireAct's models are tuned on.

A builder of your own replaces `conversation`: it is given a `PromptParts` and returns messages, or a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from constrained.agents.plan import Step, step_lines
from constrained.agents.step_formats import FIREACT, action_path
from constrained.decoding.request import Message
from constrained.errors import ConstrainedError, ModelError
from constrained.knowledge import Knowledge
from constrained.knowledge.commands import on_one_line
from constrained.knowledge.demonstration import Demonstration

if TYPE_CHECKING:  # torch takes seconds to import
    from constrained.decoding.generation import LanguageModel
    from constrained.models import LoadedModel

KEPT_STEPS = (12, 6, 3, 1, 0)
"""Numbers of past steps that a shortened prompt may show: the first that fits the context is taken."""

DROPPED = 10
"""The oldest steps are left out so many at a time: the prompts between begin alike, and needn't be read again."""

ROOM = 0.3
"""Share of a model's context that a prompt leaves for the step."""

_FORM = {
    "act": "Answer with the next action and nothing else.",
    "react": 'Answer with two lines: "Thought {n}:" and a sentence about what to do next, then "Action {n}:" and the '
    "action. The number is that of the step.",
    "knowagent": 'Answer with three lines: "ActionPath {n}:" and the actions done so far, joined by arrows; "Thought '
    '{n}:" and a sentence about what to do next; "Action {n}:" and the action. The number is that of the step.',
    "cot": 'Nothing can be looked up. Answer with two lines: "Thought:" and all your reasoning, step by step, then '
    '"Action:" and the answer that follows from it.',
}

_PLAIN_ACT = 'Each step is one line: "Action", the number of the step, a colon, and the action.'

_CAPITALS = "A word in capital letters stands for a name."

ALPACA = (
    "Below is an instruction that describes a task. Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{task}\n\n### Response:\n",
    "Below is an instruction that describes a task, paired with an input that provides further context. "
    "Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{task}\n\n### Input:\n{known}\n\n### Response:\n",
)
"""The form of Stanford Alpaca's data (Taori et al., 2023), without and with an input; verbatim, because models are
tuned on it."""

Example: TypeAlias = "Demonstration | Sequence[Message]"
"""A worked example: a demonstration, or the turns of a conversation."""


@dataclass(frozen=True)
class PromptParts:
    """What the prompt before a step is made of.

    Attributes
    ----------
    task : str
    knowledge : Knowledge
        At the present point of the path.
    knowledge_text : str
        `Knowledge.to_text()`; empty if it is left out.
    step_format : str
        "act", "react", "knowagent", "cot" or "fireact".
    examples : sequence of Demonstration or of messages
    scene : str
        The objects and facts at the start, where the environment tells them as such.
    first_observation : str
        What else was seen before the first step.
    steps : sequence of Step
        The steps to show.
    memory, view, hints : str
        What is remembered, what can be named now, and what a strategy found out, as lines; each may be empty.
    omitted : int
        Number of earlier steps that are not shown.
    """

    task: str
    knowledge: Knowledge
    knowledge_text: str
    step_format: str
    examples: Sequence[Example] = ()
    scene: str = ""
    first_observation: str = ""
    steps: Sequence[Step] = ()
    memory: str = ""
    view: str = ""
    hints: str = ""
    omitted: int = 0

    def shorter(self) -> Iterator[PromptParts]:
        """Yield these parts, then ever less of them: fewer steps, examples, no knowledge, no view and hints."""
        some = min(KEPT_STEPS[0], len(self.steps))
        for omitted in range(0, len(self.steps) - some + DROPPED, DROPPED):
            yield self.with_last(max(len(self.steps) - omitted, some))
        for fewer in range(len(self.examples) - 1, -1, -1):
            yield replace(self.with_last(some), examples=self.examples[:fewer])
        last = replace(self, examples=())
        for kept in KEPT_STEPS[1:]:
            yield last.with_last(kept)
        last = last.with_last(0)
        yield replace(last, knowledge_text="")
        yield replace(last, knowledge_text="", view="", hints="", scene="", first_observation="")

    def with_last(self, kept: int) -> PromptParts:
        """These parts with only the last steps."""
        left_out = max(len(self.steps) - kept, 0)
        return replace(self, steps=self.steps[left_out:], omitted=self.omitted + left_out)


Builder: TypeAlias = Callable[[PromptParts], "Sequence[Message] | str"]
"""Builds a prompt: messages with "role" and "content", or a text that is read as it is."""


def conversation(parts: PromptParts) -> list[Message]:
    """Build the conversation that a model reads before a step."""
    form = _FORM[parts.step_format].format(n=1)
    capitals = _CAPITALS if re.search(r"[A-Z]{3}", parts.knowledge_text) else ""
    # The scene is in the system's turn: examples don't repeat it, and the task is in the last turn.
    system = [parts.knowledge_text, _scene(parts), f"{capitals} {form}".strip()]
    turns = [_turn("system", "\n\n".join(filter(None, system)))]
    for example in parts.examples:
        turns += _example_turns(example, parts.step_format) if isinstance(example, Demonstration) else example
    # What changes stands in the last turn only, so that all before it is the same in every step (and cached).
    last = [_opening(parts.task, parts.first_observation)] if not parts.omitted else [f"Task: {parts.task}"]
    for step in parts.steps:
        turns += [_turn("user", "\n\n".join(filter(None, last))), _turn("assistant", _answer(step, parts.step_format))]
        last = [step.observation or "Go on."]
    if parts.memory and not (parts.scene and not parts.omitted):  # the answers to the steps tell what has changed
        last.append(f"What is known:\n{parts.memory}")
    return [*turns, _turn("user", "\n\n".join(filter(None, [*last, parts.view, parts.hints])))]


def plain_text(parts: PromptParts) -> str:
    """Build the same as plain text, for a model without a chat template."""
    form = _PLAIN_ACT if parts.step_format == "act" else _FORM[parts.step_format].format(n=1)
    blocks = [parts.knowledge_text, _scene(parts), form]
    for example in parts.examples:
        if isinstance(example, Demonstration):
            lines = [_opening(example.task, example.first_observation)]
            lines += [line for step in _steps_of(example) for line in step_lines(step)]
            blocks.append("\n".join(lines))
        else:
            blocks.append("\n".join(message["content"] for message in example))
    opening = _opening(parts.task, parts.first_observation) if not parts.omitted else f"Task: {parts.task}"
    memory = f"What is known:\n{parts.memory}" if parts.memory else ""
    blocks += [opening, memory, parts.view, parts.hints]
    so_far = "".join(f"{line}\n" for step in parts.steps for line in step_lines(step))
    return "\n\n".join(filter(None, blocks)) + "\n\n" + so_far


def _scene(parts: PromptParts) -> str:
    return f"What there is at the start:\n{parts.scene}" if parts.scene else ""


def _opening(task: str, first_observation: str) -> str:
    """The task and the first observation; the task only once if the observation states it."""
    stated = task.strip(" .").lower() in first_observation.lower()
    return "\n\n".join(filter(None, ["" if stated else f"Task: {task}", first_observation]))


def _turn(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def _answer(step: Step, step_format: str) -> str:
    """A step as the assistant's turn."""
    if step_format == "act":
        return step.action
    path = [f"ActionPath {step.n}: {step.path}"] if step_format == "knowagent" and step.path else []
    return "\n".join([*path, *step_lines(replace(step, observation=None))])


def _example_turns(example: Demonstration, step_format: str) -> Iterator[Message]:
    request = _opening(example.task, example.first_observation)
    for step in _steps_of(example):
        yield _turn("user", request)
        yield _turn("assistant", _answer(step, step_format))
        request = step.observation or "Go on."


def _steps_of(example: Demonstration) -> Iterator[Step]:
    """The steps of a demonstration; a step without a thought gets one, as formats with thoughts need it."""
    path: list[str] = []
    for n, step in enumerate(example.steps, 1):
        thought = step.thought or f"Now I {on_one_line(step.action)}."
        yield Step(n, thought, step.action, "ok", observation=step.observation, path=action_path(path))
        path.append(step.action)


def build_prompt(loaded: LoadedModel, parts: PromptParts, builder: Builder | None = None) -> str:
    """Build the prompt before a step's own lines, as short as the model's context requires."""
    if loaded.is_embedded and parts.memory:
        return parts.memory + "\n"
    if parts.step_format == FIREACT:
        return first_that_fits(loaded, map(_alpaca, parts.shorter()))
    build = builder or (conversation if reads_chat(loaded) else plain_text)
    return first_that_fits(loaded, (in_chat_form(loaded, build(some)) for some in parts.shorter()))


def _alpaca(parts: PromptParts) -> str:
    context = "\n".join(filter(None, [parts.memory, parts.hints]))  # FireAct's data has nothing else
    form = ALPACA[bool(context)].format(task=parts.task, known=context)
    so_far = "".join(f"{line}\n" for step in parts.steps for line in step_lines(step))
    return form + re.sub(r"^(Thought|Action|Observation) \d+:", r"\1:", so_far, flags=re.MULTILINE)


def build_messages(parts: PromptParts, builder: Builder | None = None) -> list[Message]:
    """Build the conversation that a server's model reads before a step.

    Raises ConstrainedError: the builder gives a text, which a server's chat can't read as it is.
    """
    built = (builder or conversation)(parts)
    if isinstance(built, str):
        raise ConstrainedError("the prompt is a text, and a server reads messages", "return a list of messages")
    return merged(built)


def merged(messages: Iterable[Message]) -> list[Message]:
    """The messages with neighbours of the same role joined, which many chat templates refuse."""
    out: list[Message] = []
    for message in messages:
        if out and out[-1]["role"] == message["role"]:
            out[-1] = _turn(message["role"], f"{out[-1]['content']}\n\n{message['content']}")
        else:
            out.append(_turn(message["role"], message["content"]))
    return out


def first_that_fits(loaded: LanguageModel, prompts: Iterable[str]) -> str:
    """The first prompt that fits the model's context; the last if none does."""
    for prompt in prompts:
        if leaves_room(loaded, prompt):
            break
    return prompt


def instruction_that_fits(loaded: LoadedModel, instructions: Iterable[str]) -> str:
    """The first instruction, in the model's chat format, that fits the context; the last if none does."""
    return first_that_fits(loaded, (in_chat_form(loaded, [_turn("user", text)]) for text in instructions))


def leaves_room(loaded: LanguageModel, prompt: str) -> bool:
    """Whether the prompt and a step fit the model's context."""
    context = loaded.max_context
    return context is None or len(loaded.tokenizer.encode(prompt, verbose=False)) <= context * (1 - ROOM)


def reads_chat(loaded: LoadedModel) -> bool:
    """Whether a model reads conversations in a chat template of its own."""
    return bool(getattr(loaded.tokenizer, "chat_template", None)) and not loaded.is_embedded


def in_chat_form(loaded: LoadedModel, messages: Sequence[Message] | str) -> str:
    """A conversation in the model's chat format, up to where the answer begins; plain text if it has none.

    Raises ModelError: the model's chat template refuses the conversation.
    """
    if isinstance(messages, str):
        return messages
    turns = merged(messages)
    if not getattr(loaded.tokenizer, "chat_template", None):
        return "".join(f"{turn['content']}\n\n" for turn in turns)
    for tried in (turns, _without_system(turns)):  # some templates know no system turn
        try:
            return loaded.tokenizer.apply_chat_template(tried, tokenize=False, add_generation_prompt=True)
        except Exception as error:  # a template may raise any exception
            refused = error
    raise ModelError(f"the chat template of {loaded.name} refuses the conversation: {refused}", "pass prompt=")


def _without_system(turns: list[Message]) -> list[Message]:
    """The turns with the system's text at the beginning of the user's first turn."""
    return merged(_turn("user" if turn["role"] == "system" else turn["role"], turn["content"]) for turn in turns)
