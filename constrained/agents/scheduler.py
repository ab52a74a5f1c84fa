"""Drive strategies: answer what they ask with the models of their episodes, one at a time or many in a batch."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import torch

from constrained.agents.episode import Episode
from constrained.agents.messages import Answer, Ask, Strategy
from constrained.agents.strategies import STRATEGIES
from constrained.agents.token_trace import trace_of
from constrained.decoding import PrefixCache, Request, generate_batch
from constrained.errors import ConstrainedError
from constrained.models import LoadedModel


class Rollout:
    """An episode under way with its strategy.

    Parameters
    ----------
    episode : Episode
    strategy : Strategy, optional
        Default: the one that the episode's settings name.
    name : str
        Of the task: with the seed it fixes what is sampled.
    recorded : iterable of Answer
        What its first questions were answered before.

    Attributes
    ----------
    ask : Ask or None
        What is to be answered next; None before the start and after the end.
    over : bool
    failure : Exception or None
        What the strategy or its environment raised, if that is why it is over.
    """

    def __init__(
        self, episode: Episode, strategy: Strategy | None = None, name: str = "", recorded: Iterable[Answer] = ()
    ):
        self.episode, self.name = episode, name
        self.ask: Ask | None = None
        self.over = False
        self.failure: Exception | None = None
        self._recorded = recorded
        self._strategy = strategy or STRATEGIES[episode.settings.strategy](episode)

    def start(self) -> None:
        """Go to the first question that has no answer yet."""
        self._go_on(None)
        for answer in self._recorded:
            if not self.over:
                self.answer(answer)

    def answer(self, answer: Answer) -> None:
        """Go on to the next question."""
        self.episode.plan.answers.append(answer)
        self._go_on(answer)

    def close(self) -> None:
        """Break it off; the strategy frees what it holds."""
        self.ask, self.over = None, True
        self._strategy.close()

    def fail(self, error: Exception) -> None:
        """Nothing more can be played."""
        self.failure = error
        self.close()

    def _go_on(self, answer: Answer | None) -> None:
        try:
            self.ask = self._strategy.send(answer)
        except StopIteration:
            self.ask, self.over = None, True
        except Exception as error:  # environments are other people's code: whatever ends one ends no other
            self.fail(error)

    def request(self) -> Request:
        """What it asks, as a model takes it."""
        ask = self.ask
        traced = self.episode.settings.trace and ask.grammar is not None
        return Request(ask.prompt, ask.grammar, ask.max_new_tokens, ask.stop, ask.begun, self.generator(), traced)

    def generator(self) -> torch.Generator | None:
        """Randomness for the next answer: the same whatever else is played, and wherever a run was broken off."""
        settings = self.episode.settings
        if not settings.temperature:
            return None
        key = f"{settings.seed}/{self.name}/{len(self.episode.plan.answers)}".encode()
        number = int.from_bytes(hashlib.sha256(key).digest()[:7], "big")
        return torch.Generator().manual_seed(number)


class Writers:
    """The models that answer, with what each has read last."""

    def __init__(self):
        self._caches: dict[int, PrefixCache] = {}

    def answer(self, rollouts: Sequence[Rollout]) -> None:
        """Answer each rollout's question; one that can't be answered fails that rollout alone."""
        together: dict[tuple, list[Rollout]] = {}
        for rollout in rollouts:
            settings = rollout.episode.settings
            sampling = settings.temperature, settings.top_k, settings.top_p, settings.trace
            together.setdefault((id(rollout.episode.loaded(rollout.ask.role)), *sampling), []).append(rollout)
        for group in together.values():
            try:
                answers = self._write(group)
            except ConstrainedError as error:
                if len(group) == 1:
                    group[0].fail(error)
                    continue
                for rollout in group:  # it doesn't say whose question it was
                    self.answer([rollout])
                continue
            for rollout, answer in zip(group, answers):
                rollout.answer(answer)

    def _write(self, group: Sequence[Rollout]) -> list[Answer]:
        """Answers of one model, sampled alike."""
        first, settings = group[0], group[0].episode.settings
        loaded: LoadedModel = first.episode.loaded(first.ask.role)
        began = time.perf_counter()
        written = generate_batch(
            loaded,
            [rollout.request() for rollout in group],
            temperature=settings.temperature,
            top_k=settings.top_k,
            top_p=settings.top_p,
            cache=self._caches.setdefault(id(loaded), PrefixCache()),
        )
        seconds = (time.perf_counter() - began) / len(group)
        return [
            Answer.of(
                made, rollout.ask, loaded.name, seconds,
                trace_of(made, rollout.ask, rollout.episode) if settings.trace else None,
            )
            for made, rollout in zip(written, group)
        ]  # fmt: skip


def schedule(rollouts: Iterable[Rollout], batch: int = 1) -> Iterator[Rollout]:
    """Play all, at most `batch` at a time; yields a rollout each time it has got on.

    A rollout that has just started comes too, before its first answer. One whose strategy or environment raises
    an error is over, and has it as its `failure`; the others play on.
    """
    waiting, writers = iter(rollouts), Writers()
    playing: list[Rollout] = []
    while True:
        for rollout in islice(waiting, batch - len(playing)):
            rollout.start()
            yield rollout
            playing.append(rollout)
        if not playing:
            return
        asking = [rollout for rollout in playing if not rollout.over]
        writers.answer(asking)
        yield from asking
        playing = [rollout for rollout in playing if not rollout.over]
