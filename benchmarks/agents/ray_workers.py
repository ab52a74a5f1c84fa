"""Play tasks in other processes, on this machine or on a cluster, with Ray.

Every worker is an actor that holds the models and plays a share of the tasks with `suite_runner.play`; its lines stream
back to the process that writes the run's file. Shares get smaller towards the end, so that all workers end at about the
same time (guided self-scheduling: Polychronopoulos and Kuck, 1987). The result of a task depends on its seed and name
only, not on where it is played.
"""

from __future__ import annotations

import importlib
import logging
import os
import socket
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from constrained.agents.plan import Plan, Step
from constrained.agents.run_file import TaskRecord, summary
from constrained.agents.settings import Settings
from constrained.agents.suite_runner import Models, model_versions, play
from constrained.environments.suite import Task
from constrained.errors import ConstrainedError, needs_extra
from constrained.knowledge import ActionKnowledge
from constrained.models import LoadedModel

MAX_DEATHS = 2
"""Deaths of a worker after which the tasks it was playing count as failed."""

OBJECT_STORE = 128 << 20
"""Bytes of shared memory for a Ray started here: only lines pass through it."""

FREED = 30.0
"""Most seconds to wait for processors: Ray tells for a while that a process holds one which was just ended."""

MAX_REASON = 400
"""Characters of Ray's message about a death that are kept."""


class RayWorker:
    """The actor in each process."""

    def open(self, open_models: Callable[[], Models], expected: dict) -> None:
        """Load the models; they and the packages must be those of the process that writes the file."""
        self.models = open_models()
        versions = model_versions(self.models)
        if versions != expected:
            differences = [
                f"{name} is {versions[part].get(name)}, not {value}"
                for part in expected
                for name, value in expected[part].items()
                if versions[part].get(name) != value
            ]
            raise ConstrainedError(
                f"a worker on {socket.gethostname()} would play something else: {'; '.join(differences)}",
                "let every machine have the same packages and the same files of the models",
            )

    def play(
        self,
        tasks: list[Task],
        knowledge: ActionKnowledge,
        settings: Settings,
        unfinished: dict[str, TaskRecord],
        batch: int,
        judge: ActionKnowledge | None,
    ) -> Iterator[dict]:
        yield from play(tasks, knowledge, self.models, settings, unfinished, batch, judge)


@dataclass
class Share:
    """A worker and its unfinished tasks, in the order in which they are started."""

    worker: Any
    open: dict[str, Task]


