"""The table: our figures beside each peer's, the ratio to the best of them, and whether the target is reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.engine.engines import NAMES, PEERS
from benchmarks.engine.workloads import WORKLOADS

MICROSECOND = 1e-6


@dataclass(frozen=True)
class Target:
    """A bound on one of our figures, in words and as a function.

    `limit` maps the figures of the peers (and "best") to the most that ours may be; None if the peer has no figure.
    """

    words: str
    limit: Callable[[dict[str, float]], float | None]


def _part(peer: str, part: float) -> Callable[[dict[str, float]], float | None]:
    return lambda figures: figures[peer] * part if peer in figures else None


def _quick_mask(figures: dict[str, float]) -> float:
    return min(3 * MICROSECOND, figures.get("best", 3 * MICROSECOND))


_MASK = Target("≤ 3 µs, ≤ best", _quick_mask)

TARGETS: dict[tuple[str | None, str], Target] = {
    ("choices", "first"): Target("≤ 1/5 of best", _part("best", 1 / 5)),
    ("bounded", "first"): Target("≤ best", _part("best", 1)),
    ("bounded", "worst"): Target("≤ 1/10 of llguidance", _part("llguidance", 1 / 10)),
    **{(workload, "p50"): _MASK for workload in ("step", "bounded", "choices", "graph", "calculator")},
    ("json", "p50"): Target("≤ llguidance", _part("llguidance", 1)),
    **{(workload, "worst"): Target("≤ llguidance", _part("llguidance", 1)) for workload in ("calculator", "json")},
    ("batch", "p50"): Target("≤ 1/3 of best", _part("best", 1 / 3)),
    ("step", "ahead"): Target("≤ 1/2 of xgrammar", _part("xgrammar", 1 / 2)),
    ("step", "bytes"): Target("≤ 8 MB", lambda figures: 8e6),
    (None, "preparation"): Target("≤ 0.5 s", lambda figures: 0.5),
    (None, "from tokenizer"): Target("≤ 0.5 s", lambda figures: 0.5),
    (None, "from disk"): Target("≤ 50 ms", lambda figures: 0.05),
}
"""(Workload or None, figure) -> target, as a ratio to the peers in the same run."""

FIGURES = {
    "first": "text → first mask",
    "p50": "later masks, p50",
    "p99": "later masks, p99",
    "worst": "later masks, worst",
    "advance p50": "advance, p50",
    "advance p99": "advance, p99",
    "ahead": "compiled ahead",
    "bytes": "bytes held",
}
BATCH_FIGURES = {
    "p50": "all rows, p50",
    "p99": "all rows, p99",
    "worst": "all rows, worst",
    "advance p50": "advance all, p50",
}
VOCABULARY_FIGURES = {
    "preparation": "prepared from tokens",
    "from tokenizer": "from the tokenizer",
    "from disk": "from disk",
}


@dataclass(frozen=True)
class Row:
    """One line: a figure of a workload (None: the vocabulary), engine -> value, and engines with wrong masks."""

    workload: str | None
    figure: str
    values: dict[str, float]
    wrong: frozenset[str] = frozenset()

    @property
    def peers(self) -> dict[str, float]:
        """The values of peers without wrong masks."""
        return {name: self.values[name] for name in PEERS if name in self.values and name not in self.wrong}

    @property
    def best(self) -> str | None:
        """The best of these peers."""
        return min(self.peers, key=self.peers.__getitem__, default=None)

    @property
    def ratio(self) -> float | None:
        """Our value divided by the best peer's."""
        if self.best is None or "ours" not in self.values:
            return None
        return self.values["ours"] / self.values[self.best] if self.values[self.best] else None

    @property
    def reached(self) -> bool | None:
        """Whether the target is reached; None if there is none, or nothing to compare with."""
        target = TARGETS.get((self.workload, self.figure))
        if target is None or "ours" not in self.values:
            return None
        best = {"best": self.peers[self.best]} if self.best else {}
        limit = target.limit({**{n: v for n, v in self.values.items() if n != "ours"}, **best})
        return None if limit is None or "ours" in self.wrong else self.values["ours"] <= limit


