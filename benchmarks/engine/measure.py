"""One engine, one vocabulary, one workload: its masks, and how long everything took.

Runs in the engine's own process (see `worker`). The first walk keeps every mask, to be compared; the others only take
times, of grammars compiled anew in each, so that an engine's lazy work is counted where it falls. Times are seconds;
the collector of garbage rests meanwhile, as in `timeit`.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.engine.engines import Batch, Session, engine, source
from benchmarks.engine.probes import FREE_TEXT, probe
from benchmarks.engine.vocabularies import Tokens, tokenizer
from benchmarks.engine.workloads import Case, Workload

Ids = "list[list[list[int]]]"
BATCH_CALLS = 24
"""Calls of a batch in one repeat: every row goes on by a token after each."""
PROBE_SECONDS = 2.0
"""The vocabulary is prepared anew, to take a median, until so much time is spent."""


@dataclass
class Times:
    """Times of one repeat.

    Attributes
    ----------
    compile : list of float
        Text to compiled grammar, per case.
    first : list of float
        Text to first mask, per case.
    masks, advances : list of float
        Later masks and advances in the order of the walk; of a batch, whole calls.
    nbytes : list of int
        Held after the walk, per case, where it can be told.
    """

    compile: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    masks: list[float] = field(default_factory=list)
    advances: list[float] = field(default_factory=list)
    nbytes: list[int] = field(default_factory=list)


@dataclass
class Walk:
    """What one repeat gave.

    Attributes
    ----------
    times : Times
    masks : list of ndarray of int32
        Per text, case by case, ``[n + 1, words]``: before each of its n tokens and after the last; fewer where the
        engine refused a token. Of a batch, ``[rows, words]`` per call. Empty where they weren't kept.
    """

    times: Times = field(default_factory=Times)
    masks: list[np.ndarray] = field(default_factory=list)


@contextmanager
def _no_collector():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def walk(
    adapter: ModuleType, vocabulary, workload: Workload, ids: Ids, *, keep: bool, seconds: float = float("inf")
) -> Walk:
    """Compile every case anew and follow every text.

    Parameters
    ----------
    adapter, vocabulary
        See `engines`.
    workload : Workload
    ids : list of list of list of int
        Per case, per text, its tokens.
    keep : bool
        Whether to keep the masks (copied between the moments that are timed).
    seconds : float
        No further case is begun after so long.
    """
    found = Walk()
    start = perf_counter()
    with _no_collector():
        if workload.batched:
            _walk_batch(adapter, vocabulary, workload, ids, found, keep)
            return found
        for case, texts in zip(workload.cases, ids):
            if perf_counter() - start > seconds:
                break
            compiled, session = _first_mask(adapter, vocabulary, workload.name, case, found.times)
            _follow_all(adapter, vocabulary, compiled, session, texts, found, keep)
            held = adapter.nbytes(compiled)
            if held is not None:
                found.times.nbytes.append(held)
    return found


def _follow_all(adapter, vocabulary, compiled, session: Session, texts, found: Walk, keep: bool) -> None:
    for number, text in enumerate(texts):
        if number:
            session = adapter.start(vocabulary, compiled)
            found.times.masks.append(_timed(session.fill))
        rows = [session.mask.copy()] if keep else []
        _follow(session, text, found.times, rows if keep else None)
        if keep:
            found.masks.append(np.array(rows))


def _follow(session: Session, text: list[int], times: Times, rows: list | None) -> None:
    """Advance along a text, filling a mask after each token."""
    fill, advance, masks, advances, clock = session.fill, session.advance, times.masks, times.advances, perf_counter
    for token in text:
        began = clock()
        taken = advance(token)
        between = clock()
        if not taken:
            return
        fill()
        ended = clock()
        advances.append(between - began)
        masks.append(ended - between)
        if rows is not None:
            rows.append(session.mask.copy())


def _walk_batch(adapter, vocabulary, workload: Workload, ids: Ids, found: Walk, keep: bool) -> None:
    batch, places = _start_batch(adapter, vocabulary, workload, ids, found.times)
    for _ in range(BATCH_CALLS):
        found.times.masks.append(_timed(batch.fill))
        if keep:
            found.masks.append(batch.mask.copy())
        if not _advance_batch(batch, places, ids, found.times):
            return


def time_walks(
    adapter: ModuleType, vocabulary, workload: Workload, ids: Ids, repeats: int, seconds: float
) -> list[Times]:
    """Up to `repeats` walks, at least one, until `seconds` are spent."""
    found: list[Times] = []
    began = perf_counter()
    while len(found) < repeats and (not found or perf_counter() - began < seconds):
        found.append(walk(adapter, vocabulary, workload, ids, keep=False).times)
    return found


def time_ahead(adapter: ModuleType, vocabulary, workload: Workload, repeats: int, seconds: float) -> list[float]:
    """Text to compiled grammar with no lazy work left, first case; empty where the engine has no such thing."""
    text = source(adapter, workload.name, workload.cases[0])
    found: list[float] = []
    began = perf_counter()
    while len(found) < repeats and (not found or perf_counter() - began < seconds):
        with _no_collector():
            start = perf_counter()
            if adapter.ahead(vocabulary, text) is None:
                return []
            found.append(perf_counter() - start)
    return found


def time_preparation(adapter: ModuleType, tokens: Tokens) -> tuple[object, list[float]]:
    """Prepare the vocabulary a few times.

    Engines that leave tables to the first mask that needs them pay for those here, too: what a first free-text mask
    takes more than a second one is added.
    """
    found: list[float] = []
    while not found or (len(found) < 5 and sum(found) < PROBE_SECONDS):
        vocabulary, took = _time_prepared(adapter, partial(adapter.prepare, tokens))
        found.append(took)
    return vocabulary, found


def _time_prepared(adapter: ModuleType, prepare: Callable[[], Any]) -> tuple[Any, float]:
    """A vocabulary, and the seconds until it is ready for masks."""
    text = source(adapter, "probe", FREE_TEXT)
    with _no_collector():
        began = perf_counter()
        vocabulary = prepare()
        prepared = perf_counter() - began
        first, *later = (_timed(partial(_one_mask, adapter, vocabulary, text)) for _ in range(4))
    return vocabulary, prepared + max(0.0, first - median(later))


def time_reading(adapter: ModuleType, name: str) -> tuple[list[float], list[float]]:
    """Seconds of preparing from the tokenizer itself: read anew, and from disk."""
    tokenizer(name)
    with tempfile.TemporaryDirectory() as folder:
        adapter.read(name, folder)  # kept here
        anew = [_time_prepared(adapter, partial(adapter.read, name, None))[1] for _ in range(3)]
        kept = [_time_prepared(adapter, partial(adapter.read, name, folder))[1] for _ in range(5)]
    return anew, kept


def _one_mask(adapter: ModuleType, vocabulary, text) -> None:
    adapter.start(vocabulary, adapter.compile(vocabulary, text)).fill()


def _timed(call) -> float:
    began = perf_counter()
    call()
    return perf_counter() - began


def _first_mask(adapter: ModuleType, vocabulary, workload: str, case: Case, times: Times):
    text = source(adapter, workload, case)
    began = perf_counter()
    compiled = adapter.compile(vocabulary, text)
    between = perf_counter()
    session = adapter.start(vocabulary, compiled)
    session.fill()
    ended = perf_counter()
    times.compile.append(between - began)
    times.first.append(ended - began)
    return compiled, session


def _start_batch(adapter: ModuleType, vocabulary, workload: Workload, ids, times: Times) -> tuple[Batch, list[int]]:
    """All rows compiled, each at a place of its own; the places."""
    compileds = []
    for case in workload.cases:
        text = source(adapter, workload.name, case)
        began = perf_counter()
        compileds.append(adapter.compile(vocabulary, text))
        times.compile.append(perf_counter() - began)
    batch = adapter.batch(vocabulary, compileds)
    places = [row * 5 % len(texts[0]) for row, texts in enumerate(ids)]
    for row, place in enumerate(places):
        for token in ids[row][0][:place]:
            batch.advance_row(row, token)
    return batch, places


def _advance_batch(batch: Batch, places: list[int], ids, times: Times) -> bool:
    """Every row on by one token, a finished one from its beginning; False if a row's token was refused."""
    for row, place in enumerate(places):
        if place == len(ids[row][0]):
            batch.restart(row)
            places[row] = 0
    tokens = [texts[0][place] for texts, place in zip(ids, places)]
    places[:] = [place + 1 for place in places]
    began = perf_counter()
    taken = batch.advance(tokens)
    times.advances.append(perf_counter() - began)
    return all(taken)


