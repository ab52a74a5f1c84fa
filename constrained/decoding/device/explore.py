"""Visit an automaton ahead of time: every state that generation can reach at the end of a token.

On the host, states are made while a text is written. A device can't ask the host for them within a loop, so all of
them are visited here in advance, breadth first, and stored as arrays.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from tqdm import tqdm

from constrained.automaton import CompiledGrammar
from constrained.automaton.automaton import State
from constrained.automaton.graph_stack import open_levels
from constrained.decoding.jump_forward import forced_tokens
from constrained.errors import GrammarError

FINISHED = 0
"""The state after an end-of-text token."""

NEVER = np.iinfo(np.int32).max // 2
"""Distance to the end of a state from which no tokens lead there."""

NARROW = 256
"""Most allowed tokens that a state lists; one with more has a mask, and next states by token class."""

RUN = 15
"""Most tokens of a forced run; a longer one continues in the state after it."""

RUN_BYTES = 128
"""Bytes of forced text that are looked at for a run."""

SHOW_PROGRESS_AFTER = 3.0
"""Seconds."""


@dataclass(frozen=True)
class BuildLimits:
    """Limits of a build; see `DeviceTables.build`."""

    max_states: int
    max_bytes: int
    max_seconds: float
    truncate: bool = False
    depth: int | None = None

    def exceeded(self, what: str, name: str) -> GrammarError:
        return GrammarError(
            f"the grammar is too large to lie on the device: {what} (limit {name}={getattr(self, name):,})",
            hint=f"raise {name} of DeviceTables.build; or loosen the bounds of its repeats (an unbounded one is one "
            "state); or, if texts nest without end, depth=8, say, or truncate=True; or keep this grammar on the host "
            "(Matcher, BatchMatcher), which visits only what is written",
        )


class TokenClasses:
    """A partition of the vocabulary: two tokens share a class if every wide state has the same next state after both.

    Free text of bounded length has hundreds of states that each allow nearly the whole vocabulary. A table of next
    states by token would take 4 bytes x states x vocabulary (160 MB for 300 states of 131,072 tokens); but tokens
    differ only in how many characters they hold and where they end, so a few hundred classes are enough.
    """

    def __init__(self, size: int):
        self.of_token = np.zeros(size, np.int32)  # the class of each token
        self._example = np.zeros(1, np.int64)  # class -> one token of it
        self._parent = np.zeros(1, np.int64)  # class -> the class it was split from
        self._rows: list[np.ndarray] = []  # each as wide as the number of classes when its state was added

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
            # tokens that lead elsewhere than their class's example form new classes, one for each (class, next state)
            key = self.of_token[split].astype(np.int64) << 32 | (column[split] + 1)
            _, first, which = np.unique(key, return_index=True, return_inverse=True)
            self._parent = np.concatenate((self._parent, self.of_token[split[first]]))
            self.of_token[split] = len(self) + which
            self._example = np.concatenate((self._example, split[first]))
        self._rows.append(column[self._example])

    def table(self) -> np.ndarray:
        """Next state by wide state and class, int32 ``[rows, classes]``."""
        table = np.empty((len(self._rows), len(self)), np.int32)
        ancestor = np.arange(len(self))  # the class that each class was part of when row `i` was added
        # From the last row back: a class that didn't exist yet had the entry of the class it was split from.
        for i in range(len(self._rows) - 1, -1, -1):
            classes = len(self._rows[i])
            while (late := ancestor >= classes).any():
                ancestor[late] = self._parent[ancestor[late]]
            table[i] = self._rows[i][ancestor]
        return table


class Exploration:
    """All states of some grammars, as arrays that grow while `walk` visits them."""

    def __init__(self, compiled: Sequence[CompiledGrammar], limits: BuildLimits):
        self.compiled, self.limits = compiled, limits
        self.vocabulary = compiled[0].vocabulary
        self.eos = np.array(self.vocabulary.eos_token_ids, np.int32)
        # Per state: its number of listed tokens, -1 for a wide state; its nesting depth, 0 if no rule nests.
        self.counts, self.levels = [len(self.eos)], [0]  # after an end-of-text token the finished state stays finished
        # Tokens (ascending) and next states of the narrow states, int32, one after the other.
        self.ids, self.after = [self.eos], [np.full(len(self.eos), FINISHED, np.int32)]
        self.classes = TokenClasses(self.vocabulary.size)  # next states of the wide states
        self.masks: list[np.ndarray] = []  # distinct, int32 [words]
        self.mask_row: list[int] = []  # wide state -> its mask
        self.wide_edges: list[np.ndarray] = []  # wide state -> its next states, distinct
        self.truncated = False  # whether some state was left out
        self._open_levels: dict = {}
        self._mask_numbers: dict[bytes, int] = {}
        self._listed = len(self.eos)
        self.states: list[tuple[State, CompiledGrammar]] = []  # state `number` has index `number - 1`
        self._numbers: dict[State, int] = {}
        if any(c.remembers for c in compiled):
            raise GrammarError(
                "no tables can remember what a text has written (uniqueItems, minProperties)",
                hint="leave the keyword out: Grammar.from_json_schema(…, lenient=True); or generate without tables",
            )
        self.start = np.array([self._number(c.automaton.start, c) for c in compiled], np.int32)
        if (self.start < 0).any():
            raise limits.exceeded("no text begins without nesting deeper", "depth")

    def walk(self) -> None:
        """Visit every state. Raises GrammarError: a limit was passed."""
        began, limits = time.monotonic(), self.limits
        options = {"unit": "state", "delay": SHOW_PROGRESS_AFTER, "leave": False, "disable": None}
        with tqdm(desc="states for the device", **options) as bar:
            for state, compiled in self.states:  # grows meanwhile
                self._visit(state, compiled)
                bar.update()
                if len(self.states) >= limits.max_states:
                    raise limits.exceeded(f"more than {limits.max_states:,} states", "max_states")
                if (size := self.nbytes()) > limits.max_bytes:
                    raise limits.exceeded(f"{size:,} bytes after {len(self.counts):,} states", "max_bytes")
                if (seconds := time.monotonic() - began) > limits.max_seconds:
                    raise limits.exceeded(f"{len(self.counts):,} states took {seconds:.0f} s", "max_seconds")

    def nbytes(self) -> int:
        """The bytes of the tensors so far."""
        per_state, words = 4 * 4, self.vocabulary.words
        wide = self.classes.rows * (len(self.classes) + 1) + self.vocabulary.size
        return per_state * (1 + len(self.states)) + 8 * self._listed + 4 * (wide + len(self.masks) * words)

    def _number(self, state: State, compiled: CompiledGrammar) -> int:
        """The number of a state, which is added if it is new; -1 if it is left out."""
        number = self._numbers.get(state)
        if number is None:
            if self.limits.truncate and 1 + len(self.states) >= self.limits.max_states:
                self.truncated = True
                return -1
            levels = open_levels(state, self._open_levels) if compiled.grammar.nests else 0
            if self.limits.depth is not None and levels > self.limits.depth:
                self.truncated = True
                self._numbers[state] = -1
                return -1
            self.states.append((state, compiled))
            number = self._numbers[state] = len(self.states)
            self.levels.append(levels)
        return number

    def _visit(self, state: State, compiled: CompiledGrammar) -> None:
        ids = compiled.masks.token_ids(state)
        after = np.empty(0, np.int32)
        if len(ids):
            states, which = compiled.masks.states_after(state, ids)
            # Only the ends of tokens count, not what `states` has inside of them; numbered by the first token that
            # leads there, so that equal grammars give equal tables.
            first = np.full(len(states), len(ids))
            first[which[::-1]] = np.arange(len(ids) - 1, -1, -1)
            real = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(ids))]
            numbers = np.zeros(len(states), np.int32)
            numbers[real] = [self._number(states[i], compiled) for i in real.tolist()]
            after = numbers[which]
            if self.truncated:
                ids, after = ids[after >= 0], after[after >= 0]
        if state.accepting:
            ids = np.concatenate((ids, self.eos))
            after = np.concatenate((after, np.full(len(self.eos), FINISHED, np.int32)))
        if len(ids) > NARROW:
            self._add_wide(ids, after)
        else:
            order = np.argsort(ids)
            self.counts.append(len(ids))
            self.ids.append(ids[order].astype(np.int32))
            self.after.append(after[order])
            self._listed += len(ids)

    def _add_wide(self, ids: np.ndarray, after: np.ndarray) -> None:
        column = np.full(self.vocabulary.size, -1, np.int32)
        column[ids] = after
        self.counts.append(-1)
        self.classes.add(column)
        mask = self.vocabulary.pack(np.flatnonzero(column >= 0))
        number = self._mask_numbers.setdefault(mask.tobytes(), len(self.masks))
        if number == len(self.masks):
            self.masks.append(mask)
        self.mask_row.append(number)
        self.wide_edges.append(np.unique(column[column >= 0]))


def forced_runs(found: Exploration, arrays: dict[str, np.ndarray], tokenizer: Any) -> dict[str, np.ndarray]:
    """The tensors of the forced runs, computed from the other tensors of the tables."""
    states = len(arrays["wide"])
    run_ids, run_after = (np.zeros((states, RUN), np.int32) for _ in range(2))
    run_length = np.zeros(states, np.int32)
    # A state's run: the tokenizer's own tokens of the text that must come next, or else tokens without an alternative,
    # one after the other.
    for number, (state, _) in enumerate(found.states, 1):
        forced = b"" if tokenizer is None else state.forced_text(RUN_BYTES)
        here, spelled = number, iter(forced_tokens(state, forced, found.vocabulary, tokenizer, b""))
        for i in range(RUN):
            token = next(spelled, -1)
            if token < 0 and (not i or tokenizer is None):
                token = _only_token(arrays, here)
            here = _state_after(arrays, here, token)
            if here < 0:
                break
            run_ids[number, i], run_after[number, i], run_length[number] = token, here, i + 1
    return {"run_ids": run_ids, "run_after": run_after, "run_length": run_length}


def _only_token(arrays: dict[str, np.ndarray], state: int) -> int:
    """The only token that is allowed; -1 if there are several, or if it ends the text."""
    begin, end = arrays["offsets"][state : state + 2]
    return int(arrays["ids"][begin]) if end - begin == 1 and arrays["after"][begin] != FINISHED else -1


def _state_after(arrays: dict[str, np.ndarray], state: int, token: int) -> int:
    """The state after a token; -1 where it is not allowed."""
    row = arrays["wide"][state]
    if token < 0 or row >= 0:
        return -1 if token < 0 else int(arrays["next"][row, arrays["class_of"][token]])
    begin, end = arrays["offsets"][state : state + 2]
    at = begin + int(np.searchsorted(arrays["ids"][begin:end], token))
    return int(arrays["after"][at]) if at < end and arrays["ids"][at] == token else -1


def fewest_tokens(source: np.ndarray, target: np.ndarray, states: int) -> np.ndarray:
    """The fewest tokens from each state to the finished state 0, int32 ``[states]``: breadth first, backwards.

    A token leads from ``source[i]`` to ``target[i]``. The end-of-text token isn't counted: 0 where the text is
    complete, -1 for the finished state itself; `NEVER` for a dead end.
    """
    order = np.argsort(target, kind="stable")
    before = source[order]
    begin = np.searchsorted(target[order], np.arange(states + 1))
    fewest = np.full(states, NEVER, np.int32)
    layer, distance = np.array([FINISHED]), -1
    while len(layer):
        fewest[layer] = distance
        # All edges into the layer at once: edge `begin[state] + k` of each state, for k below its count.
        counts = begin[layer + 1] - begin[layer]
        inside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        reached = before[np.repeat(begin[layer], counts) + inside]
        layer = np.unique(reached[fewest[reached] == NEVER])
        distance += 1
    return fewest
