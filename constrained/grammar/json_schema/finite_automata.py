"""Finite automata over characters: intersections and complements of patterns, and bounds on their length.

A tree of characters becomes a nondeterministic automaton; several of these become one deterministic
automaton by the subset construction (Rabin and Scott, "Finite automata and their decision
problems", 1959). Its states are made when a text reaches them, and only those that lead to an end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from heapq import heappop, heappush
from itertools import count as counter
from itertools import takewhile

from constrained.grammar import charset as charsets
from constrained.grammar import nodes
from constrained.grammar.alternating_automaton import Steps
from constrained.grammar.assertions import Look, looks
from constrained.grammar.charset import MAX_CODE_POINT, CharSet, charset
from constrained.grammar.json_text import Table, distances
from constrained.grammar.lookaround import LookingToken
from constrained.limits import Limits

ANY = charset([(0, MAX_CODE_POINT)])
"""Every character."""


@lru_cache(maxsize=1024)
def _only(character: str) -> CharSet:
    return charset([(ord(character),) * 2])


class Nfa:
    """The nondeterministic automaton of a tree of characters, as `regex_node` gives it."""

    def __init__(self, node: nodes.Node, limits: Limits):
        self._is_list = isinstance(node, (nodes.Choices, nodes.Literal))
        self.limits = limits
        self.edges: list[list[tuple[CharSet, int]]] = []
        self.empty: list[list[int]] = []
        self._steps: dict[tuple[frozenset[int], int], frozenset[int]] = {}
        self.begin = self._state()
        self.end = self._add_looking(node, self.begin) if looks(node) else self._add(node, self.begin)

    @cached_property
    def start(self) -> frozenset[int]:
        return self._closure({self.begin})

    def step(self, states: frozenset[int], character: int) -> frozenset[int]:
        """The states after one more character."""
        key = states, character
        found = self._steps.get(key)
        if found is None:
            found = self._closure({to for s in states for chars, to in self.edges[s] if character in chars})
            self._steps[key] = found
        return found

    def moves(self, characters: list[int]) -> Callable[[frozenset[int]], list[frozenset[int]]]:
        """A function that returns the states after each of some characters, quicker than :meth:`step` for many."""
        # sets of states as bits of a number
        closures: dict[int, int] = {}
        onward: list[list[tuple[int, int]]] = [[] for _ in self.edges]
        indices: dict[CharSet, list[int]] = {}
        for state, edges in enumerate(self.edges):
            for chars, to in edges:
                if chars not in indices:
                    indices[chars] = [i for i, character in enumerate(characters) if character in chars]
                if to not in closures:
                    closures[to] = sum(1 << one for one in self._closure({to}))
                onward[state] += [(i, closures[to]) for i in indices[chars]]
        sets: dict[int, frozenset[int]] = {}

        def after(states: frozenset[int]) -> list[frozenset[int]]:
            found = [0] * len(characters)
            for state in states:
                for i, bits in onward[state]:
                    found[i] |= bits
            for bits in found:
                if bits not in sets:
                    sets[bits] = frozenset(_bits(bits))
            return [sets[bits] for bits in found]

        return after

    def accepts(self, text: str) -> bool:
        """Whether the whole text is in the language."""
        return self.ends(self.start, text)

    def ends(self, states: frozenset[int], text: str) -> bool:
        """Whether a text may be over after `text`, read from `states`."""
        steps, end, goes_round = self._steps, self.end, self._goes_round
        for character in map(ord, text):
            if not states or goes_round and end in states:  # nothing changes any more
                break
            after = steps.get((states, character))
            states = self.step(states, character) if after is None else after
        return end in states

    def takes_all(self, states: frozenset[int]) -> bool:
        """Whether any text may follow, as far as it shows: a tree that ends with any number of any character."""
        return self.end in states and self._goes_round

    @cached_property
    def _goes_round(self) -> bool:
        return any(self.end in self._closure({to}) for chars, to in self.edges[self.end] if chars is ANY)

    @cached_property
    def distances(self) -> list[int]:
        """The fewest characters from each state to the end."""
        before: list[list[tuple[int, int]]] = [[] for _ in self.edges]
        for state, (edges, empty) in enumerate(zip(self.edges, self.empty)):
            for to, step in [*((to, 1) for chars, to in edges if chars), *((to, 0) for to in empty)]:
                before[to].append((state, step))
        found = [len(self.edges)] * len(self.edges)
        found[self.end] = 0
        work = deque([self.end])
        while work:
            at = work.popleft()
            for state, step in before[at]:
                if found[at] + step < found[state]:
                    found[state] = found[at] + step
                    work.append(state) if step else work.appendleft(state)
        return found

    def listed(self, states: frozenset[int]) -> list[str] | None:
        """The texts that may follow, if the tree is a list of texts."""
        if not self._is_list:
            return None
        out, work = [], [(state, "") for state in states]
        for state, text in work:
            out += [text] if state == self.end else []
            work += [(to, text) for to in self.empty[state] if to not in states or text]
            work += [(to, text + chr(chars.ranges[0][0])) for chars, to in self.edges[state]]
        return out

    def sets(self, states: frozenset[int]) -> set[CharSet]:
        """The sets of characters that the next states depend on."""
        return {chars for s in states for chars, _ in self.edges[s]}

    def characters(self, states: frozenset[int]) -> set[int]:
        """The characters that may follow."""
        ranges = {one for chars in self.sets(states) for one in chars.ranges}
        return {c for low, high in ranges for c in range(low, high + 1)}

    def _state(self) -> int:
        if len(self.edges) > self.limits.schema:
            self.limits.check("schema", len(self.edges), "a pattern with too many states", "use smaller repeats")
        self.edges.append([])
        self.empty.append([])
        return len(self.edges) - 1

    def _closure(self, states: set[int]) -> frozenset[int]:
        work = list(states)
        while work:
            for to in self.empty[work.pop()]:
                if to not in states:
                    states.add(to)
                    work.append(to)
        return frozenset(states)

    def _add(self, node: nodes.Node, at: int) -> int:
        """Add `node` after state `at`; return the state after it."""
        if isinstance(node, nodes.Literal):
            for character in node.data.decode():
                at = self._edge(at, _only(character))
            return at
        if isinstance(node, nodes.Chars):
            return self._edge(at, node.chars)
        if isinstance(node, nodes.Seq):
            for item in node.items:
                at = self._add(item, at)
            return at
        if isinstance(node, nodes.Repeat):
            return self._repeat(node, at)
        end = self._state()
        if isinstance(node, nodes.Choices):  # equal beginnings once
            known = {"": at}
            for text in (value.decode() for value in node.values):
                for i, character in enumerate(text):
                    if text[: i + 1] not in known:
                        known[text[: i + 1]] = self._edge(known[text[:i]], _only(character))
                self.empty[known[text]].append(end)
            return end
        assert isinstance(node, nodes.Alt)
        for item in node.items:
            self.empty[self._add(item, at)].append(end)
        return end

    def _edge(self, at: int, chars: CharSet) -> int:
        to = self._state()
        self.edges[at].append((chars, to))
        return to

    def _repeat(self, node: nodes.Repeat, at: int) -> int:
        for _ in range(node.low):
            at = self._add(node.item, at)
        if node.high is None:
            loop = self._state()
            self.empty[at].append(loop)
            self.empty[self._add(node.item, loop)].append(loop)
            return loop
        end = self._state()
        for _ in range(node.high - node.low):
            self.empty[at].append(end)
            at = self._add(node.item, at)
        self.empty[at].append(end)
        return end

    def _add_looking(self, node: nodes.Node, at: int) -> int:
        """Add an expression that looks around, by the deterministic automaton of its texts."""
        texts = LookingToken(node, Steps(self.limits), alone=True)
        states, end = [self._state() for _ in texts.edges], self._state()
        self.empty[at].append(states[texts.starts[texts.first_past]])
        for state, edges, rest in zip(states, texts.edges, texts.ends):
            self.edges[state] += [(chars, states[to]) for to, chars in edges.items()]
            if rest is not None:
                self.empty[self._add(rest, state)].append(end)
        return end


Sets = tuple[frozenset[int], ...]
"""The states of each automaton."""

State = tuple[Sets, int]
"""The states of each automaton, and how many characters were read, as far as it matters."""


class Texts:
    """The texts of `low` to `high` characters that all of some trees have, and none of others.

    The deterministic automaton of them all, whose states are made when they are asked for.
    """

    def __init__(
        self, fitting: list[nodes.Node], without: list[nodes.Node], low: int, high: int | None, limits: Limits
    ):
        conditions = [one for node in fitting for one in _conditions(node)] + [(node, False) for node in without]
        self.parts = [(nfa(node, limits), wanted) for node, wanted in conditions]
        self.low, self.high, self.limits = low, high, limits

        self.start: State = tuple(one.start for one, _ in self.parts), 0
        self._top = low if high is None else high
        self._known: dict[Sets, dict[Sets, CharSet]] = {}  # the same at every count
        self._lives: dict[State, bool] = {}
        self._fewest: dict[State, int] = {}

    def may_end(self, state: State) -> bool:
        """Whether a text may be over."""
        sets, count = state
        return count >= self.low and all((one.end in s) == wanted for (one, wanted), s in zip(self.parts, sets))

    def all_but(self, state: State) -> list[str] | None:
        """The texts that may not follow, if every other text may; else None."""
        sets, count = state
        if self.high is not None or count < self.low:
            return None
        if not all(one.takes_all(s) for (one, wanted), s in zip(self.parts, sets) if wanted):
            return None
        lists = [one.listed(s) for (one, wanted), s in zip(self.parts, sets) if s and not wanted]
        return None if None in lists else [text for texts in lists for text in texts or ()]

    def after(self, state: State) -> dict[State, CharSet]:
        """The states after one more character, with these characters; only states from which a text can be finished."""
        sets, count = state
        ways = self._ways(sets) if count != self.high else {}
        onward = {(to, min(count + 1, self._top)): chars for to, chars in ways.items()}
        return {to: chars for to, chars in onward.items() if self.lives(to)}

    def table(self, most: int) -> Table | None:
        """All states as a table; None if it has more than `most` cells (states by classes of characters).

        Only without a bound on the length.
        """
        # Every state that is reached, by number; a row has the state after each class of characters.
        read = {chars: None for one, _ in self.parts for edges in one.edges for chars, _ in edges}
        cells = charsets.partition([ANY, *read])
        moves = [one.moves([cell.ranges[0][0] for cell in cells]) for one, _ in self.parts]
        work, rows = [self.start], []
        numbers: dict[State | None, int] = {self.start: 0, None: -1}
        known: dict[Sets, list[Sets | None]] = {}
        for sets, count in work:
            if sets not in known:
                each = (one(states) for one, states in zip(moves, sets))
                known[sets] = [self._unless_ruled_out(to) for to in zip(*each)] if sets else [()] * len(cells)
            onward = [None if to is None else (to, min(count + 1, self.low)) for to in known[sets]]
            rows.append([numbers.setdefault(to, len(numbers) - 1) for to in onward])
            work += [to for to in dict.fromkeys(onward) if to is not None and numbers[to] >= len(work)]
            if len(work) * len(cells) > most:
                return None
        ends = [self.may_end(state) for state in work]
        starts = sorted([(0xD800, -1), *((low, i) for i, cell in enumerate(cells) for low, _ in cell.ranges)])
        # States from which no end can be reached are left out. The last column of a row is for characters escaped
        # without need, which may be of any class: they may come only where all classes lead to one state.
        alive = sorted(distances(rows, ends))
        renumbered = {state: number for number, state in enumerate(alive)}
        after = [[renumbered.get(to, -1) for to in rows[state]] for state in alive]
        return Table(
            tuple(low for low, _ in starts),
            tuple(i for _, i in starts),
            tuple((*row, row[0] if len({*row}) == 1 else -1) for row in after),
            tuple(ends[state] for state in alive),
        )

    def lives(self, state: State) -> bool:
        """Whether some text can be finished from there.

        Raises
        ------
        LimitError
            It takes more than `limits.schema` states to tell.
        """
        # First those that are nearest to an end by one tree alone: the search goes straight there, however many states
        # there are. It marks its whole way.
        if state in self._lives:
            return self._lives[state]
        before: dict[State, State | None] = {state: None}
        work = [(0, 0, state)]
        seen = 0
        while work:
            *_, at = heappop(work)
            seen += 1
            self.limits.check("schema", seen, "patterns and lengths that take too many states together")
            if self._lives.get(at) or self.may_end(at):
                way: State | None = at
                while way is not None:
                    self._lives[way], way = True, before[way]
                return True
            sets, count = at
            for then in self._ways(sets) if count != self.high else ():
                to = then, min(count + 1, self._top)
                if to in before or not self._lives.get(to, True):
                    continue
                least = self._least(to)
                if self.high is None or to[1] + least <= self.high:
                    before[to] = at
                    heappush(work, (least, len(before), to))
        self._lives.update(dict.fromkeys(before, False))
        return False

    def fewest(self, state: State) -> int:
        """The fewest characters from a state that lives to an end. Raises LimitError as `lives`."""
        # A* (Hart, Nilsson and Raphael, 1968); every state on the way is known then.
        before: dict[State, State | None] = {}
        work: list[tuple[int, int, int, int, State, State | None]] = [(0, 0, 0, 0, state, None)]
        order = counter(1)
        while state not in self._fewest:
            *_, read, at, last = heappop(work)
            if at in before:
                continue
            before[at] = last
            self.limits.check("schema", len(before), "patterns and lengths that take too many states together")
            if at in self._fewest or self.may_end(at):
                left = self._fewest.get(at, 0)
                way: State | None = at
                while way is not None:
                    self._fewest[way], way, left = left, before[way], left + 1
                break
            for to in self.after(at):
                least = self._fewest.get(to, self._least(to))
                heappush(work, (read + 1 + least, -read, next(order), read + 1, to, at))
        return self._fewest[state]

    def _least(self, state: State) -> int:
        """A bound on the fewest characters that may follow."""
        sets, count = state
        each = (min(one.distances[s] for s in states) for (one, wanted), states in zip(self.parts, sets) if wanted)
        return max(each, default=0) if count >= self.low else max(self.low - count, *each, 0)

    def _after(self, sets: Sets, character: int) -> Sets | None:
        """The sets after one more character; None where these plainly rule every text out."""
        return self._unless_ruled_out(tuple(one.step(s, character) for (one, _), s in zip(self.parts, sets)))

    def _unless_ruled_out(self, sets: Sets) -> Sets | None:
        for (one, wanted), states in zip(self.parts, sets):
            if not states if wanted else states and one.takes_all(states):
                return None
        return sets

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

    def accepts(self, text: str, state: State) -> bool:
        """Whether `text`, which is not too long, may follow and be the end."""
        sets, count = state
        return count + len(text) >= self.low and all(
            one.ends(s, text) == wanted for (one, wanted), s in zip(self.parts, sets)
        )

    def _ways(self, sets: Sets) -> dict[Sets, CharSet]:
        """The sets after one more character, with these characters, without sets that plainly rule every text out."""
        if sets not in self._known:
            found: dict[Sets, list[tuple[int, int]]] = {}
            for cell in partition(frozenset().union(*(one.sets(s) for (one, _), s in zip(self.parts, sets)))):
                to = self._after(sets, cell.ranges[0][0])
                if to is not None:
                    found.setdefault(to, []).extend(cell.ranges)
            self._known[sets] = {to: charset(ranges) for to, ranges in found.items()}
        return self._known[sets]


@lru_cache(maxsize=256)
def _conditions(node: nodes.Node) -> list[tuple[nodes.Node, bool]]:
    """Trees that a text must have, or must not have, to have the tree `node`: each lookahead at its start is one.

    Their automata are combined as a text is read, which takes far fewer states than one automaton of the whole tree.
    """
    items = node.items if isinstance(node, nodes.Seq) else (node,)
    looks_ahead = list(takewhile(lambda item: isinstance(item, Look) and item.behind is None, items))
    rest = nodes.repeat(nodes.Chars(ANY), 0, None)
    found = [(nodes.seq([look.node, rest]), look.holds) for look in looks_ahead if isinstance(look, Look)]
    return [(nodes.seq(items[len(found) :]) if found else node, True), *found]


@lru_cache(maxsize=256)
def nfa(node: nodes.Node, limits: Limits) -> Nfa:
    """The automaton of a tree, made once."""
    return Nfa(node, limits)


@lru_cache(maxsize=4096)
def partition(sets: frozenset[CharSet]) -> list[CharSet]:
    """Divide all characters into sets of those that the same ones of `sets` contain."""
    return charsets.partition([ANY, *sets])


def _bits(number: int) -> Iterator[int]:
    """Yield which bits are set."""
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest
