"""The step formats: the grammar of one step, and reading a step back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from constrained.agents.parse import parse
from constrained.automaton import Grammar
from constrained.errors import ConstrainedError

FORMATS = ("act", "react", "knowagent")
"""What the embedded model learned to write."""

UNNUMBERED = ("cot", "fireact")
"""Formats of other models' own, whose lines have no numbers."""


def action_path(path: Sequence[str]) -> str:
    """The actions done so far as KnowAgent writes them: ``Start->go to desk 1``."""
    return "->".join(["Start", *path])


def step_prompt(memory_text: str, step_format: str, n: int, path: Sequence[str] = ()) -> str:
    """What the model reads before it writes step `n`.

    Parameters
    ----------
    memory_text : str
        The memory's lines (`constrained.environments.household.memory.Memory.text`).
    step_format : str
        One of `FORMATS` or `UNNUMBERED`.
    n : int
        Number of the step, from 1.
    path : sequence of str
        The effective actions so far, verbatim; only ``knowagent`` shows them.

    Returns
    -------
    str
        Ends right before the first text that the model writes itself.

    Raises
    ------
    ValueError
        There is no such format.
    """
    if step_format == "act":
        return f"{memory_text}\nAction {n}: "
    if step_format == "react":
        return f"{memory_text}\nThought {n}: "
    if step_format in UNNUMBERED:
        return f"{memory_text}\nThought: "
    if step_format == "knowagent":
        return f"{memory_text}\nActionPath {n}: {action_path(path)}\nThought {n}: "
    raise ValueError(f"unknown step format {step_format!r}: use one of {', '.join((*FORMATS, *UNNUMBERED))}")


def step_answer(step_format: str, n: int, thought: str, action: str) -> str:
    """What the model should write after `step_prompt`, without the end token."""
    return action if step_format == "act" else f"{thought}\nAction {n}: {action}"


MAX_THOUGHT = 200
"""Characters of a thought, as the step grammars bound it."""


@dataclass(frozen=True)
class StepText:
    """One step's text, read: the thought (empty for `act`) and the action."""

    thought: str
    action: str


@cache
def step_format(name: str) -> Grammar:
    """The grammar of one step, its slots unbound (`grammars/steps/`).

    Raises
    ------
    ConstrainedError
        No such format.
    """
    known = (*FORMATS, *UNNUMBERED)
    if name not in known:
        raise ConstrainedError(f"no step format {name!r}", f"use one of {', '.join(known)}")
    return Grammar.from_lark(f"steps/{name}")


def step_grammar(name: str, n: int, path, action: Grammar) -> Grammar:
    """The grammar of step `n`: number and path are forced text, the action is one of `action`'s."""
    step = step_format(name)
    values = {"N": str(n), "PATH": action_path(path), "ACTION": action}
    return step.bind(**{slot: values[slot] for slot in step.slots})


def thought_grammar(n: int) -> Grammar:
    """The thought of step `n` with the end of its line: a ReAct step whose action is asked for by itself."""
    return _thought().bind(N=str(n))


@cache
def _thought() -> Grammar:
    return Grammar.from_lark("steps/thought")


def parse_step(grammar: Grammar, text: str) -> StepText:
    """Thought and action of a step that masks let a model write: what `grammar` read as these.

    The action is exact; spaces around the thought are dropped, as nothing is done by it.

    Parameters
    ----------
    grammar : Grammar
        That of the step (`step_grammar`).
    text : str
        The whole step, with what the prompt held of it.
    """
    parts = parse(grammar, text)
    return StepText(parts.get("thought", "").strip(), parts["ACTION"])


def read_step(name: str, n: int, text: str) -> StepText:
    """Thought and action of what a model wrote without masks; an empty action where none can be made out.

    The action is what follows the first "Action" at the beginning of a line, up to the line's end; the thought is
    what stands before it. Spaces around both are dropped. `text` may lack its head, which the prompt ends with.
    """
    if name == "act":
        return StepText("", text.removeprefix(f"Action {n}: ").split("\n", 1)[0].strip())
    parts = re.split(r"(?:^|\n)Action(?: \d+)?: ?", text, maxsplit=1)
    thought = re.sub(r"(?s)^.*?Thought(?: \d+)?: ?", "", parts[0]).strip()
    return StepText(thought, parts[1].split("\n", 1)[0].strip() if len(parts) == 2 else "")
