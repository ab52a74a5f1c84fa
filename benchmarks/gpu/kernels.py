"""A step of the kernels: masked and not, with a model and without, and masks applied beside xgrammar's kernel.

Every figure is a median over repeats. On a CUDA device the timed calls are captured as a graph and timed by events, so
that it is the device's time and not Python's; on a CPU the plain torch reference is timed by the clock. There are two
kinds of rows: *wide*, all in free text, where a mask row of the whole vocabulary is read; *text*, spread over the
states of a whole step.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from transformers import StaticCache

from benchmarks.gpu.workload import CONTEXT, Workload, waits
from constrained.decoding import bitmask
from constrained.decoding.device import AsyncFlag, DeviceMatcher

KINDS = ("wide", "text")

INNER = 8
"""Calls in one captured graph, so that the resolution of the events doesn't matter."""


class Bench:
    """Measurements with one workload."""

    def __init__(self, work: Workload, repeats: int):
        self.tables, self.model, self.repeats = work.tables, work.model, repeats

    def measure(self, batch: int, kind: str) -> dict:
        """The figures of one batch size, in seconds."""
        # Rows evenly spread over the available states; every timed call starts from them.
        device = self.tables.device
        available = self.states(kind)
        states = available[((torch.arange(batch, device=device) + 0.5) * len(available) / batch).long()]
        matcher = DeviceMatcher(self.tables, batch)
        logits = torch.randn(batch, self.tables.size, device=device).to(self.model.dtype)
        read, one = self._decoder(batch)

        def masked(**options) -> Callable[[], object]:
            def run():
                matcher.state.copy_(states)  # start from the same states every time
                return matcher.step(logits, **options)

            return run

        def plain(choose: Callable) -> Callable[[], object]:
            def run():
                matcher.state.copy_(states)
                return choose(logits)

            return run

        def decode(choose: Callable) -> Callable[[], object]:
            def run():
                matcher.state.copy_(states)
                return choose(one())

            return run

        def by_chance(values):
            noise = torch.empty_like(values, dtype=torch.float32).exponential_().log_()
            return (values.float() - 0.7 * noise).argmax(1)

        result = {"batch": batch, "rows": kind, "allowed": _allowed(matcher, states)}
        runs = {
            "argmax": plain(lambda values: values.argmax(1)),
            "step": masked(),
            "step with pruned mass": masked(pruned_mass=True),
            "sample": plain(by_chance),
            "step by chance": masked(temperature=0.7),
        }
        result |= zip(runs, self.time(*runs.values()))
        read()
        result["decode"], result["decode within"] = self.time(decode(lambda v: v.argmax(1)), decode(matcher.step))
        result["overhead %"] = 100 * (result["decode within"] / result["decode"] - 1)
        matcher.state.copy_(states)
        return result | self._apply(matcher, logits)

    def _decoder(self, batch: int) -> tuple[Callable[[], None], Callable[[], torch.Tensor]]:
        """A function that reads the context, and one that decodes a token after it and leaves the cache as it was."""
        device = self.tables.device
        cache = StaticCache(config=self.model.config, max_cache_len=CONTEXT + 8)
        ids = torch.randint(self.tables.size, (batch, CONTEXT), device=device)
        position = torch.full((batch, 1), CONTEXT, device=device)
        seen = torch.ones(batch, CONTEXT + 8, dtype=torch.long, device=device)

        @torch.no_grad()
        def read() -> None:
            self.model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1)

        @torch.no_grad()
        def one() -> torch.Tensor:
            for layer in cache.layers:
                layer.cumulative_length.fill_(CONTEXT)
            return self.model(
                ids[:, -1:], attention_mask=seen, position_ids=position, past_key_values=cache, use_cache=True
            ).logits[:, -1]

        return read, one

    def _apply(self, matcher: DeviceMatcher, logits: torch.Tensor) -> dict:
        """Time the application of packed masks to logits, ours and xgrammar's."""
        mask = matcher.mask()
        kernel = matcher.backend.apply
        try:
            from xgrammar import apply_token_bitmask_inplace as theirs
        except ImportError:
            return {"apply": self.time(lambda: kernel(logits, mask))[0], "apply xgrammar": None, "apply equal": None}
        fresh = torch.randn_like(logits)
        ours, other = kernel(fresh.clone(), mask), fresh.clone()
        theirs(other, mask)
        ours_seconds, their_seconds = self.time(lambda: kernel(logits, mask), lambda: theirs(logits, mask))
        return {"apply": ours_seconds, "apply xgrammar": their_seconds, "apply equal": bool(torch.equal(ours, other))}

    def states(self, kind: str) -> torch.Tensor:
        """The state that allows most tokens ("wide"), or the states along a greedy text of random logits ("text")."""
        if kind == "wide":
            most = bitmask.expand(self.tables.masks, self.tables.size).sum(1).argmax()
            wide = torch.nonzero(self.tables.mask_row == most).flatten()[0]
            return torch.nonzero(self.tables.wide == wide).flatten().int()
        matcher = DeviceMatcher(self.tables, 1, budget=120)
        generator = torch.Generator().manual_seed(1)
        met = []
        for _ in range(120):
            met.append(matcher.state.clone())
            logits = torch.randn(1, self.tables.size, generator=generator).to(self.tables.device)
            matcher.step(logits)
            if bool(matcher.finished):
                break
        return torch.cat(met)

    def time(self, *runs: Callable[[], object]) -> list[float]:
        """Median seconds of each, measured in turns, so that temporary load slows all of them alike."""
        once = self._by_clock if self.tables.device.type == "cpu" else self._by_events
        timers = [once(run) for run in runs]
        times = [[timer() for timer in timers] for _ in range(self.repeats)]
        return [statistics.median(read() for read in column) for column in zip(*times)]

    @staticmethod
    def _by_clock(run: Callable[[], object]) -> Callable[[], Callable[[], float]]:
        run()

        def once() -> Callable[[], float]:
            began = time.perf_counter()
            run()
            seconds = time.perf_counter() - began
            return lambda: seconds

        return once

    @staticmethod
    def _by_events(run: Callable[[], object]) -> Callable[[], Callable[[], float]]:
        for _ in range(3):
            run()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(INNER):
                run()
        graph.replay()

        def once() -> Callable[[], float]:
            first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            first.record()
            graph.replay()
            last.record()

            def read() -> float:  # after all are launched, so nothing waits in between
                last.synchronize()
                return first.elapsed_time(last) / 1000 / INNER

            return read

        return once

    def waits(self, batch: int, steps: int = 20) -> float | None:
        """Waits for the device per token; None on a CPU."""
        if self.tables.device.type == "cpu":
            return None
        matcher, flag = DeviceMatcher(self.tables, batch), AsyncFlag(self.tables.device)
        logits = torch.randn(batch, self.tables.size, device=self.tables.device)
        matcher.step(logits, temperature=0.7, pruned_mass=True)  # compiles
        with waits(self.tables.device) as found:
            for _ in range(steps):
                matcher.step(logits, temperature=0.7, pruned_mass=True)
                flag.look(matcher.finished.all())
        return len(found) / steps


def _allowed(matcher: DeviceMatcher, states: torch.Tensor) -> float:
    """Mean number of allowed tokens over the rows."""
    matcher.state.copy_(states)
    return bitmask.expand(matcher.mask(), matcher.tables.size).sum(1).float().mean().item()
