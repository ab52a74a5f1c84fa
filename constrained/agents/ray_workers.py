"""Play tasks in processes of their own, on this machine or on a cluster, through Ray.

Every worker is an actor that holds the models and plays a share of the tasks with `campaign.play`; its lines stream
back to the one process that writes the run's file. Shares get smaller towards the end, so that all workers end together
(guided self-scheduling: Polychronopoulos and Kuck 1987). What comes of a task hangs on its seed and its name alone, so
it is the same wherever it is played.
"""

from __future__ import annotations

import importlib
import logging
import os
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from constrained.agents.episode import Settings
from constrained.agents.run_file import UnfinishedTask
from constrained.agents.suite_runner import lost, play, writers
from constrained.environments.suite import Task
from constrained.errors import ConstrainedError
from constrained.knowledge import ActionKnowledge
from constrained.models import LoadedModel

Models = Mapping[str, LoadedModel]

LIVES = 2
"""Deaths of a worker after which what it was playing counts as failed."""

STORE = 128 << 20
"""Bytes of shared memory for a Ray of our own: only lines pass through it."""

REASON = 400
"""Characters of what Ray says of a death that are kept."""


class Worker:
    """What runs in each process."""

    def open(self, open_models: Callable[[], Models], expected: dict) -> None:
        """Load the models; they and the packages must be those of the process that writes the file."""
        self.models = open_models()
        found = writers(self.models)
        if found != expected:
            strange = [
                f"{name} is {found[part].get(name)}, not {value}"
                for part in expected
                for name, value in expected[part].items()
                if found[part].get(name) != value
            ]
            raise ConstrainedError(
                f"a worker on {socket.gethostname()} would play something else: {'; '.join(strange)}",
                "let every machine have the same packages and the same files of the models",
            )

    def play(
        self,
        tasks: list[Task],
        knowledge: ActionKnowledge,
        settings: Settings,
        begun: dict[str, UnfinishedTask],
        batch: int,
        judge: ActionKnowledge | None,
    ) -> Iterator[dict]:
        yield from play(tasks, knowledge, self.models, settings, begun, batch, judge)


@dataclass
class Share:
    """Tasks that a worker has been given, and those of them that have no end yet, in the order they are begun."""

    worker: Any
    open: dict[str, Task]


class RayWorkers:
    """So many processes that play; a context manager.

    Uses the Ray that the process is connected to, or the cluster that ``RAY_ADDRESS`` names; otherwise starts one on
    this machine, for as long as it is entered.

    Parameters
    ----------
    count : int
    open_models : callable
        Loads the models by role in each process; cloudpickle must be able to send it, such as
        ``functools.partial(load_roles, "path/of/model")``.
    models : mapping of str to LoadedModel
        The same, as loaded here.

    Raises
    ------
    ConstrainedError
        Ray isn't installed, has no room for so many, or a worker's models or packages are others than those here.
    """

    def __init__(self, count: int, open_models: Callable[[], Models], models: Models):
        if count < 1:
            raise ConstrainedError(f"{count} workers can't play", "use 1 or more, or none to play in this process")
        self.count, self.open_models = count, open_models
        self._expected = writers(models)
        self._on_gpu = any(model.device.type == "cuda" for model in models.values())
        self._ray = _ray()
        self._idle: list[Any] = []

    def __enter__(self) -> RayWorkers:
        self._started = not self._ray.is_initialized()
        if self._started:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody
            room = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": self.count, "object_store_memory": STORE}
            try:
                self._ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR, **room)
            except Exception as error:  # anything from ConnectionError to ValueError
                problem = (str(error).splitlines() or [type(error).__name__])[0]
                raise ConstrainedError(
                    f"Ray can't be reached: {problem}", "check RAY_ADDRESS, or unset it to play on this machine alone"
                ) from error
        try:
            free = self._ray.available_resources()
            if free.get("CPU", 0) < self.count:  # it would wait until somebody goes
                raise ConstrainedError(
                    f"{self.count} workers take a processor each, Ray has {free.get('CPU', 0):.0f} free",
                    "ask for fewer workers",
                )
            self._gpus = min(1.0, free.get("GPU", 0) / self.count) if self._on_gpu else 0
            self._idle = self._start(self.count)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
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
        begun: Mapping[str, UnfinishedTask] = MappingProxyType({}),
        batch: int = 1,
        judge: ActionKnowledge | None = None,
    ) -> Iterator[dict]:
        """The lines of a run, as `campaign.play` gives them, in the order in which they arrive.

        What a worker that dies was playing is played once more, by itself, from where its lines end; if that worker
        dies, too, the task has failed, and its end says why.

        Parameters
        ----------
        begun : mapping of str to UnfinishedTask
            Looked at whenever a task is given to a worker: one that is kept up to date, as `RunFile` does, lets a task
            whose worker died go on where it was.
        """
        waiting, suspected, deaths = deque(tasks), deque(), Counter()
        running: dict[Any, Share] = {}
        try:
            while waiting or suspected or running:
                while self._idle and (waiting or suspected):
                    some = [suspected.popleft()] if suspected else _share(waiting, self.count, batch)
                    worker = self._idle.pop()
                    known = {task.name: begun[task.name] for task in some if task.name in begun}
                    given = some, knowledge, settings, known, batch, judge
                    lines = worker.play.options(num_returns="streaming").remote(*given)
                    running[lines] = Share(worker, {task.name: task for task in some})
                [lines], _ = self._ray.wait(list(running), num_returns=1)
                share = running[lines]
                try:
                    line = self._ray.get(next(lines))
                except StopIteration:
                    self._idle.append(running.pop(lines).worker)
                    continue
                except self._ray.exceptions.RayTaskError as error:
                    raise error.cause if isinstance(error.cause, ConstrainedError) else error from None
                except self._ray.exceptions.RayError as error:
                    unfinished = list(running.pop(lines).open.values())
                    waiting.extendleft(reversed(unfinished[batch:]))  # not begun: a worker begins them in order
                    deaths.update(task.name for task in unfinished[:batch])
                    suspected += (task for task in unfinished[:batch] if deaths[task.name] < LIVES)
                    reason = f"its worker died {LIVES} times: {' '.join(str(error).split())[:REASON]}"
                    for task in unfinished[:batch]:
                        if deaths[task.name] >= LIVES:
                            yield lost(task, begun.get(task.name, UnfinishedTask()), reason)
                    self._idle += self._start(1)
                    continue
                if "end" in line:
                    del share.open[line["task"]]
                yield line
        finally:
            for share in running.values():
                self._ray.kill(share.worker)

    def _start(self, count: int) -> list[Any]:
        """RayWorkers with their models loaded."""
        actor = self._ray.remote(num_cpus=1, num_gpus=self._gpus)(Worker)
        made = [actor.remote() for _ in range(count)]
        try:
            self._ray.get([worker.open.remote(self.open_models, self._expected) for worker in made])
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause if isinstance(error.cause, ConstrainedError) else error from None
        return made


def _share(waiting: deque[Task], workers: int, batch: int) -> list[Task]:
    """The next tasks for one worker, taken off `waiting`: half of what would be its part, but a batch at least."""
    size = max(batch, len(waiting) // (2 * workers))
    return [waiting.popleft() for _ in range(min(size, len(waiting)))]


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise ConstrainedError("workers need Ray, which isn't installed", "pip install 'constrained[ray]'") from None
