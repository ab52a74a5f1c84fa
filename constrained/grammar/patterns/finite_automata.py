"""Nondeterministic finite automata of trees of characters, which tell whether a text is in the language of one."""

from __future__ import annotations

from functools import cached_property, lru_cache

from constrained.grammar import charset as charsets
from constrained.grammar import nodes
from constrained.grammar.alternating_automaton import Steps
from constrained.grammar.assertions import looks
from constrained.grammar.charset import MAX_CODE_POINT, CharSet, charset
from constrained.grammar.lookaround import LookingToken
from constrained.limits import Limits

ANY = charset([(0, MAX_CODE_POINT)])
"""Every character."""


@lru_cache(maxsize=1024)
def _only(character: str) -> CharSet:
    return charset([(ord(character),) * 2])


class Nfa:
    """The nondeterministic automaton of a tree of characters, as `regex_node` gives it.

    It is made from the end, and states that the same texts follow, as far as that shows, are one: alternatives that all
    end with any text share what reads it.
    """

    def __init__(self, node: nodes.Node, limits: Limits):
        self.limits = limits
        self.edges: list[list[tuple[CharSet, int]]] = []
        self.empty: list[list[int]] = []
        self._steps: dict[tuple[frozenset[int], int], frozenset[int]] = {}
        self._known: dict[tuple, int] = {}
        self._looking = Steps(limits)
        self.end = self._state()
        self.begin = self._alternatives(node)
        del self._known

    @cached_property
    def start(self) -> frozenset[int]:
        return self.closure({self.begin})

    def step(self, states: frozenset[int], character: int) -> frozenset[int]:
        """The states after one more character."""
        key = states, character
        found = self._steps.get(key)
        if found is None:
            found = self.closure({to for s in states for chars, to in self.edges[s] if character in chars})
            self._steps[key] = found
        return found

    def accepts(self, text: str) -> bool:
        """Whether the whole text is in the language."""
        states, steps, universal = self.start, self._steps, self.universal
        for character in map(ord, text):
            if not states or not universal.isdisjoint(states):  # nothing changes any more
                return bool(states)
            after = steps.get((states, character))
            states = self.step(states, character) if after is None else after
        return self.end in states

    @cached_property
    def universal(self) -> frozenset[int]:
        """States from which every text leads to the end, as far as single states show it."""
        # The largest set of states that may end, and from which any character leads back into the set. States are
        # numbered from the end, so that a chain of them is mostly gone after one pass.
        closures = {s: self.closure({s}) for s, empty in enumerate(self.empty) if empty}
        closures[self.end] = frozenset([self.end])
        found = {s for s, closure in closures.items() if self.end in closure}
        before = -1
        while before != len(found):
            before = len(found)
            for s in sorted(found):
                ways = (to for one in closures[s] for chars, to in self.edges[one] if chars is ANY)
                if not any(to in found for to in ways):
                    found.remove(s)
        return frozenset(found)

    @cached_property
    def alive(self) -> set[int]:
        """States from which the end is reached."""
        found, before = {self.end}, 0
        while before < len(found):
            before = len(found)
            for state, (edges, empty) in enumerate(zip(self.edges, self.empty)):
                if not found.isdisjoint(empty) or any(to in found for chars, to in edges if chars):
                    found.add(state)
        return found

    def _state(self) -> int:
        if len(self.edges) > self.limits.schema:
            self.limits.check("schema", len(self.edges), "a pattern with too many states", "use smaller repeats")
        self.edges.append([])
        self.empty.append([])
        return len(self.edges) - 1

    def closure(self, states: set[int]) -> frozenset[int]:
        """Some states and those that no character leads to from there."""
        work = list(states)
        while work:
            for to in self.empty[work.pop()]:
                if to not in states:
                    states.add(to)
                    work.append(to)
        return frozenset(states)

    def _alternatives(self, node: nodes.Node) -> int:
        """The state from which a whole text is read."""
        if isinstance(node, nodes.Alt):
            return self._any_of([self._alternatives(item) for item in node.items])
        return self._looking_around(node) if looks(node) else self._add(node, self.end)

    def _add(self, node: nodes.Node, to: int) -> int:
        """The state from which `node` is read up to state `to`."""
        if isinstance(node, nodes.LiteralText):
            for character in reversed(node.data.decode()):
                to = self._edge(_only(character), to)
            return to
        if isinstance(node, nodes.Chars):
            return self._edge(node.chars, to)
        if isinstance(node, nodes.Seq):
            for item in reversed(node.items):
                to = self._add(item, to)
            return to
        if isinstance(node, nodes.Repeat):
            return self._repeat(node, to)
        if isinstance(node, nodes.Choices):
            return self._choices([value.decode() for value in node.values], to)
        assert isinstance(node, nodes.Alt)
        return self._any_of([self._add(item, to) for item in node.items])

    def _edge(self, chars: CharSet, to: int) -> int:
        return self._shared((chars, to), [(chars, to)], [])

    def _any_of(self, states: list[int]) -> int:
        once = list(dict.fromkeys(states))
        return once[0] if len(once) == 1 else self._shared(tuple(sorted(once)), [], once)

    def _shared(self, key: tuple, edges: list[tuple[CharSet, int]], empty: list[int]) -> int:
        """The state with these ways on, made once."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._state()
            self.edges[found], self.empty[found] = edges, empty
        return found

    def _choices(self, texts: list[str], to: int) -> int:
        """The state from which some texts are read: equal beginnings once, and equal ends."""
        # A node of the tree of beginnings: its children by character, None standing for the end.
        root: dict = {}
        for text in texts:
            at = root
            for character in text:
                at = at.setdefault(character, {})
            at[None] = {}
        work: list[dict] = [root]
        for at in work:  # which grows meanwhile
            work += [below for character, below in at.items() if character is not None]
        made: dict[int, int] = {}
        for at in reversed(work):
            ways = tuple((_only(c), made[id(below)]) for c, below in at.items() if c is not None)
            if ways or None not in at:
                made[id(at)] = self._shared(("choices", ways, None in at, to), [*ways], [to] * (None in at))
            else:
                made[id(at)] = to
        return made[id(root)]

    def _repeat(self, node: nodes.Repeat, to: int) -> int:
        if node.high is None:
            item = node.item.chars if isinstance(node.item, nodes.Chars) else node.item
            key = "loop", item, to
            if key not in self._known:
                loop = self._known[key] = self._state()
                self.empty[loop] = [to, self._add(node.item, loop)]
            to = self._known[key]
        else:
            end = to
            for _ in range(node.high - node.low):
                to = self._any_of([self._add(node.item, to), end])
        for _ in range(node.low):
            to = self._add(node.item, to)
        return to

    def _looking_around(self, node: nodes.Node) -> int:
        """The state from which an expression that looks around is read, by the deterministic automaton of its texts."""
        texts = LookingToken(node, self._looking, alone=True)
        states = [self._state() for _ in texts.edges]
        for state, edges, rest in zip(states, texts.edges, texts.ends):
            self.edges[state] = [(chars, states[to]) for to, chars in edges.items()]
            self.empty[state] = [] if rest is None else [self._add(rest, self.end)]
        return states[texts.starts[texts.first_past]]


@lru_cache(maxsize=256)
def nfa(node: nodes.Node, limits: Limits) -> Nfa:
    """The automaton of a tree, made once."""
    return Nfa(node, limits)


def few_texts(node: nodes.Node, most: int, limits: Limits) -> list[str] | None:
    """All texts of a tree of characters, sorted; None if there may be more than `most`."""
    automaton = nfa(node, limits)
    found: list[str] = []
    level, seen = [("", automaton.start)], 0
    while level:
        found += [text for text, states in level if automaton.end in states]
        seen += len(level)
        if len(found) > most or seen > 20 * most:
            return None
        longer: list[tuple[str, frozenset[int]]] = []
        for text, states in level:
            ways = {chars for state in states for chars, to in automaton.edges[state] if to in automaton.alive}
            ranges = charsets.union(ways).ranges
            if len(longer) + sum(high - low + 1 for low, high in ranges) > most:
                return None
            codes = [code for low, high in ranges for code in range(low, high + 1)]
            longer += [(text + chr(code), automaton.step(states, code)) for code in codes]
        level = longer
    return sorted(found)
