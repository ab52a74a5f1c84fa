"""The formats of one step: its beginning, its grammar (`grammars/steps/`), and how it is read back.

The formats are KnowAgent's (ActionPath, Thought, Action; its section 3.2), ReAct's (Thought, Action) and the bare
action; for models other than the embedded one also those of chain of thought and of FireAct's data. Agents and the
trainer of the embedded model share these texts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from constrained.automaton import Grammar
from constrained.automaton.parse import parse
from constrained.errors import ConstrainedError
from constrained.grammar import ContextFreeGrammar
from constrained.knowledge.commands import on_one_line

FORMATS = ("act", "react", "knowagent")
"""The formats that the embedded model was trained on."""

FIREACT = "fireact"
"""The format of FireAct's data."""

UNNUMBERED = ("cot", FIREACT)
"""Formats of other models, whose lines have no numbers."""

BARE = "bare"
"""The format "act" in a conversation: a turn is the action and nothing else."""

MAX_THOUGHT = 200
"""Characters of a thought, as the step grammars bound it."""

_HEADS = {
    "act": "Action {n}: ",
    BARE: "",
    "react": "Thought {n}: ",
    "knowagent": "ActionPath {n}: {path}\nThought {n}: ",
    "cot": "Thought: ",
    FIREACT: "Thought: ",
}


class StepText(NamedTuple):
    """The parts of one step's text: the thought (empty for `act`) and the action."""

    thought: str
    action: str


def action_path(path: Sequence[str]) -> str:
    """The actions done so far as KnowAgent writes them: ``Start->go to desk 1``."""
    return "->".join(["Start", *map(on_one_line, path)])


def step_head(name: str, n: int, path: Sequence[str] | None = ()) -> str:
    """The fixed beginning of step `n`, after which the model writes.

    Parameters
    ----------
    name : str
        One of `FORMATS` or `UNNUMBERED`, or `BARE`.
    n : int
        Number of the step, from 1.
    path : sequence of str or None
        The effective actions so far; only ``knowagent`` shows them. None: the model writes the path, too.

    Raises
    ------
    ConstrainedError
        There is no such format.
    """
    head = _HEADS[_known(name)]
    return head.format(n=n, path=action_path(path)) if path is not None else head.partition("{path}")[0].format(n=n)


def step_prompt(memory_text: str, name: str, n: int, path: Sequence[str] = ()) -> str:
    """The embedded model's prompt for step `n`: the memory's lines, then the step's head."""
    return f"{memory_text}\n{step_head(name, n, path)}"


def step_answer(name: str, n: int, thought: str, action: str) -> str:
    """The text that the embedded model should write after `step_prompt`, without the end-of-text token."""
    return action if name == "act" else f"{thought}\nAction {n}: {action}"


@cache
def shipped_grammar(name: str) -> Grammar:
    """A grammar that ships, such as "steps/thought", its slots unbound; it is read once."""
    return Grammar.from_lark(name)


def step_format(name: str) -> Grammar:
    """The grammar of one step, its slots unbound. Raises ConstrainedError: there is no such format."""
    return shipped_grammar(f"steps/{_known(name)}")


def step_grammar(name: str, n: int, path: Sequence[str], action: Grammar) -> Grammar:
    """The grammar of step `n`: number and path are forced text, `action` is the grammar of its action."""
    step = step_format(name)
    values = {"N": str(n), "PATH": action_path(path), "ACTION": action}
    return step.bind(**{slot: values[slot] for slot in step.slots})


def thought_grammar(n: int) -> Grammar:
    """The grammar of step `n`'s thought and line end, for a ReAct step whose action is written separately."""
    return shipped_grammar("steps/thought").bind(N=str(n))


def parse_step(grammar: ContextFreeGrammar, text: str) -> StepText:
    """The thought and the action of a whole step that was written under masks of `grammar`.

    The action is exactly the text of the grammar's slot; spaces around the thought are dropped.
    """
    parts = parse(grammar, text)
    return StepText(parts.get("thought", "").strip(), parts["ACTION"])


def read_step(name: str, n: int, text: str) -> StepText:
    """The thought and the action of a step that was written without masks; an empty action if there is none.

    The action is the rest of the first line that begins with "Action"; the thought is the text before that line. Spaces
    around both are dropped. `text` may lack the step's head, or have a path before the thought.
    """
    if name in ("act", BARE):
        return StepText("", text.removeprefix(f"Action {n}: ").split("\n", 1)[0].strip())
    before, *after = re.split(r"(?:^|\n)Action(?: \d+)?: ?", text, maxsplit=1)
    thought = re.sub(r"(?s)^.*?Thought(?: \d+)?: ?", "", before).strip()
    return StepText(thought, after[0].split("\n", 1)[0].strip() if after else "")


def read_path(text: str) -> str:
    """The path in a step of ``knowagent`` that a model wrote from its beginning: the first line, in one spelling.

    Empty if the first line is a thought or an action.
    """
    line = re.sub(r"^ActionPath(?: \d+)?: ?", "", text.strip()).split("\n", 1)[0]
    return "" if re.match(r"(Thought|Action)(?: \d+)?:", line) else re.sub(r"\s*->\s*", "->", line).strip()


def _known(name: str) -> str:
    if name not in _HEADS:
        raise ConstrainedError(f"no step format {name!r}", f"use one of {', '.join((*FORMATS, *UNNUMBERED))}")
    return name
