"""Deterministic automata over characters: intersections and complements of patterns, and bounds on their length.

A tree of characters becomes one by the subset construction (Rabin and Scott, "Finite automata and their decision
problems", 1959). What all of several have in common is their product. All is made at once, over classes of characters
that nothing tells apart, and within the limit `pattern_steps`: so no limit is met later, in the middle of a text.

Where a pattern that texts must have takes too many states, it stays nondeterministic: of the sets of its states only
those are made that a text reaches. Whether a text can still end shows of single states, which are few. A complement has
no such form: it is made, or refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import product, takewhile
from operator import or_
from typing import ClassVar

import numpy as np

from constrained.errors import LimitError
from constrained.grammar import charset as charsets
from constrained.grammar import nodes
from constrained.grammar.assertions import Look
from constrained.grammar.charset import MAX_CODE_POINT, CharSet, charset
from constrained.grammar.json_schema.finite_automata import ANY, Nfa, nfa
from constrained.grammar.json_schema.pattern_trees import without_counts
from constrained.grammar.json_text import NO_END, Table, distances
from constrained.limits import Limits

States = tuple[int, ...]
"""States in which a text has come to; of a deterministic automaton, one."""

_PAIRS = 1 << 28
"""Pairs of states of two automata, of which those that texts reach are marked in a bitmap."""
_MERGING = 1_000_000
"""Steps that it may take to find states that read the same texts."""
_COUNTING = 100
"""Counts of characters take so many times fewer resources than states of an automaton."""


@dataclass(frozen=True, eq=False)
class Automaton:
    """A deterministic automaton of characters; state 0 is the first.

    Attributes
    ----------
    starts, classes : numpy.ndarray of int
        Where a range of alike characters begins, ascending from 0, and the class they are in; -1: no character.
    after : numpy.ndarray of int
        (states, classes) The state after a character of each class; -1: none.
    ends : numpy.ndarray of bool
        (states,) Whether a text may end in a state.
    """

    starts: np.ndarray
    classes: np.ndarray
    after: np.ndarray
    ends: np.ndarray

    @cached_property
    def fewest(self) -> np.ndarray:
        """The fewest characters from each state to an end; `NO_END` where there is none."""
        return distances(self.after, self.ends)

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

    def complement(self) -> Automaton:
        """The automaton of all other texts."""
        failed = len(self.ends)
        after = np.vstack([np.where(self.after < 0, failed, self.after), np.full((1, self.after.shape[1]), failed)])
        return Automaton(self.starts, self.classes, after, ~np.append(self.ends, False)).trimmed()

    def trimmed(self) -> Automaton:
        """The same without states from which no end is reached, but the first; equal ones merged, if that is quick."""
        alive = self.fewest != NO_END
        alive[0] = True
        number = np.where(alive, np.cumsum(alive) - 1, -1)
        after = np.where(self.after < 0, -1, number[self.after])[alive]
        ends = self.ends[alive]
        # classes of characters that no state tells apart become one
        after, classes = np.unique(after, axis=1, return_inverse=True)
        classes = np.where(self.classes < 0, -1, classes.ravel()[self.classes])
        changes = np.append(True, classes[1:] != classes[:-1])
        starts, classes = self.starts[changes], classes[changes]
        kept, group = _merged(after, ends)
        return Automaton(starts, classes, np.where(after < 0, -1, group[after])[kept], ends[kept])

    def both(self, other: Automaton, limits: Limits) -> Automaton:
        """The automaton of the texts that both have: its states are the pairs that a text reaches.

        Raises
        ------
        LimitError
            There are too many (`limits.pattern_steps`).
        """
        starts = np.union1d(self.starts, other.starts)
        one, two = (a.classes[np.searchsorted(a.starts, starts, "right") - 1] for a in (self, other))
        code = np.where(one < 0, -1, one * other.after.shape[1] + two)
        cells, classes = np.unique(code, return_inverse=True)
        classes = classes.ravel()
        if cells[0] < 0:
            cells, classes = cells[1:], classes - 1
        left, right = (a.after.astype(np.int64) for a in (self, other))
        left, right = left[:, cells // other.after.shape[1]], right[:, cells % other.after.shape[1]]
        width = len(other.ends)
        if len(self.ends) * width > _PAIRS:
            _too_many(limits.pattern_steps + 1, limits)
        seen = np.zeros(len(self.ends) * width, bool)
        found = [np.zeros(1, np.int64)]
        rows = []
        seen[0], count = True, 1
        while found[-1].size:
            first, second = left[found[-1] // width], right[found[-1] % width]
            onward = np.where((first < 0) | (second < 0), -1, first * width + second)
            rows.append(onward)
            new = np.unique(onward)
            new = new[new >= 0]
            new = new[~seen[new]]
            seen[new] = True
            count += len(new)
            _too_many(count * len(cells), limits)
            found.append(new)
        pairs, onward = np.concatenate(found), np.concatenate(rows)
        order = np.argsort(pairs)
        after = np.where(onward < 0, -1, order[np.searchsorted(pairs[order], onward).clip(max=len(order) - 1)])
        ends = self.ends[pairs // width] & other.ends[pairs % width]
        return Automaton(starts, classes, after, ends).trimmed()


def _too_many(steps: int, limits: Limits) -> None:
    what = "patterns and lengths of a string that take too many states together"
    limits.check("pattern_steps", steps, what, "write simpler patterns, smaller repeats, or fewer of them together")


def _merged(after: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One state of each group that reads the same texts, and the group of each state; all where that takes long."""
    # Moore, "Gedanken-experiments on sequential machines", 1956: states are told apart by what they lead to, until
    # nothing more is.
    group, count = ends.astype(np.int64), 1 + int(ends.any() and not ends.all())
    first = np.arange(len(ends))
    for _ in range(_MERGING // max(after.size, 1)):
        told = np.column_stack([group, np.where(after < 0, -1, group[after])])
        _, first, group = np.unique(told, axis=0, return_index=True, return_inverse=True)
        group = group.ravel()
        if len(first) == count:
            order = np.argsort(first)  # the first state stays the first
            number = np.empty_like(order)
            number[order] = np.arange(count)
            return first[order], number[group]
        count = len(first)
    return np.arange(len(ends)), np.arange(len(ends))


@lru_cache(maxsize=256)
def automaton_of(node: nodes.Node, limits: Limits) -> Automaton:
    """The deterministic automaton of a tree of characters, made once.

    Raises
    ------
    LimitError
        It has too many states (`limits.pattern_steps`).
    """
    # Sets of states are bits of a number. A set with a state that reads every text reads every text: all these are one,
    # as soon as one of some words is found, whatever else has been found.
    automaton = nfa(node, limits)
    cells = charsets.partition([ANY, *{chars: None for edges in automaton.edges for chars, _ in edges}])
    inside: dict[CharSet, list[int]] = {}
    closures: dict[int, int] = {}
    onward: dict[int, list[int]] = {}

    def closure(state: int) -> int:
        if state not in closures:
            closures[state] = sum(1 << one for one in automaton.closure(state))
        return closures[state]

    def moves(state: int) -> list[int]:
        if state not in onward:
            row = [0] * len(cells)
            for chars, to in automaton.edges[state]:
                if chars not in inside:
                    inside[chars] = [i for i, cell in enumerate(cells) if cell.ranges[0][0] in chars]
                for i in inside[chars]:
                    row[i] |= closure(to)
            onward[state] = row
        return onward[state]

    everything = sum(1 << one for one in automaton.universal)
    numbers = {closure(automaton.begin): 0}
    work = [*numbers]
    rows = []
    for states in work:  # which grows meanwhile
        if states & everything:
            onwards = [everything] * len(cells)
        else:
            each = [moves(state) for state in _bits(states)]
            onwards = each[0] if len(each) == 1 else [reduce(or_, some) for some in zip(*each)]
        row = []
        for to in onwards:
            if to & everything:
                to = everything
            number = numbers.setdefault(to, len(numbers)) if to else -1
            if number == len(work):
                work.append(to)
            row.append(number)
        rows.append(row)
        if len(work) * len(cells) > limits.pattern_steps:
            _too_many(len(work) * len(cells), limits)
    end = everything | 1 << automaton.end
    starts = sorted([(0xD800, -1), *((low, i) for i, cell in enumerate(cells) for low, _ in cell.ranges)])
    lows, classes = np.array(starts).T
    return Automaton(lows, classes, np.array(rows), np.array([bool(states & end) for states in work])).trimmed()


@lru_cache(maxsize=64)
def _complement_of(node: nodes.Node, limits: Limits) -> Automaton:
    """The automaton of the texts that a tree doesn't have, made once."""
    return automaton_of(node, limits).complement()


@lru_cache(maxsize=64)
def _both(one: Automaton, other: Automaton, limits: Limits) -> Automaton:
    """What two automata both read, made once: the branches of a oneOf leave out many of the same patterns."""
    return one.both(other, limits)


def _at_least(count: int) -> Automaton:
    """The automaton of texts of `count` characters or more."""
    starts, classes = np.array([0, 0xD800, 0xE000]), np.array([0, -1, 0])
    after = np.minimum(np.arange(count + 1) + 1, count)[:, None]
    return Automaton(starts, classes, after, np.arange(count + 1) == count)


class Ambiguous:
    """A nondeterministic automaton of the texts that all of some trees have, and that an automaton reads.

    Its states are what single states of all of them make together. Attributes and methods as those of `Automaton`.
    """

    def __init__(self, trees: list[nodes.Node], other: Automaton, limits: Limits):
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
            found.setdefault(cell, {}).update(dict.fromkeys(automaton.closure(to)))
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
    def automaton(self) -> Automaton | Ambiguous:
        """What reads them, but for the bounds on their length."""
        refused = [_complement_of(node, self.limits) for node in self._without]
        rest = reduce(lambda one, other: _both(one, other, self.limits), refused) if refused else _at_least(0)
        try:
            every = [automaton_of(node, self.limits) for node in self._fitting]
            return reduce(lambda one, other: one.both(other, self.limits), [rest] * bool(refused) + every or [rest])
        except LimitError as error:
            if error.limit != "pattern_steps" or not self._fitting:
                raise
        return Ambiguous(self._fitting, rest, self.limits)

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
            made = made.both(_at_least(self.low), self.limits)
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
