"""The conversations of Lumos's planner and grounder (section 3.2, figure 3), the same for training and acting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from constrained.agents.prompts import KEPT_STEPS, instruction_that_fits, leaves_room

if TYPE_CHECKING:  # torch takes seconds to import
    from constrained.models import LoadedModel

KEEP = "No, I will keep planning. "
"""Beginning of a planner's turn that continues after a result."""

STOP = "Yes, I will stop planning."
"""The planner's last turn."""

_PLAN = "Please provide a reasonable subgoal-based plan to solve the given task."
_GROUND = (
    "Please ground the given subgoal{s} to corresponding executable actions for solving the given task. "
    "The grounded actions must be the one in available action list."
)


@dataclass(frozen=True)
class Turn:
    """A text of the user and the assistant's answer."""

    user: str
    assistant: str


@dataclass(frozen=True)
class Shot:
    """A task worked out, as a worked example in prompts (section 4.4, appendix G)."""

    task: str
    steps: tuple[tuple[str, str, str], ...]  # of each subgoal: its words, its actions, what came of them


@runtime_checkable
class WithShots(Protocol):
    """An environment that can show how tasks like its own are planned and grounded."""

    def shots(self, count: int) -> Sequence[Shot]:
        """Up to `count` other tasks, worked out."""
        ...


def planner_shot(shot: Shot) -> str:
    """Write a worked example as a whole conversation with a planner."""
    users, answers = [plan_for(shot.task)], []
    for n, (words, _, result) in enumerate(shot.steps, 1):
        answers.append(numbered(n, words) if n == 1 else KEEP + numbered(n, words))
        users.append(go_on_after(n, result))
    return conversation([Turn(*turn) for turn in zip(users, [*answers, STOP])])


def grounder_shot(shot: Shot, actions: Mapping[str, str]) -> str:
    """Write a worked example as a whole conversation with a grounder; `actions`: as `ground`."""
    turns = []
    for n, (words, done, _) in enumerate(shot.steps, 1):
        subgoal = numbered(n, words)
        turns.append(Turn(ground(shot.task, actions, subgoal) if n == 1 else ground_next(subgoal), done))
    return conversation(turns)


def conversation(turns: Sequence[Turn], user: str | None = None) -> str:
    """Write turns in the form that models read; with the `user`'s next text, up to where the answer begins."""
    parts = [_said("user", turn.user) + _said("assistant", turn.assistant) for turn in turns]
    return "".join(parts) + (asked([{"role": "user", "content": user}]) if user is not None else "")


def asked(messages: Sequence[Mapping[str, str]]) -> str:
    """Write messages with "role" and "content", up to where the assistant's answer begins."""
    return "".join(_said(message["role"], message["content"]) for message in messages) + "<|assistant|>\n"


def _said(role: str, content: str) -> str:
    return f"<|{role}|>\n{content}\n"


def numbered(n: int, subgoal: str) -> str:
    """Write a subgoal with its number, from 1."""
    return f"Subgoal {n}: {subgoal}"


def plan_for(task: str) -> str:
    """Write the first request to a planner."""
    return f"{_PLAN}\nTask: {task}"


def go_on_after(n: int, result: str) -> str:
    """Write the request to a planner after the `n`-th subgoal; the answer begins with `KEEP` or is `STOP`."""
    return f"The executed result for Subgoal {n} is {result}. Should we stop planning?"


def ground(task: str, actions: Mapping[str, str], subgoal: str) -> str:
    """Write the first request to a grounder.

    `actions`: each action with its definition (`Knowledge.actions`). `subgoal`: the first subgoal, numbered; or
    all subgoals of a plan that was written at once, joined with "; ".
    """
    listed = "\n".join(text or name for name, text in actions.items())
    several = "; Subgoal 2: " in subgoal
    instruction = _GROUND.format(s="s" if several else "")
    interfaces = f"The available actions are:\n{listed}\n" if listed else ""
    return f"{instruction}\n{interfaces}Task: {task}\n{ground_next(subgoal)}"


def ground_next(subgoal: str) -> str:
    """Write the request to a grounder for a further subgoal."""
    return f"Subgoal{'s' if '; Subgoal 2: ' in subgoal else ''} to be grounded: {subgoal}"


def conversation_prompt(
    loaded: LoadedModel,
    turns: Sequence[Turn],
    user: str,
    brief: str = "",
    begun: str = "",
    shots: Sequence[str] = (),
) -> str:
    """Write a conversation up to where the answer to the `user`'s last text begins, followed by its beginning `begun`.

    Before it stand the worked examples, `shots`, whole conversations. If it doesn't fit the context, examples are left
    out, then turns after the first, the oldest first; then the user's first text is replaced by `brief`; finally the
    beginning of the remaining text is cut off.
    """
    users, answers = [*(turn.user for turn in turns), user], [turn.assistant for turn in turns]
    # Ever less is shown: fewer examples, fewer turns between the first and the last, then a shorter first text, then
    # less of the text.
    less = [*((len(turns), examples) for examples in range(len(shots), -1, -1)), *((kept, 0) for kept in KEPT_STEPS)]
    for first in filter(None, [users[0], brief]):
        users[0] = first
        for kept, examples in less:
            late = max(len(turns) - kept, 1)
            shown = [Turn(*turn) for turn in zip(users, answers)]
            examples_text = "".join(shots[:examples])
            prompt = examples_text + conversation(shown[:1] + shown[late:], users[-1]) + begun
            if leaves_room(loaded, prompt):
                return prompt
    while not leaves_room(loaded, prompt):
        prompt = prompt[len(prompt) // 10 + 1 :]
    return prompt


def question_prompt(loaded: LoadedModel, question: str, texts: Sequence[str]) -> str:
    """Write a question with the texts to answer it from, each cut if they don't fit the context."""
    longest = max(map(len, texts), default=0)
    tries = (longest >> halved for halved in range(longest.bit_length() + 1))
    founds = ("\n\n".join(text[:shown] for text in texts) for shown in tries)
    return instruction_that_fits(
        loaded,
        (
            f"Answer in a few words, from what was found.\n\n{found}\n\nQuestion: {question}\nAnswer:"
            for found in founds
        ),
    )
