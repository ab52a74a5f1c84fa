"""Knowledgeable self-learning (KnowAgent, section 3.3, Algorithm 1): a model is tuned on its own correct play.

A round: the model plays the training tasks; what isn't correct, or breaks the action knowledge, is dropped; what is kept
is merged with the earlier rounds', of each task the shorter path; the model is tuned on that, and tested.

Everything is in one folder, a file a piece, each written as it happens or whole; a run that was killed goes on at the
last finished piece, and ends as an unbroken one does::

    run.json                what is run
    round-0/                the model as it was given
      test-1.jsonl …        the record of each test suite (see `constrained.agents.record`)
      report.json
    round-1/
      synthesis.jsonl       the record of the training tasks
      dropped.json          what was dropped, and why
      merged.jsonl          what the model is tuned on: trajectories with their training texts
      adapter/              what it was tuned to
      test-1.jsonl …
      report.json
    report.json             all rounds
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from constrained.agents.asking import POLICY
from constrained.agents.campaign import play_all, writers
from constrained.agents.episode import Settings
from constrained.agents.figures import summarise
from constrained.agents.record import Begun, digest, read_tasks
from constrained.environments.data import read_json
from constrained.environments.suite import Suite
from constrained.errors import ConstrainedError, DataError, TrainingError
from constrained.files import to_json, write_whole
from constrained.knowledge import ActionKnowledge
from constrained.models import LoadedModel, load, load_adapters
from constrained.training.distributed import agreed
from constrained.training.encoding import TrainingText
from constrained.training.filter import Sifted, check_rule, sift
from constrained.training.merge import merge
from constrained.training.replay import practice_texts, read_practice, write_practice
from constrained.training.settings import Tuning
from constrained.training.trajectory import Trajectory, from_record
from constrained.training.tuning import tune

SAMPLE = " · sample "
"""Between a task's name and the number of its sample, from the second on."""


@dataclass(frozen=True)
class Schedule:
    """How the rounds go.

    Attributes
    ----------
    rounds : int
        At most; the paper's number is two (appendix A).
    epsilon : float or None
        The rounds end with the first that gains no more than so many percentage points in the first test suite's first
        measure (Algorithm 1's epsilon; the paper names no value); None: with the last.
    samples : int
        Trajectories of each task in a round; more than one need a temperature.
    rule : str
        One of `filter.RULES`.
    """

    rounds: int = 2
    epsilon: float | None = None
    samples: int = 1
    rule: str = "paper"


@dataclass(frozen=True)
class _Run:
    """What stays the same in all rounds."""

    folder: Path
    train: Suite
    tests: Sequence[Suite]
    knowledge: ActionKnowledge
    base: LoadedModel
    synthesis: Settings
    test: Settings
    schedule: Schedule
    tuning: Tuning
    batch: int

    def at(self, number: int) -> Path:
        return self.folder / f"round-{number}"

    def model(self, number: int) -> LoadedModel:
        """The model that a round ended with."""
        name = f"round-{number}"
        return load_adapters(self.base, {name: self.at(number) / "adapter"})[name] if number else self.base


def self_learning(
    train: Suite,
    tests: Sequence[Suite],
    folder: str | Path,
    *,
    synthesis: Settings,
    test: Settings | None = None,
    model: Any = None,
    knowledge: ActionKnowledge | None = None,
    schedule: Schedule = Schedule(),
    tuning: Tuning = Tuning(),
    batch: int = 32,
    device: str | None = None,
    on_round: Callable[[dict], None] | None = None,
) -> list[dict]:
    """Let a model learn from its own play, round by round.

    Parameters
    ----------
    train : Suite
        The tasks to learn from: Algorithm 1's D_0.
    tests : sequence of Suite
        What each round's model is measured on; the first decides when to stop.
    folder : path
        Of the run; begun there before, it goes on.
    synthesis, test : Settings
        How training tasks and test tasks are played; by default alike, the test greedily.
    model : optional
        Anything `constrained.models.load` takes; it stays as it is.
    knowledge : ActionKnowledge, optional
        Default: the train suite's.
    schedule : Schedule
    tuning : Tuning
    batch : int
        Tasks played side by side.
    device : str, optional
    on_round : callable, optional
        Called with each round's report.

    Returns
    -------
    list of dict
        A report a round, the first of the model as it was given: "round", "test" (the figures of each suite by its
        name); and from round 1 on "synthesis" (the figures of the training tasks), "kept", "dropped" (reason ->
        trajectories), "merged", "texts" and "tuning".

    Raises
    ------
    ConstrainedError
        The folder holds another run, or is damaged; no trajectory was correct; tuning failed.
    """
    _see(schedule, synthesis, tuning)
    test = test or replace(synthesis, temperature=0.0)
    run = _Run(
        Path(folder), train, tuple(tests), knowledge or ActionKnowledge.from_lark(train.knowledge),
        load(model, device=device), synthesis, test, schedule, tuning, batch,
    )  # fmt: skip
    # Started in several processes (accelerate launch), they tune together; the rest is the first one's.
    agreed(lambda: _begin(run))
    reports: list[dict] = []
    for number in range(schedule.rounds + 1):
        report = agreed(lambda: _finished(run, number)) or _round(run, number)
        reports.append(report)
        agreed(lambda: write_whole(run.folder / "report.json", to_json(reports)))
        if on_round:
            agreed(lambda: on_round(report))
        if number and schedule.epsilon is not None and gain(run.tests[0], reports) <= schedule.epsilon:
            break
    return reports