def rows(records: list[dict], vocabulary: str) -> list[Row]:
    """The lines of one vocabulary, in order."""
    mine = [r for r in records if r["vocabulary"] == vocabulary]
    result = []
    for figure in VOCABULARY_FIGURES:
        values = {r["engine"]: r[figure] for r in mine if r["workload"] is None and r.get(figure) is not None}
        if values:
            result.append(Row(None, figure, values))
    for workload in WORKLOADS:
        here = [r for r in mine if r["workload"] == workload and r["status"] == "measured"]
        wrong = frozenset(r["engine"] for r in here if not r["correct"])
        for figure in BATCH_FIGURES if workload == "batch" else FIGURES:
            values = {r["engine"]: r[figure] for r in here if r.get(figure) is not None}
            if values:
                result.append(Row(workload, figure, values, wrong))
    return result


def table(records: list[dict], vocabulary: str, size: int | None = None) -> str:
    """The Markdown table of one vocabulary, and notes."""
    lines = rows(records, vocabulary)
    names = [name for name in NAMES if any(name in row.values for row in lines)]
    head = ["", vocabulary, *names, "ours / best", "target", ""]
    align = "|---|---|" + "---:|" * (len(names) + 1) + "---|---|"
    out = ["| " + " | ".join(head) + " |", align]
    before: object = ...
    for row in lines:
        label = "" if row.workload == before else f"**{row.workload or 'vocabulary'}**"
        before = row.workload
        words = {None: VOCABULARY_FIGURES, "batch": BATCH_FIGURES}.get(row.workload, FIGURES)[row.figure]
        cells = [_cell(row, name) for name in names]
        target = TARGETS.get((row.workload, row.figure))
        ratio = "–" if row.ratio is None else f"{row.ratio:.2g}"
        verdict = {None: "", True: "reached", False: "**not reached**"}[row.reached]
        out.append("| " + " | ".join([label, words, *cells, ratio, target.words if target else "", verdict]) + " |")
    return "\n".join([*out, "", *notes(records, vocabulary)])


def _cell(row: Row, name: str) -> str:
    if name not in row.values:
        return "–"
    text = amount(row.values[name], row.figure == "bytes")
    if name in row.wrong:
        return f"~~{text}~~"
    return f"**{text}**" if name == row.best else text


def amount(value: float, is_bytes: bool = False) -> str:
    """A figure with three digits and a unit."""
    scale = [(1e6, "MB"), (1e3, "kB"), (1, "B")] if is_bytes else [(1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]
    size, unit = next(((size, unit) for size, unit in scale if value >= size), scale[-1])
    value /= size
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def notes(records: list[dict], vocabulary: str) -> list[str]:
    """Notes on engines that were wrong, refused, took too long, or were measured less often."""
    out = []
    for r in records:
        if r["vocabulary"] != vocabulary:
            continue
        where = f"{r['engine']}, {r['workload']}" if r["workload"] else r["engine"]
        if r["status"] != "measured":
            out.append(f"- {where}: {r['status']}: {r['reason']}")
            continue
        if r["workload"] is None:
            out += [f"- {where}: fails the probe “{probe}”" for probe, right in r["probes"].items() if not right]
            continue
        # Of a measured workload: faults first, then what makes its figures less certain.
        verdict = r["verdict"]
        if not r["correct"]:
            faults = f"{verdict['wrong']} of {verdict['masks']} masks wrong"
            if verdict["refused"]:
                faults += f", {verdict['refused']} texts refused"
            out.append(f"- {where}: {faults}: {verdict['example']}")
        if verdict["one_cut"]:
            out.append(
                f"- {where}: {verdict['one_cut']} of {verdict['masks']} masks allow, where the text is forced, "
                "only one tokenization of it (by design; counted as right)"
            )
        if r["cases"] < r["of cases"]:
            out.append(f"- {where}: out of time after {r['cases']} of {r['of cases']} grammars")
        if r["compiles"] < 20:
            out.append(f"- {where}: {r['compiles']} compiles, {r['repeats']} walks")
        if r["no ahead"]:
            out.append(f"- {where}: not compiled ahead: {r['no ahead']}")
    return out
