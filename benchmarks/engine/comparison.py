"""Measure all engines over one vocabulary, workload by workload; finished measurements are kept.

Within a workload the engines take turns, so that other load on the machine affects all of them alike.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.engine import correctness, engines
from benchmarks.engine.measure import BATCH_CALLS, Engine, Ids, Times, Walk
from benchmarks.engine.vocabularies import Tokens, load, spell
from benchmarks.engine.worker import OverTime, Worker
from benchmarks.engine.workloads import Workload
from constrained.errors import ConstrainedError
from constrained.files import write_whole

PREPARATIONS = ("preparation", "from tokenizer", "from disk")
ROUNDS = 3
"""Turns that each engine gets at a workload."""


@dataclass(frozen=True)
class Settings:
    """Limits on the measurements.

    Attributes
    ----------
    repeats : int
        Walks of one engine over one workload, at most.
    seconds : float
        Time after which no further walk is begun; slower engines are measured once.
    limit : float
        Seconds after which an engine is stopped.
    """

    repeats: int = 20
    seconds: float = 2.0
    limit: float = 15.0


class Kept:
    """Finished measurements in a `.jsonl` file, to resume an interrupted run; a truncated last line is dropped."""

    def __init__(self, path: Path):
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
        if "".join(lines) != text:
            write_whole(path, "".join(lines))
        try:
            self.records = [json.loads(line) for line in lines]
        except json.JSONDecodeError as error:
            raise ConstrainedError(f"{path} is damaged: {error.msg}", "move it away, or use --fresh") from None

    def find(self, vocabulary: str, workload: str | None, engine: str) -> dict | None:
        """The measurement, if there is one; workload None: the preparation of the vocabulary."""
        wanted = (vocabulary, workload, engine)
        return next((r for r in self.records if (r["vocabulary"], r["workload"], r["engine"]) == wanted), None)

    def add(self, vocabulary: str, workload: str | None, engine: str, figures: dict) -> None:
        line = {"vocabulary": vocabulary, "workload": workload, "engine": engine, **figures}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self.records.append(line)


@dataclass
class SideBySide:
    """All engines (`names`) over one vocabulary.

    What took too long with one of the `smaller` vocabularies, measured before, is not tried. `tell` is called with
    progress messages.
    """

    vocabulary: str
    names: list[str]
    settings: Settings
    kept: Kept
    smaller: list[str] = field(default_factory=list)
    tell: Callable[[str], None] = lambda words: None

    def run(self, workloads: Iterable[Workload]) -> Iterator[str]:
        """Measure what is missing; yields each workload's name when it is done."""
        tokens: Tokens | None = None
        workers: dict[str, Worker] = {}
        try:
            for workload in workloads:
                missing = [name for name in self.names if self._known(name, workload.name) is None]
                if missing or any(self._known(name) is None for name in self.names):
                    if tokens is None:
                        self.tell(f"{self.vocabulary}: preparing")
                        tokens = load(self.vocabulary)
                        names = dict.fromkeys(("ours", *self.names))  # masks are compared with ours first
                        workers = {name: Worker(name, Engine, name, tokens) for name in names}
                        self._start(workers)
                    self._measure(workload, missing, workers, tokens)
                yield workload.name
        finally:
            for worker in workers.values():
                worker.stop()

    def _known(self, name: str, workload: str | None = None) -> dict | None:
        return self.kept.find(self.vocabulary, workload, name)

    def _start(self, workers: dict[str, Worker]) -> None:
        """Start every engine; remove those that fail."""
        for name in list(workers):
            self.tell(f"{self.vocabulary}: {name} prepares the vocabulary")
            try:
                started = workers[name].start()
                figures = {
                    "status": "measured",
                    "version": started["version"],
                    **{key: median(started[key]) for key in PREPARATIONS if started[key]},
                    "probes": workers[name].ask("probe", seconds=self.settings.limit),
                }
            except engines.Refused as error:
                figures = {"status": "refused", "reason": str(error)}
            except OverTime as error:
                figures = {"status": "over time", "reason": str(error)}
            if figures["status"] != "measured":
                del workers[name]
            if name in self.names and self._known(name) is None:
                self.kept.add(self.vocabulary, None, name, figures)

    def _measure(self, workload: Workload, missing: list[str], workers: dict[str, Worker], tokens: Tokens) -> None:
        """Measure one workload: every engine's masks, then the timed rounds, then the results."""
        # Ours walks first, even if its figures are kept: the masks of all others are compared with its.
        about = f"{self.vocabulary}, {workload.name}"
        ids = [[spell(tokens, text) for text in case.texts] for case in workload.cases]
        walks: dict[str, Walk] = {}
        figures: dict[str, dict] = {}
        for name in dict.fromkeys(("ours", *missing)):
            self.tell(f"{about}: {name}")
            first = self._first_walk(name, workload, ids, workers)
            if isinstance(first, Walk):
                correctness.clear_padding(first.masks, tokens)
                walks[name] = first
            else:
                figures[name] = first
        times = {name: [walk.times] for name, walk in walks.items()}
        quick = [name for name in missing if name in walks and self._is_quick(walks[name].times, workload)]
        _rounds(about, {name: workers[name] for name in quick}, times, self.settings, self.tell)
        self.tell(f"{about}: comparing masks")
        where = (
            correctness.batch_prefixes(workload.cases, ids, tokens, BATCH_CALLS)
            if workload.batched
            else correctness.prefixes(workload.cases, ids, tokens)
        )
        ours = walks["ours"].masks if "ours" in walks else []
        exact = correctness.exact_masks(ours, [w.masks for name, w in walks.items() if name != "ours"], where, tokens)
        for name in missing:
            if name in walks:
                verdict = correctness.judge(name, walks[name].masks, exact, where, tokens)
                self.tell(f"{about}: {name}, compiled ahead")
                ahead, reason = ([], "") if workload.batched else _ahead(workers[name], times[name], self.settings)
                figures[name] = record(times[name], verdict, ahead, len(workload.cases)) | {"no ahead": reason}
            self.kept.add(self.vocabulary, workload.name, name, figures[name])

    def _is_quick(self, times: Times, workload: Workload) -> bool:
        """Whether an engine is fast enough for more walks than the one that kept the masks."""
        spent = sum(times.compile) + sum(times.masks) + sum(times.advances)
        return spent < 2 * self.settings.seconds and len(times.compile) == len(workload.cases)

    def _first_walk(self, name: str, workload: Workload, ids: Ids, workers: dict[str, Worker]) -> Walk | dict:
        """The walk whose masks are compared, or the record of an engine that failed."""
        if name not in workers:
            known = self._known(name) or {}
            return {"status": known.get("status", "refused"), "reason": known.get("reason", "did not start")}
        before = ((v, self.kept.find(v, workload.name, name)) for v in self.smaller)
        slow = next((v for v, known in before if known and known["status"] == "over time"), None)
        if slow:
            reason = f"over {self.settings.limit:.0f} s with {slow}, so not tried with more tokens"
            return {"status": "over time", "reason": reason}
        limit = self.settings.limit
        try:
            workers[name].ask("take", workload, ids, seconds=limit)
            return workers[name].ask("walk", limit / 4, seconds=limit)
        except engines.Refused as error:
            return {"status": "refused", "reason": str(error)}
        except OverTime as error:
            return {"status": "over time", "reason": str(error)}


