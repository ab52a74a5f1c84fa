"""Run a suite: play every task with one strategy, record each step, and continue interrupted runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias

from tqdm import tqdm

from constrained.agents.episode import Episode
from constrained.agents.messages import POLICY, Strategy
from constrained.agents.plan import Plan
from constrained.agents.run_file import RunFile, TaskRecord, digest
from constrained.agents.scheduler import Rollout, schedule
from constrained.agents.settings import Settings
from constrained.agents.strategies import STRATEGIES
from constrained.agents.surroundings import Surroundings
from constrained.agents.token_trace import knowledge_snapshot
from constrained.environments.base import Closable
from constrained.environments.suite import Suite, Task
from constrained.knowledge import Knowledge
from constrained.models import Chooser, RemoteModel
from constrained.version import __version__

if TYPE_CHECKING:
    from constrained.decoding import Generation
    from constrained.models import LoadedModel  # imports torch

Models: TypeAlias = "Mapping[str, LoadedModel | RemoteModel | Chooser]"

PACKAGES = ("torch", "transformers", "tokenizers", "numpy")
"""Packages whose versions a run records: another version may round differently."""


def header(
    suite: Suite,
    knowledge: Knowledge,
    models: Models,
    settings: Settings,
    judge: Knowledge | None = None,
) -> dict[str, Any]:
    """The header of a run's file: everything that the results depend on; for a traced run also the knowledge."""
    sources = {"knowledge": knowledge} | ({"judge": judge} if judge else {})
    return {
        "suite": suite.name,
        **{part: {"name": k.name, "digest": digest(k.to_text())} for part, k in sources.items()},
        "settings": asdict(settings),
        **({"trace": knowledge_snapshot(knowledge)} if settings.trace else {}),
        **model_versions(models),
    }


def model_versions(models: Models) -> dict[str, dict]:
    """The models, with digests of their weights, and the versions of the packages that run them."""
    return {
        "models": {role: {"name": m.name, "digest": _digest(m)} for role, m in models.items()},
        "versions": {"constrained": __version__, **{name: _version(name) for name in PACKAGES}},
    }


def _digest(model: LoadedModel | RemoteModel | Chooser) -> str:
    # By the method that only a model on this machine has: to name its class, torch would have to be imported.
    return model.weights_digest() if hasattr(model, "weights_digest") else model.digest


def label(head: Mapping[str, Any]) -> str:
    """A name for a run's file that is unique to its header."""
    settings = head["settings"]
    masks = "on" if settings["constrained"] else "off"
    suite = head["suite"].replace("/", "-").replace(" ", "-")
    knowledge = f"-{head['knowledge']['name']}" if "judge" in head else ""
    return f"{suite}-{settings['strategy']}{knowledge}-masks-{masks}-{digest(json.dumps(head, sort_keys=True))[:10]}"


def play_suite(
    suite: Suite,
    knowledge: Knowledge,
    models: Models,
    settings: Settings,
    file: RunFile,
    batch: int = 1,
    workers: Any = None,
    judge: Knowledge | None = None,
) -> Iterator[tuple[Task, dict]]:
    """Play every task of `suite` that `file` doesn't hold yet; yield each task with its "end", those in `file` first.

    Parameters
    ----------
    batch : int
        Tasks played side by side; the results don't depend on it.
    workers : optional
        Plays the tasks in other processes: its `play` is called like `play` here, without the models.
    judge : Knowledge, optional
        Gives the verdicts, if they are not to come from `knowledge`.
    """
    missing = {}
    for task in suite.tasks:
        record = file.tasks.get(task.name)
        end = record.end if record else None
        if end is None or "failure" in end:  # a task that failed (its environment died) is played again
            missing[task.name] = task
        else:
            yield task, end
    if workers is None:
        lines = play(missing.values(), knowledge, models, settings, file.tasks, batch, judge)
    else:
        lines = workers.play(missing.values(), knowledge, settings, file.tasks, batch, judge)
    for line in lines:
        file.write(line)
        if "end" in line:
            yield missing[line["task"]], line["end"]


