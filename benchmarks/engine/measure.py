"""Measure one engine on one workload: its masks and times.

Runs in the engine's own process (see `worker`). The first walk keeps every mask for comparison; the others are timed,
each with newly compiled grammars, so that lazy work is counted where it happens. Times are in seconds; the garbage
collector is off meanwhile, as in `timeit`.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.engine.engines import BaseAdapter, Batch, Session, engine, source
from benchmarks.engine.language import Chars, Choice, Node, Repeat, Seq
from benchmarks.engine.vocabularies import Tokens, spell, tokenizer
from benchmarks.engine.workloads import Case, Workload
from constrained import BatchMatcher

Ids = "list[list[list[int]]]"
BATCH_CALLS = 24
"""Calls of a batch in one repeat; every row advances by a token after each."""
PROBE_SECONDS = 2.0
"""Time spent on preparing the vocabulary repeatedly, for the median."""


def _regular(node: Node) -> Case:
    return Case({"root": node}, node, ())


FREE_TEXT = _regular(Seq("Search[", Chars("]\n", negated=True), "]"))
"""Its first mask needs everything that an engine prepares for free text."""

PROBES: dict[str, tuple[Case, bytes, bytes]] = {
    "a(cb)* allows c after a": (_regular(Seq("a", Repeat(Seq("cb")))), b"a", b"c"),
    "a(cb)* allows c after acb": (_regular(Seq("a", Repeat(Seq("cb")))), b"acb", b"c"),
    "desk_1|desk_10 allows 0 after desk_1": (_regular(Choice("desk_1", "desk_10")), b"desk_1", b"0"),
}
"""Small grammars for known faults of engines: the text written, and the byte that must be allowed next."""


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
        Held after the walk, per case, if the engine tells.
    """

    compile: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    masks: list[float] = field(default_factory=list)
    advances: list[float] = field(default_factory=list)
    nbytes: list[int] = field(default_factory=list)


