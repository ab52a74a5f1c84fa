"""The record of a run: one JSON Lines file, written as it happens, from which a run that was broken off goes on.

The first line says what was run: strategy, models, settings, versions. Every other line belongs to one task, named in
"task", and holds either a "step" with the "answers" that models wrote since the task's last line, or the "end" with
outcome, note and usage; "again" says that what stood there of the task counts no more. As environments answer alike to
the like, and strategies ask alike, the answers are all it takes to bring an unfinished task back to where it was.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from constrained.agents.messages import Answer
from constrained.agents.plan import Plan
from constrained.errors import DataError


@dataclass
class UnfinishedTask:
    """The record of a task that was broken off: its steps, and the answers that made them."""

    steps: list[dict] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)

    def take(self, line: dict) -> None:
        """Add the line of a step."""
        self.steps.append(line["step"])
        self.answers += (Answer(**answer) for answer in line["answers"])


class RunFile:
    """A run's file, held by one process at a time; a context manager.

    Parameters
    ----------
    path : Path
    header : mapping
        What is run. A file that is there already must have the same.

    Attributes
    ----------
    finished : dict of str to dict
        The "end" of each task that is over, with its task's name.
    begun : dict of str to UnfinishedTask
        What there is of tasks that are not. Both grow with what is written.

    Raises
    ------
    DataError
        Another process writes to the file, it is damaged, or is the record of another run.
    """

    def __init__(self, path: str | Path, header: Mapping[str, Any]):
        self.path = Path(path)
        self.header = json.loads(json.dumps(header))
        self.finished: dict[str, dict] = {}
        self.begun: dict[str, UnfinishedTask] = {}
        self._file = None
        self._lock = FileLock(self.path.with_name(f".{self.path.name}.lock"))

    def __enter__(self) -> RunFile:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise DataError(
                f"another run is writing to {self.path}", "wait for it, or give this one a folder of its own"
            ) from None
        try:
            self._take_up()
            self._file = self.path.open("a", encoding="utf-8")
            if not self.path.stat().st_size:
                self.write({"run": self.header})
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._lock.release()

    def write(self, line: dict) -> None:
        """Add one line."""
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._file.flush()
        self._take(line)

    def _take_up(self) -> None:
        """Read what is there; a last line cut short is dropped, for it is played again."""
        if not self.path.exists():
            return
        whole = 0
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    break
                self._read(number, line)
                whole += len(line)
        if whole < self.path.stat().st_size:
            os.truncate(self.path, whole)

    def _read(self, number: int, text: bytes) -> None:
        line = parsed(self.path, number, text)
        if number == 1:
            if line.get("run") != self.header:
                raise DataError(
                    f"{self.path} is the record of another run", "move it away, or give this run a folder of its own"
                )
            return
        self._take(line)

    def _take(self, line: dict) -> None:
        if "run" in line:
            return
        task = line["task"]
        if "end" in line:
            self.finished[task] = line["end"]
            if "failure" not in line["end"]:  # what failed can be taken up where it did
                self.begun.pop(task, None)
        elif "step" in line:
            self.begun.setdefault(task, UnfinishedTask()).take(line)
        else:
            self.begun.pop(task, None)


def read_run(path: str | Path) -> Iterator[dict]:
    """The lines of a run's file, the first its header; one cut short at the end is left out.

    Raises
    ------
    DataError
        The file is missing or damaged.
    """
    try:
        with Path(path).open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n"):
                    yield parsed(path, number, line)
    except OSError as error:
        raise DataError(f"can't read {path}: {error.strerror}", "give the .jsonl file of a run") from None


def read_tasks(path: str | Path) -> dict[str, tuple[UnfinishedTask, dict]]:
    """The steps and answers of each task of a run's file that is over, and its "end".

    Raises
    ------
    DataError
        The file is missing or damaged.
    """
    begun: dict[str, UnfinishedTask] = {}
    ends: dict[str, dict] = {}
    for line in read_run(path):
        if "end" in line:  # of one that failed and was taken up again, the last
            ends[line["task"]] = line["end"]
            begun.setdefault(line["task"], UnfinishedTask())
        elif "step" in line:
            begun.setdefault(line["task"], UnfinishedTask()).take(line)
        elif "task" in line:
            begun.pop(line["task"], None)
    return {task: (begun[task], end) for task, end in ends.items()}


def parsed(path: str | Path, number: int, text: bytes) -> dict:
    """One line of a run's file; DataError with its place if it is none."""
    try:
        line = json.loads(text)
        if isinstance(line, dict) and ("run" in line if number == 1 else "task" in line):
            return line
        problem = "not a line of a run"
    except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, a number without end, brackets without end
        problem = f"damaged: {error}"
    raise DataError(f"{path}, line {number}: {problem}", "move the file away to play its tasks again")


def new_run(path: str | Path, header: Mapping[str, Any]) -> RunFile:
    """The file of a run that begins anew, in place of an earlier one's.

    Raises
    ------
    DataError
        What is there is no run's file.
    """
    if Path(path).exists():
        next(read_run(path), None)
        os.unlink(path)
    return RunFile(path, header)


def lines_since(task: str, plan: Plan, steps: int, answers: int) -> Iterator[dict]:
    """The lines of what a plan has beyond so many steps and answers, the answers with the first of the steps."""
    written = plan.answers[answers:]
    for step in plan.steps[steps:]:
        yield {"task": task, "step": asdict(step), "answers": [_line(answer) for answer in written]}
        written = []


def _line(answer: Answer) -> dict:
    data = asdict(answer)
    if answer.trace is None:
        del data["trace"]
    return data


def digest(text: str) -> str:
    """A short name for a text, such as that of action knowledge: the same texts have the same."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def summary(plan: Plan) -> dict[str, Any]:
    """What the "end" of a task says of its plan; rates need no more than this."""
    last = plan.last_phase
    return {
        "success": bool(plan.success),
        "outcome": plan.outcome,
        "note": plan.note,
        "steps": len(last),
        "actions": len(plan.steps),
        "invalid": plan.invalid,
        "misordered": plan.misordered,
        "no effect": sum(s.had_effect is False for s in plan.steps),
        "pruned mass": sum(plan.pruned_mass) / max(len(plan.steps), 1),
        "usage": plan.usage_by_role,
    }
