"""Deterministic automata over characters: intersections and complements of patterns, and bounds on their length.

Trees of characters become one by the subset construction (Rabin and Scott, "Finite automata and their decision
problems", 1959): their automata read a text side by side, those of which it must be a text and those of which it must
not. All is made at once, over classes of characters that nothing tells apart, and within the limit `pattern_steps`: so
no limit is met later, in the middle of a text.

Where a pattern that texts must have takes too many states, it stays nondeterministic: of the sets of its states only
those are made that a text reaches. Whether a text can still end shows of single states, which are few. A complement has
no such form: it is made, or refused.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import pairwise, product, takewhile
from operator import or_
from typing import ClassVar

import numpy as np

from constrained.errors import LimitError
from constrained.grammar import charset as charsets
from constrained.grammar import nodes
from constrained.grammar.assertions import Look
from constrained.grammar.charset import MAX_CODE_POINT, CharSet, charset
from constrained.grammar.json_text import NO_END, Table
from constrained.grammar.patterns.finite_automata import ANY, Nfa, nfa
from constrained.grammar.patterns.trees import without_counts
from constrained.limits import Limits

States = tuple[int, ...]
"""States in which a text has come to; of a deterministic automaton, one."""

_COUNTING = 100
"""Counts of characters take so many times fewer resources than states of an automaton."""


@dataclass(frozen=True, eq=False)
class CharacterAutomaton:
    """A deterministic automaton of characters; state 0 is the first.

    Attributes
    ----------
    starts, classes : numpy.ndarray of int
        Where a range of alike characters begins, ascending from 0, and the class they are in; -1: no character.
    after : numpy.ndarray of int
        (states, classes) The state after a character of each class; -1: none.
    ends : numpy.ndarray of bool
        (states,) Whether a text may end in a state.
    fewest : numpy.ndarray of int
        (states,) The fewest characters from each state to an end; `NO_END` if no text is read at all.
    """

    starts: np.ndarray
    classes: np.ndarray
    after: np.ndarray
    ends: np.ndarray
    fewest: np.ndarray

    @cached_property
    def characters(self) -> list[CharSet]:
        """The characters of each class."""
        ranges: list[list[tuple[int, int]]] = [[] for _ in range(self.after.shape[1])]
        lows = self.starts.tolist()
        for low, after, number in zip(lows, [*lows[1:], MAX_CODE_POINT + 1], self.classes.tolist()):
            if number >= 0:
                ranges[number].append((low, after - 1))
        return list(map(charset, ranges))

    first: ClassVar[States] = (0,)
    """The states in which reading begins."""

    def onward(self, states: States) -> dict[States, CharSet]:
        """The states after one more character, with these characters."""
        classes: dict[int, list[CharSet]] = {}
        for number, to in enumerate(self.after[states[0]].tolist()):
            if to >= 0:
                classes.setdefault(to, []).append(self.characters[number])
        return {(to,): charsets.union(some) for to, some in classes.items()}

    def longer(self, fewest: np.ndarray) -> np.ndarray:
        """The fewest characters to an end from each state, if one comes before those that are counted in `fewest`."""
        found = np.where(self.after < 0, NO_END, fewest[self.after]).min(axis=1, initial=NO_END)
        return np.where(found == NO_END, NO_END, found + 1)

    @property
    def size(self) -> int:
        """Its steps."""
        return self.after.size

    def class_of(self, character: int) -> int:
        """The class of a character."""
        return int(self.classes[np.searchsorted(self.starts, character, "right") - 1])


def _too_many(steps: int, limits: Limits) -> None:
    what = "patterns and lengths of a string that take too many states together"
    limits.check("pattern_steps", steps, what, "write simpler patterns, smaller repeats, or fewer of them together")


class _SideBySide:
    """The automata of some trees, which read a text side by side: a set of their states is the bits of a number."""

    def __init__(self, fitting: tuple[nodes.Node, ...], without: tuple[nodes.Node, ...], limits: Limits):
        self._edges: list[list[tuple[CharSet, int]]] = []
        self._empty: list[list[int]] = []
        self._closures: dict[int, int] = {}
        self._moves: dict[int, list[tuple[int, int]]] = {}
        self._inside: dict[CharSet, list[int]] = {}
        first, every = [], []
        for tree in (*fitting, *without):
            one, at = nfa(tree, limits), len(self._edges)
            self._edges += [[(chars, at + to) for chars, to in edges] for edges in one.edges]
            self._empty += [[at + to for to in states] for states in one.empty]
            universal = sum(1 << at + state for state in one.universal)
            first.append(at + one.begin)
            # all its states, those from which it reads any text, and those where a text may end
            every.append(((1 << len(self._edges)) - (1 << at), universal, universal | 1 << at + one.end))
        self.start = reduce(or_, map(self._closure, first), 0)
        self._wanted, refused = every[: len(fitting)], every[len(fitting) :]
        self._never = reduce(or_, (universal for _, universal, _ in refused), 0)
        self._refusing = reduce(or_, (ends for _, _, ends in refused), 0)
        self.cells = charsets.partition([ANY, *{chars: None for edges in self._edges for chars, _ in edges}])
        self._lows = sorted((cell.ranges[0][0], i) for i, cell in enumerate(self.cells))

    def settled(self, states: int) -> int | None:
        """The same set of states, in one form for all that plainly read the same texts; None if it reads none."""
        for own, universal, _ in self._wanted:
            if not states & own:
                return None
            if states & universal:
                states = states & ~own | self._closure(universal.bit_length() - 1)
        return None if states & self._never else states

    def may_end(self, states: int) -> bool:
        """Whether a text may end in a set of states."""
        return all(states & ends for _, _, ends in self._wanted) and not states & self._refusing

    def after(self, states: int) -> list[int]:
        """The set of states after a character of each class."""
        row = [0] * len(self.cells)
        for state in _bits(states):
            if state not in self._moves:
                self._moves[state] = [
                    (i, self._closure(to)) for chars, to in self._edges[state] for i in self._classes(chars)
                ]
            for i, to in self._moves[state]:
                row[i] |= to
        return row

    def _classes(self, chars: CharSet) -> list[int]:
        """The classes of characters in a set."""
        if chars not in self._inside:
            ends = [
                (bisect_left(self._lows, (low,)), bisect_left(self._lows, (high + 1,))) for low, high in chars.ranges
            ]
            self._inside[chars] = [i for low, high in ends for _, i in self._lows[low:high]]
        return self._inside[chars]

    def _closure(self, state: int) -> int:
        """A state and those that no character leads to from there."""
        if state not in self._closures:
            found, work = {state}, [state]
            while work:
                new = [to for to in self._empty[work.pop()] if to not in found]
                found.update(new)
                work += new
            self._closures[state] = sum(1 << one for one in found)
        return self._closures[state]


@lru_cache(maxsize=256)
def automaton_of(
    fitting: tuple[nodes.Node, ...], without: tuple[nodes.Node, ...], limits: Limits
) -> CharacterAutomaton:
    """The deterministic automaton of the texts that all of some trees have, and none of others; made once.

    Raises
    ------
    LimitError
        It has too many states (`limits.pattern_steps`).
    """
    automata = _SideBySide(fitting, without, limits)
    start = automata.settled(automata.start)
    work = [] if start is None else [start]
    numbers: dict[int | None, int] = {start: 0, None: -1}
    known: dict[int, int] = {}  # the number of each set of states, before it is settled
    rows: list[list[int]] = []
    before: list[set[int]] = [set() for _ in work]
    for states in work:  # which grows meanwhile
        row = automata.after(states)
        for raw in set(row).difference(known):
            to = automata.settled(raw)
            if to is not None and to not in numbers:
                numbers[to] = len(work)
                work.append(to)
                before.append(set())
            known[raw] = numbers[to]
        row = [known[raw] for raw in row]
        for number in set(row):
            if number >= 0:
                before[number].add(len(rows))
        rows.append(row)
        if len(work) * len(row) > limits.pattern_steps:
            _too_many(len(work) * len(row), limits)
    nearest = [number for number, states in enumerate(work) if automata.may_end(states)]
    fewest: dict[int, int] = {}
    count = 0
    while nearest:
        fewest.update(dict.fromkeys(nearest, count))
        count += 1
        nearest = list({one for number in nearest for one in before[number]} - fewest.keys())
    if 0 not in fewest:
        return _NOTHING
    # States from which no end is reached are left out, and classes that no state tells apart are one.
    alive = sorted(fewest)
    renumbered = {number: i for i, number in enumerate(alive)}
    columns = [*zip(*([renumbered.get(to, -1) for to in rows[number]] for number in alive))]
    classes = {column: i for i, column in enumerate(dict.fromkeys(columns))}
    class_of = [classes[column] for column in columns]
    starts = sorted(
        [(0xD800, -1), *((low, class_of[i]) for i, cell in enumerate(automata.cells) for low, _ in cell.ranges)]
    )
    changes = [starts[0], *(after for one, after in pairwise(starts) if one[1] != after[1])]
    lows, numbered = np.array(changes).T
    least = np.array([fewest[number] for number in alive])
    return CharacterAutomaton(lows, numbered, np.array([*classes]).T, least == 0, least)


_NOTHING = CharacterAutomaton(np.array([0]), np.array([0]), np.array([[-1]]), np.array([False]), np.array([NO_END]))
"""The automaton that reads no text."""


class Ambiguous:
    """A nondeterministic automaton of the texts that all of some trees have, and that an automaton reads.

    Its states are what single states of all of them make together. It has the attributes and methods of
    `CharacterAutomaton`.
    """

    def __init__(self, trees: list[nodes.Node], other: CharacterAutomaton, limits: Limits):
        parts = [nfa(tree, limits) for tree in trees]
        read = {chars: None for one in parts for edges in one.edges for chars, _ in edges}
        self._cells = charsets.partition([ANY, *read, *other.characters])
        classes = [other.class_of(cell.ranges[0][0]) for cell in self._cells]
        inside = {chars: [i for i, cell in enumerate(self._cells) if cell.ranges[0][0] in chars] for chars in read}
        self._ways: list[dict[int, list[int]]] = []
        numbers: dict[States, int] = {}

        work: list[States] = []

        def numbered(every: Iterable[States]) -> list[int]:
            found = []
            for states in every:
                if states not in numbers:
                    numbers[states] = len(work)
                    work.append(states)
                    _too_many(len(work) * len(parts) * len(self._cells), limits)
                found.append(numbers[states])
            return found

        self.first: States = tuple(sorted(numbered(product(*(one.start for one in parts), (0,)))))
        ways: list[dict[int, dict[int, list[int]]]] = [{} for _ in parts]
        steps = 0
        for *states, last in work:  # which grows meanwhile
            onward: dict[int, list[int]] = {}
            for one, state, known in zip(parts, states, ways):
                if state not in known:
                    known[state] = _by_cell(one, state, inside)
            each = [known[state] for state, known in zip(states, ways)]
            for cell in each[0]:
                to = int(other.after[last, classes[cell]])
                if to >= 0 and all(cell in one for one in each):
                    onward[cell] = numbered(product(*(one[cell] for one in each), (to,)))
                    steps += len(onward[cell])
            self._ways.append(onward)
            _too_many(steps, limits)
        self.ends = np.array(
            [all(s == one.end for s, one in zip(states, parts)) and bool(other.ends[states[-1]]) for states in numbers]
        )
        flat = [(at, to) for at, onward in enumerate(self._ways) for some in onward.values() for to in some]
        self._from, self._to = np.array(flat, dtype=np.int64).reshape(-1, 2).T
        self.size = len(flat)
        self._known: dict[States, dict[States, CharSet]] = {}

    @cached_property
    def fewest(self) -> np.ndarray:
        found = np.where(self.ends, 0, NO_END)
        while True:
            nearer = np.minimum(found, self.longer(found))
            if (nearer == found).all():
                return found
            found = nearer

    def longer(self, fewest: np.ndarray) -> np.ndarray:
        found = np.full(len(self.ends), NO_END)
        np.minimum.at(found, self._from, fewest[self._to])
        return np.where(found == NO_END, NO_END, found + 1)

    def onward(self, states: States) -> dict[States, CharSet]:
        if states not in self._known:
            by_cell: dict[int, set[int]] = {}
            for state in states:
                for cell, some in self._ways[state].items():
                    by_cell.setdefault(cell, set()).update(some)
            found: dict[States, list[CharSet]] = {}
            for cell, every in by_cell.items():
                alive = tuple(sorted(to for to in every if self.fewest[to] != NO_END))
                if alive:
                    found.setdefault(alive, []).append(self._cells[cell])
            self._known[states] = {to: charsets.union(some) for to, some in found.items()}
        return self._known[states]


def _by_cell(automaton: Nfa, state: int, inside: dict[CharSet, list[int]]) -> dict[int, list[int]]:
    """The states after a character of each class that may follow a state."""
    found: dict[int, dict[int, None]] = {}
    for chars, to in automaton.edges[state]:
        for cell in inside[chars]:
            found.setdefault(cell, {}).update(dict.fromkeys(automaton.closure({to})))
    return {cell: [*states] for cell, states in found.items()}


State = tuple[States, int]
"""States of the automaton without counts, and how many characters were read, as far as it matters."""


class Texts:
    """The texts of `low` to `high` characters that all of some trees have, and none of others.

    Raises
    ------
    LimitError
        By :meth:`check` and all else: there are too many states.
    """

    def __init__(
        self, fitting: list[nodes.Node], without: list[nodes.Node], low: int, high: int | None, limits: Limits
    ):
        conditions = [one for node in fitting for one in _conditions(node)]
        self._fitting = [node for node, wanted in conditions if wanted]
        self._without = [*without, *(node for node, wanted in conditions if not wanted)]
        if len(self._fitting) + len(self._without) > 1:
            # that a pattern counts characters of one kind is a bound on the length, which takes no states
            counted = list(map(without_counts, self._fitting))
            self._fitting = [node for node, _ in counted]
            high = min((most for most in (high, *(most for _, most in counted)) if most is not None), default=None)
        self.low, self.high, self.limits = low, high, limits
        self._top = low if high is None else high

    @cached_property
    def automaton(self) -> CharacterAutomaton | Ambiguous:
        """What reads them, but for the bounds on their length."""
        fitting, without = tuple(self._fitting), tuple(self._without)
        try:
            return automaton_of(fitting, without, self.limits)
        except LimitError as error:
            if error.limit != "pattern_steps" or not fitting:
                raise
        return Ambiguous(self._fitting, automaton_of((), without, self.limits), self.limits)

    @cached_property
    def _least(self) -> list[np.ndarray]:
        """For each count of characters that must still come, the fewest from each state to an end."""
        found = [self.automaton.fewest]
        if self.low:
            self.limits.check("schema", self.low, f"strings of {self.low} characters that patterns restrict")
            _too_many(self.low * self.automaton.size // _COUNTING, self.limits)
        for _ in range(self.low):
            found.append(self.automaton.longer(found[-1]))
        return found

    def check(self) -> None:
        """Make what a text needs, so that no limit is passed later."""
        _ = self._least

    @property
    def start(self) -> State:
        return self.automaton.first, 0

    def lives(self, state: State) -> bool:
        """Whether some text can be finished from there."""
        least = self.fewest(state)
        return least != NO_END and (self.high is None or state[1] + least <= self.high)

    def fewest(self, state: State) -> int:
        """The fewest characters from a state to an end; `NO_END` where there is none."""
        states, count = state
        return int(self._least[max(self.low - count, 0)][[*states]].min())

    def may_end(self, state: State) -> bool:
        """Whether a text may be over."""
        states, count = state
        return count >= self.low and bool(self.automaton.ends[[*states]].any())

    def after(self, state: State) -> dict[State, CharSet]:
        """The states after one more character, with these characters; only states from which a text can be finished."""
        states, count = state
        ways = self.automaton.onward(states) if count != self.high else {}
        onward = {(to, min(count + 1, self._top)): chars for to, chars in ways.items()}
        return {to: chars for to, chars in onward.items() if self.lives(to)}

    def table(self) -> Table | None:
        """All states as a table, for texts of any length from `low` on; None if it is too large."""
        made = self.automaton
        if isinstance(made, Ambiguous) or (self.low + 1) * made.size > self.limits.pattern_steps:
            return None
        if self.low:
            longer = nodes.repeat(nodes.Chars(ANY), self.low, None)
            made = automaton_of((*self._fitting, longer), tuple(self._without), self.limits)
        # The last column is for characters escaped without need, which may be of any class: they may come only where
        # all classes lead to one state.
        alike = (made.after == made.after[:, :1]).all(axis=1)
        after = np.column_stack([made.after, np.where(alike, made.after[:, 0], -1)])
        return Table(
            tuple(made.starts.tolist()),
            tuple(made.classes.tolist()),
            tuple(map(tuple, after.tolist())),
            tuple(made.ends.tolist()),
        )

    def at_least(self, most: int) -> int:
        """A number of texts that there surely are, as a short search shows; no more than `most`."""
        level = {self.start: 1} if self.lives(self.start) else {}
        found = best = seen = 0
        while level and best < most and seen < 20 * most:
            seen += len(level)
            found += sum(n for state, n in level.items() if self.may_end(state))
            best = max(best, found, sum(level.values()))  # each beginning leads to an end
            longer: dict[State, int] = {}
            for state, n in level.items():
                for to, chars in self.after(state).items():
                    longer[to] = longer.get(to, 0) + n * sum(high - low + 1 for low, high in chars.ranges)
            level = longer
        return min(best, most)

    def accepts(self, text: str) -> bool:
        """Whether it is one of these texts, told without their automaton."""
        if len(text) < self.low or self.high is not None and len(text) > self.high:
            return False
        return all(nfa(node, self.limits).accepts(text) for node in self._fitting) and not any(
            nfa(node, self.limits).accepts(text) for node in self._without
        )


@lru_cache(maxsize=256)
def _conditions(node: nodes.Node) -> list[tuple[nodes.Node, bool]]:
    """Trees that a text must have, or must not have, to have the tree `node`: each lookahead at its start is one.

    Their automata are combined, which takes far fewer states than one automaton of the whole tree.
    """
    items = node.items if isinstance(node, nodes.Seq) else (node,)
    looks_ahead = list(takewhile(lambda item: isinstance(item, Look) and item.behind is None, items))
    rest = nodes.repeat(nodes.Chars(ANY), 0, None)
    found = [(nodes.seq([look.node, rest]), look.holds) for look in looks_ahead if isinstance(look, Look)]
    return [(nodes.seq(items[len(found) :]) if found else node, True), *found]


def _bits(number: int) -> Iterator[int]:
    """Yield which bits are set."""
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest
