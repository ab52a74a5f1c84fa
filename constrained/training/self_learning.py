"""Knowledgeable self-learning (KnowAgent, section 3.3, Algorithm 1): a model is tuned on its own correct trajectories.

In each round the model plays the training tasks; trajectories that are not correct or break the action knowledge are
dropped; the others are merged with those of earlier rounds, keeping the shortest for each task; the model is tuned on
the merged set and tested.

The run is kept in one folder. Every file is either appended to as play proceeds or written as a whole, so an
interrupted run resumes after the last finished part, and has the same result as an uninterrupted one::

    run.json                everything that determines the run
    round-0/                the given model
      test-1.jsonl …        the recorded run of each test suite (see `constrained.agents.run_file`)
      report.json
    round-1/
      synthesis.jsonl       the recorded run of the training tasks
      dropped.json          what was dropped, and why
      merged.jsonl          what the model is tuned on: trajectories with their training texts
      adapter/              the result of tuning
      test-1.jsonl …
      report.json
    report.json             all rounds
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from constrained.agents.messages import POLICY
from constrained.agents.metrics import summarise
from constrained.agents.run_file import TaskRecord, digest, read_tasks
from constrained.agents.settings import Settings
from constrained.agents.suite_runner import model_versions, play_all
from constrained.environments.data import read_json
from constrained.environments.suite import Suite
from constrained.errors import ConstrainedError, DataError, TrainingError
from constrained.files import to_json, write_whole
from constrained.knowledge import ActionKnowledge, Knowledge
from constrained.models import load
from constrained.models.source import to_adapt
from constrained.training.distributed import on_main_process
from constrained.training.encoding import TrainingText
from constrained.training.learners import LanguageLearner, Learner
from constrained.training.replay import read_merged, write_merged
from constrained.training.settings import Tuning
from constrained.training.trajectory import Filtered, Trajectory, check_rule, filter_trajectories, from_record, merge

SAMPLE = " · sample "
"""Separates a task's name from the number of its sample, from the second on."""


@dataclass(frozen=True)
class Schedule:
    """The number of rounds and samples, and the rule of the filter.

    Attributes
    ----------
    rounds : int
        The maximum; two in the paper (appendix A).
    epsilon : float or None
        Stop after a round that gains no more than this many percentage points in the first measure of the first test
        suite (Algorithm 1's epsilon; the paper gives no value). None: run all rounds.
    samples : int
        Trajectories of each task in a round; more than one needs a temperature.
    rule : str
        One of `trajectory.RULES`.
    """

    rounds: int = 2
    epsilon: float | None = None
    samples: int = 1
    rule: str = "paper"


@dataclass(frozen=True)
class _Rounds:
    """The arguments of `self_learning`, which are the same in all rounds."""

    folder: Path
    train: Suite | Callable[[int], Suite]
    tests: Sequence[Suite]
    knowledge: Knowledge
    learner: Learner
    synthesis: Settings
    test: Settings
    schedule: Schedule
    tuning: Tuning
    batch: int

    def tasks(self, number: int) -> Suite:
        """The training tasks of a round."""
        return self.train(number) if callable(self.train) else self.train

    def round_folder(self, number: int) -> Path:
        return self.folder / f"round-{number}"

    def model(self, number: int) -> Any:
        """Load the model at the end of a round."""
        return self.learner.tuned(f"round-{number}", self.adapter(number)) if number else self.learner.base

    def adapter(self, number: int) -> Path:
        """The folder of the result of a round's tuning."""
        return self.round_folder(number) / "adapter"


