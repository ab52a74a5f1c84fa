"""Read KnowAgent's released runs of ALFWorld and HotpotQA: their actions, lengths and outcomes.

An ALFWorld run is one text, in which lines that begin with "> " are thoughts, paths and actions, each followed by the
game's reply. A HotpotQA run is the final prompt: examples, the question, and numbered lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from constrained.environments.data import fields, read_rows
from constrained.errors import DataError
from constrained.training.trajectory import Act, Trajectory, first_trouble

ALFWORLD, HOTPOTQA = "ALFWorld", "HotpotQA"

_LINE = re.compile(r"(?m)^(ActionPath|Action|Observation) (\d+): ?(.*)$")
_EXAMPLES_END = "(END OF EXAMPLES)"


@dataclass(frozen=True)
class ReleasedRun:
    """One released run."""

    benchmark: str  # "ALFWorld" or "HotpotQA"
    task: str  # the game's name, or the question
    given: str  # the beginning: the room and the task, or the question
    text: str  # the rest: paths, thoughts, actions and observations, as written
    turns: tuple[tuple[str, str | None], ...]  # each action with its observation; None if the text has none
    # HotpotQA only: each ActionPath as written, with the number of actions done before it.
    paths: tuple[tuple[str, int], ...]
    # As in the authors' program. ALFWorld: the lines with "> " in them. HotpotQA: the actions on the last ActionPath
    # line, except Finish.
    length: int
    success: bool | None  # None if the row doesn't say
    f1: float | None  # HotpotQA only; None if the row doesn't say
    source: str  # "FILE:LINE"

    @property
    def actions(self) -> list[str]:
        """The actions in order."""
        return [action for action, _ in self.turns]

    @property
    def outcome(self) -> dict[str, float]:
        """The measures that the row gives."""
        measures = {"success": self.success, "f1": self.f1}
        return {name: float(value) for name, value in measures.items() if value is not None}

    def trajectory(self, acts: Iterable[Act]) -> Trajectory:
        """The run as a trajectory, with verdicts on its actions (see `constrained.training.judging`).

        Raises DataError: the run doesn't say whether it succeeded.
        """
        if self.success is None:
            raise DataError(
                f"{self.source}: nothing says whether this run succeeded",
                "ALFWorld runs say so under 'result', HotpotQA runs under 'correct'",
            )
        trouble = first_trouble(self.text)
        return Trajectory(self.task, self.success, tuple(acts), self.length, self.outcome, trouble, self.source)


def read_released(path: str | Path, limit: int | None = None) -> list[ReleasedRun]:
    """The runs of a `.jsonl` or `.jsonl.gz` file, or its first `limit` runs.

    Raises DataError: the file is missing, truncated, not JSON Lines, of another form, or holds no runs.
    """
    runs: list[ReleasedRun] = []
    reader = None
    for where, row in read_rows(path):
        reader = reader or _reader(path, row)
        # `where` ends with the row's number, which is its line number: empty lines count.
        runs.append(reader(where, row, f"{path}:{where.rpartition(' ')[2]}"))
    if not runs:
        raise DataError(f"{path} holds no runs")
    return runs[:limit]


def split_text(trajectory: str) -> tuple[str, list[tuple[str, str]]]:
    """The first observation of an ALFWorld run, and each action with the reply to it."""
    first, *blocks = trajectory.split("\n> ")
    turns = []
    for block in blocks:
        action, _, observation = block.partition("\n")
        if not action.lower().startswith(("think:", "actionpath:")):
            turns.append((action, observation.rstrip("\n")))
    return first, turns


def _reader(path: str | Path, first: dict):
    if {"name", "traj"} <= first.keys():
        return _alfworld
    if {"question", "prompt"} <= first.keys():
        return _hotpotqa
    raise DataError(
        f"{path}: runs of an unknown form ({', '.join(first) or 'empty objects'})",
        "known are KnowAgent's ALFWorld (name, traj) and HotpotQA (question, prompt) runs",
    )


def _alfworld(where: str, row: dict, source: str) -> ReleasedRun:
    name, whole = fields(where, row, name=str, traj=str)
    head, turns = split_text(whole)
    text, length = whole[len(head) :].strip("\n"), sum("> " in line for line in whole.strip().split("\n"))
    success = _success(where, row, "result")
    return ReleasedRun(ALFWORLD, name, head, text, tuple(turns), (), length, success, None, source)


def _hotpotqa(where: str, row: dict, source: str) -> ReleasedRun:
    question, prompt = fields(where, row, question=str, prompt=str)
    own = prompt.rpartition(_EXAMPLES_END)[2]
    begin = _LINE.search(own)
    turns: list[tuple[str, str | None]] = []
    paths: list[tuple[str, int]] = []
    # An observation belongs to the action before it; a path is kept with the number of actions done by then.
    for kind, _, text in _LINE.findall(own):
        if kind == "ActionPath":
            paths.append((text, len(turns)))
        elif kind == "Action":
            turns.append((text.strip(), None))
        elif turns:
            turns[-1] = turns[-1][0], text
    return ReleasedRun(
        HOTPOTQA,
        question,
        f"Question: {question}",
        own[begin.start() :].strip("\n") if begin else "",
        tuple(turns),
        tuple(paths),
        _length(paths[-1][0]) if paths else len(turns),
        _success(where, row, "correct"),
        _number(where, row, "reward") if "reward" in row else None,
        source,
    )


def _length(path: str) -> int:
    """Count the actions on an ActionPath line, without "Start", up to a Finish, which some runs write too early."""
    *closed, rest = path.partition("->Finish")[0].split("]")
    # Brackets may hold an arrow. A regular expression would take quadratic time with thousands of "[".
    names = "".join(piece.partition("[")[0] for piece in closed) + rest
    return sum(name.strip() not in ("", "Start") for name in names.split("->"))


def _success(where: str, row: dict, name: str) -> bool | None:
    if name not in row:
        return None
    if row[name] not in (True, False):  # 0 and 1 are allowed: some of ALFWorld's runs say 0
        raise DataError(f"{where}: {row[name]!r} under {name!r} is neither true nor false")
    return bool(row[name])


def _number(where: str, row: dict, name: str) -> float:
    value = row[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise DataError(f"{where}: no number under {name!r}")
    return float(value)
