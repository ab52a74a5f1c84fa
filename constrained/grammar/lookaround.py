"""Elimination of lookaround: a regular expression that looks around, as rules that read characters and nothing else.

Exact where what stands around the expression can't change what is read there; refused with an
example where it can.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from constrained.errors import GrammarError
from constrained.grammar import nodes
from constrained.grammar.alternating_automaton import AlternatingAutomaton, State, Steps
from constrained.grammar.assertions import ANY, looks, parts
from constrained.grammar.bdd import FALSE, TRUE
from constrained.grammar.charset import CharSet, charset
from constrained.grammar.nodes import EMPTY, NEVER, Call, Node, Rule
from constrained.grammar.state_elimination import expression, merge_equivalent, one_of


@dataclass(frozen=True)
class Neighbours:
    """What can stand beside a piece of text: a character of `chars`, or, with `edge`, no text at all."""

    chars: CharSet = charset([])  # noqa: RUF009  # immutable and interned
    edge: bool = False

    def __or__(self, other: Neighbours) -> Neighbours:
        return Neighbours(self.chars | other.chars, self.edge or other.edge)


EDGE = Neighbours(edge=True)
"""Nothing: the text begins, or ends, there."""

ANYTHING = Neighbours(ANY, True)


class Undecided(Exception):
    """Whether a text is read depends on what stands beside it; `str` says how."""


def eliminate_lookaround(node: Node, name: str, steps: Steps) -> tuple[Node, dict[str, Rule]]:
    """Return `node`, which is the whole text, without `Look` nodes, and the rules that it calls, named after `name`.

    Raises
    ------
    LimitError
        It takes more `steps` than are allowed.
    """
    return Resolver(node, steps).between(name, EDGE, EDGE) if looks(node) else (node, {})


class Resolver:
    """One expression that looks around, resolved for any neighbours."""

    def __init__(self, node: Node, steps: Steps):
        self.automaton = AlternatingAutomaton(node, steps)
        spans = (span for part in parts(node) if (span := getattr(part, "span", None)))
        self.span = min(spans, key=lambda span: (span.line, span.column), default=None)
        self.made: dict[tuple, Node] = {}  # by what the expression can tell apart of its neighbours

    def between(self, name: str, before: Neighbours, after: Neighbours) -> tuple[Node, dict[str, Rule]]:
        """Return the expression without `Look` nodes, between its neighbours, and the rules that were not made before.

        Raises
        ------
        Undecided
            What stands `before` or `after` it changes what it reads.
        LimitError
            Telling what it reads takes too many steps.
        """
        try:
            key = tuple((seen.edge, self.automaton.classes(seen.chars)) for seen in (before, after))
            if key in self.made:
                return self.made[key], {}
            self.made[key], rules = _Determinization(self.automaton, before, after).rules(name)
        except RecursionError:
            raise GrammarError(
                "too much may be empty in a row beside lookaround",
                hint="write it as rules, or with fewer optional parts",
            ) from None
        for rule in rules.values():
            nodes.with_span(rule.body, self.span)
        return nodes.with_span(self.made[key], self.span), rules


def _start_states(automaton: AlternatingAutomaton, before: Neighbours) -> list[tuple[str, State]]:
    """Return (an example of what stands before, the state before the first character)."""
    examples = {automaton.state(automaton.text_start, automaton.start): ""} if before.edge else {}
    for past in automaton.pasts() if before.chars else ():
        for chars, then in automaton.past_after(past):
            if chars.meets(before.chars):
                example = (chars & before.chars).shortest().decode()
                examples.setdefault(automaton.state(then, automaton.start), example)
    return [(example, state) for state, example in examples.items()]


class _Determinization:
    """The deterministic automaton of one expression between its neighbours, by the subset construction.

    Its states are sets of states of the alternating automaton: one for each different past before the
    expression that still matters.
    """

    def __init__(self, automaton: AlternatingAutomaton, before: Neighbours, after: Neighbours):
        self.automaton, self.starts, self.after = automaton, _start_states(automaton, before), after
        self.verdicts: dict[State, dict[str, frozenset[bool]]] = {}
        self.numbers: dict[frozenset[State], int] = {}
        # per state: its set, the plain node that is still to be read if it is one, whether a text can end, the edges
        self.sets: list[frozenset[State]] = []
        self.plain: list[Node | None] = []
        self.accepts: list[bool] = []
        self.edges: list[dict[int, CharSet]] = []
        self.start = self.number(frozenset(state for _, state in self.starts))
        self.reached_from: list[tuple[int, str]] = [(0, "")]
        for states in self.sets:  # grows on the way
            self.explore(len(self.edges), sorted(states))

    def number(self, states: frozenset[State]) -> int:
        found = self.numbers.get(states)
        if found is None:
            self.automaton.count(10)
            found = self.numbers[states] = len(self.sets)
            self.sets.append(states)
            self.plain.append(self.automaton.plain(next(iter(states))) if len(states) == 1 else None)
        return found

    def explore(self, number: int, states: list[State]) -> None:
        """Find whether a text can end in a state, and where the next characters lead."""
        edges: dict[int, CharSet] = {}
        self.edges.append(edges)
        if self.plain[number] is not None:
            self.accepts.append(False)
            return
        found = frozenset().union(*(v for s in states for v in self.can_end(s).values()))
        if len(found) > 1:
            raise Undecided(self.example(number))
        self.accepts.append(found == {True})
        rows = [self.automaton.after(state) for state in states]
        for chars in self.automaton.partition(frozenset(c for row in rows for c, _ in row)):
            one = chars.ranges[0][0]
            then = frozenset(next(s for c, s in row if one in c) for row in rows)
            if all(formula == FALSE for _, formula in then):
                continue
            target = self.number(then)
            if target == len(self.reached_from):
                self.reached_from.append((number, chars.shortest().decode()))
            edges[target] = edges.get(target, charset([])) | chars

    def can_end(self, state: State) -> Mapping[str, frozenset[bool]]:
        """Return whether the expression can end here, by an example of what follows; both where that doesn't decide."""
        if state not in self.verdicts:
            ended = self.automaton.ended(state)
            out = {"": frozenset([self.automaton.met_at_end(ended)])} if self.after.edge else {}
            for chars, then in self.automaton.after_end(ended) if self.after.chars else ():
                if chars.meets(self.after.chars):
                    out[(chars & self.after.chars).shortest().decode()] = self.outcomes(then)
            self.verdicts[state] = out
        return self.verdicts[state]

    def outcomes(self, state: State) -> frozenset[bool]:
        """Return whether the texts that can follow meet `state`: True if some do, False if some don't."""
        out: set[bool] = set()
        seen, work = {state}, [state]
        while work and len(out) < 2:
            top = work.pop()
            if top[1] in (FALSE, TRUE):
                out.add(top[1] == TRUE)
                continue
            out.add(self.automaton.met_at_end(self.automaton.ended(top)))
            for _, then in self.automaton.after(top):
                if then not in seen:
                    seen.add(then)
                    work.append(then)
        return frozenset(out)

    def text(self, number: int) -> str:
        """Return a text that leads to a state."""
        out = ""
        while number != self.start:
            number, char = self.reached_from[number]
            out = char + out
        return out

    def example(self, number: int) -> str:
        """Say how what stands beside the text that leads to a state decides whether it is read."""
        text = self.text(number)
        seen: dict[bool, tuple[str, str]] = {}
        for before, state in self.starts:
            for char in text:
                state = next(then for chars, then in self.automaton.after(state) if ord(char) in chars)
            verdicts = self.can_end(state)
            for after, found in verdicts.items():
                if len(found) > 1:
                    return f"{text!r} is read or not by more than the one character {after!r} behind it"
                seen.setdefault(next(iter(found)), (before, after))
            if len({f for v in verdicts.values() for f in v}) > 1:
                yes, no = (next(a for a, f in verdicts.items() if f == {want}) for want in (True, False))
                return f"{text!r} is read before {_shown(yes, 'the end')}, not before {_shown(no, 'the end')}"
        (yes, _), (no, _) = seen[True], seen[False]
        if yes == no:
            return f"{text!r} is read or not by more than the one character {yes!r} before it"
        return f"{text!r} is read after {_shown(yes, 'the start')}, not after {_shown(no, 'the start')}"

    def rules(self, name: str) -> tuple[Node, dict[str, Rule]]:
        """Return the automaton as a node, and rules for its states if it is too large to be one expression."""
        if not any(self.accepts) and all(node is None for node in self.plain):
            return NEVER, {}
        ends = [EMPTY if accepts else node for accepts, node in zip(self.accepts, self.plain)]
        class_of, edges = merge_equivalent(ends, self.edges)
        whole = expression(class_of[self.start], [ends[class_of.index(c)] for c in range(len(edges))], edges)
        return self.row_of_rules(name) if whole is None else (whole, {})

    def row_of_rules(self, name: str) -> tuple[Node, dict[str, Rule]]:
        """Return the automaton as a node and rules: one for every state but those in the middle of a single path."""
        users = [0] * len(self.sets)
        for edges in self.edges:
            for target in edges:
                users[target] += 1
        users[self.start] += 1

        def inline(state: int) -> bool:
            single = len(self.edges[state]) + self.accepts[state] <= 1
            return self.plain[state] is not None or (users[state] == 1 and single and state not in self.edges[state])

        def path(state: int) -> Node:
            """Everything from `state` on: a row of characters, then a call or a plain node."""
            items: list[Node] = []
            while inline(state) and self.plain[state] is None and self.edges[state]:
                ((target, chars),) = self.edges[state].items()
                items.append(one_of(chars))
                state = target
            plain = self.plain[state]
            if plain is not None:
                items.append(plain)
            elif not inline(state):
                items.append(Call(rule_name(state)))
            elif not self.accepts[state]:
                items.append(NEVER)
            return nodes.seq(items)

        def body(state: int) -> Node:
            loop = self.edges[state].get(state)
            edges = [(target, chars) for target, chars in self.edges[state].items() if target != state]
            ways = [nodes.seq([one_of(chars), path(target)]) for target, chars in edges]
            after = nodes.alt([*ways, EMPTY] if self.accepts[state] else ways)
            return nodes.seq([nodes.repeat(one_of(loop), 0, None), after]) if loop else after

        def rule_name(state: int) -> str:
            return f"{name}${state}"

        own_rule = [state for state in range(len(self.sets)) if not inline(state)]
        rules = {rule_name(s): Rule(rule_name(s), body(s)) for s in own_rule if s != self.start}
        if inline(self.start):
            return path(self.start), rules
        if users[self.start] == 1:  # nothing leads back to it
            return body(self.start), rules
        rules[rule_name(self.start)] = Rule(rule_name(self.start), body(self.start))
        return Call(rule_name(self.start)), rules


def _shown(text: str, none: str) -> str:
    return repr(text) if text else none