class RayWorkers:
    """Several processes that play; a context manager.

    Uses the Ray that the process is connected to, or the cluster that ``RAY_ADDRESS`` names; otherwise starts one on
    this machine for the time of the context.

    Parameters
    ----------
    open_models : callable
        Loads the models by role in each process; cloudpickle must be able to send it, as it can
        ``functools.partial(load_roles, "path/of/model")``.
    models : mapping of str to LoadedModel
        The same models, as loaded here.

    Raises
    ------
    ConstrainedError
        Ray isn't installed or has no room for so many, or a worker has other models or packages.
    """

    def __init__(self, count: int, open_models: Callable[[], Models], models: Models):
        if count < 1:
            raise ConstrainedError(f"{count} workers can't play", "use 1 or more, or none to play in this process")
        self.count, self.open_models = count, open_models
        self._expected = model_versions(models)
        self._on_gpu = any(isinstance(model, LoadedModel) and model.device.type == "cuda" for model in models.values())
        with needs_extra("ray", "a run with workers", "ray"):
            self._ray: Any = importlib.import_module("ray")
        self._idle: list[Any] = []

    def __enter__(self) -> RayWorkers:
        self._started = not self._ray.is_initialized()
        if self._started:
            self._start_ray()
        try:
            free = self._free()
            self._gpus = min(1.0, free.get("GPU", 0) / self.count) if self._on_gpu else 0
            self._idle = self._start(self.count)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._idle:
            self._ray.kill(worker)
        self._idle = []
        if self._started:
            self._ray.shutdown()

    def play(
        self,
        tasks: Iterable[Task],
        knowledge: ActionKnowledge,
        settings: Settings,
        unfinished: Mapping[str, TaskRecord] = MappingProxyType({}),
        batch: int = 1,
        judge: ActionKnowledge | None = None,
    ) -> Iterator[dict]:
        """The lines of a run, as `suite_runner.play` yields them, in the order in which they arrive.

        The tasks that a worker was playing when it died are played once more, each alone, from where its lines end; if
        that worker dies too, the task has failed, and its "end" says why.

        `unfinished`: read whenever a task is given to a worker. If it is kept up to date, as `RunFile` does, a task
        whose worker died is continued.
        """
        # Tasks that were being played when a worker died are suspected: they are played again, one at a time.
        waiting, suspected, deaths = deque(tasks), deque[Task](), Counter[str]()
        running: dict[Any, Share] = {}
        try:
            while waiting or suspected or running:
                while self._idle and (waiting or suspected):
                    share = [suspected.popleft()] if suspected else _next_share(waiting, self.count, batch)
                    worker = self._idle.pop()
                    known = {task.name: unfinished[task.name] for task in share if task.name in unfinished}
                    arguments = share, knowledge, settings, known, batch, judge
                    lines = worker.play.options(num_returns="streaming").remote(*arguments)
                    running[lines] = Share(worker, {task.name: task for task in share})
                [lines], _ = self._ray.wait(list(running), num_returns=1)
                try:
                    line = self._ray.get(next(lines))
                except StopIteration:
                    self._idle.append(running.pop(lines).worker)
                    continue
                except self._ray.exceptions.RayTaskError as error:
                    raise error.cause if isinstance(error.cause, ConstrainedError) else error from None
                except self._ray.exceptions.RayError as error:
                    left = list(running.pop(lines).open.values())
                    started = left[:batch]  # a worker starts its tasks in order
                    waiting.extendleft(reversed(left[batch:]))
                    deaths.update(task.name for task in started)
                    suspected += (task for task in started if deaths[task.name] < MAX_DEATHS)
                    reason = f"its worker died {MAX_DEATHS} times: {' '.join(str(error).split())[:MAX_REASON]}"
                    for task in started:
                        if deaths[task.name] >= MAX_DEATHS:
                            yield _failed(task, unfinished.get(task.name, TaskRecord()), reason)
                    self._idle += self._start(1)
                    continue
                if "end" in line:
                    del running[lines].open[line["task"]]
                yield line
        finally:
            for unended in running.values():
                self._ray.kill(unended.worker)

    def _free(self) -> dict[str, float]:
        """The resources that are free, once there is a processor for each worker.

        Raises ConstrainedError: Ray has fewer, or others hold them for longer than `FREED`.
        """
        until = time.monotonic() + FREED
        while (free := self._ray.available_resources()).get("CPU", 0) < self.count:
            if self._ray.cluster_resources().get("CPU", 0) < self.count or time.monotonic() > until:
                raise ConstrainedError(
                    f"{self.count} workers take a processor each, Ray has {free.get('CPU', 0):.0f} free",
                    "ask for fewer workers",
                )
            time.sleep(0.2)
        return free

    def _start_ray(self) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no telemetry
        room = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": self.count, "object_store_memory": OBJECT_STORE}
        try:
            self._ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR, **room)
        except Exception as error:  # anything from ConnectionError to ValueError
            problem = (str(error).splitlines() or [type(error).__name__])[0]
            raise ConstrainedError(
                f"Ray can't be reached: {problem}", "check RAY_ADDRESS, or unset it to play on this machine alone"
            ) from error

    def _start(self, count: int) -> list[Any]:
        """New workers with their models loaded."""
        actor = self._ray.remote(num_cpus=1, num_gpus=self._gpus)(RayWorker)
        workers = [actor.remote() for _ in range(count)]
        try:
            self._ray.get([worker.open.remote(self.open_models, self._expected) for worker in workers])
        except BaseException as error:
            for worker in workers:  # a traceback that somebody keeps would keep them, and their processors
                self._ray.kill(worker)
            if isinstance(error, self._ray.exceptions.RayTaskError):
                raise error.cause if isinstance(error.cause, ConstrainedError) else error from None
            raise
        return workers


def _next_share(waiting: deque[Task], workers: int, batch: int) -> list[Task]:
    """The next tasks for one worker, taken off `waiting`: half of an equal part of them, but at least a batch."""
    size = max(batch, len(waiting) // (2 * workers))
    return [waiting.popleft() for _ in range(min(size, len(waiting)))]


def _failed(task: Task, recorded: TaskRecord, reason: str) -> dict:
    """The "end" of a task that can't be played."""
    steps = [Step(**step) for step in recorded.steps]
    plan = Plan("", "", "", "", True, 0, steps, success=False, answers=recorded.answers)
    return {"task": task.name, "end": summary(plan) | {"failure": reason}}