class Engine:
    """What the engine of that name can be asked about one vocabulary; lives in its own process (see `worker`)."""

    def __init__(self, name: str, tokens: Tokens):
        self.adapter = engine(name)
        self.tokens = tokens
        if self.adapter.NEEDS_TOKENIZER:  # not part of the preparation of a vocabulary
            tokenizer(tokens.name)
        self.vocabulary, self.preparation = time_preparation(self.adapter, tokens)
        self.workload: Workload | None = None
        self.ids: Ids = []

    def hello(self) -> dict:
        """Its version, whether its compile is eager, and the seconds that the preparation took."""
        anew, kept = time_reading(self.adapter, self.tokens.name) if self.adapter.KEEPS_VOCABULARIES else ([], [])
        return {
            "version": self.adapter.version(),
            "eager": self.adapter.EAGER,
            "preparation": self.preparation,
            "from tokenizer": anew,
            "from disk": kept,
        }

    def take(self, workload: Workload, ids: Ids) -> None:
        """The workload that the next questions are about."""
        self.workload, self.ids = workload, ids

    def walk(self, seconds: float) -> Walk:
        """One walk, its masks kept."""
        return walk(self.adapter, self.vocabulary, self.workload, self.ids, keep=True, seconds=seconds)

    def times(self, repeats: int, seconds: float) -> list[Times]:
        """Up to so many walks in about so many seconds."""
        return time_walks(self.adapter, self.vocabulary, self.workload, self.ids, repeats, seconds)

    def ahead(self, repeats: int, seconds: float) -> list[float]:
        """Seconds of compiling so that nothing is left to do."""
        return time_ahead(self.adapter, self.vocabulary, self.workload, repeats, seconds)

    def probe(self) -> dict[str, bool]:
        """The named faults."""
        return probe(self.adapter, self.vocabulary, self.tokens)
