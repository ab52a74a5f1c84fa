"""Play the tasks of a suite with one strategy, recording every step; what was broken off goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from tqdm import tqdm

from constrained.agents.episode import Episode, Settings
from constrained.agents.messages import POLICY, Answer, Strategy
from constrained.agents.plan import Plan, Step
from constrained.agents.run_file import RunFile, UnfinishedTask, digest, lines_since, summary
from constrained.agents.scheduler import Rollout, schedule
from constrained.agents.strategies import STRATEGIES
from constrained.agents.token_trace import picture
from constrained.environments.suite import Suite, Task
from constrained.knowledge import ActionKnowledge
from constrained.models import LoadedModel
from constrained.version import __version__

if TYPE_CHECKING:
    from constrained.agents.ray_workers import RayWorkers

PACKAGES = ("torch", "transformers", "tokenizers", "numpy")
"""Whose versions a record names: another one may round otherwise."""


def header(
    suite: Suite,
    knowledge: ActionKnowledge,
    models: Mapping[str, LoadedModel],
    settings: Settings,
    judge: ActionKnowledge | None = None,
) -> dict:
    """What makes a run this one: everything on which its results depend; if it is traced, what its pages show, too."""
    known = {"knowledge": knowledge} | ({"judge": judge} if judge else {})
    return {
        "suite": suite.name,
        **{part: {"name": k.name, "digest": digest(k.to_text())} for part, k in known.items()},
        "settings": asdict(settings),
        **({"trace": picture(knowledge)} if settings.trace else {}),
        **writers(models),
    }


def writers(models: Mapping[str, LoadedModel]) -> dict[str, dict]:
    """Models and packages that make the texts."""
    return {
        "models": {role: {"name": m.name, "digest": weights_digest(m)} for role, m in models.items()},
        "versions": {"constrained": __version__, **{name: _version(name) for name in PACKAGES}},
    }


def label(head: dict) -> str:
    """A file's name that changes with everything that changes the result."""
    settings = head["settings"]
    masks = "on" if settings["constrained"] else "off"
    suite = head["suite"].replace("/", "-").replace(" ", "-")
    other = f"-{head['knowledge']['name']}" if "judge" in head else ""
    return f"{suite}-{settings['strategy']}{other}-masks-{masks}-{digest(json.dumps(head, sort_keys=True))[:10]}"


def play_suite(
    suite: Suite,
    knowledge: ActionKnowledge,
    models: Mapping[str, LoadedModel],
    settings: Settings,
    file: RunFile,
    batch: int = 1,
    workers: RayWorkers | None = None,
    judge: ActionKnowledge | None = None,
) -> Iterator[tuple[Task, dict]]:
    """Play every task of `suite` that `file` doesn't hold yet; yields each with its "end", those played before first.

    A task that failed (its environment died, say) is taken up again by the next run. With `batch`, so many are played
    side by side; with `workers`, in as many processes. What comes of them is the same. With `judge`, the verdicts are
    by that knowledge, though agents are held to `knowledge`.
    """
    todo = {}
    for task in suite.tasks:
        end = file.finished.get(task.name)
        if end is None or "failure" in end:
            todo[task.name] = task
        else:
            yield task, end
    if workers is None:
        lines = play(todo.values(), knowledge, models, settings, file.unfinished, batch, judge)
    else:
        lines = workers.play(todo.values(), knowledge, settings, file.unfinished, batch, judge)
    for line in lines:
        file.write(line)
        if "end" in line:
            yield todo[line["task"]], line["end"]


