"""The scheduler: answers the requests of many rollouts in batches, each with the model of its role.

torch is imported only where a model on this machine writes: choosers and servers' models don't need it.
"""

from __future__ import annotations

import hashlib
import logging
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from constrained.agents.episode import Episode
from constrained.agents.messages import ChoiceRequest, Strategy
from constrained.agents.run_file import lines_since, summary
from constrained.agents.strategies import STRATEGIES
from constrained.agents.token_trace import trace_of
from constrained.decoding import Generation, Request
from constrained.errors import ConstrainedError

if TYPE_CHECKING:
    import torch

    from constrained.decoding import PrefixCache

log = logging.getLogger(__name__)


class Rollout:
    """An episode that its strategy is playing.

    Parameters
    ----------
    episode : Episode
    strategy : Strategy, optional
        Default: the strategy in the episode's settings.
    name : str
        The task's name; with the seed it determines what is sampled.
    recorded : iterable of Generation
        Answers to the first requests, from an interrupted run.

    Attributes
    ----------
    request : Request or None
        The request to answer next; None before the start and after the end.
    over : bool
    failure : Exception or None
        The error in the strategy or its environment that ended the rollout, if one did.
    written : (int, int)
        The numbers of the plan's steps and answers that are in the run's file.
    """

    def __init__(
        self,
        episode: Episode,
        strategy: Strategy | None = None,
        name: str = "",
        recorded: Iterable[Generation] = (),
    ):
        self.episode, self.name = episode, name
        self.request: Request | None = None
        self.over = False
        self.failure: Exception | None = None
        self.written = 0, 0
        self._recorded = recorded
        self._strategy = strategy or STRATEGIES[episode.settings.strategy](episode)

    def start(self) -> None:
        """Play up to the first request without a recorded answer."""
        self._resume(None)
        for answer in self._recorded:
            if not self.over:
                self.answer(answer)

    def answer(self, answer: Generation) -> None:
        """Answer the current request, and play up to the next."""
        self.episode.plan.answers.append(answer)
        self._resume(answer)

    def lines(self) -> Iterator[dict]:
        """Yield the lines of the run's file for what is new since the last call: steps, and the end once it is over."""
        plan, task = self.episode.plan, self.name or self.episode.plan.task
        if len(plan.steps) > self.written[0]:  # answers wait for the step that they belong to
            yield from lines_since(task, plan, *self.written)
            self.written = len(plan.steps), len(plan.answers)
        if self.over:
            failed = {"failure": f"{type(self.failure).__name__}: {self.failure}"} if self.failure else {}
            yield {"task": task, "end": summary(plan) | failed}

    def close(self) -> None:
        """End the rollout; the strategy frees its resources."""
        self.request, self.over = None, True
        self._strategy.close()

    def fail(self, error: Exception) -> None:
        """End the rollout because of an error."""
        if self.name:  # one of many; a single rollout's error is raised
            log.warning("%.60s ended: %s", self.episode.plan.task, error)
        self.failure = error
        self.close()

    def _resume(self, answer: Generation | None) -> None:
        try:
            self.request = next(self._strategy) if answer is None else self._strategy.send(answer)
        except StopIteration:
            self.request, self.over = None, True
        except Exception as error:  # environments are users' code: an error in one must not end other rollouts
            self.fail(error)

    def generator(self) -> torch.Generator | None:
        """The random numbers for the next answer; they depend neither on the batch nor on interruptions."""
        if not self.episode.settings.temperature:
            return None
        import torch

        return torch.Generator().manual_seed(self.seed)

    @property
    def seed(self) -> int:
        """The seed of the next answer."""
        key = f"{self.episode.settings.seed}/{self.name}/{len(self.episode.plan.answers)}".encode()
        return int.from_bytes(hashlib.sha256(key).digest()[:7], "big")


def schedule(rollouts: Iterable[Rollout], batch: int = 1) -> Iterator[Rollout]:
    """Play all rollouts, at most `batch` side by side; yield a rollout when it has started and after each answer.

    If a strategy or environment raises an error, its rollout ends with that error as its `failure`.
    """
    waiting = iter(rollouts)
    caches: dict[int, PrefixCache] = {}
    playing: list[Rollout] = []
    while True:
        for rollout in islice(waiting, batch - len(playing)):
            rollout.start()
            yield rollout
            playing.append(rollout)
        if not playing:
            return
        asking = [rollout for rollout in playing if not rollout.over]
        _answer(asking, caches)
        yield from asking
        playing = [rollout for rollout in playing if not rollout.over]


