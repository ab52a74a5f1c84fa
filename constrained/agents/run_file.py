"""The file of a run: JSON Lines, written as the run proceeds, from which an interrupted run continues.

The first line is the header: strategy, models, settings, versions. Every other line belongs to one task, named in
"task", and holds one of three things: a "step" with the "answers" that models wrote since the task's last line; the
"end" with outcome, note and usage; or "again", which discards the earlier lines of the task. Environments and
strategies are deterministic, so replaying the recorded answers brings an unfinished task back to where it was.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, TextIO

from filelock import FileLock

from constrained.agents.plan import Plan
from constrained.decoding.request import Generation, PrunedMass
from constrained.errors import DataError
from constrained.files import acquire

MAX_LINE = 8 << 20
"""Most bytes of one line: some 60,000 traced tokens. Reading one takes about twenty times its bytes."""

_ANSWER = ("text", "role", "model", "prompt_tokens", "completion_tokens", "forced_tokens", "forward_passes")
_KEYS = (frozenset({"step", "end", "again"}), frozenset({"settings"}))  # one of a task's line; of the header


@dataclass
class TaskRecord:
    """The record of a task: the lines of its steps with their line numbers, and its "end" once it is over."""

    kept: list[tuple[int, dict | bytes]] = field(default_factory=list)
    end: dict | None = None

    def add(self, line: dict, number: int = 0, text: bytes | None = None) -> None:
        """Add one line; "again" discards those before it, and a task that failed goes on with its next step.

        Its `text` is kept instead where it is given: the line as read takes up to twenty times the memory.
        """
        self.end = line["end"] if isinstance(line.get("end"), dict) else None
        if "step" in line:
            self.kept.append((number, line if text is None else text))
        elif self.end is None:
            self.kept = []

    def lines(self) -> Iterator[tuple[int, dict]]:
        """Yield the lines of the steps, with their numbers."""
        for number, line in self.kept:
            yield number, line if isinstance(line, dict) else json.loads(line)

    @property
    def steps(self) -> list[dict]:
        """The recorded steps."""
        return [line["step"] for _, line in self.lines()]

    @property
    def answers(self) -> list[Generation]:
        """The recorded answers, in order."""
        return [_read_answer(answer) for _, line in self.lines() for answer in line["answers"]]


class RunFile:
    """A run's file, written by one process at a time; a context manager.

    Parameters
    ----------
    path : Path
    header : mapping
        Everything that determines the run: models, settings, versions.
    replace : bool
        Replace the file of an earlier run, or an empty file; any file that can't be read as a run, line by line, is
        refused and left as it is. By default an existing file is continued, and must have the same header.

    Attributes
    ----------
    tasks : dict of str to TaskRecord
        The record of each task, by name, updated by `write`. Of a finished task only the "end" is kept.

    Raises
    ------
    DataError
        Another process is writing to the file, or it is damaged, not a run, or the record of another run; or it is a
        device or FIFO, which can't be read again.
    """

    def __init__(self, path: str | Path, header: Mapping[str, Any], *, replace: bool = False):
        self.path, self.replace = Path(path), replace
        self.header = json.loads(json.dumps(header))
        self.tasks: dict[str, TaskRecord] = {}
        self._file: TextIO | None = None
        if not self.path.name:
            raise DataError(f"{str(path)!r} is not the name of a file", "name a .jsonl file for the run")
        self._lock = FileLock(self.path.with_name(f".{self.path.name}.lock"))

    def __enter__(self) -> RunFile:
        if self.path.exists() and not (self.path.is_file() or self.path.is_dir()):
            raise DataError(f"{self.path} is not a regular file, so no run can be recorded in it", "name a .jsonl file")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        acquire(
            self._lock, f"another run is writing to {self.path}", "wait for it, or give this one a folder of its own"
        )
        try:
            whole = self._read() if self.path.exists() else 0
            # Only after the whole file was read as a run may it be cut.
            self._file = self.path.open("a", encoding="utf-8")
            self._file.truncate(whole)  # a last line cut short is dropped: its step is played again
            if not whole:
                self.write({"run": self.header})
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        self._lock.release()

    def write(self, line: dict) -> None:
        """Add one line. One that would be too long to be read again is written without its tokens' traces.

        Raises DataError: it would be too long even then.
        """
        assert self._file is not None, "the file is written inside its context"
        text = json.dumps(line, ensure_ascii=False) + "\n"
        if _too_long(text) and "answers" in line:
            line = {**line, "answers": [{k: v for k, v in one.items() if k != "trace"} for one in line["answers"]]}
            text = json.dumps(line, ensure_ascii=False) + "\n"
        if _too_long(text):
            raise DataError(f"{self.path}: a line to record is {_longer()}", "give shorter texts, or fewer in a step")
        self._file.write(text)
        self._file.flush()
        self._record(line)

    def _read(self) -> int:
        """Record the file's lines, and return how many of its bytes to keep."""
        whole = 0
        for number, text in _lines(self.path):
            if not text.endswith(b"\n"):
                self._check_cut(number, text)
                break
            line = parse_line(self.path, number, text)
            whole += len(text)
            if self.replace:  # the file must be a run throughout, but of which run doesn't matter
                known = line["run"] if number == 1 else line
                if not isinstance(known, dict) or _KEYS[number == 1].isdisjoint(known):
                    raise _no_line(self.path, number, "not a line of a run")
                continue
            if number == 1 and line["run"] != self.header:
                raise DataError(
                    f"{self.path} is the record of another run", "move it away, or give this run a folder of its own"
                )
            self._record(line)
        return 0 if self.replace else whole

    def _check_cut(self, number: int, text: bytes) -> None:
        """Raise DataError unless `text`, the file's last line, is the beginning of a line of this run."""
        task, head = b'{"task": ', json.dumps({"run": self.header}, ensure_ascii=False).encode()
        ours = (text.startswith(task) or task.startswith(text)) if number > 1 else head.startswith(text)
        if not ours or (number == 1 and self.replace):
            raise _no_line(self.path, number, "no whole line of a run")

    def _record(self, line: dict) -> None:
        if "run" in line:
            return
        record = self.tasks.setdefault(line["task"], TaskRecord())
        record.add(line)
        if record.end is not None and "failure" not in record.end:
            record.kept = []  # a failed task keeps its lines: it is continued from them


