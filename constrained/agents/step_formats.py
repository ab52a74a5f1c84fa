"""The step formats: the grammar of one step, and reading a step back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from constrained.agents.parse import parse
from constrained.agents.steps import FORMATS, UNNUMBERED, action_path
from constrained.errors import ConstrainedError
from constrained.grammar import Grammar

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
