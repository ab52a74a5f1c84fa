"""Walk an automaton ahead of time: every state that generation can reach at the end of a token.

The states of generation on the host come into being as a text is written. A device can't ask for them in the middle
of a loop, so here all of them are visited, breadth first, and written down as arrays.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tqdm import tqdm

from constrained.automaton import CompiledGrammar
from constrained.automaton.automaton import State
from constrained.automaton.graph_stack import open_levels
from constrained.errors import GrammarError

FINISHED = 0
"""The state after an end-of-text token."""

NEVER = np.iinfo(np.int32).max // 2
"""Distance to the end of a state from which no tokens lead there."""

NARROW = 256
"""Up to so many allowed tokens a state lists them; above, it has a mask row and next states by token class."""

PATIENCE = 3.0
"""Seconds after which a build shows its progress."""


@dataclass(frozen=True)
class Limits:
    """What a build may take; each is named in the error that says it was passed.

    Attributes
    ----------
    max_states : int
    max_bytes : int
        Of all tensors together.
    max_seconds : float
    truncate : bool
        Beyond `max_states`, leave states out instead of refusing.
    depth : int or None
        Leave out states whose stack nests deeper (see `automaton.graph_stack.open_levels`).
    """

    max_states: int
    max_bytes: int
    max_seconds: float
    truncate: bool = False
    depth: int | None = None

    def exceeded(self, what: str, name: str) -> GrammarError:
        return GrammarError(
            f"the grammar is too large to lie on the device: {what} (limit {name}={getattr(self, name):,})",
            hint=f"raise {name} of DeviceTables.build; or loosen the bounds of its repeats (an unbounded one is one "
            "state); or, if texts nest without end, depth=8, say, or truncate=True; or keep this grammar on the host (Matcher, "
            "BatchMatcher), which visits only what is written",
        )


class Exploration:
    """The arrays of a walk, as it grows.

    Attributes
    ----------
    counts : list of int
        Per state, the tokens it lists; -1 for a wide state.
    ids, after : list of ndarray of int32
        Tokens (ascending) and next states of the narrow states, one after the other.
    classes : TokenClasses
        Next states of the wide ones.
    masks : list of ndarray of int32, shape [words]
        Distinct mask rows.
    mask_row : list of int
        Wide state -> its mask row.
    wide_edges : list of ndarray of int
        Wide state -> its next states, distinct.
    truncated : bool
        Some state was left out.
    levels : list of int
        Per state, how deep it nests; 0 where no rule does.
    """

    def __init__(self, compiled: Sequence[CompiledGrammar], limits: Limits):
        self.compiled = compiled
        self.vocabulary = compiled[0].vocabulary
        self.eos = np.array(self.vocabulary.eos_token_ids, np.int32)
        self.limits = limits
        self.classes = TokenClasses(self.vocabulary.size)
        self.counts = [len(self.eos)]  # the finished state reads the end again
        self.ids = [self.eos]
        self.after = [np.full(len(self.eos), FINISHED, np.int32)]
        self.masks: list[np.ndarray] = []
        self.mask_row: list[int] = []
        self.wide_edges: list[np.ndarray] = []
        self.truncated = False
        self.levels = [0]
        self._open: dict = {}
        self._rows: dict[bytes, int] = {}
        self._listed = len(self.eos)
        self._found: list[tuple[State, CompiledGrammar] | None] = [None]
        self._numbers: dict[State, int] = {}
        self.start = np.array([self._number(c.automaton.start, c) for c in compiled], np.int32)
        if (self.start < 0).any():
            raise limits.exceeded("no text begins without nesting deeper", "depth")

    def walk(self) -> None:
        """Visit every state.

        Raises
        ------
        GrammarError
            A limit was passed.
        """
        began = time.monotonic()
        with tqdm(desc="states for the device", unit="state", delay=PATIENCE, leave=False, disable=None) as bar:
            while len(self.counts) < len(self._found):
                self._visit(*self._found[len(self.counts)])
                self._check(time.monotonic() - began)
                bar.update()

    def nbytes(self) -> int:
        """Of the tensors so far."""
        per_state, words = 4 * 4, self.vocabulary.words
        wide = self.classes.rows * (len(self.classes) + 1) + self.vocabulary.size
        return per_state * len(self._found) + 8 * self._listed + 4 * (wide + len(self.masks) * words)

    def _check(self, seconds: float) -> None:
        limits = self.limits
        if len(self._found) > limits.max_states:
            raise limits.exceeded(f"more than {limits.max_states:,} states", "max_states")
        if (size := self.nbytes()) > limits.max_bytes:
            raise limits.exceeded(f"{size:,} bytes after {len(self.counts):,} states", "max_bytes")
        if seconds > limits.max_seconds:
            raise limits.exceeded(f"{len(self.counts):,} states took {seconds:.0f} s", "max_seconds")

    def _number(self, state: State, compiled: CompiledGrammar) -> int:
        """The state's number, a new one if it was never met; -1 if it is left out."""
        number = self._numbers.get(state)
        if number is None:
            if self.limits.truncate and len(self._found) >= self.limits.max_states:
                self.truncated = True
                return -1
            levels = open_levels(state, self._open) if compiled.grammar.nests else 0
            if self.limits.depth is not None and levels > self.limits.depth:
                self.truncated = True
                self._numbers[state] = -1
                return -1
            number = self._numbers[state] = len(self._found)
            self._found.append((state, compiled))
            self.levels.append(levels)
        return number

    def _visit(self, state: State, compiled: CompiledGrammar) -> None:
        ids = compiled.masks.token_ids(state)
        after = np.empty(0, np.int32)
        if len(ids):
            states, which = compiled.masks.states_after(state, ids)
            # only ends of tokens count, not what `states` has inside of them; numbered by the first token that leads
            # there, so that equal grammars give equal tables
            first = np.full(len(states), len(ids))
            first[which[::-1]] = np.arange(len(ids) - 1, -1, -1)
            real = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(ids))]
            numbers = np.zeros(len(states), np.int32)
            numbers[real] = [self._number(states[i], compiled) for i in real.tolist()]
            after = numbers[which]
            if self.truncated:
                ids, after = ids[after >= 0], after[after >= 0]
        ends = self.eos[: len(self.eos) if state.accepting else 0]
        if len(ids) + len(ends) > NARROW:
            self._add_wide(ids, after, ends)
        else:
            self._add_narrow(ids, after, ends)

    def _add_narrow(self, ids: np.ndarray, after: np.ndarray, ends: np.ndarray) -> None:
        if len(ends):
            ids = np.concatenate((ids, ends))
            order = np.argsort(ids)
            ids, after = ids[order], np.concatenate((after, np.full(len(ends), FINISHED, np.int32)))[order]
        self.counts.append(len(ids))
        self.ids.append(ids.astype(np.int32))
        self.after.append(after)
        self._listed += len(ids)

    def _add_wide(self, ids: np.ndarray, after: np.ndarray, ends: np.ndarray) -> None:
        column = np.full(self.vocabulary.size, -1, np.int32)
        column[ids] = after
        column[ends] = FINISHED
        self.counts.append(-1)
        self.classes.add(column)
        row = self.vocabulary.pack(np.flatnonzero(column >= 0))
        number = self._rows.setdefault(row.tobytes(), len(self.masks))
        if number == len(self.masks):
            self.masks.append(row)
        self.mask_row.append(number)
        self.wide_edges.append(np.unique(column[column >= 0]))


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
