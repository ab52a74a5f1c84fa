"""Count the errors of recorded runs by kind, with examples of each (KnowAgent's error analysis, its Table 5).

    constrained bench errors runs/agents/*.jsonl

The kinds: *invalid*, no such action, or its arguments aren't there; *misordered*, the rules don't admit the action at
that point; *ineffective*, an admitted action that changed nothing: the environment says so, or it gives the answer that
the same action got just before, or twice already in that attempt; *misunderstood*, a lost task that none of these
explains: the environment ended it with a wrong answer, or each action was possible and had an effect (the paper's
"inconsistency" and "summarization" errors are among these); *wrong path*, an ActionPath, written by the model without
masks, that isn't what was done. Tasks that aren't finished or failed for outside reasons are left out.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.reporting import add_json, markdown, report
from constrained import __version__
from constrained.agents.run_file import TaskRecord, read_tasks
from constrained.cli.options import whole_number
from constrained.errors import DataError

OF_ACTIONS = ("invalid", "misordered", "ineffective")
MISUNDERSTOOD, WRONG_PATH = "misunderstood", "wrong path"
KINDS = (*OF_ACTIONS, MISUNDERSTOOD, WRONG_PATH)
"""Kinds of errors; a task can only be misunderstood, and a path only be wrong, where a model wrote it."""

EXAMPLES = 3
SHOWN = 160
"""Characters of a text in an example."""

SPOKEN = 2
"""So often an action may get the same answer in one attempt before it counts as ineffective."""


@dataclass
class Errors:
    """The errors of one run.

    Attributes
    ----------
    run : dict
        What was run: file, suite, strategy, model, masks.
    tasks, won, actions, paths : int
        Finished tasks, those won, all their actions, and the paths that a model wrote.
    counts : Counter
        Kind -> how often.
    examples : dict of str to list of dict
        Kind -> the first ones, each with its "task", "step" (of the file's line), "text", "reason" and "answer".
    """

    run: dict
    tasks: int = 0
    won: int = 0
    actions: int = 0
    paths: int = 0
    counts: Counter = field(default_factory=Counter)
    examples: dict[str, list[dict]] = field(default_factory=lambda: {kind: [] for kind in KINDS})

    def add(self, kind: str, example: dict, most: int) -> None:
        """Count an error. Examples are the first ones of different tasks, as far as there are any."""
        self.counts[kind] += 1
        examples = self.examples[kind]
        if len(examples) < most and all(one["task"] != example["task"] for one in examples):
            examples.append(example)
        elif len(examples) < most:
            self._spare(kind).append(example)

    def _spare(self, kind: str) -> list[dict]:
        return self.examples.setdefault(f"more {kind}", [])

    def shown(self, kind: str, most: int) -> list[dict]:
        """The examples of a kind: different ones first, then others."""
        return (self.examples[kind] + self.examples.get(f"more {kind}", []))[:most]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="a run's .jsonl file, or a folder of them")
    parser.add_argument("--examples", type=whole_number, default=EXAMPLES, metavar="N", help="examples of each kind "
        f"(default: {EXAMPLES})")  # fmt: skip
    add_json(parser)


def run_command(options: argparse.Namespace) -> int:
    result = [errors_of(path, options.examples) for path in _files(options.runs)]
    data = [
        {**{name: getattr(run, name) for name in ("run", "tasks", "won", "actions", "paths")},
         "errors": {kind: run.counts[kind] for kind in KINDS},
         "examples": {kind: run.shown(kind, options.examples) for kind in KINDS}}
        for run in result
    ]  # fmt: skip
    return report(table(result, options.examples), {"version": __version__, "runs": data}, options)


def _files(given: Sequence[Path]) -> Iterator[Path]:
    for path in given:
        if not path.is_dir():
            yield path
            continue
        files = sorted(path.glob("*.jsonl"))
        if not files:
            raise DataError(f"{path} has no .jsonl file", "give the folder of runs, such as runs/agents")
        yield from files


def errors_of(path: Path, most: int = EXAMPLES) -> Errors:
    """Count the errors in a run's file.

    Raises DataError: the file is missing, damaged or no run, or holds no finished task.
    """
    header, tasks = read_tasks(path)
    settings = header.get("settings") if isinstance(header, dict) else None
    if not isinstance(settings, dict):
        raise DataError(f"{path} names no settings", "give a file that `constrained bench agents` wrote")
    model = header.get("models", {}).get("policy", {}).get("name", "?")
    masks = settings.get("level", "on") if settings.get("constrained") else "off"
    errors = Errors({
        "file": path.name, "suite": header.get("suite", "?"), "strategy": settings.get("strategy", "?"),
        "model": Path(model).name, "masks": masks,
    })  # fmt: skip
    for name, task in tasks.items():
        if task.end is not None and "failure" not in task.end:
            _count(errors, name, task, most)
    if not errors.tasks:
        raise DataError(f"{path} has no finished task", "let the run finish a task, or give another")
    return errors


def _count(errors: Errors, name: str, task: TaskRecord, most: int) -> None:
    end, steps = task.end or {}, []
    sentence = name
    for _, line in task.lines():  # one at a time: a traced line is large
        steps.append(line["step"])
        sentence = line.get("sentence", sentence)
    errors.tasks += 1
    errors.won += bool(end.get("success"))
    errors.actions += len(steps)
    answered: Counter = Counter()
    wrong: dict[str, int] = {}  # phase -> its actions that were errors
    last: Mapping = {}
    for step in steps:
        phase, action, answer = step.get("phase", ""), step.get("action", ""), step.get("observation")
        if step.get("true_path"):
            errors.paths += 1
            if step.get("path") != step["true_path"]:
                reason = f"it was {_short(step['true_path'])}"
                errors.add(WRONG_PATH, _example(sentence, step, step.get("path", ""), reason), most)
        kind, reason = step.get("verdict"), step.get("reason", "")
        if kind not in OF_ACTIONS:
            again = answered[phase, action, answer] if answer is not None else 0
            twice = again and last.get("action") == action and last.get("phase", "") == phase
            kind = "ineffective" if step.get("had_effect") is False or twice or again >= SPOKEN else ""
            reason = "" if step.get("had_effect") is False else "the same action got the same answer before"
        if answer is not None:
            answered[phase, action, answer] += 1
        if kind:
            wrong[phase] = wrong.get(phase, 0) + 1
            errors.add(kind, _example(sentence, step, action, reason), most)
        last = step
    ended_wrongly = bool(steps) and not end.get("note")
    if not end.get("success") and (ended_wrongly or not wrong.get(last.get("phase", ""), 0)):
        reason = end.get("note") or "the environment ended the task"
        errors.add(MISUNDERSTOOD, _example(sentence, last, last.get("action", "nothing was done"), reason), most)


def _example(task: str, step: Mapping, text: str, reason: str) -> dict:
    answer = step.get("observation")
    return {
        "task": _short(task), "step": step.get("n", 0), "text": _short(text) or "(nothing)", "reason": _short(reason),
        "answer": _short(answer) if answer is not None else "",
    }  # fmt: skip


def _short(text: object) -> str:
    """A text in one printable line, for a table or a terminal."""
    line = " ".join("".join(c if c.isprintable() else " " for c in str(text)).split())
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 3]}..."


def table(found: Sequence[Errors], most: int = EXAMPLES) -> str:
    """The kinds of errors of each run as Markdown, and examples of each kind below."""
    head = ["run", "suite", "tasks", "won", "actions", *KINDS]
    rows = []
    for run in found:
        parts = [run.actions] * len(OF_ACTIONS) + [run.tasks, run.paths]
        cells = [_share(run.counts[kind], whole) for kind, whole in zip(KINDS, parts, strict=True)]
        rows.append([_name(run), run.run["suite"], run.tasks, run.won, run.actions, *cells])
    text = [markdown(head, rows, left=2), "", "invalid, misordered and ineffective: of the actions; misunderstood: of "
            "the tasks; wrong path: of the paths that a model wrote."]  # fmt: skip
    for kind in KINDS:
        lines = [_line(run, one, len(found) > 1) for run in found for one in run.shown(kind, most)]
        text += ["", f"{kind}:", *lines] if lines else []
    return "\n".join(text)


def _name(run: Errors) -> str:
    return f"{run.run['strategy']}, {run.run['model']}, masks {run.run['masks']}"


def _share(number: int, whole: int) -> str:
    return f"{number} ({100 * number / whole:.1f} %)" if whole else "–"


def _line(run: Errors, one: Mapping, several: bool) -> str:
    reason = f" ({one['reason']})" if one["reason"] else ""
    answer = f" -> {one['answer']}" if one["answer"] else ""
    source = f"{_name(run)}: " if several else ""
    return f"- {source}{one['task']}, step {one['step']}: {one['text']}{reason}{answer}"