def self_learning(
    train: Suite | Callable[[int], Suite],
    tests: Sequence[Suite],
    folder: str | Path,
    *,
    synthesis: Settings,
    test: Settings | None = None,
    model: Any = None,
    knowledge: Knowledge | None = None,
    schedule: Schedule | None = None,
    tuning: Tuning | None = None,
    batch: int = 32,
    device: str | None = None,
    learner: Learner | None = None,
    on_round: Callable[[dict], None] | None = None,
) -> list[dict]:
    """Let a model learn from its own play, round by round.

    Parameters
    ----------
    train : Suite or callable
        The tasks to learn from (Algorithm 1's D_0); or a function that makes the tasks of a round from its number.
    tests : sequence of Suite
        The suites on which each round's model is tested; the first decides when to stop.
    folder : path
        The folder of the run; a run that was begun there is resumed.
    synthesis, test : Settings
        How training tasks and test tasks are played; by default tests are played like training tasks, but greedily.
    model : optional
        Anything `constrained.models.load` takes; it is not changed.
    knowledge : Knowledge, optional
        Default: the train suite's.
    schedule : Schedule, optional
    tuning : Tuning, optional
    batch : int
        Tasks played side by side.
    device : str, optional
    learner : Learner, optional
        The model that learns, and how it is tuned; default: the language model `model`, by adapters.
    on_round : callable, optional
        Called with each round's report.

    Returns
    -------
    list of dict
        One report for each round; round 0 is the given model. Keys: "round", "test" (suite -> its metrics); from round
        1 on also "synthesis" (the metrics of the training tasks), "kept", "dropped" (reason -> number of
        trajectories), "merged", "texts" and "tuning".

    Raises
    ------
    ConstrainedError
        The folder holds another run, or is damaged; no trajectory was correct; tuning failed.
    """
    schedule, tuning, test = schedule or Schedule(), tuning or Tuning(), test or replace(synthesis, temperature=0.0)
    _check(schedule, synthesis, tuning)
    if knowledge is None:
        knowledge = ActionKnowledge.from_lark(tests[0].knowledge if callable(train) else train.knowledge)
    learner = learner or LanguageLearner(load(to_adapt(model), device=device), tuning)
    run = _Rounds(Path(folder), train, tuple(tests), knowledge, learner, synthesis, test, schedule, tuning, batch)
    # Several processes (accelerate launch) tune together; the main process does everything else.
    on_main_process(partial(_begin, run))
    reports: list[dict] = []
    for number in range(schedule.rounds + 1):
        report = on_main_process(partial(_finished, run, number)) or _round(run, number)
        reports.append(report)
        on_main_process(partial(write_whole, run.folder / "report.json", to_json(reports)))
        if on_round:
            on_main_process(partial(on_round, report))
        if number and schedule.epsilon is not None and gain(run.tests[0], reports) <= schedule.epsilon:
            break
    return reports


def gain(suite: Suite, reports: Sequence[dict]) -> float:
    """The last round's gain over the one before in a suite's first measure, in percentage points."""
    before, after = (report["test"][suite.name][f"{suite.measures[0]} %"] for report in reports[-2:])
    return after - before


def best(name: str, reports: Sequence[dict], measure: str = "success") -> int:
    """The round with the best measure in a test suite; of equals that with the shortest paths, or the first."""

    def score(report: dict) -> tuple[float, float]:
        metrics = report["test"][name]
        return metrics[f"{measure} %"], -metrics.get("steps of won", math.inf)

    return max(reports, key=score)["round"]


def _check(schedule: Schedule, synthesis: Settings, tuning: Tuning) -> None:
    if tuning.whole:
        raise TrainingError("self-learning keeps an adapter for each round, not whole models", "leave `whole` out")
    for name in ("rounds", "samples"):
        if getattr(schedule, name) < 1:
            raise ConstrainedError(f"{getattr(schedule, name)} {name}", "use 1 or more")
    check_rule(schedule.rule)
    if schedule.samples > 1 and not synthesis.temperature:
        raise ConstrainedError(
            f"{schedule.samples} samples of each task, all alike", "give a temperature above 0, or take 1 sample"
        )


def _begin(run: _Rounds) -> None:
    """Record the run, or check that it is the one that was begun; rounds and epsilon may change."""
    # Settings are recorded in full; of tasks, knowledge and models names and digests are enough to tell a change.
    suites = [
        {"name": suite.name, "tasks": digest("\n".join(task.name for task in suite.tasks))}
        for suite in (run.tasks(1), *run.tests)
    ]
    schedule = {name: value for name, value in asdict(run.schedule).items() if name not in ("rounds", "epsilon")}
    head = {
        "train": suites[0],
        "tests": suites[1:],
        "knowledge": digest(run.knowledge.to_text()),
        "synthesis": asdict(run.synthesis),
        "test": asdict(run.test),
        "schedule": schedule,
        "tuning": asdict(run.tuning),
        **model_versions({POLICY: run.learner.base}),
    }
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


def _finished(run: _Rounds, number: int) -> dict | None:
    """The report of a finished round, or None."""
    path = run.round_folder(number) / "report.json"
    if not path.exists():
        return None
    report = read_json(path)
    if not isinstance(report, dict) or report.get("round") != number:
        raise DataError(f"{path} is no report of round {number}", "delete it: it is made again from what is beside it")
    return report


def _round(run: _Rounds, number: int) -> dict:
    report: dict = {"round": number}
    folder = run.round_folder(number)
    if number:
        texts, counts = on_main_process(partial(_synthesise, run, number))
        previous = run.adapter(number - 1) if number > 1 else None
        tuned = asdict(run.learner.tune(texts, run.adapter(number), previous))
        report |= counts | {"texts": len(texts), "tuning": {k: v for k, v in tuned.items() if k != "folder"}}
    report["test"] = on_main_process(partial(_test, run, number))
    on_main_process(partial(write_whole, folder / "report.json", to_json(report)))
    return report


