"""Text to first mask where the commands are new at every step: CPU time, each engine given the same grammar.

    constrained bench engine --first --json benchmarks/results/engine_first.json

The sets of the workload `choices` are compiled in turns, one engine after the other within a set, in one process and on
one thread, so that other work on the machine and a changing clock rate meet all alike: the ratios count, not the times.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from benchmarks.engine.engines import engine
from benchmarks.engine.language import to_ebnf, to_lark
from benchmarks.engine.report import amount
from benchmarks.engine.vocabularies import Tokens
from benchmarks.engine.workloads import Case, choices
from benchmarks.reporting import markdown

ROUNDS = 5
"""Times that all sets are compiled; what a set took is its least time."""

Sources = dict[str, tuple[str, bool, Callable[[Case], Any]]]

SIDES: Sources = {
    "ours, Lark text": ("ours", False, lambda case: to_lark(case.rules)),
    "ours, a tuple of texts": ("ours", False, lambda case: case.choices),
    "llguidance, the same Lark text": ("llguidance", False, lambda case: to_lark(case.rules)),
    "xgrammar, EBNF text, no cache": ("xgrammar", False, lambda case: to_ebnf(case.rules)),
    "xgrammar, EBNF text, its cache on": ("xgrammar", True, lambda case: to_ebnf(case.rules)),
}
"""What is compared -> its engine, whether the engine's own cache is on, and what it is given."""

PEERS = tuple(name for name in SIDES if not name.startswith("ours"))


def measure(tokens: Tokens) -> dict[str, float]:
    """Median over the sets of the least CPU seconds from text to first mask, by side.

    XGrammar's cache keeps whole grammars and what they share. It is emptied before each round, so that each set is new
    to it, as it is to an agent; what it finds shared between sets of a round is kept.
    """
    cases = choices().cases
    adapters = {name: engine(kind) for name, (kind, _, _) in SIDES.items()}
    prepared = {name: adapter.prepare(tokens) for name, adapter in adapters.items()}
    cached = [name for name, (_, cache, _) in SIDES.items() if cache]
    for name in cached:
        prepared[name].compiler = adapters[name].caching(tokens)
    least = {name: np.full(len(cases), np.inf) for name in SIDES}
    for _ in range(ROUNDS):
        for name in cached:
            prepared[name].compiler.clear_cache()
        for number, case in enumerate(cases):
            for name, (_, _, text_of) in SIDES.items():
                text = text_of(case)
                gc.disable()  # as in `timeit`
                began = process_time()
                adapters[name].start(prepared[name], adapters[name].compile(prepared[name], text)).fill()
                took = process_time() - began
                gc.enable()
                least[name][number] = min(least[name][number], took)
    return {name: median(times) for name, times in least.items()}


def versions() -> dict[str, str]:
    """The engines' versions."""
    return {kind: engine(kind).version() for kind in dict.fromkeys(kind for kind, _, _ in SIDES.values())}


def table(rows: Sequence[dict]) -> str:
    """A row a vocabulary and side, with its time to that of ours from the same kind of text."""
    cells = []
    for row in rows:
        best = min(row["seconds"][name] for name in PEERS)
        label = row["vocabulary"]
        for name, seconds in row["seconds"].items():
            part = f"{100 * seconds / best:.0f} %"
            cells.append([label, name, amount(seconds), part])
            label = ""
    return markdown(["", "given", "text → first mask", "of the best peer's time"], cells, left=2)
