"""KnowAgent's released runs, ALFWorld's and HotpotQA's: what they did, how long they are, and what came of them.

An ALFWorld run is one text, in which lines that begin with "> " are thoughts, paths and actions, each followed by the
game's answer. A HotpotQA run is the prompt as it stood at the end: examples, the question, and numbered lines.
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
    """One run as it was released.

    Attributes
    ----------
    benchmark : str
        "ALFWorld" or "HotpotQA".
    task : str
        The game's name, or the question.
    given : str
        What was there to begin with: the room and the task, or the question.
    text : str
        What followed: paths, thoughts, actions and observations, as written.
    turns : tuple of (str, str or None)
        Each action with its observation; None where the text has none.
    paths : tuple of (str, int)
        Each ActionPath as written, with the number of actions done before it; of HotpotQA only, whose paths
        claim to list all that was done.
    length : int
        As the authors' program measures it. ALFWorld: the lines with "> " in them. HotpotQA: the actions on the last
        ActionPath line, Finish apart.
    success : bool or None
        None where the row doesn't say.
    outcome : dict of str to float
    source : str
        "FILE:LINE".
    """

    benchmark: str
    task: str
    given: str
    text: str
    turns: tuple[tuple[str, str | None], ...]
    paths: tuple[tuple[str, int], ...]
    length: int
    success: bool | None
    outcome: dict[str, float]
    source: str

    @property
    def actions(self) -> list[str]:
        """What was done, in order."""
        return [action for action, _ in self.turns]

    def trajectory(self, acts: Iterable[Act]) -> Trajectory:
        """The run with the verdicts on its actions (see `constrained.training.judging`).

        Raises
        ------
        DataError
            It doesn't say what came of it.
        """
        if self.success is None:
            raise DataError(f"{self.source}: nothing says whether this run succeeded",
                            "ALFWorld runs say so under 'result', HotpotQA runs under 'correct'")  # fmt: skip
        trouble = first_trouble(self.text)
        return Trajectory(self.task, self.success, tuple(acts), self.length, self.outcome, trouble, self.source)


def read_released(path: str | Path, limit: int | None = None) -> list[ReleasedRun]:
    """The runs of a `.jsonl` or `.jsonl.gz` file, or the first so many of them.

    Raises
    ------
    DataError
        The file is missing, cut short, not one JSON object a line, of another form, or holds no runs.
    """
    runs: list[ReleasedRun] = []
    read = None
    for place, row in read_rows(path):
        read = read or _reader(path, row)
        # The place ends in the row's number, which is the line's: empty lines count.
        runs.append(read(place, row, f"{path}:{place.rpartition(' ')[2]}"))
    if not runs:
        raise DataError(f"{path} holds no runs")
    return runs[:limit]


def split_text(trajectory: str) -> tuple[str, list[tuple[str, str]]]:
    """The first observation of an ALFWorld run, and each action with the answer to it."""
    first, *blocks = trajectory.split("\n> ")
    turns = []
    for block in blocks:
        action, _, observation = block.partition("\n")
        if not action.lower().startswith(("think:", "actionpath:")):
            turns.append((action, observation.rstrip("\n")))
    return first, turns


def _reader(path, first: dict):
    if {"name", "traj"} <= first.keys():
        return _alfworld
    if {"question", "prompt"} <= first.keys():
        return _hotpotqa
    raise DataError(
        f"{path}: runs of an unknown form ({', '.join(first) or 'empty objects'})",
        "understood are KnowAgent's ALFWorld (name, traj) and HotpotQA (question, prompt) runs",
    )


def _alfworld(place: str, row: dict, source: str) -> ReleasedRun:
    name, whole = fields(place, row, name=str, traj=str)
    given, turns = split_text(whole)
    success = _success(place, row, "result")
    length = sum("> " in line for line in whole.strip().split("\n"))
    return ReleasedRun(
        ALFWORLD, name, given, whole[len(given) :].strip("\n"), tuple(turns), (), length, success,
        {} if success is None else {"success": float(success)}, source,
    )  # fmt: skip


def _hotpotqa(place: str, row: dict, source: str) -> ReleasedRun:
    question, prompt = fields(place, row, question=str, prompt=str)
    own = prompt.rpartition(_EXAMPLES_END)[2]
    success = _success(place, row, "correct")
    outcome = {} if success is None else {"success": float(success)}
    if "reward" in row:
        outcome["f1"] = _number(place, row, "reward")
    begins = _LINE.search(own)
    turns: list[tuple[str, str | None]] = []
    paths = []
    for kind, _, text in _LINE.findall(own):
        if kind == "ActionPath":
            paths.append((text, len(turns)))
        elif kind == "Action":
            turns.append((text.strip(), None))
        elif turns:
            turns[-1] = turns[-1][0], text
    length = _length(paths[-1][0]) if paths else len(turns)
    text = own[begins.start() :].strip("\n") if begins else ""
    return ReleasedRun(
        HOTPOTQA, question, f"Question: {question}", text, tuple(turns), tuple(paths), length, success, outcome, source
    )


def _length(path: str) -> int:
    """The actions on an ActionPath line up to a Finish, which some runs write before they do it; "Start" is none."""
    *closed, rest = path.partition("->Finish")[0].split("]")
    # What brackets hold may have an arrow in it. No regular expression: thousands of "[" would cost it a square.
    names = "".join(piece.partition("[")[0] for piece in closed) + rest
    return sum(name.strip() not in ("", "Start") for name in names.split("->"))


def _success(place: str, row: dict, name: str) -> bool | None:
    value = row.get(name)
    if value is None and name not in row:
        return None
    if value not in (True, False):  # 0 and 1 among them: some of ALFWorld's runs say 0
        raise DataError(f"{place}: {value!r} under {name!r} is neither true nor false")
    return bool(value)


def _number(place: str, row: dict, name: str) -> float:
    value = row[name]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise DataError(f"{place}: no number under {name!r}")
    return float(value)