def play_all(
    suite: Suite,
    knowledge: ActionKnowledge,
    models: Mapping[str, LoadedModel],
    settings: Settings,
    path: Path,
    *,
    batch: int = 1,
    workers: RayWorkers | None = None,
    words: str = "",
    judge: ActionKnowledge | None = None,
) -> list[dict]:
    """The "end" of every task of `suite`, with its "name" and "kind"; what the run at `path` has already isn't played.

    On a terminal, a bar that `words` begin shows how far it is.
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
    knowledge: ActionKnowledge,
    models: Mapping[str, LoadedModel],
    settings: Settings,
    begun: Mapping[str, UnfinishedTask] = MappingProxyType({}),
    batch: int = 1,
    judge: ActionKnowledge | None = None,
) -> Iterator[dict]:
    """The lines of a run (see `record`), as the tasks are played; what had `begun` goes on where it was."""
    again: list[Task] = []
    playing: dict[Rollout, tuple[Task, int, int]] = {}  # with how many of its steps and answers are written

    def rollouts() -> Iterator[Rollout]:
        for task in tasks:
            rollout = rollout_of(
                task, knowledge, models, settings, begun.get(task.name, UnfinishedTask()).answers, judge
            )
            playing[rollout] = task, 0, 0
            yield rollout

    for rollout in schedule(rollouts(), batch):
        task, steps, answers = playing[rollout]
        plan, earlier = rollout.episode.plan, begun.get(task.name)
        if earlier and not steps:  # it has just started
            if not _agrees(rollout, earlier):
                rollout.close()
                del playing[rollout]
                again.append(task)
                yield {"task": task.name, "again": True}
                continue
            steps, answers = len(earlier.steps), len(earlier.answers)
        if len(plan.steps) > steps:
            yield from lines_since(task.name, plan, steps, answers)
            answers = len(plan.answers)
        playing[rollout] = task, len(plan.steps), answers
        if rollout.over:
            del playing[rollout]
            yield {"task": task.name, "end": ending(rollout)}
    if again:
        yield from play(again, knowledge, models, settings, batch=batch, judge=judge)


def rollout_of(
    task: Task,
    knowledge: ActionKnowledge,
    models: Mapping[str, LoadedModel],
    settings: Settings,
    recorded: Iterable[Answer] = (),
    judge: ActionKnowledge | None = None,
) -> Rollout:
    """A task with its strategy, not begun yet; `recorded` is what its first questions were answered before."""
    plan = Plan("", knowledge.name, settings.strategy, models[POLICY].name, settings.constrained, settings.seed)
    episode = Episode(models, knowledge, plan, settings, judge=judge)
    return Rollout(episode, _opened(task, episode), task.name, recorded)


def _opened(task: Task, episode: Episode) -> Strategy:
    """The strategy, in an environment opened for it and closed after it."""
    environment = episode.environment = task.make()
    try:
        episode.plan.task = environment.task
        yield from STRATEGIES[episode.settings.strategy](episode)
    finally:
        if hasattr(environment, "close"):
            environment.close()


def lost(task: Task, begun: UnfinishedTask, reason: str) -> dict:
    """The line of a task that whoever played it can't end any more."""
    plan = Plan("", "", "", "", True, 0, [Step(**step) for step in begun.steps], success=False, answers=begun.answers)
    return {"task": task.name, "end": summary(plan) | {"failure": reason}}


def ending(rollout: Rollout) -> dict:
    """What the "end" of a task says that was played."""
    failure = rollout.failure
    return summary(rollout.episode.plan) | ({"failure": f"{type(failure).__name__}: {failure}"} if failure else {})


def _agrees(rollout: Rollout, earlier: UnfinishedTask) -> bool:
    """Whether a task came back to where its record says it was, or failed on the way there."""
    made = [(s.action, s.observation) for s in rollout.episode.plan.steps]
    recorded = [(s["action"], s["observation"]) for s in earlier.steps]
    return made[: len(recorded)] == recorded or (rollout.failure is not None and made == recorded[: len(made)])


def weights_digest(loaded: LoadedModel) -> str:
    """A name for the weights: the same weights have the same."""
    hashed = hashlib.sha256()
    for name, value in sorted(loaded.model.state_dict().items()):
        hashed.update(name.encode() + value.detach().float().cpu().numpy().tobytes())
    return hashed.hexdigest()[:16]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