def gain(suite: Suite, reports: Sequence[dict]) -> float:
    """What the last round gained over the one before in a suite's first measure, in percentage points."""
    before, after = (report["test"][suite.name][f"{suite.measures[0]} %"] for report in reports[-2:])
    return after - before


def best(name: str, reports: Sequence[dict], measure: str = "success") -> int:
    """The round that did best in a test suite's measure; of equals the one with the shorter paths, then the first."""

    def worth(report: dict) -> tuple[float, float]:
        figures = report["test"][name]
        return figures[f"{measure} %"], -figures.get("steps of won", math.inf)

    return max(reports, key=worth)["round"]


def _see(schedule: Schedule, synthesis: Settings, tuning: Tuning) -> None:
    if tuning.whole:
        raise TrainingError("self-learning keeps an adapter a round, not whole models", "leave `whole` out")
    for name in ("rounds", "samples"):
        if getattr(schedule, name) < 1:
            raise ConstrainedError(f"{getattr(schedule, name)} {name}", "use 1 or more")
    check_rule(schedule.rule)
    if schedule.samples > 1 and not synthesis.temperature:
        raise ConstrainedError(
            f"{schedule.samples} samples of each task, all alike", "give a temperature above 0, or take 1 sample"
        )


def _begin(run: _Run) -> None:
    """Write down what is run, or see that it is what was begun; more rounds may be run than at first."""
    suites = [
        {"name": suite.name, "tasks": digest("\n".join(task.name for task in suite.tasks))}
        for suite in (run.train, *run.tests)
    ]
    schedule = {name: value for name, value in asdict(run.schedule).items() if name not in ("rounds", "epsilon")}
    head = {
        "train": suites[0], "tests": suites[1:], "knowledge": digest(run.knowledge.to_text()),
        "synthesis": asdict(run.synthesis), "test": asdict(run.test), "schedule": schedule, "tuning": asdict(run.tuning),
        **writers({POLICY: run.base}),
    }  # fmt: skip
    head = json.loads(json.dumps(head))
    path = run.folder / "run.json"
    if not path.exists():
        write_whole(path, to_json(head))
        return
    begun = read_json(path)
    if begun != head:
        changed = [name for name in head if not isinstance(begun, dict) or begun.get(name) != head[name]]
        raise DataError(
            f"{run.folder} holds another run: {', '.join(changed) or 'run.json'} differs",
            "give this one a folder of its own, or repeat the arguments of the first",
        )


def _finished(run: _Run, number: int) -> dict | None:
    path = run.at(number) / "report.json"
    if not path.exists():
        return None
    report = read_json(path)
    if not isinstance(report, dict) or report.get("round") != number:
        raise DataError(
            f"{path} is no report of round {number}", "delete it: it is made again from what lies beside it"
        )
    return report


def _round(run: _Run, number: int) -> dict:
    report: dict = {"round": number}
    if number:
        learned, figures = agreed(lambda: _practise(run, number))
        adapter = run.at(number - 1) / "adapter" if number > 1 else None
        tuned = asdict(tune(run.base, learned, run.tuning, run.at(number) / "adapter", adapter=adapter))
        report |= figures | {"texts": len(learned), "tuning": {k: v for k, v in tuned.items() if k != "folder"}}
    report["test"] = agreed(lambda: _tested(run, number))
    agreed(lambda: write_whole(run.at(number) / "report.json", to_json(report)))
    return report


