"""Worked examples of ALFWorld's six kinds of tasks: transcripts of its expert in training games."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache

from constrained.environments.data import archive_files, data_file, data_folder
from constrained.errors import DataError
from constrained.knowledge.demonstration import Demonstrated, Demonstration

TRANSCRIPTS = "alfworld/expert_gt_traj_train.tar.xz"
"""A list of turns for each training game (`gt_traj.json`): observations and the expert's actions in turn."""

STEPS = range(6, 15)
"""Numbers of actions that an example may have: it looks around, and leaves room in a prompt."""

_TASK = re.compile(r"\n\nYour task is to: ([^\n]+)$")
_ROOM = re.compile(r"-(\d+)/")


def transcribed(task_type: str, name: str) -> list[Demonstration]:
    """The examples of a task type, the shortest first; none if the transcripts aren't in the data folder.

    Parameters
    ----------
    task_type : str
        One of `TASK_TYPES`.
    name : str
        The name of the game that is played. ALFWorld's names tell the room: examples are from other rooms, so they
        don't tell what lies where.

    Raises
    ------
    DataError
        A transcript is damaged.
    """
    if not (data_folder() / TRANSCRIPTS).is_file():
        return []
    room = _room(name)
    return [example for where, example in _of_type(task_type) if not room or _room(where) != room]


def _room(name: str) -> str:
    number = _ROOM.search(name)
    return number[1] if number else ""


@cache
def _of_type(task_type: str) -> tuple[tuple[str, Demonstration], ...]:
    """The examples of a task type with their games' names, the shortest first."""
    return tuple(sorted(_read(task_type), key=lambda one: (len(one[1].steps), one[0])))


def _read(task_type: str) -> Iterator[tuple[str, Demonstration]]:
    def wanted(path: str) -> bool:
        return path.endswith("/gt_traj.json") and path.split("/")[-3].startswith(f"{task_type}-")

    for path, content in archive_files(data_file(TRANSCRIPTS), wanted):
        name = "/".join(path.split("/")[-3:-1])
        try:
            first, *texts = (turn["value"] for turn in json.loads(content))
            sentence = _TASK.search(first)
            steps = tuple(map(Demonstrated, texts[::2], texts[1::2]))
        except (ValueError, LookupError, TypeError) as error:
            raise DataError(
                f"{TRANSCRIPTS}: {path} is not a list of turns: {error!r}", hint="fetch it again"
            ) from error
        if len(steps) in STEPS and sentence and _is_clear(steps):
            yield name, Demonstration(sentence[1], steps, first)


def _is_clear(steps: tuple[Demonstrated, ...]) -> bool:
    """Whether the thing is found after another place was searched, and the last action is what the task asks for.

    In some rooms one stove burner counts as another: then the goal is reached before the thing is put down.
    """
    taken = next((n for n, step in enumerate(steps) if step.action.startswith("take ")), 0)
    searched = sum(step.action.startswith("go to ") for step in steps[:taken])
    return searched > 1 and steps[-1].action.startswith(("put ", "use "))
