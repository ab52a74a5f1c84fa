"""One vocabulary, all engines, workload after workload; what is finished is kept.

Within a workload the engines take turns, round after round, so that whatever else the machine does falls on all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.engine import correctness, engines
from benchmarks.engine.measure import BATCH_CALLS, Engine, Ids, Times, Walk
from benchmarks.engine.summary import record
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
    """How long and how often.

    Attributes
    ----------
    repeats : int
        Walks of one engine over one workload at most.
    seconds : float
        After which no further walk is begun; engines that need longer for one are measured once.
    limit : float
        After which an engine is stopped.
    """

    repeats: int = 20
    seconds: float = 2.0
    limit: float = 15.0


class Kept:
    """Finished measurements, one a line, so that an interrupted run goes on.

    Parameters
    ----------
    path : Path
        A `.jsonl` file; a last line cut short is dropped.
    """

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
        """The measurement, or None; workload None: what the engine made of the vocabulary."""
        wanted = (vocabulary, workload, engine)
        return next((r for r in self.records if (r["vocabulary"], r["workload"], r["engine"]) == wanted), None)

    def add(self, vocabulary: str, workload: str | None, engine: str, figures: dict) -> None:
        line = {"vocabulary": vocabulary, "workload": workload, "engine": engine, **figures}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self.records.append(line)


@dataclass
class SideBySide:
    """All engines over one vocabulary.

    Attributes
    ----------
    vocabulary : str
    names : list of str
        Engines.
    settings : Settings
    kept : Kept
    smaller : list of str
        Vocabularies measured before, none larger: what took too long with one of them is not tried.
    tell : callable
        Is told what is being done.
    """

    vocabulary: str
    names: list[str]
    settings: Settings
    kept: Kept
    smaller: list[str] = field(default_factory=list)
    tell: Callable[[str], None] = lambda words: None

    def run(self, workloads: Iterable[Workload]) -> Iterator[str]:
        """Measure what is not kept yet; yields each workload's name when it is done."""
        tokens: Tokens | None = None
        workers: dict[str, Worker] = {}
        try:
            for workload in workloads:
                missing = [name for name in self.names if self._known(name, workload.name) is None]
                if missing or any(self._known(name) is None for name in self.names):
                    if tokens is None:
                        self.tell(f"{self.vocabulary}: preparing")
                        tokens = load(self.vocabulary)
                        names = dict.fromkeys(("ours", *self.names))  # ours are what masks are compared with first
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
        """Start every engine; those that can't are left out."""
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
        """One workload: every engine's masks, then the rounds, then what came of it."""
        about = f"{self.vocabulary}, {workload.name}"
        ids = [[spell(tokens, text) for text in case.texts] for case in workload.cases]
        walks: dict[str, Walk] = {}
        figures: dict[str, dict] = {}
        for name in dict.fromkeys(("ours", *missing)):
            self.tell(f"{about}: {name}")
            found = self._first_walk(name, workload, ids, workers)
            if isinstance(found, Walk):
                correctness.clear_padding(found.masks, tokens)
                walks[name] = found
            else:
                figures[name] = found
        times = {name: [walk.times] for name, walk in walks.items()}
        quick = [name for name in missing if name in walks and self._is_quick(walks[name].times, workload)]
        _rounds(about, {name: workers[name] for name in quick}, times, self.settings, self.tell)
        self.tell(f"{about}: comparing masks")
        where = (
            correctness.batch_places(workload.cases, ids, tokens, BATCH_CALLS)
            if workload.batched
            else correctness.places(workload.cases, ids, tokens)
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
        """Whether an engine can be asked for more walks than the one that kept the masks."""
        spent = sum(times.compile) + sum(times.masks) + sum(times.advances)
        return spent < 2 * self.settings.seconds and len(times.compile) == len(workload.cases)

    def _first_walk(self, name: str, workload: Workload, ids: Ids, workers: dict[str, Worker]) -> Walk | dict:
        """The walk whose masks are compared; or the record of an engine that can't."""
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
    """Let the engines take turns; `times` are theirs, instead of those of the walk that kept the masks."""
    quick = dict(workers)
    repeats = -(-settings.repeats // ROUNDS)
    for number in range(ROUNDS):
        for name, worker in list(quick.items()):
            tell(f"{about}: {name}, round {number + 1} of {ROUNDS}")
            try:
                found = worker.ask("times", repeats, settings.seconds / ROUNDS, seconds=settings.limit)
            except (engines.Refused, OverTime):  # what it has shown counts
                del quick[name]
                continue
            times[name] = found if number == 0 else times[name] + found


def _ahead(worker: Worker, times: list[Times], settings: Settings) -> tuple[list[float], str]:
    """Seconds of a compile that leaves nothing to do, and why there are none."""
    if worker.started["eager"]:
        return [second for t in times for second in t.compile], ""
    if not worker.running:
        return [], "it was stopped before"
    try:
        return worker.ask("ahead", 5, settings.seconds / ROUNDS, seconds=2 * settings.seconds), ""
    except (engines.Refused, OverTime) as error:
        return [], str(error)
