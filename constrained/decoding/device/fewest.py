"""The fewest tokens from each state to the end: breadth first, backwards over the whole table."""

from __future__ import annotations

import numpy as np

NEVER = np.iinfo(np.int32).max // 2
"""Distance of a state from which no tokens lead to the end."""


def fewest_tokens(source: np.ndarray, target: np.ndarray, states: int) -> np.ndarray:
    """Distances to the finished state 0, the end-of-text token itself not counted.

    Parameters
    ----------
    source, target : ndarray of int, shape [edges]
        A token leads from ``source[i]`` to ``target[i]``.
    states : int

    Returns
    -------
    ndarray of int32, shape [states]
        0 where the text is complete, hence -1 for the finished state itself; `NEVER` for a dead end.
    """
    order = np.argsort(target, kind="stable")
    before = source[order]
    begin = np.searchsorted(target[order], np.arange(states + 1))
    fewest = np.full(states, NEVER, np.int32)
    layer, distance = np.zeros(1, np.int64), -1
    while len(layer):
        fewest[layer] = distance
        counts = begin[layer + 1] - begin[layer]
        inside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        reached = before[np.repeat(begin[layer], counts) + inside]
        layer = np.unique(reached[fewest[reached] == NEVER])
        distance += 1
    return fewest