def read_run(path: str | Path) -> Iterator[dict]:
    """The lines of a run's file, the header first; a last line that was cut short is left out.

    Raises
    ------
    DataError
        The file is missing or damaged.
    """
    return (line for _, _, line in _whole_lines(path))


def _whole_lines(path: str | Path) -> Iterator[tuple[int, bytes, dict]]:
    """Yield (number, text, line)."""
    return ((number, text, parse_line(path, number, text)) for number, text in _lines(path) if text.endswith(b"\n"))


def read_tasks(path: str | Path) -> tuple[dict, dict[str, TaskRecord]]:
    """The header of a run's file and the record of each task, finished or not.

    Raises DataError: the file is missing, empty or damaged.
    """
    lines = _whole_lines(path)
    first = next(lines, None)
    if first is None:
        raise DataError(f"{path} is empty", "give the .jsonl file of a run; a run that has just begun has no line yet")
    tasks: dict[str, TaskRecord] = {}
    for number, text, line in lines:
        tasks.setdefault(line["task"], TaskRecord()).add(line, number, text)
    return first[2]["run"], tasks


def _longer() -> str:
    return f"longer than {MAX_LINE / 2**20:g} MiB"


def _too_long(text: str) -> bool:
    return len(text) * 4 > MAX_LINE and len(text.encode("utf-8", "replace")) > MAX_LINE


def _lines(path: str | Path) -> Iterator[tuple[int, bytes]]:
    """Yield (number, line with its line break) of a file."""
    try:
        with Path(path).open("rb") as file:
            for number in count(1):
                text = file.readline(MAX_LINE + 1)
                if len(text) > MAX_LINE:
                    raise DataError(
                        f"{path}, line {number}: {_longer()}",
                        "give the .jsonl file of a run, as it was written: no line of one is as long",
                    )
                if not text:
                    return
                yield number, text
    except OSError as error:
        raise DataError(f"can't read {path}: {error.strerror}", "give the .jsonl file of a run") from None


def parse_line(path: str | Path, number: int, text: bytes) -> dict:
    """Parse one line of a run's file. Raises DataError, with the place, if it isn't one."""
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, an endless number, endless brackets
        raise _no_line(path, number, f"damaged: {error}") from None
    if not isinstance(line, dict) or not ("run" in line if number == 1 else isinstance(line.get("task"), str)):
        raise _no_line(path, number, "not a line of a run")
    return line


def _no_line(path: str | Path, number: int, problem: str) -> DataError:
    return DataError(f"{path}, line {number}: {problem}", "move the file away to play its tasks again")


def lines_since(task: str, plan: Plan, steps: int, answers: int) -> Iterator[dict]:
    """Yield the lines for a plan's steps after the first `steps`, with the answers after the first `answers`."""
    new = plan.answers[answers:]
    for step in plan.steps[steps:]:
        line = {"task": task, "step": step.to_dict(), "answers": [_answer_data(answer) for answer in new]}
        yield line if step is not plan.steps[0] else {**line, "sentence": plan.task}
        new = []


def _answer_data(answer: Generation) -> dict[str, Any]:
    data = {name: getattr(answer, name) for name in _ANSWER}
    data |= {"pruned_mass": answer.pruned_mass.mean, "max_pruned_mass": answer.pruned_mass.max}
    data |= {"seconds": answer.seconds} | ({"replaced": answer.replaced} if answer.replaced else {})
    return data | ({} if answer.trace is None else {"trace": answer.trace})


def _read_answer(data: Mapping[str, Any]) -> Generation:
    mass = PrunedMass(data["pruned_mass"], data["max_pruned_mass"])
    fields = {name: value for name, value in data.items() if name not in ("pruned_mass", "max_pruned_mass")}
    return Generation(**fields, pruned_mass=mass)


def digest(text: str) -> str:
    """A short hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def summary(plan: Plan) -> dict[str, Any]:
    """The "end" of a task, from its plan: all that `metrics.summarise` needs."""
    first_reward = next((step.n for step in plan.last_phase if step.reward > 0), None)
    last, written = plan.last_phase, sum(bool(s.true_path) for s in plan.steps)
    return {
        "success": bool(plan.success),
        "outcome": plan.outcome,
        "note": plan.note,
        "steps": len(last),
        "actions": len(plan.steps),
        "invalid": plan.invalid,
        "misordered": plan.misordered,
        "no effect": sum(s.had_effect is False for s in plan.steps),
        **({"first reward": first_reward} if first_reward is not None else {}),
        **({"paths": written, "wrong paths": plan.wrong_paths} if written else {}),
        "pruned mass": sum(plan.pruned_mass) / max(len(plan.steps), 1),
        "usage": plan.usage_by_role,
    }
