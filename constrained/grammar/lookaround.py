"""Regular expressions that look around, as rules that read characters and nothing else.

Exact where what they see outside their own text can't change what they read there;
refused with an example where it can.
"""

from __future__ import annotations

from dataclasses import dataclass

from constrained.errors import GrammarError
from constrained.grammar import nodes
from constrained.grammar.alternating_automaton import AlternatingAutomaton, Steps
from constrained.grammar.assertions import ANY, looks, parts
from constrained.grammar.bdd import FALSE, TRUE
from constrained.grammar.charset import CharSet, charset
from constrained.grammar.nodes import EMPTY, NEVER, Call, Chars, Node, Rule


@dataclass(frozen=True)
class Seen:
    """What may stand beside a piece of text: a character of `chars`, or, with `edge`, no text at all."""

    chars: CharSet = charset([])
    edge: bool = False

    def __or__(self, other: Seen) -> Seen:
        return Seen(self.chars | other.chars, self.edge or other.edge)

    def __bool__(self) -> bool:
        return self.edge or bool(self.chars)


EDGE = Seen(edge=True)
"""Nothing: the text begins, or ends, there."""

ANYTHING = Seen(ANY, True)


class Undecided(Exception):
    """Whether a text is read depends on what stands beside it; `str` says how."""


def settle(node: Node, name: str, steps: Steps) -> tuple[Node, dict[str, Rule]]:
    """`node`, which is the whole text, without `Look` nodes, and the rules that it calls, named after `name`.

    Raises
    ------
    LimitError
        It takes more `steps` than are allowed.
    """
    return Settled(node, steps).among(name, EDGE, EDGE) if looks(node) else (node, {})


class Settled:
    """One expression that looks around, among whatever neighbours."""

    def __init__(self, node: Node, steps: Steps):
        self.owner = AlternatingAutomaton(node, steps)
        places = (place for part in parts(node) if (place := getattr(part, "place", None)))
        self.place = min(places, key=lambda place: (place.line, place.column), default=None)
        self.made: dict[tuple, Node] = {}  # by what can be told apart of the neighbours

    def among(self, name: str, before: Seen, after: Seen) -> tuple[Node, dict[str, Rule]]:
        """It without `Look` nodes, between `before` and `after`, and the rules it calls that were not made yet.

        Raises
        ------
        Undecided
            What stands `before` or `after` it changes what it reads.
        LimitError
            Telling what it reads takes too many steps.
        """
        try:
            key = tuple((seen.edge, self.owner.classes(seen.chars)) for seen in (before, after))
            if key in self.made:
                return self.made[key], {}
            self.made[key], rules = _States(self.owner, before, after).rules(name)
        except RecursionError:
            raise GrammarError(
                "too much may be empty in a row beside lookaround",
                hint="write it as rules, or with fewer optional parts",
            ) from None
        for rule in rules.values():
            nodes.placed(rule.body, self.place)
        return nodes.placed(self.made[key], self.place), rules


def _starts(owner: AlternatingAutomaton, before: Seen) -> list[tuple[str, tuple]]:
    """(an example of what stands before, the state before the first character)."""
    out = {owner.state(owner.text_start, owner.start): ""} if before.edge else {}
    for past in owner.pasts() if before.chars else ():
        for chars, then in owner.past_after(past):
            if chars.meets(before.chars):
                out.setdefault(owner.state(then, owner.start), (chars & before.chars).shortest().decode())
    return [(example, state) for state, example in out.items()]