def play_all(
    suite: Suite,
    knowledge: Knowledge,
    models: Models,
    settings: Settings,
    path: Path,
    *,
    batch: int = 1,
    workers: Any = None,
    words: str = "",
    judge: Knowledge | None = None,
) -> list[dict]:
    """Play a suite, and return the "end" of every task with its "name" and "kind".

    Tasks that are finished in the file at `path` aren't played again. On a terminal, a progress bar that starts with
    `words` is shown.
    """
    records = []
    with (
        RunFile(path, header(suite, knowledge, models, settings, judge)) as file,
        tqdm(total=len(suite.tasks), desc=words, unit="task", disable=None) as bar,
    ):
        for task, end in play_suite(suite, knowledge, models, settings, file, batch, workers, judge):
            records.append({"name": task.name, "kind": task.kind, **end})
            bar.set_postfix_str(f"{sum(r['success'] for r in records)} won")
            bar.update()
    return records


def play(
    tasks: Iterable[Task],
    knowledge: Knowledge,
    models: Models,
    settings: Settings,
    unfinished: Mapping[str, TaskRecord] = MappingProxyType({}),
    batch: int = 1,
    judge: Knowledge | None = None,
) -> Iterator[dict]:
    """Play tasks, and yield the lines of the run (see `run_file`); tasks in `unfinished` are continued."""
    diverged: list[Task] = []
    opened: dict[str, Task] = {}

    def rollouts() -> Iterator[Rollout]:
        for task in tasks:
            recorded = unfinished.get(task.name, TaskRecord()).answers
            opened[task.name] = task
            yield rollout_of(task, knowledge, models, settings, recorded, judge)

    for rollout in schedule(rollouts(), batch):
        earlier = unfinished.get(rollout.name)
        if earlier and rollout.written == (0, 0):  # the recorded answers have just been replayed
            if not _agrees(rollout, earlier):
                rollout.close()
                diverged.append(opened[rollout.name])
                yield {"task": rollout.name, "again": True}
                continue
            rollout.written = len(earlier.steps), len(earlier.answers)
        yield from rollout.lines()
    if diverged:  # the recorded answers no longer lead to the recorded steps: play these tasks from their start
        yield from play(diverged, knowledge, models, settings, batch=batch, judge=judge)


def rollout_of(
    task: Task,
    knowledge: Knowledge,
    models: Models,
    settings: Settings,
    recorded: Iterable[Generation] = (),
    judge: Knowledge | None = None,
) -> Rollout:
    """A rollout of a task, not started yet; `recorded` answers its first requests."""
    plan = Plan(
        "", knowledge.name, settings.strategy, models[POLICY].name, settings.constrained, settings.seed,
        level=settings.level,
    )  # fmt: skip
    episode = Episode(models, knowledge, plan, settings, judge=judge)
    return Rollout(episode, _in_environment(task, episode), task.name, recorded)


def _in_environment(task: Task, episode: Episode) -> Strategy:
    """Run the episode's strategy in the task's environment, which is opened for it and closed after it."""
    environment = task.make()
    try:
        episode.surroundings = Surroundings(environment)
        episode.plan.task = getattr(environment, "task", task.name)
        yield from STRATEGIES[episode.settings.strategy](episode)
    finally:
        if isinstance(environment, Closable):
            environment.close()


def _agrees(rollout: Rollout, earlier: TaskRecord) -> bool:
    """Whether a replayed task has done the recorded steps, or failed before it could do them all."""
    made = [(s.action, s.observation) for s in rollout.episode.plan.steps]
    recorded = [(s["action"], s["observation"]) for s in earlier.steps]
    return made[: len(recorded)] == recorded or (rollout.failure is not None and made == recorded[: len(made)])


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
