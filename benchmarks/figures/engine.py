"""Figures of the engine: grammars, masks, GPU, hosts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from benchmarks import guard_proxy, serve
from benchmarks.engine import first as first_masks
from benchmarks.engine import generation
from benchmarks.engine import report as engine
from benchmarks.figures.records import record, tables_of
from benchmarks.maskbench import command as maskbench
from benchmarks.reporting import markdown


def _engine() -> str:
    """The engines over Tekken, without the columns of our own targets and the slowest advances."""
    lines = tables_of(engine.table(record("engine")["measurements"], "tekken"))[0].splitlines()
    lines = [line for line in lines if "advance, p99" not in line]
    cells = [line.split("|") for line in lines]
    columns = [n for n, name in enumerate(cells[0][:-3]) if "lmformatenforcer" not in name]
    return "\n".join("|".join(line[n] for n in columns) + "|" for line in cells)


def _lmformatenforcer() -> str:
    """What lm-format-enforcer's column would show: of the workloads it runs one in time."""
    [row] = [
        m
        for m in record("engine")["measurements"]
        if m["engine"] == "lmformatenforcer"
        and m["vocabulary"] == "tekken"
        and m["workload"]
        and m["status"] == "measured"
    ]
    return (
        f"lm-format-enforcer runs only *{row['workload']}* in time: {1e3 * row['first']:.0f} ms to the first mask, "
        f"{1e6 * row['p50']:.0f} µs for a later one, {1e9 * row['advance p50']:.0f} ns for taking in a token"
    )


def _generation() -> str:
    """Whole texts of greedy decoding; the sampled ones are in the record."""
    lines = tables_of(generation.table(record("engine_generation")["engines"]))[0].splitlines()
    return "\n".join(line for line in lines if not line.startswith("| sampled"))


def _gpu_kernels() -> str:
    head = ["rows", "", "argmax, no mask", "masked step", "masked, sampled", "model, 1 token", "with the mask",
            "overhead", "mask applied", "by XGrammar"]  # fmt: skip

    def micro(seconds: float) -> str:
        return f"{1e6 * seconds:.1f} µs"

    cells = [
        [row["batch"], row["rows"], micro(row["argmax"]), micro(row["step"]), micro(row["step by chance"]),
         f"{1e3 * row['decode']:.2f} ms", f"{1e3 * row['decode within']:.2f} ms", _signed(row["overhead %"]),
         micro(row["apply"]), micro(row["apply xgrammar"])]
        for row in record("gpu")["kernels"] if row["batch"] not in (8, 64)
    ]  # fmt: skip
    return markdown(head, cells, left=2)


def _signed(percent: float) -> str:
    words = f"{percent:+.1f} %".replace("-", "−")
    return "0.0 %" if words[1:] == "0.0 %" else words


def _gpu_texts() -> str:
    rows = {(row["batch"], row["loop"]): row for row in record("gpu")["texts"]}
    loops = ("unconstrained", "host loop", "device loop", "xgrammar")
    cells = []
    for batch in dict.fromkeys(batch for batch, _ in rows):
        speeds = [rows.get((batch, loop), {}).get("tokens/s") for loop in loops]
        passes = [rows.get((batch, loop), {}).get("passes") for loop in loops[1:]]
        cells.append([batch, *("–" if n is None else f"{n:,.0f}" for n in (*speeds, *passes))])
    head = [
        "rows",
        "unconstrained",
        "host loop",
        "device loop",
        "XGrammar",
        "passes: host loop",
        "device loop",
        "XGrammar",
    ]
    return markdown(head, cells, left=0)


def _binding() -> str:
    names = {
        "rebinding": "**rebinding**",
        "the action's tokens": "the action's tokens, a mask at each",
    }  # fmt: skip
    cells, before = [], ""
    for row in record("binding")["rows"]:
        if row["part"] in names:
            label = f"{row['set']}, {row['steps']} steps"
            cells.append(
                ["" if label == before else label, names[row["part"]], f"{row['p50']:.0f} µs", f"{row['p99']:.0f} µs"]
            )
            before = label
    return markdown(["", "", "p50", "p99"], cells, left=2)


def _maskbench() -> str:
    """MaskBench's figures, without the quantiles between the median and the tail."""
    lines = maskbench.table(record("maskbench")["figures"]).splitlines()
    return "\n".join(
        line for line in lines if not re.match(r"\| T\w+ p(25|75|90|95|99.9) |\| schemas |\| TTFM avg ", line)
    )