@dataclass
class Walk:
    """The result of one repeat.

    Attributes
    ----------
    times : Times
    masks : list of ndarray of int32
        Per text, case by case, ``[n + 1, words]``: before each of its n tokens and after the last; fewer if the engine
        refused a token. Of a batch, ``[rows, words]`` per call. Empty if they weren't kept.
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
    adapter: BaseAdapter, vocabulary, workload: Workload, ids: Ids, *, keep: bool, seconds: float = float("inf")
) -> Walk:
    """Compile every case and follow every text, given its tokens per case and text.

    If `keep`, masks are copied, outside the timed spans. No further case is begun after `seconds`.
    """
    result = Walk()
    start = perf_counter()
    with _no_collector():
        if workload.batched:
            _walk_batch(adapter, vocabulary, workload, ids, result, keep)
            return result
        for case, texts in zip(workload.cases, ids):
            if perf_counter() - start > seconds:
                break
            compiled, session = _first_mask(adapter, vocabulary, workload.name, case, result.times)
            _follow_all(adapter, vocabulary, compiled, session, texts, result, keep)
            held = adapter.nbytes(compiled)
            if held is not None:
                result.times.nbytes.append(held)
    return result


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
    batch, positions = _start_batch(adapter, vocabulary, workload, ids, found.times)
    for _ in range(BATCH_CALLS):
        found.times.masks.append(_timed(batch.fill))
        if keep:
            found.masks.append(batch.mask.copy())
        if not _advance_batch(batch, positions, ids, found.times):
            return


def _repeated(once: Callable[[], Any], repeats: int, seconds: float) -> list[Any]:
    """Results of between one and `repeats` calls, until `seconds` have passed or one is None."""
    found: list[Any] = []
    began = perf_counter()
    while len(found) < repeats and (not found or perf_counter() - began < seconds):
        if (result := once()) is None:
            break
        found.append(result)
    return found


def time_threads(tokens: Tokens, workload: Workload, sizes: Sequence[int], most: int) -> list[dict]:
    """Time our masks of whole batches on 1 to `most` threads, in turns; figures are median seconds of a call.

    Returns
    -------
    list of dict
        For each of `sizes` and each number of threads: "rows"; "threads"; "new", where a text reaches everything for
        the first time; "known", where the same texts are followed again.
    """
    adapter = engine("ours")
    vocabulary = adapter.prepare(tokens)
    ids = [spell(tokens, case.texts[0]) for case in workload.cases]
    texts = [source(adapter, workload.name, case) for case in workload.cases]
    took: dict[tuple[int, int, str], list[float]] = {}
    # Five rounds over all sizes and numbers of threads, so that other load on the machine affects all alike.
    for _, rows, threads in product(range(5), sizes, range(1, most + 1)):
        compileds = [adapter.compile(vocabulary, text) for text in texts]
        batch = BatchMatcher((compileds[row % len(texts)].matcher() for row in range(rows)), threads=threads)
        # The same matchers, each from its own position: at first nothing has been visited, then everything.
        for kind in ("new", "known", "known"):
            places = [row * 5 % len(ids[row % len(ids)]) for row in range(rows)]
            for row, place in enumerate(places):
                batch[row].reset()
                assert all(map(batch[row].advance, ids[row % len(ids)][:place])), "the texts are those of the grammars"
            with _no_collector():
                for _ in range(BATCH_CALLS):
                    took.setdefault((rows, threads, kind), []).append(_timed(batch.fill_bitmask))
                    for row, text in enumerate(ids[row % len(ids)] for row in range(rows)):
                        if places[row] == len(text):
                            batch[row].reset()
                            places[row] = 0
                        batch[row].advance(text[places[row]])
                        places[row] += 1
    return [
        {"rows": rows, "threads": threads, **{kind: median(took[rows, threads, kind]) for kind in ("new", "known")}}
        for rows, threads in product(sizes, range(1, most + 1))
    ]


def time_preparation(adapter: BaseAdapter, tokens: Tokens) -> tuple[object, list[float]]:
    """Prepare the vocabulary a few times.

    Tables that an engine builds with the first mask count, too: the extra time of a first free-text mask is added.
    """
    result: list[float] = []
    while not result or (len(result) < 5 and sum(result) < PROBE_SECONDS):
        vocabulary, took = _time_prepared(adapter, partial(adapter.prepare, tokens))
        result.append(took)
    return vocabulary, result


def _time_prepared(adapter: BaseAdapter, prepare: Callable[[], Any]) -> tuple[Any, float]:
    """A vocabulary, and the seconds until it can fill masks."""
    text = source(adapter, "probe", FREE_TEXT)
    with _no_collector():
        began = perf_counter()
        vocabulary = prepare()
        prepared = perf_counter() - began
        first, *later = (_timed(partial(_one_mask, adapter, vocabulary, text)) for _ in range(4))
    return vocabulary, prepared + max(0.0, first - median(later))


def time_reading(adapter: BaseAdapter, name: str) -> tuple[list[float], list[float]]:
    """Seconds of preparing from the tokenizer: without a cache, and from the cache."""
    tokenizer(name)
    with tempfile.TemporaryDirectory() as folder:
        adapter.read(name, folder)  # fills the cache
        uncached = [_time_prepared(adapter, partial(adapter.read, name, None))[1] for _ in range(3)]
        cached = [_time_prepared(adapter, partial(adapter.read, name, folder))[1] for _ in range(5)]
    return uncached, cached


def _one_mask(adapter: BaseAdapter, vocabulary, text) -> None:
    adapter.start(vocabulary, adapter.compile(vocabulary, text)).fill()


def _timed(call) -> float:
    began = perf_counter()
    call()
    return perf_counter() - began


def _first_mask(adapter: BaseAdapter, vocabulary, workload: str, case: Case, times: Times):
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


def _start_batch(adapter: BaseAdapter, vocabulary, workload: Workload, ids, times: Times) -> tuple[Batch, list[int]]:
    """Compile all rows and advance each to its own position; returns the positions."""
    compileds = []
    for case in workload.cases:
        text = source(adapter, workload.name, case)
        began = perf_counter()
        compileds.append(adapter.compile(vocabulary, text))
        times.compile.append(perf_counter() - began)
    batch = adapter.batch(vocabulary, compileds)
    positions = [row * 5 % len(texts[0]) for row, texts in enumerate(ids)]
    for row, position in enumerate(positions):
        for token in ids[row][0][:position]:
            batch.advance_row(row, token)
    return batch, positions


def _advance_batch(batch: Batch, positions: list[int], ids, times: Times) -> bool:
    """Advance every row by one token, restarting finished ones; False if a token was refused."""
    for row, position in enumerate(positions):
        if position == len(ids[row][0]):
            batch.restart(row)
            positions[row] = 0
    tokens = [texts[0][position] for texts, position in zip(ids, positions)]
    positions[:] = [position + 1 for position in positions]
    began = perf_counter()
    taken = batch.advance(tokens)
    times.advances.append(perf_counter() - began)
    return all(taken)


class Engine:
    """Measurements of one engine with one vocabulary; runs in its own process (see `worker`)."""

    def __init__(self, name: str, tokens: Tokens):
        self.adapter = engine(name)
        self.tokens = tokens
        if self.adapter.NEEDS_TOKENIZER:  # not part of the preparation of a vocabulary
            tokenizer(tokens.name)
        self.vocabulary, self.preparation = time_preparation(self.adapter, tokens)
        self.workload: Workload | None = None
        self.ids: Ids = []

    def hello(self) -> dict:
        """The version, whether compiling is eager, and the seconds of preparation."""
        uncached, cached = time_reading(self.adapter, self.tokens.name) if self.adapter.KEEPS_VOCABULARIES else ([], [])
        return {
            "version": self.adapter.version(),
            "eager": self.adapter.EAGER,
            "preparation": self.preparation,
            "from tokenizer": uncached,
            "from disk": cached,
        }

    def take(self, workload: Workload, ids: Ids) -> None:
        """Set the workload that the next calls measure."""
        self.workload, self.ids = workload, ids

    def walk(self, seconds: float) -> Walk:
        """One walk that keeps the masks."""
        return walk(self.adapter, self.vocabulary, self.workload, self.ids, keep=True, seconds=seconds)

    def times(self, repeats: int, seconds: float) -> list[Times]:
        """The times of between one and `repeats` walks, until `seconds` have passed."""
        return _repeated(
            lambda: walk(self.adapter, self.vocabulary, self.workload, self.ids, keep=False).times, repeats, seconds
        )

    def ahead(self, repeats: int, seconds: float) -> list[float]:
        """Seconds of compiling the first case with no work left to do later; empty if the engine can't."""
        text = source(self.adapter, self.workload.name, self.workload.cases[0])

        def once() -> float | None:
            with _no_collector():
                start = perf_counter()
                done = self.adapter.ahead(self.vocabulary, text)
                return None if done is None else perf_counter() - start

        return _repeated(once, repeats, seconds)

    def probe(self) -> dict[str, bool]:
        """The results of `PROBES`."""
        return probe(self.adapter, self.vocabulary, self.tokens)


def probe(adapter: BaseAdapter, vocabulary, tokens: Tokens) -> dict[str, bool]:
    """For each of `PROBES`, whether the byte is allowed after the text, written in single-byte tokens."""
    single: dict[bytes, list[int]] = {}
    for i, token in enumerate(tokens.tokens):
        if len(token) == 1:
            single.setdefault(token, []).append(i)
    result = {}
    for name, (case, text, following) in PROBES.items():
        session = adapter.start(vocabulary, adapter.compile(vocabulary, source(adapter, "probe", case)))
        session.fill()
        for byte in text:
            session.advance(single[bytes((byte,))][-1])
            session.fill()
        result[name] = any(bool(session.mask[i >> 5] >> (i & 31) & 1) for i in single[following])
    return result
