"""Elimination of lookaround: a regular expression that looks around, as automata that only read characters.

Three deterministic automata describe one expression: what it reads, what matters of the text before it (its *past*),
and what it asks of the text after it (its *condition*). `token_contexts` puts them where the expression stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from constrained.errors import GrammarError
from constrained.grammar import nodes
from constrained.grammar.alternating_automaton import AlternatingAutomaton, AlternatingState, Steps
from constrained.grammar.assertions import ANY, looks, walk_inside
from constrained.grammar.bdd import FALSE, TRUE
from constrained.grammar.charset import CharSet, partition, union
from constrained.grammar.nodes import EMPTY, NEVER, Node, Rule, RuleRef

_SHARED = 16
"""Larger expressions become a rule, because a token is often used in many places."""

_GROWTH = 4
"""The most nodes of an expression, per state and edge of its automaton."""

_END = -1
"""Stands for the end of the text among the states that an edge leads to."""

MET, NEVER_MET = 0, 1
"""The condition that every text meets, and the one that no text meets."""

T = TypeVar("T")

Edges = Mapping[int, CharSet]
"""Next state -> the characters that lead there."""


def eliminate_lookaround(node: Node, name: str, steps: Steps) -> tuple[Node, dict[str, Rule]]:
    """`node`, which reads the whole text, without `Look` nodes, and the rules that it calls, named after `name`.

    Raises
    ------
    GrammarError, LimitError
        As `LookingToken`.
    """
    return LookingToken(node, steps, alone=True).texts(name) if looks(node) else (node, {})


class LookingToken:
    """An expression with lookaround, as deterministic automata whose states are numbers.

    Parameters
    ----------
    node : Node
    steps : Steps
        Counts the work.
    alone : bool
        Whether the expression reads the whole text.

    Attributes
    ----------
    edges : list of dict
        For each state: next state -> the characters that lead there.
    ends : list of Node or None
        For each state: the rest to be read if nothing in it looks around; `EMPTY` if a text can end there.
    conditions : list of int
        For each state: the condition on the text after one that ends there.
    starts : list of int
        For each past: the state in which reading begins.
    pasts : list of dict
        For each past: next past -> the characters that lead there.
    first_past : int
        The past of the empty text.
    asks : list of dict
        For each condition: next condition -> the characters that lead there.
    met : list of bool
        For each condition: whether it is met at the end of the text.

    Raises
    ------
    GrammarError
        Too many consecutive parts may be empty.
    LimitError
        Building the automata takes too many steps.
    """

    def __init__(self, node: Node, steps: Steps, alone: bool = False):
        places = filter(None, map(nodes.place_of, walk_inside(node)))
        self._place = min(places, key=lambda place: place[0].line_column(place[1]), default=None)
        try:
            self._build(AlternatingAutomaton(node, steps), alone)
        except RecursionError:
            raise GrammarError(
                "too many consecutive parts beside lookaround may be empty",
                hint="write it as rules, or with fewer optional parts",
            ) from None

    @property
    def sees_beyond(self) -> bool:
        """Whether what it reads depends on the text around it."""
        return len(self.pasts) > 1 or any(self.conditions)

    def texts(self, name: str) -> tuple[Node, dict[str, Rule]]:
        """What it reads as a whole text, as a node, and the rules that the node calls."""
        return self.node_of(name, self.starts[self.first_past], self.ends, self.edges)

    def node_of(
        self, name: str, start: int, ends: Sequence[Node | None], edges: Sequence[Edges]
    ) -> tuple[Node, dict[str, Rule]]:
        """The texts of a deterministic automaton as a node, and rules, named after `name`, if it is large."""
        class_of, last, merged = _merge_equivalent(ends, edges)
        rules: dict[str, Rule] = {}
        node = _expression(class_of[start], last, merged)
        if node is None:
            node, rules = _row_of_rules(name, class_of[start], last, merged)
        elif len(nodes.walk(node)) > _SHARED:
            whole = f"{name}$all"
            node, rules = RuleRef(whole), {whole: Rule(whole, node)}
        for rule in rules.values():
            nodes.placed(rule.body, self._place)
        return nodes.placed(node, self._place), rules

    def _build(self, automaton: AlternatingAutomaton, alone: bool) -> None:
        # The states in which the expression is read: a start for each past, and what each leads to.
        pasts = [automaton.text_start] if alone else automaton.pasts()
        states: _Numbers[AlternatingState] = _Numbers(automaton)
        conditions: _Numbers[tuple[bool, AlternatingState]] = _Numbers(automaton)
        starts = [states[automaton.state(past, automaton.start)] for past in pasts]
        parts: list[tuple[Node | None, int]] = []
        edges: list[Edges] = []
        for state in states.known:  # grows during the loop
            plain, ended = automaton.plain(state), automaton.ended(state)
            # A state from which nothing looks around is not read on: its rest is one node, and asks for nothing.
            if alone:
                condition = MET if automaton.met_at_end(ended) else NEVER_MET
            else:
                condition = MET if plain is not None else 2 + conditions[True, ended]
            parts.append((plain, condition))
            ways = automaton.after(state) if plain is None else []
            edges.append(_joined_edges(((chars, then) for chars, then in ways if then[1] != FALSE), states.__getitem__))

        # The conditions on the text after the expression: one for each state in which it may end, and what each becomes
        # with every character that follows. 0 and 1 are MET and NEVER_MET, so that the others are numbered from 2.
        def number(then: AlternatingState) -> int:
            decided = {TRUE: MET, FALSE: NEVER_MET}.get(then[1])
            return 2 + conditions[False, then] if decided is None else decided

        met, asks = [True, False], [{MET: ANY}, {NEVER_MET: ANY}]
        for just_ended, state in conditions.known:  # grows during the loop
            met.append(automaton.met_at_end(state if just_ended else automaton.ended(state)))
            ways = automaton.after_end(state) if just_ended else automaton.after(state)
            asks.append(_joined_edges(ways, number))
        # Each automaton is made minimal once those are that it refers to: states by the conditions at their ends, pasts
        # by the states in which they begin.
        condition_of, self.met, self.asks = _merge_equivalent(met, asks)
        ends = [(n or EMPTY, condition_of[c]) if n or condition_of[c] != NEVER_MET else (None, MET) for n, c in parts]
        state_of, merged, self.edges = _merge_equivalent(ends, edges)
        self.ends, self.conditions = [end for end, _ in merged], [condition for _, condition in merged]
        numbers = {past: i for i, past in enumerate(pasts)}
        after = [{} if alone else _joined_edges(automaton.past_after(past), numbers.__getitem__) for past in pasts]
        past_of, self.starts, self.pasts = _merge_equivalent([state_of[start] for start in starts], after)
        self.first_past = past_of[numbers[automaton.text_start]]


class _Numbers(dict[T, int]):
    """Numbers keys in the order in which they are first looked up; `known` lists them."""

    def __init__(self, automaton: AlternatingAutomaton):
        self.count = automaton.count
        self.known: list[T] = []

    def __missing__(self, key: T) -> int:
        self.count(10)
        self[key] = number = len(self.known)
        self.known.append(key)
        return number


def _merge_equivalent(ends: Sequence[T], edges: Sequence[Edges]) -> tuple[list[int], list[T], list[dict[int, CharSet]]]:
    """Merge the states that read the same texts (Hopcroft, "An n log n algorithm for minimizing states", 1971).

    Parameters
    ----------
    ends : sequence
        For each state, what it means if a text ends there; only states with equal values are merged.
    edges : sequence of mapping

    Returns
    -------
    class_of : list of int
        The class of each state.
    ends, edges : list
        Those of each class.
    """
    sets = {chars: None for row in edges for chars in row.values()}
    cells = partition(list(sets))
    indices = {chars: [i for i, cell in enumerate(cells) if cell.ranges[0][0] in chars] for chars in sets}
    before: list[dict[int, list[int]]] = [{} for _ in cells]  # by class of characters: state -> those that lead to it
    for state, edge in enumerate(edges):
        for to, chars in edge.items():
            for i in indices[chars]:
                before[i].setdefault(to, []).append(state)
    class_of = _numbered(ends)
    members: list[set[int]] = [set() for _ in range(max(class_of, default=-1) + 1)]
    for state, number in enumerate(class_of):
        members[number].add(state)
    # What leads to a class with some characters is told apart from what doesn't. Of a class that comes apart, the
    # smaller part is enough, if the whole has been used.
    work = set(range(len(members)))
    while work:
        into = tuple(members[work.pop()])
        for leading in before:
            touched: dict[int, set[int]] = {}
            for state in (state for to in into for state in leading.get(to, ())):
                touched.setdefault(class_of[state], set()).add(state)
            for number, part in touched.items():
                whole = members[number]
                if len(part) == len(whole):
                    continue
                if number not in work and len(part) * 2 > len(whole):
                    part = whole - part
                members[number] -= part
                for state in part:
                    class_of[state] = len(members)
                work.add(len(members))
                members.append(part)
    class_of = _numbered(class_of)
    first: dict[int, int] = {}
    for state, number in enumerate(class_of):
        first.setdefault(number, state)
    states = list(first.values())
    ways = ([(chars, to) for to, chars in edges[state].items()] for state in states)
    return class_of, [ends[state] for state in states], [_joined_edges(each, class_of.__getitem__) for each in ways]


def _numbered(values: Sequence[object]) -> list[int]:
    """A number for each value, equal values having one, in the order in which they first stand there."""
    numbers: dict[object, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values]


def _joined_edges(ways: Iterable[tuple[CharSet, T]], number: Callable[[T], int]) -> dict[int, CharSet]:
    """Merge edges: return number of a target -> characters, from (characters, target) pairs."""
    out: dict[int, list[CharSet]] = {}
    for chars, then in ways:
        out.setdefault(number(then), []).append(chars)
    return {to: every[0] if len(every) == 1 else union(every) for to, every in out.items()}


def _expression(start: int, ends: Sequence[Node | None], edges: Sequence[Edges]) -> Node | None:
    """The texts from state `start` to an end as one node, by state elimination; None if it grows too large.

    `ends` and `edges` are those of `_merge_equivalent`. An expression is wanted because our byte automaton reads a
    repeat of characters many times faster than rules that call each other. (Brzozowski and McCluskey, "Signal flow
    graph techniques for sequential circuit state diagrams", 1963.)
    """
    most = _GROWTH * (len(edges) + sum(map(len, edges)))
    ways: dict[int, dict[int, Node]] = {
        s: {t: nodes.one_of(chars) for t, chars in row.items()} for s, row in enumerate(edges)
    }
    for state, end in enumerate(ends):
        if end is not None:
            ways[state][_END] = end
    # An edge has an expression. A state is taken out by joining each way into it, its loop, and each way out of it; the
    # one with the fewest such pairs first, as the expression grows by a copy for each.
    while len(ways) > 1:
        before = {s: [p for p in ways if p != s and s in ways[p]] for s in ways if s != start}
        state = min(before, key=lambda s: (len(before[s]) * len(ways[s]), s))
        onward = ways.pop(state)
        loop = nodes.repeat(onward.pop(state, NEVER), 0, None)
        for source in before[state]:
            first = ways[source].pop(state)
            for target, rest in onward.items():
                way = nodes.seq([first, loop, rest])
                ways[source][target] = nodes.alt([ways[source].get(target, NEVER), way])
        if sum(len(nodes.walk(node)) for row in ways.values() for node in row.values()) > most:
            return None
    row = ways[start]
    return nodes.seq([nodes.repeat(row.get(start, NEVER), 0, None), row.get(_END, NEVER)])


def _row_of_rules(
    name: str, start: int, ends: Sequence[Node | None], edges: Sequence[Edges]
) -> tuple[Node, dict[str, Rule]]:
    """An automaton as a node and rules, one for each state that isn't in the middle of a single path."""
    users = [0] * len(edges)
    for row in edges:
        for target in row:
            users[target] += 1
    users[start] += 1

    def inline(state: int) -> bool:
        single = len(edges[state]) + (ends[state] is not None) <= 1
        return not edges[state] or (users[state] == 1 and single and state not in edges[state])

    def path(state: int) -> Node:
        """What is read from `state` on: a row of characters, then a call or the rest at the end."""
        items: list[Node] = []
        while inline(state) and edges[state]:
            ((state, chars),) = edges[state].items()
            items.append(nodes.one_of(chars))
        return nodes.seq([*items, (ends[state] or NEVER) if inline(state) else RuleRef(rule_name(state))])

    def body(state: int) -> Node:
        loop = edges[state].get(state)
        ways = [nodes.seq([nodes.one_of(chars), path(then)]) for then, chars in edges[state].items() if then != state]
        after = nodes.alt([*ways, ends[state] or NEVER])
        return nodes.seq([nodes.repeat(nodes.one_of(loop), 0, None), after]) if loop else after

    def rule_name(state: int) -> str:
        return f"{name}${state}"

    # A state gets a rule of its own if several edges lead to it, or several lead on; paths between them are sequences.
    own_rule = [state for state in range(len(edges)) if not inline(state)]
    rules = {rule_name(s): Rule(rule_name(s), body(s)) for s in own_rule if s != start}
    if inline(start):
        return path(start), rules
    if users[start] == 1:  # no edge leads back to it
        return body(start), rules
    rules[rule_name(start)] = Rule(rule_name(start), body(start))
    return RuleRef(rule_name(start)), rules