def _maskbench_all() -> str:
    """All schemas, ours beside llguidance: verdicts, and the median and the tail of each time."""
    shown = ("passing", "compile errors", "validation errors", "invalidation errors")
    times = ("TTFM p50 (µs)", "TTFM p99 (µs)", "TTFM p99.9 (µs)", "TBM p50 (µs)", "TBM p99 (µs)", "TBM avg (µs)")
    found = record("maskbench_all")
    cells = []
    for part, words in (("figures", ""), ("loaded by all", ", of the schemas that both load")):
        for name, figures in found[part].items():
            counts = [f"{figures[key]:,}" if key in figures else "" for key in shown]
            cells.append([f"{name}{words}", *counts, *(f"{figures[key]:,.1f}" for key in times)])
    return markdown(["", *shown, *times], cells)


def _span(percents: Iterable[float]) -> str:
    low, high = (f"{one(list(percents)):.0f}" for one in (min, max))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _to_best(side: str) -> str:
    """Our CPU time to the first mask in percent of the best peer's, over the vocabularies measured."""
    seconds = [row["seconds"] for row in record("engine_first")["rows"]]
    return _span([100 * row[side] / min(row[peer] for peer in first_masks.PEERS) for row in seconds])


def _readme() -> list[str]:
    most = max(row["overhead %"] for row in record("gpu")["kernels"])
    return [
        f"takes {_to_best('ours, Lark text')} of the CPU time of llguidance",
        f"and {_to_best('ours, a tuple of texts')} where it is given the list of commands",
        f"at most [{most:.1f} %](docs/engine_figures.md#on-a-gpu)",
    ]


def _engine_page() -> list[str]:
    found = record("engine")["measurements"]

    def span(workload: str, peer: str, figure: str = "first") -> str:
        """The span over the vocabularies of our part of a peer's time."""
        own, other = (
            {r["vocabulary"]: r[figure] for r in found if (r["engine"], r["workload"]) == (name, workload)}
            for name in ("ours", peer)
        )
        parts = [own[name] / other[name] for name in own]
        return f"{min(parts):.2f} to {max(parts):.2f}"

    return [
        _lmformatenforcer(),
        f"for the graph it is {span('graph', 'llguidance')} of llguidance's time",
        f"for nested expressions {span('calculator', 'xgrammar')} of XGrammar's",
        f"compiling the graph ahead ({span('graph', 'xgrammar', 'ahead')})",
        f"memory for nested expressions ({span('calculator', 'xgrammar', 'bytes')})",
        f"512 rows run at {_speed_ups(512)} of one thread's speed, 64 rows at {_speed_ups(64)}",
    ]


def _speed_ups(rows: int) -> str:
    """The span of what a second thread is worth for so many rows, over vocabularies and kinds of texts."""
    of = {(m["vocabulary"], m["threads"]): m for m in record("engine_threads")["measurements"] if m["rows"] == rows}
    pairs = [(of[name, 1], of[name, 2]) for name in {name for name, _ in of}]
    parts = [one[kind] / two[kind] for one, two in pairs for kind in ("new", "known")]
    return f"{min(parts):.2f} to {max(parts):.2f}"


def _hosts_page() -> list[str]:
    many = record("serve")["crowd"]
    lost = sum(many["lost"].values()) or "none"
    return [
        f"{many['clients']} clients that ask for {many['seconds']:.0f} s get {many['answers']:,} answers, and {lost} "
        f"is lost; half of them take {many['p50']:.0f} s, the longest {many['worst']:.0f} s",
    ]


TABLES: dict[str, Callable[[], str]] = {
    "engine": _engine,
    "engine-first": lambda: first_masks.table(record("engine_first")["rows"]),
    "engine-generation": _generation,
    "gpu-kernels": _gpu_kernels,
    "gpu-texts": _gpu_texts,
    "binding": _binding,
    "maskbench": _maskbench,
    "maskbench-all": _maskbench_all,
    "guard-proxy": lambda: guard_proxy.table(record("guard_proxy")),
    "serve": lambda: serve.compared(record("serve")),
}  # fmt: skip

SENTENCES: dict[str, Callable[[], list[str]]] = {
    "README.md": _readme,
    "docs/engine_figures.md": _engine_page,
    "docs/hosts.md": _hosts_page,
}
