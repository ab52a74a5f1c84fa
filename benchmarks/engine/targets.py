"""What is to be reached, as ratios to the peers in the same run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

MICROSECOND = 1e-6


@dataclass(frozen=True)
class Target:
    """A bound on one of our figures.

    Attributes
    ----------
    words : str
        As the table says it.
    limit : callable
        Peer -> its figure (those that ran and were right; `best` among them) to the most that ours may be; None
        where that peer has no such figure.
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
"""(workload or None, figure) -> what is to be reached."""
