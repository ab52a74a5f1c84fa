"""The trace page: a run step by step, each token with what the mask removed there, in one HTML file."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path
from typing import Any

from constrained.agents.plan import Step
from constrained.agents.run_file import TaskRecord, read_tasks
from constrained.errors import DataError
from constrained.pages.html_page import embedded_json, page, static
from constrained.pages.run_graph import RunGraph

SCRIPTS = ("dom.js", *(f"trace/{name}.js" for name in "run odds tokens graph inspector game lists keys main".split()))
STYLES = ("graph.css", *(f"trace/{name}.css" for name in "layout lists game inspector graph".split()))

MOST_BYTES = 48 * 2**20
"""Bytes of the tasks on a page; Chromium opens a page of that size within a few seconds."""

DIGITS = 4
"""Significant digits of the probabilities on the page."""

STEP_TEXTS = ("thought", "action", "verdict", "reason", "observation", "path", "subgoal", "phase")
"""The texts of a :class:`Step` that are shown."""

FORBIDDEN_BY = ("kind", "reason", "rule", "at", "line")
"""Fields of a forbidden token in a trace (see `constrained.agents.token_trace`)."""


def trace_page(path: str | Path) -> str:
    """The page of a run's file."""
    return render(run_data(path))


def render(data: dict) -> str:
    """The page of the data that `run_data` returned."""
    knowledge = data["knowledge"] or {}
    body = static("trace/body.html").replace("<!-- the action graph -->", knowledge.pop("svg", ""))
    return page(f"{data['file']} · trace", body, styles=STYLES, scripts=SCRIPTS, data=data)


def run_data(path: str | Path, *, tasks: Iterable[str] = (), most: int | None = None) -> dict:
    """Everything that the page of a run shows, as plain data.

    Parameters
    ----------
    path : Path
    tasks : iterable of str
        Names, or patterns with ``*`` and ``?``; none: all.
    most : int, optional
        Only this number of tasks, the first in the file.

    Raises
    ------
    DataError
        The file is missing, empty or damaged, or has no such task, or the first is larger than a page.
    """
    header, records = read_tasks(path)
    names = _chosen(records, list(tasks), path)[:most]
    graph = RunGraph.of(_mapping(header))
    texts: dict[str, int] = {}
    shown: list[dict] = []
    free = MOST_BYTES
    # Tasks in the file's order until the page is full; one is always shown.
    for name in names:
        task = _task(path, name, records[name], graph, texts)
        free -= 0 if task is None else len(embedded_json(task).encode("utf-8", "replace"))
        if task is None or (free < 0 and shown):
            if not shown:
                problem = f"{path}: the task {name!r} is larger than a page may be ({MOST_BYTES >> 20} MiB)"
                raise DataError(problem, "choose others with --task NAME")
            break
        shown.append(task)
    return {
        "file": Path(path).name,
        "run": describe(header),
        "knowledge": graph.shown,
        "tasks": shown,
        "left_out": len(records) - len(shown),
        "too_large": len(names) > len(shown),
        "traced": any("tokens" in a for task in shown for step in task["steps"] for a in step["answers"]),
        "texts": list(texts),
    }


def _chosen(records: Mapping[str, TaskRecord], patterns: list[str], path: str | Path) -> list[str]:
    """The names that match any of `patterns`, in the file's order; all if there is no pattern."""

    def fits(name: str, pattern: str) -> bool:
        return name == pattern or fnmatchcase(name, pattern)

    for pattern in patterns:
        if not any(fits(name, pattern) for name in records):
            some = ", ".join(list(records)[:5]) or "none"
            hint = f"it has {len(records)}: {some} ...; * matches any text"
            raise DataError(f"{path} has no task {pattern!r}", hint)
    return [name for name in records if not patterns or any(fits(name, pattern) for pattern in patterns)]


def describe(header: Mapping[str, Any]) -> dict:
    """A run's settings from its header; each may be missing or malformed."""
    header = _mapping(header)
    settings = _mapping(header.get("settings"))
    return {
        "suite": str(header.get("suite") or ""),
        "strategy": str(settings.get("strategy") or ""),
        "masks": bool(settings.get("constrained", True)),
        "level": str(settings.get("level") or ""),
        "knowledge": str(_mapping(header.get("knowledge")).get("name") or ""),
        "models": {str(role): str(_mapping(m).get("name") or "") for role, m in _mapping(header.get("models")).items()},
        "traced": isinstance(header.get("trace"), Mapping),
        "settings": {str(key): str(value) for key, value in settings.items() if value is not None},
        "versions": {str(key): str(value) for key, value in _mapping(header.get("versions")).items()},
    }


def _mapping(value: Any) -> Mapping:
    return value if isinstance(value, Mapping) else {}


