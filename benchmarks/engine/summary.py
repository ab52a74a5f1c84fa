"""From the times of the walks to figures; one record per vocabulary, workload and engine."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from benchmarks.engine.correctness import Verdict
from benchmarks.engine.measure import Times


def record(times: list[Times], verdict: Verdict, ahead: list[float], cases: int) -> dict:
    """The figures of one measurement, in seconds and bytes.

    A mask's time is its median over the repeats; percentiles and the worst are then taken over the masks, so that a
    moment's noise of the machine is not any mask's time.

    Parameters
    ----------
    times : list of Times
        Of each repeat.
    verdict : Verdict
    ahead : list of float
    cases : int
        How many the workload has; fewer were measured if time was out.
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
    """Per mask, its median over the repeats that came so far."""
    longest = max(map(len, repeats))
    return np.median([row for row in repeats if len(row) == longest], axis=0)


def _percentile(values: np.ndarray, percent: float) -> float | None:
    return float(np.percentile(values, percent)) if len(values) else None
