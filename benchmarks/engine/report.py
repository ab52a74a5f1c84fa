"""The table: every figure beside every peer's, its ratio to the best of them, and whether its target is reached."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.engine.engines import NAMES, PEERS
from benchmarks.engine.targets import TARGETS
from benchmarks.engine.workloads import WORKLOADS

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
    """One line of the table.

    Attributes
    ----------
    workload : str or None
        None: the vocabulary itself.
    figure : str
    values : dict of str to float
        Engine -> seconds, or bytes; those that have the figure.
    wrong : frozenset of str
        Engines with a wrong mask in this workload.
    """

    workload: str | None
    figure: str
    values: dict[str, float]
    wrong: frozenset[str] = frozenset()

    @property
    def peers(self) -> dict[str, float]:
        """Of the peers that were right."""
        return {name: self.values[name] for name in PEERS if name in self.values and name not in self.wrong}

    @property
    def best(self) -> str | None:
        """The best of them."""
        return min(self.peers, key=self.peers.__getitem__, default=None)

    @property
    def ratio(self) -> float | None:
        """Ours to the best peer's."""
        if self.best is None or "ours" not in self.values:
            return None
        return self.values["ours"] / self.values[self.best] if self.values[self.best] else None

    @property
    def reached(self) -> bool | None:
        """Whether the target is; None where there is none, or nothing to compare with."""
        target = TARGETS.get((self.workload, self.figure))
        if target is None or "ours" not in self.values:
            return None
        best = {"best": self.peers[self.best]} if self.best else {}
        limit = target.limit({**{n: v for n, v in self.values.items() if n != "ours"}, **best})
        return None if limit is None or "ours" in self.wrong else self.values["ours"] <= limit


def rows(records: list[dict], vocabulary: str) -> list[Row]:
    """The table's lines for one vocabulary, in order."""
    mine = [r for r in records if r["vocabulary"] == vocabulary]
    found = []
    for figure in VOCABULARY_FIGURES:
        values = {r["engine"]: r[figure] for r in mine if r["workload"] is None and r.get(figure) is not None}
        if values:
            found.append(Row(None, figure, values))
    for workload in WORKLOADS:
        here = [r for r in mine if r["workload"] == workload and r["status"] == "measured"]
        wrong = frozenset(r["engine"] for r in here if not r["correct"])
        for figure in BATCH_FIGURES if workload == "batch" else FIGURES:
            values = {r["engine"]: r[figure] for r in here if r.get(figure) is not None}
            if values:
                found.append(Row(workload, figure, values, wrong))
    return found


def table(records: list[dict], vocabulary: str, size: int | None = None) -> str:
    """One vocabulary's table and notes, in Markdown."""
    lines = rows(records, vocabulary)
    names = [name for name in NAMES if any(name in row.values for row in lines)]
    head = ["", vocabulary, *names, "ours / best", "target", ""]
    out = ["| " + " | ".join(head) + " |", "|---|---|" + "---:|" * (len(names) + 1) + "---|---|"]
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
    return "\n".join(out + ["", *notes(records, vocabulary)])


def _cell(row: Row, name: str) -> str:
    if name not in row.values:
        return "–"
    text = amount(row.values[name], row.figure == "bytes")
    if name in row.wrong:
        return f"~~{text}~~"
    return f"**{text}**" if name == row.best else text


def amount(value: float, is_bytes: bool = False) -> str:
    """A figure with three digits and its unit."""
    scale = [(1e6, "MB"), (1e3, "kB"), (1, "B")] if is_bytes else [(1, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")]
    size, unit = next(((size, unit) for size, unit in scale if value >= size), scale[-1])
    value /= size
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def notes(records: list[dict], vocabulary: str) -> list[str]:
    """Who was wrong, who refused, who was too slow, and who was measured less often."""
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
        verdict = r["verdict"]
        if not r["correct"]:
            faults = f"{verdict['wrong']} of {verdict['masks']} masks wrong"
            if verdict["refused"]:
                faults += f", {verdict['refused']} texts refused"
            out.append(f"- {where}: {faults}: {verdict['example']}")
        if verdict["one_cut"]:
            out.append(
                f"- {where}: {verdict['one_cut']} of {verdict['masks']} masks allow, where the text is forced, "
                "only one way to cut it into tokens (by design; counted as right)"
            )
        if r["cases"] < r["of cases"]:
            out.append(f"- {where}: time was out after {r['cases']} of {r['of cases']} grammars")
        if r["compiles"] < 20:
            out.append(f"- {where}: {r['compiles']} compiles, {r['repeats']} walks")
        if r["no ahead"]:
            out.append(f"- {where}: not compiled ahead: {r['no ahead']}")
    return out