def _task(path: str | Path, name: str, record: TaskRecord, graph: RunGraph, texts: dict[str, int]) -> dict | None:
    """One task; texts that recur are collected in `texts` and named by their number. None: too large for a page."""
    steps: list[dict] = []
    before, said, free = "", "", MOST_BYTES
    for number, line in record.lines():
        said = said or str(line.get("sentence", ""))
        try:
            step = _step(Step(**line["step"]))
            answers = [_answer(answer, step.get("action", ""), texts) for answer in line["answers"]]
        except (TypeError, KeyError, ValueError, AttributeError, OverflowError) as error:
            problem = f"{path}, line {number}: damaged: {type(error).__name__}: {error}"
            raise DataError(problem, "give the .jsonl file of a run, as it was written") from None
        for answer in answers:
            if "prompt" in answer:  # most of it repeats the prompt before it: keep the length of that, and the rest
                prompt = answer["prompt"]
                same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, prompt)))
                before, answer["prompt"] = prompt, [same, prompt[same:]]
        steps.append({**step, "answers": answers})
        free -= len(embedded_json(steps[-1]))
        if free < 0:
            return None
    graph.locate(steps)
    return {"name": name, "task": said, "end": _end(record.end), "steps": steps}


def _step(step: Step) -> dict:
    """A step without its empty texts."""
    texts = {key: str(getattr(step, key)) for key in STEP_TEXTS if getattr(step, key) not in ("", None)}
    masses = {"pruned": _probability(step.pruned_mass), "max_pruned": _probability(step.max_pruned_mass)}
    return {"n": int(step.n), **texts, **masses, "no_effect": step.had_effect is False}


def _end(end: Mapping[str, Any] | None) -> dict | None:
    """The outcome of a task; None if it isn't over."""
    if end is None:
        return None
    return {
        "success": end.get("success") is True,
        "outcome": _numbers(end.get("outcome")),
        "note": str(end.get("note") or ""),
        "failure": str(end.get("failure") or ""),
        "usage": {str(role): _numbers(cost) for role, cost in _mapping(end.get("usage")).items()},
    }


def _numbers(value: Any) -> dict[str, float]:
    """The finite numbers of a mapping: JSON in a browser has no others."""
    pairs = ((str(key), number) for key, number in _mapping(value).items() if isinstance(number, (int, float)))
    return {key: number for key, number in pairs if math.isfinite(number)}


def _answer(answer: Mapping[str, Any], action: str, texts: dict[str, int]) -> dict:
    """One text of a model; if it was traced, with what it could have written and each token."""
    out = {"role": str(answer["role"]), "model": str(answer["model"]), "text": str(answer["text"])}
    trace = answer.get("trace")
    if not trace:
        return out
    tokens = [_token(token, texts) for token in trace["tokens"]]
    choices = trace.get("choices")
    return {
        **out,
        "prompt": str(trace["prompt"]),
        "begun": str(trace.get("begun") or ""),
        "place": str(trace.get("place") or ""),
        "open": [str(name) for name in trace.get("open") or ()],
        "choices": None if choices is None else int(choices),
        "some": [_number(texts, choice) for choice in trace.get("some") or ()],
        "left_out": int(trace.get("left_out") or 0),
        "tokens": tokens,
        "action_at": _action_start(tokens, action),
    }


def _number(texts: dict[str, int], text: Any) -> int:
    return texts.setdefault(str(text), len(texts))


def _token(token: Mapping[str, Any], texts: dict[str, int]) -> dict:
    """A token, and the best one that the mask removed there, without what is false or missing."""
    out: dict[str, Any] = {"t": str(token["text"])} | ({"end": True} if token.get("end") else {})
    if token.get("forced"):
        return {**out, "forced": True}
    out |= {"p": _probability(token["p"]), "pruned": _probability(token["pruned"])}
    if forbidden := token.get("forbidden"):
        out["forbidden"] = {
            "t": str(forbidden["text"]),
            "p": _probability(forbidden["p"]),
            **({"end": True} if forbidden.get("end") else {}),
            **{key: _number(texts, forbidden[key]) for key in FORBIDDEN_BY if forbidden.get(key)},
        }
    return out


def _probability(value: Any) -> float:
    """A probability rounded to `DIGITS`. Raises ValueError: it isn't a probability."""
    number = float(value)
    if not -1e-6 <= number <= 1 + 1e-6:  # false for NaN, too
        raise ValueError(f"{value} is not a probability")
    return float(f"{min(max(number, 0.0), 1.0):.{DIGITS}g}")


def _action_start(tokens: list[dict], action: str) -> int | None:
    """The index of the first token of `action` where it occurs last; None if it doesn't."""
    texts = ["" if token.get("end") else token["t"] for token in tokens]
    start = "".join(texts).rfind(action) if action else -1
    length = 0
    for index, text in enumerate(texts):
        length += len(text)
        if length > start >= 0:
            return index
    return None