def _answer(rollouts: Sequence[Rollout], caches: dict[int, PrefixCache]) -> None:
    """Answer each rollout's request; a request that can't be answered ends only its own rollout."""
    groups: dict[tuple, list[Rollout]] = {}  # by model and sampling
    behind_servers: dict[tuple, list[Rollout]] = {}
    for rollout in rollouts:
        assert rollout.request is not None
        if isinstance(rollout.request, ChoiceRequest):
            _choose(rollout, rollout.request)
            continue
        settings, writer = rollout.episode.settings, rollout.episode.writer
        remote = writer.remote(rollout.request.role)
        if remote is not None:
            behind_servers.setdefault((id(remote), settings.temperature), []).append(rollout)
            continue
        key = id(writer.model(rollout.request.role)), settings.temperature, settings.top_k, settings.top_p
        groups.setdefault(key, []).append(rollout)
    for group in behind_servers.values():
        _ask_server(group)
    for group in groups.values():
        try:
            answers = _generate(group, caches)
        except ConstrainedError as error:
            if len(group) == 1:
                group[0].fail(error)
                continue
            for rollout in group:  # one by one, because the error doesn't say which request caused it
                _answer([rollout], caches)
            continue
        for rollout, answer in zip(group, answers, strict=True):
            rollout.answer(answer)


def _ask_server(rollouts: Sequence[Rollout]) -> None:
    """Answer the requests to one server's model side by side; a failure ends only its own rollout."""
    requests = [rollout.request for rollout in rollouts if rollout.request is not None]
    model, temperature = rollouts[0].episode.writer.remote(requests[0].role), rollouts[0].episode.settings.temperature
    assert model is not None
    seeds = [rollout.seed for rollout in rollouts] if temperature else []
    for rollout, answer in zip(rollouts, model.write(requests, temperature=temperature, seeds=seeds), strict=True):
        rollout.fail(answer) if isinstance(answer, Exception) else rollout.answer(answer)


def _choose(rollout: Rollout, request: ChoiceRequest) -> None:
    """Answer a request with the action that its chooser takes; an error in the chooser ends the rollout."""
    chooser, choice, began = rollout.episode.writer.chooser(request.role), request.choice, time.perf_counter()
    assert chooser is not None and choice is not None
    try:
        action = chooser.choose(replace(choice, random=random.Random(rollout.seed)))
        if action not in choice.actions:
            raise ConstrainedError(f"the chooser {chooser.name!r} chose {action!r:.60}, which is not admitted")
    except Exception as error:  # choosers are users' code
        rollout.fail(error)
        return
    rollout.answer(Generation(action, request.role, chooser.name, seconds=time.perf_counter() - began))


def _generate(group: Sequence[Rollout], caches: dict[int, PrefixCache]) -> list[Generation]:
    """Generate the answers of rollouts that share a model and sampling."""
    from constrained.decoding import PrefixCache, generate_batch  # imports torch

    settings = group[0].episode.settings
    requests = [
        replace(
            request,
            generator=rollout.generator(),
            on_text=rollout.episode.on_text,
            show_forbidden=rollout.episode.settings.trace and request.grammar is not None,
        )
        for rollout in group
        if (request := rollout.request) is not None
    ]
    model = group[0].episode.writer.model(requests[0].role)
    # One cache a model: most prompts of an episode begin with the one before.
    written = generate_batch(
        model, requests, temperature=settings.temperature, top_k=settings.top_k, top_p=settings.top_p,
        cache=caches.setdefault(id(model), PrefixCache()),
    )  # fmt: skip
    # The trace holds what pages show of the tokens; all tokens of a long run would fill the memory.
    return [
        replace(
            generation,
            tokens=(),
            end=None,
            trace=trace_of(generation, request, rollout.episode) if rollout.episode.settings.trace else None,
        )
        for generation, request, rollout in zip(written, requests, group, strict=True)
    ]
