"""Token classes: tokens that lead every wide state to the same next states share one column.

A free text of a bounded length has hundreds of states that each allow nearly the whole vocabulary. A table of next
states by token would take 4 bytes x states x vocabulary (160 MB for 300 states of 131,072 tokens); but tokens differ
only in how many characters they hold and where they end, so a few hundred columns say all of it.
"""

from __future__ import annotations

import numpy as np


class TokenClasses:
    """A partition of the vocabulary, refined by one wide state after the other.

    Attributes
    ----------
    of_token : ndarray of int32, shape [size]
        The class of each token.
    """

    def __init__(self, size: int):
        self.of_token = np.zeros(size, np.int32)
        self._example = np.zeros(1, np.int64)  # class -> one token of it
        self._parent = np.zeros(1, np.int64)  # class -> the class it was split from
        self._rows: list[np.ndarray] = []  # as wide as there were classes when the state was added

    def __len__(self) -> int:
        return len(self._example)

    @property
    def rows(self) -> int:
        """Wide states added so far."""
        return len(self._rows)

    def add(self, column: np.ndarray) -> None:
        """Add a wide state; `column` is int32 ``[size]``: its next state by token, -1 where not allowed."""
        split = np.flatnonzero(column != column[self._example][self.of_token])
        if len(split):
            # tokens that differ from their class's example leave it, by where they lead
            key = self.of_token[split].astype(np.int64) << 32 | (column[split] + 1)
            _, first, which = np.unique(key, return_index=True, return_inverse=True)
            self._parent = np.concatenate((self._parent, self.of_token[split[first]]))
            self.of_token[split] = len(self) + which
            self._example = np.concatenate((self._example, split[first]))
        self._rows.append(column[self._example])

    def table(self) -> np.ndarray:
        """Next state by wide state and class, int32 ``[rows, classes]``."""
        table = np.empty((len(self._rows), len(self)), np.int32)
        ancestor = np.arange(len(self))  # per class, the one that stood for it when a row was added
        for i in range(len(self._rows) - 1, -1, -1):
            known = len(self._rows[i])
            while (late := ancestor >= known).any():
                ancestor[late] = self._parent[ancestor[late]]
            table[i] = self._rows[i][ancestor]
        return table
