"""The trace page: a run step by step, each token with what the mask removed there, in one HTML file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path
from typing import Any

from constrained.agents.plan import Step
from constrained.agents.run_file import read_run
from constrained.errors import DataError
from constrained.pages.html_page import embedded_json, page, static
from constrained.pages.run_graph import Walk

SCRIPTS = (
    "dom.js", *(f"trace/{name}.js" for name in ("run", "odds", "tokens", "graph", "inspector", "game", "lists", "keys", "main")),
)  # fmt: skip
STYLES = (
    "graph.css", *(f"trace/{name}.css" for name in ("layout", "lists", "game", "tokens", "inspector", "graph", "help")),
)  # fmt: skip

MOST_BYTES = 48 * 2**20
"""Size of the tasks on a page; Chromium opens one of that size within a few seconds."""

DIGITS = 4
"""Significant digits of a probability on the page."""

SHOWN = ("thought", "action", "verdict", "reason", "observation", "path", "subgoal", "phase")
"""Texts of a :class:`Step` that are shown."""

_TASK = re.compile(r"^Task: (.+)$", re.MULTILINE)
"""How a prompt names the task (see `constrained.agents.prompts`)."""

FORBIDDEN_BY = ("kind", "reason", "rule", "at", "line")
"""What a trace says of a forbidden token (see `constrained.agents.token_trace`)."""


def trace_page(path: str | Path, **choice) -> str:
    """The page of a run's file; `choice` as of :func:`~constrained.pages.trace_page.run_data`."""
    return render(run_data(path, **choice))


def render(data: dict) -> str:
    """The page of a run's data."""
    knowledge = data["knowledge"] or {}
    body = static("trace/body.html").replace("<!-- the action graph -->", knowledge.pop("svg", ""))
    return page(f"{data['file']} · trace", body, styles=STYLES, scripts=SCRIPTS, data=data)


@dataclass
class Recorded:
    """What a run's file says of one task.

    Attributes
    ----------
    lines : list of (int, dict)
        Number and content of each line that holds a step.
    end : dict or None
        None where the run is under way, or was killed.
    """

    lines: list[tuple[int, dict]] = field(default_factory=list)
    end: dict | None = None


def run_data(path: str | Path, *, tasks: Iterable[str] = (), most: int | None = None) -> dict:
    """Everything that the page of a run shows, as plain data.

    Parameters
    ----------
    path : Path
    tasks : iterable of str
        Names, or patterns with ``*`` and ``?``; none: all.
    most : int, optional
        At most so many tasks, the first of the file.

    Raises
    ------
    DataError
        The file is missing, empty or damaged, or has no task of such a name.
    """
    header, recorded = read_record(path)
    names = chosen(recorded, list(tasks), path)[: most if most is not None else len(recorded)]
    walk = Walk.of(header)
    texts = Texts()
    shown: list[dict] = []
    room = MOST_BYTES
    for name in names:
        task = _task(path, name, recorded[name], walk, texts)
        room -= len(embedded_json(task).encode("utf-8", "replace"))
        if room < 0 and shown:
            break
        shown.append(task)
    return {
        "file": Path(path).name,
        "run": describe(header),
        "knowledge": walk.shown,
        "tasks": shown,
        "left_out": len(recorded) - len(shown),
        "too_large": len(names) > len(shown),
        "traced": any("tokens" in a for task in shown for step in task["steps"] for a in step["answers"]),
        "texts": texts.all,
    }


def read_record(path: str | Path) -> tuple[dict, dict[str, Recorded]]:
    """The header of a run's file, and what there is of each task, whether it is over or not."""
    header: dict | None = None
    recorded: dict[str, Recorded] = {}
    for number, line in enumerate(read_run(path), 1):
        if header is None:
            header = line["run"] if isinstance(line["run"], dict) else {}
            continue
        if not isinstance(line["task"], str):
            raise _damaged(path, number, "the task has no name")
        task = recorded.setdefault(line["task"], Recorded())
        if isinstance(line.get("end"), dict):
            task.end = line["end"]
        elif "step" in line:
            task.end = None  # it had failed, and was taken up again
            task.lines.append((number, line))
        else:  # "again": what stood there counts no more
            recorded[line["task"]] = Recorded()
    if header is None:
        raise DataError(f"{path} is empty", "give the .jsonl file of a run; one that has just begun has no line yet")
    return header, recorded


def chosen(recorded: Mapping[str, Recorded], patterns: list[str], path: str | Path) -> list[str]:
    """The names that any of `patterns` fits, in the file's order; all, if there is none."""
    for pattern in patterns:
        if not any(_fits(name, pattern) for name in recorded):
            some = ", ".join(list(recorded)[:5]) or "none"
            raise DataError(
                f"{path} has no task {pattern!r}", f"it has {len(recorded)}: {some} ...; * stands for any text"
            )
    return [name for name in recorded if not patterns or any(_fits(name, pattern) for pattern in patterns)]


def _fits(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)


def describe(header: Mapping[str, Any]) -> dict:
    """What is said of a whole run, by its header; nothing in that need be there, or of the form expected."""
    settings = _mapping(header.get("settings"))
    return {
        "suite": str(header.get("suite") or ""),
        "strategy": str(settings.get("strategy") or ""),
        "masks": bool(settings.get("constrained", True)),
        "knowledge": str(_mapping(header.get("knowledge")).get("name") or ""),
        "models": {str(role): str(_mapping(m).get("name") or "") for role, m in _mapping(header.get("models")).items()},
        "traced": isinstance(header.get("trace"), Mapping),
        "settings": {str(key): str(value) for key, value in settings.items() if value is not None},
        "versions": {str(k): str(v) for k, v in _mapping(header.get("versions")).items()},
    }


