"""Demonstrations: worked examples of a task, for prompts (KnowAgent's fourth prompt segment, section 3.2.2).

A `.lark` file may hold its own, as comments of their own:

    // Example: look up order A17
    // > look up A17
    // A17 arrived broken.

Lines that begin with ``>`` are actions, the lines after one are its answer, and those before the first action are what
is seen at the start. A line that begins with ``?`` is the thought before the next action.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from constrained.grammar.lark_outline import comments

EXAMPLE = "Example:"
"""Begins the comment of a demonstration."""


class Demonstrated(NamedTuple):
    """One step of a demonstration."""

    action: str
    observation: str = ""
    thought: str = ""


@dataclass(frozen=True)
class Demonstration:
    """A task that was carried out, step by step.

    Attributes
    ----------
    task : str
    steps : tuple of Demonstrated
    first_observation : str
        What is seen before the first step.
    """

    task: str
    steps: tuple[Demonstrated, ...]
    first_observation: str = ""


def read_demonstrations(text: str) -> Iterator[Demonstration]:
    """The demonstrations in the comments of a `.lark` file."""
    block: list[str] = []
    last = 0
    for comment in [*(c for c in comments(text) if c.alone), None]:
        begins = comment is None or comment.line != last + 1 or comment.text.startswith(EXAMPLE)
        if begins:
            if block and block[0].startswith(EXAMPLE):
                yield _read(block)
            block = []
        if comment is not None:
            block.append(comment.text)
            last = comment.line


def _read(lines: Sequence[str]) -> Demonstration:
    task, first, thought = lines[0].removeprefix(EXAMPLE).strip(), [], ""
    steps: list[Demonstrated] = []
    for line in lines[1:]:
        if line.startswith("?"):
            thought = line[1:].strip()
        elif line.startswith(">"):
            steps.append(Demonstrated(line[1:].strip(), "", thought))
            thought = ""
        elif steps:
            steps[-1] = steps[-1]._replace(observation="\n".join(filter(None, [steps[-1].observation, line])))
        else:
            first.append(line)
    return Demonstration(task, tuple(steps), "\n".join(first))