def _test(run: _Rounds, number: int) -> dict[str, dict]:
    """Test a round's model, and return its metrics in each test suite."""
    models, metrics = {POLICY: run.model(number)}, {}
    for index, suite in enumerate(run.tests, 1):
        path = run.round_folder(number) / f"test-{index}.jsonl"
        words = f"round {number}, {suite.name}"
        records = play_all(suite, run.knowledge, models, run.test, path, batch=run.batch, words=words)
        metrics[suite.name] = summarise(records, suite.measures)
        if number:
            _, begun = read_tasks(run.round_folder(0) / path.name)
            first = {name: record.end["success"] for name, record in begun.items() if record.end}
            metrics[suite.name] |= paired(first, {record["name"]: record["success"] for record in records})
    return metrics


def paired(before: Mapping[str, bool], after: Mapping[str, bool]) -> dict[str, float]:
    """Compare the successes of two runs of the same tasks.

    Returns "gained" and "lost", the numbers of tasks that only the second or only the first run won, and "p", the
    p-value of McNemar's exact test, two-sided (a sign test on the tasks that differ).
    """
    both = before.keys() & after.keys()
    gained = sum(after[name] and not before[name] for name in both)
    lost = sum(before[name] and not after[name] for name in both)
    differ = gained + lost
    tail = sum(math.comb(differ, k) for k in range(min(gained, lost) + 1)) / 2**differ
    return {"gained": gained, "lost": lost, "p": min(1.0, 2 * tail)}


def _synthesise(run: _Rounds, number: int) -> tuple[list[TrainingText], dict]:
    """Play, filter and merge; return the texts to tune a round's model on, and the counts for its report."""
    folder = run.round_folder(number)
    path = folder / "synthesis.jsonl"
    models = {POLICY: run.model(number - 1)}
    settings = replace(run.synthesis, seed=run.synthesis.seed + number - 1)
    suite = _sampled(run.tasks(number), run.schedule.samples)
    words = f"round {number}, training tasks"
    records = play_all(suite, run.knowledge, models, settings, path, batch=run.batch, words=words)

    # Filter and merge (Algorithm 1): of each task the shortest trajectory of all rounds.
    _, played = read_tasks(path)
    filtered = filter_trajectories(_trajectories(played, number), run.schedule.rule)
    write_whole(folder / "dropped.json", to_json([_dropped(*pair) for pair in filtered.dropped]))
    earlier = list(read_merged(run.round_folder(number - 1) / "merged.jsonl")) if number > 1 else []
    merged = merge([trajectory for trajectory, _ in earlier], filtered.kept)
    if not merged:
        failures = [record.end["failure"] for record in played.values() if record.end and "failure" in record.end]
        raise _nothing_kept(run, number, path, filtered, failures)
    # Trajectories of this round are replayed to recover their prompts; those of earlier rounds have their texts.
    tasks = {task.name: task for task in suite.tasks}
    texts = {trajectory.source: written for trajectory, written in earlier}
    for trajectory in merged:
        if trajectory.source not in texts:
            name = _run_name(trajectory.source)
            answers = played[name].answers
            texts[trajectory.source] = run.learner.texts(tasks[name], answers, run.knowledge, models, settings)
    write_merged(folder / "merged.jsonl", [(trajectory, texts[trajectory.source]) for trajectory in merged])
    return [text for trajectory in merged for text in texts[trajectory.source]], {
        "synthesis": summarise(records, suite.measures),
        "kept": len(filtered.kept),
        "dropped": dict(filtered.reasons),
        "merged": len(merged),
    }


def _sampled(suite: Suite, samples: int) -> Suite:
    """A suite with every task repeated, under different names."""
    repeats = [
        replace(task, name=f"{task.name}{SAMPLE}{number}") for number in range(2, samples + 1) for task in suite.tasks
    ]
    return replace(suite, tasks=[*suite.tasks, *repeats])


def _trajectories(played: dict[str, TaskRecord], number: int) -> Iterator[Trajectory]:
    """Yield the trajectories of a recorded run, under their tasks' names; the source is "ROUND/NAME OF THE SAMPLE"."""
    for name, record in played.items():
        yield from_record(name.partition(SAMPLE)[0], record.steps, record.end or {}, source=f"{number}/{name}")


def _run_name(source: str) -> str:
    return source.partition("/")[2]


def _dropped(trajectory: Trajectory, reason: str) -> dict:
    row, violation = {"run": _run_name(trajectory.source), "reason": reason}, trajectory.violation
    return row | ({"action": violation.text, "why": violation.reason} if violation else {})


def _nothing_kept(run: _Rounds, number: int, path: Path, filtered: Filtered, failures: Sequence[str]) -> TrainingError:
    reasons = ", ".join(f"{count} {reason}" for reason, count in filtered.reasons.items())
    if failures:
        reasons += f"; {len(failures)} were broken off, the first by {failures[0]}"
    masks = "" if run.synthesis.constrained else "turn the masks on; "
    return TrainingError(
        f"round {number}: none of {len(filtered.dropped)} trajectories can be learned from ({reasons}); "
        f"they are in {path}",
        f"{masks}give more or easier training tasks, more steps, or more samples at a higher temperature",
    )