def _rounds(about: str, workers: dict[str, Worker], times: dict[str, list[Times]], settings: Settings, tell) -> None:
    """Let the engines take turns; their times replace those of the walk that kept the masks."""
    quick = dict(workers)
    repeats = -(-settings.repeats // ROUNDS)
    for number in range(ROUNDS):
        for name, worker in list(quick.items()):
            tell(f"{about}: {name}, round {number + 1} of {ROUNDS}")
            try:
                found = worker.ask("times", repeats, settings.seconds / ROUNDS, seconds=settings.limit)
            except (engines.Refused, OverTime):  # its earlier rounds count
                del quick[name]
                continue
            times[name] = found if number == 0 else times[name] + found


def _ahead(worker: Worker, times: list[Times], settings: Settings) -> tuple[list[float], str]:
    """Seconds of compiling with no work left to do later, or why there are none."""
    if worker.started["eager"]:
        return [second for t in times for second in t.compile], ""
    if not worker.running:
        return [], "it was stopped before"
    try:
        return worker.ask("ahead", 5, settings.seconds / ROUNDS, seconds=2 * settings.seconds), ""
    except (engines.Refused, OverTime) as error:
        return [], str(error)


def record(times: list[Times], verdict: correctness.Verdict, ahead: list[float], cases: int) -> dict:
    """The figures of one measurement, in seconds and bytes, from the times of each repeat.

    A mask's time is its median over the repeats; percentiles and the worst are then taken over the masks, so momentary
    noise doesn't count. Of the workload's `cases` fewer are measured if time runs out.
    """
    masks = _typical([t.masks for t in times])
    advances = _typical([t.advances for t in times])
    first = [second for t in times for second in t.first]
    return {
        "status": "measured",
        "repeats": len(times),
        "cases": len(times[0].compile),
        "of cases": cases,
        "compiles": sum(len(t.compile) for t in times),
        "compile": float(np.median([second for t in times for second in t.compile])),
        "first": float(np.median(first)) if first else None,
        "first worst": float(np.max(_typical([t.first for t in times]))) if first else None,
        "p50": _percentile(masks, 50),
        "p99": _percentile(masks, 99),
        "worst": _percentile(masks, 100),
        "advance p50": _percentile(advances, 50),
        "advance p99": _percentile(advances, 99),
        "ahead": float(np.median(ahead)) if ahead else None,
        "bytes": int(np.median([held for t in times for held in t.nbytes])) if times[0].nbytes else None,
        "verdict": asdict(verdict),
        "correct": verdict.correct,
    }


def _typical(repeats: list[list[float]]) -> np.ndarray:
    """The median of each mask over the repeats that reached it."""
    longest = max(map(len, repeats))
    return np.median([row for row in repeats if len(row) == longest], axis=0)


def _percentile(values: np.ndarray, percent: float) -> float | None:
    return float(np.percentile(values, percent)) if len(values) else None