def _tested(run: _Run, number: int) -> dict[str, dict]:
    """The figures of a round's model."""
    models, figures = {POLICY: run.model(number)}, {}
    for place, suite in enumerate(run.tests, 1):
        path, words = run.at(number) / f"test-{place}.jsonl", f"round {number}, {suite.name}"
        records = play_all(suite, run.knowledge, models, run.test, path, batch=run.batch, words=words)
        figures[suite.name] = summarise(records, suite.measures)
    return figures


def _practise(run: _Run, number: int) -> tuple[list[TrainingText], dict]:
    """Play, filter, merge: what a round's model is tuned on, and the figures of that."""
    here, path = run.at(number), run.at(number) / "synthesis.jsonl"
    models = {POLICY: run.model(number - 1)}
    settings = replace(run.synthesis, seed=run.synthesis.seed + number - 1)
    suite = _sampled(run.train, run.schedule.samples)
    words = f"round {number}, training tasks"
    records = play_all(suite, run.knowledge, models, settings, path, batch=run.batch, words=words)

    played = read_tasks(path)
    sifted = sift(_trajectories(played, number), run.schedule.rule)
    write_whole(here / "dropped.json", to_json([_dropped(trajectory, reason) for trajectory, reason in sifted.dropped]))
    earlier = list(read_practice(run.at(number - 1) / "merged.jsonl")) if number > 1 else []
    merged = merge([trajectory for trajectory, _ in earlier], sifted.kept)
    if not merged:
        broken = [end["failure"] for _, end in played.values() if "failure" in end]
        raise TrainingError(_nothing_kept(sifted, number, path, broken), _nothing_kept_hint(run))
    tasks = {task.name: task for task in suite.tasks}
    texts = {trajectory.source: written for trajectory, written in earlier}
    for trajectory in merged:
        if trajectory.source not in texts:
            name = _run_name(trajectory.source)
            answers = played[name][0].answers
            texts[trajectory.source] = practice_texts(tasks[name], answers, run.knowledge, models, settings)
    write_practice(here / "merged.jsonl", [(trajectory, texts[trajectory.source]) for trajectory in merged])
    return [text for trajectory in merged for text in texts[trajectory.source]], {
        "synthesis": summarise(records, suite.measures),
        "kept": len(sifted.kept),
        "dropped": dict(sifted.reasons),
        "merged": len(merged),
    }


def _sampled(suite: Suite, samples: int) -> Suite:
    """Each task as often as it is sampled, under names of its own."""
    again = [
        replace(task, name=f"{task.name}{SAMPLE}{number}") for number in range(2, samples + 1) for task in suite.tasks
    ]
    return replace(suite, tasks=[*suite.tasks, *again])


def _trajectories(played: dict[str, tuple[Begun, dict]], number: int) -> Iterator[Trajectory]:
    """The trajectories of a record, each under its task's name; the source has the round's number, and its own."""
    for name, (begun, end) in played.items():
        yield from_record(name.partition(SAMPLE)[0], begun.steps, end, source=f"{number}/{name}")


def _run_name(source: str) -> str:
    return source.partition("/")[2]


def _dropped(trajectory: Trajectory, reason: str) -> dict:
    wrong = trajectory.offence
    return {
        "run": _run_name(trajectory.source),
        "reason": reason,
        **({"action": wrong.text, "why": wrong.reason} if wrong else {}),
    }


def _nothing_kept(sifted: Sifted, number: int, path: Path, broken: Sequence[str]) -> str:
    reasons = ", ".join(f"{count} {reason}" for reason, count in sifted.reasons.items())
    if broken:
        reasons += f"; {len(broken)} were broken off, the first by {broken[0]}"
    return f"round {number}: none of {len(sifted.dropped)} trajectories can be learned from ({reasons}); they are in {path}"


def _nothing_kept_hint(run: _Run) -> str:
    masks = "" if run.synthesis.constrained else "turn the masks on; "
    return f"{masks}give more or easier training tasks, more steps, or more samples at a higher temperature"