def _mapping(value: Any) -> Mapping:
    return value if isinstance(value, Mapping) else {}


class Texts:
    """Texts that come again and again, each kept once; an answer names them by their position."""

    def __init__(self):
        self.all: list[str] = []
        self._at: dict[str, int] = {}

    def at(self, text: str) -> int:
        """The position of `text`."""
        if text not in self._at:
            self._at[text] = len(self.all)
            self.all.append(text)
        return self._at[text]


def _task(path, name: str, recorded: Recorded, walk: Walk, texts: Texts) -> dict:
    steps: list[dict] = []
    before = ""
    for number, line in recorded.lines:
        try:
            step = _step(Step(**line["step"]))
            answers = [_answer(answer, step.get("action", ""), texts) for answer in line["answers"]]
        except (TypeError, KeyError, ValueError, AttributeError, OverflowError) as error:
            raise _damaged(path, number, f"{type(error).__name__}: {error}") from None
        for answer in answers:
            if "prompt" in answer:  # most of it is what the one before has read, too
                before, answer["prompt"] = answer["prompt"], _since(before, answer["prompt"])
        steps.append({**step, "answers": answers})
    walk.place(steps)
    prompts = (answer["prompt"][1] for step in steps for answer in step["answers"] if "prompt" in answer)
    said = _TASK.search(next(prompts, ""))  # the first one is whole
    return {"name": name, "task": said[1] if said else "", "end": _end(recorded.end), "steps": steps}


def _step(step: Step) -> dict:
    """A step, without what says nothing."""
    texts = {key: str(getattr(step, key)) for key in SHOWN if getattr(step, key) not in ("", None)}
    masses = {"pruned": _rounded(step.pruned_mass), "max_pruned": _rounded(step.max_pruned_mass)}
    return {"n": int(step.n), **texts, **masses, "no_effect": step.had_effect is False}


def _end(end: Mapping[str, Any] | None) -> dict | None:
    """The outcome of a task; None while there is none."""
    if end is None:
        return None
    usage = {str(role): _numbers(cost) for role, cost in _mapping(end.get("usage")).items()}
    return {
        "success": end.get("success") is True,
        "outcome": _numbers(end.get("outcome")),
        "note": str(end.get("note") or ""),
        "failure": str(end.get("failure") or ""),
        "usage": usage,
    }


def _numbers(value: Any) -> dict[str, float]:
    """The finite numbers of a mapping: JSON in a browser has no others."""
    pairs = ((str(key), number) for key, number in _mapping(value).items() if isinstance(number, (int, float)))
    return {key: number for key, number in pairs if math.isfinite(number)}


def _since(before: str, text: str) -> list:
    """How many characters `text` shares with `before` at its beginning, and the rest of it."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, text)))
    return [same, text[same:]]


def _answer(answer: Mapping[str, Any], action: str, texts: Texts) -> dict:
    """One text of a model; with its trace, what it could have written and each token."""
    out = {"role": str(answer["role"]), "model": str(answer["model"]), "text": str(answer["text"])}
    trace = answer.get("trace")
    if not trace:
        return out
    tokens = [_token(token, texts) for token in trace["tokens"]]
    return {
        **out,
        "prompt": str(trace["prompt"]),
        "begun": str(trace.get("begun") or ""),
        "place": str(trace.get("place") or ""),
        "open": [str(name) for name in trace.get("open") or ()],
        "choices": _count(trace.get("choices")),
        "some": [texts.at(str(choice)) for choice in trace.get("some") or ()],
        "left_out": _count(trace.get("left_out")) or 0,
        "tokens": tokens,
        "action_at": action_at(tokens, action),
    }


def _count(value: Any) -> int | None:
    return None if value is None else int(value)


def _token(token: Mapping[str, Any], texts: Texts) -> dict:
    """A token, without what says nothing."""
    out: dict[str, Any] = {"t": str(token["text"])}
    if token.get("end"):
        out["end"] = True
    if token.get("forced"):
        return {**out, "forced": True}
    out |= {"p": _rounded(token["p"]), "pruned": _rounded(token["pruned"])}
    forbidden = token.get("forbidden")
    if forbidden:
        other: dict[str, Any] = {"t": str(forbidden["text"]), "p": _rounded(forbidden["p"])}
        if forbidden.get("end"):
            other["end"] = True
        other |= {key: texts.at(str(forbidden[key])) for key in FORBIDDEN_BY if forbidden.get(key)}
        out["forbidden"] = other
    return out


def _rounded(share: Any) -> float:
    """A probability with as many digits as are shown; ValueError if it is none."""
    value = float(share)
    if not -1e-6 <= value <= 1 + 1e-6:  # no number at all fails, too
        raise ValueError(f"{share} is no probability")
    return float(f"{min(max(value, 0.0), 1.0):.{DIGITS}g}")


def action_at(tokens: list[dict], action: str) -> int | None:
    """The first token of `action`, where it is written last; None if it is not."""
    if not action:
        return None
    ends, written = [], ""
    for token in tokens:
        written += "" if token.get("end") else token["t"]
        ends.append(len(written))
    begin = written.rfind(action)
    return next((i for i, end in enumerate(ends) if end > begin), None) if begin >= 0 else None


def _damaged(path, number: int, problem: str) -> DataError:
    return DataError(f"{path}, line {number}: damaged: {problem}", "give the .jsonl file of a run, as it was written")