class _States:
    """The deterministic automaton of one expression among its neighbours.

    Its states are sets of `AlternatingAutomaton` states, one for each different past before the expression that still matters.
    """

    def __init__(self, owner: AlternatingAutomaton, before: Seen, after: Seen):
        self.owner, self.starts, self.after = owner, _starts(owner, before), after
        self.verdicts: dict[tuple, frozenset[bool]] = {}
        self.numbers: dict[frozenset, int] = {}
        self.sets: list[frozenset] = []
        self.plain: list[Node | None] = []
        self.accepts: list[bool] = []
        self.ways: list[dict[int, CharSet]] = []
        self.start = self.number(frozenset(state for _, state in self.starts))
        self.came_by: list[tuple[int, str]] = [(0, "")]
        at = 0
        while at < len(self.sets):
            self.explore(at)
            at += 1

    def number(self, states: frozenset) -> int:
        found = self.numbers.get(states)
        if found is None:
            self.owner.count(10)
            found = self.numbers[states] = len(self.sets)
            self.sets.append(states)
            self.plain.append(self.owner.plain(next(iter(states))) if len(states) == 1 else None)
        return found

    def explore(self, at: int) -> None:
        """Find out about state `at`: whether a text may end there, and where the next characters lead."""
        self.ways.append({})
        if self.plain[at] is not None:
            self.accepts.append(False)
            return
        states = sorted(self.sets[at])
        found = frozenset().union(*(v for s in states for v in self.may_end(s).values()))
        if len(found) > 1:
            raise Undecided(self.example(at))
        self.accepts.append(found == {True})
        rows = [self.owner.after(state) for state in states]
        for chars in self.owner.partition(frozenset(c for row in rows for c, _ in row)):
            one = chars.ranges[0][0]
            then = frozenset(next(s for c, s in row if one in c) for row in rows)
            if all(formula == FALSE for _, formula in then):
                continue
            target = self.number(then)
            if target == len(self.came_by):
                self.came_by.append((at, chars.shortest().decode()))
            self.ways[at][target] = self.ways[at].get(target, charset([])) | chars

    def may_end(self, state: tuple) -> dict[str, frozenset[bool]]:
        """Whether the expression may end here, by an example of what follows; both where more must be known."""
        if state not in self.verdicts:
            ended = self.owner.ended(state)
            out = {"": frozenset([self.owner.met_at_end(ended)])} if self.after.edge else {}
            for chars, then in self.owner.after_end(ended) if self.after.chars else ():
                if chars.meets(self.after.chars):
                    out[(chars & self.after.chars).shortest().decode()] = self.outcomes(then)
            self.verdicts[state] = out
        return self.verdicts[state]

    def outcomes(self, state: tuple) -> frozenset[bool]:
        """Whether `state` is met by the texts that may follow: some are, some aren't."""
        out, seen, work = set(), {state}, [state]
        while work and len(out) < 2:
            top = work.pop()
            if top[1] in (FALSE, TRUE):
                out.add(top[1] == TRUE)
                continue
            out.add(self.owner.met_at_end(self.owner.ended(top)))
            for _, then in self.owner.after(top):
                if then not in seen:
                    seen.add(then)
                    work.append(then)
        return frozenset(out)

    def text(self, at: int) -> str:
        """A text that leads to state `at`."""
        out = ""
        while at != self.start:
            at, char = self.came_by[at]
            out = char + out
        return out

    def example(self, at: int) -> str:
        """How what stands beside the text that leads to `at` decides whether it is read."""
        text = self.text(at)
        seen: dict[bool, tuple[str, str]] = {}
        for before, state in self.starts:
            for char in text:
                state = next(then for chars, then in self.owner.after(state) if ord(char) in chars)
            verdicts = self.may_end(state)
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
        """The automaton as a node, with a rule for every state that a chain of characters does not lead through."""
        if not any(self.accepts) and all(node is None for node in self.plain):
            return NEVER, {}
        users = [0] * len(self.sets)
        for ways in self.ways:
            for target in ways:
                users[target] += 1
        users[self.start] += 1

        def inline(at: int) -> bool:
            single = len(self.ways[at]) + self.accepts[at] <= 1
            return self.plain[at] is not None or (users[at] == 1 and single and at not in self.ways[at])

        def lead(at: int) -> Node:
            items = []
            while inline(at) and self.plain[at] is None and self.ways[at]:
                ((target, chars),) = self.ways[at].items()
                items.append(_reading(chars))
                at = target
            if self.plain[at] is not None:
                items.append(self.plain[at])
            elif not inline(at):
                items.append(Call(rule_name(at)))
            elif not self.accepts[at]:
                items.append(NEVER)
            return nodes.seq(items)

        def body(at: int) -> Node:
            again = self.ways[at].get(at)
            ways = [
                nodes.seq([_reading(chars), lead(target)]) for target, chars in self.ways[at].items() if target != at
            ]
            here = nodes.alt([*ways, EMPTY] if self.accepts[at] else ways)
            return nodes.seq([nodes.repeat(_reading(again), 0, None), here]) if again else here

        def rule_name(at: int) -> str:
            return f"{name}${at}"

        made = [at for at in range(len(self.sets)) if not inline(at)]
        rules = {rule_name(at): Rule(rule_name(at), body(at)) for at in made if at != self.start}
        if inline(self.start):
            return lead(self.start), rules
        if users[self.start] == 1:  # nothing comes back to it
            return body(self.start), rules
        rules[rule_name(self.start)] = Rule(rule_name(self.start), body(self.start))
        return Call(rule_name(self.start)), rules


def _reading(chars: CharSet) -> Node:
    low, high = chars.ranges[0]
    return nodes.literal(chr(low)) if len(chars.ranges) == 1 and low == high else Chars(chars)


def _shown(text: str, none: str) -> str:
    return repr(text) if text else none
