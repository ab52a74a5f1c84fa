"""How far the end can be, read off the grammar: a bound no position exceeds.

Lets a budget that is still larger cost nothing. Bounds are in bytes: with single-byte
tokens, as many bytes are at most as many tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from constrained.automaton import positions as p
from constrained.automaton.automaton import State
from constrained.automaton.graph_stack import forks_below
from constrained.automaton.liveness import has_gaps
from constrained.grammar import nodes as n
from constrained.grammar.grammar import STEP, Grammar, grammars_in, texts_in
from constrained.grammar.left_recursion import recursive_groups, references

UNBOUNDED = float("inf")
_MAX_ROUNDS = 64


class Distance:
    """Bounds on the fewest bytes to the end, for the states of one grammar's automaton.

    Parameters
    ----------
    lower : bool
        Bound the fewest bytes from below instead; then only :meth:`of_position` has a meaning.
    """

    def __init__(self, lower: bool = False):
        self._lower = lower
        self._bounds: dict[int, _Bounds] = {}
        self._chains: dict[p.Frame | None, tuple[float, float]] = {None: (0, 0)}
        self._nodes: dict[n.Node, tuple[float, float]] = {}

    def farthest(self, state: State) -> float:
        """A bound on the fewest bytes to the end from `state` and from every state after it that nests no deeper."""
        return max((self._far(q) for q in state.positions), default=0)

    def nesting(self, grammar: Grammar) -> tuple[float, frozenset[int]]:
        """How much further one more level of nesting can be, and bytes that begin one (see `nesting`)."""
        deepest, begins = 0, frozenset()
        for one in grammar.nested():
            bounds = self._of_grammar(one)
            rules = one.rules.values() if bounds.nests else ()
            calls = [node for r in rules for node in n.walk(r.body) if id(node) in bounds.nests]
            bounds.settle(calls)
            deepest = max([deepest, *(bounds.rules[call.rule][1] for call in calls)])
            begins |= bounds.begins
        return deepest, begins

    def nearest(self, state: State) -> float:
        """A bound on the fewest bytes to the end from `state`; some byte makes it at least one less."""
        return min((self.of_position(q) for q in state.positions), default=0)

    def of_position(self, q: p.Position) -> float:
        """A bound on the fewest bytes to the end from `q`."""
        if isinstance(q, (p.Accept, p.StepEnd)):
            return 0
        short = self.of_rest(q.rest)[0]
        if isinstance(q, p.InLiteral):
            return len(q.data) - q.at + short
        if isinstance(q, p.InChoices):
            pick = min if self._lower else max
            return pick(map(len, q.values[q.low : q.high])) - q.depth + short
        each = len(q.chars.shortest())
        if q.inside is None:
            return each * max(q.low, 1) + short
        return q.inside[0] + each * max(q.low - 1, 0) + short

    def _far(self, q: p.Position) -> float:
        if isinstance(q, (p.Accept, p.StepEnd)):
            return 0
        short, far = self.of_rest(q.rest)
        if isinstance(q, p.InLiteral):
            return max(far, len(q.data) - q.at + short)
        if isinstance(q, p.InChoices):
            return max(far, max(map(len, q.values[q.low : q.high])) - q.depth + short)
        return max(far, 4 * max(q.low, 1) + short)

    def of_rest(self, frame: p.Frame | None) -> tuple[float, float]:
        """Bounds on the fewest bytes: from `frame` to the end, and from anywhere after it."""
        chain = []
        while frame not in self._chains:
            if frame.node is None:
                for fork in forks_below(frame, self._chains):
                    shorts, fars = zip(*map(self.of_rest, fork.ways))
                    self._chains[fork] = min(shorts), max(fars)
                break
            chain.append(frame)
            frame = frame.next
        found = self._chains[frame]
        for frame in reversed(chain):
            node, grammar = frame.node, frame.env.grammar
            if isinstance(node, n.Slot) and node.name == STEP and STEP not in grammar.bindings:
                found = 0, 0
            else:
                short, far = self._of_node(node, grammar)
                found = short + found[0], max(far + found[0], found[1])
            self._chains[frame] = found
        return found

    def _of_node(self, node: n.Node, grammar: Grammar) -> tuple[float, float]:
        if node not in self._nodes:
            self._nodes[node] = self._of_grammar(grammar).settled(node)
        return self._nodes[node]

    def _of_grammar(self, grammar: Grammar) -> _Bounds:
        if id(grammar) not in self._bounds:
            self._bounds[id(grammar)] = _Bounds(grammar, self._lower, self._of_grammar)
        return self._bounds[id(grammar)]


class _Bounds:
    """Per node (shortest text, farthest position from its end), as upper bounds, or lower ones.

    Where slots may be empty for some key, an alternative can be missing, so the longest
    alternative stands for all of them. A parameter stands for the longest of all that any
    call gives it. Found from above: rules start as unbounded, so no bound is ever too low.
    Calls that nest count only as their shortest text: how deep they go depends on the text.
    """

    def __init__(self, grammar: Grammar, lower: bool, of_grammar: Callable[[Grammar], _Bounds]):
        self.grammar = grammar
        self.lower = lower
        self.of_grammar = of_grammar
        self.pick = max if not lower and has_gaps(grammar) else min
        self.given = _given(grammar)
        self.nests, self.begins = grammar.of_rules(nesting_calls)
        self.rules: dict[str, tuple[float, float]] = {}
        self.slots: dict[str, tuple[float, float]] = {}
        self.parameters: dict[str, tuple[float, float]] = {}

    def settled(self, node: n.Node) -> tuple[float, float]:
        """The bounds of `node`, those of the rules that it leads to found first."""
        self.settle([node])
        return self.of(node)

    def settle(self, nodes: list[n.Node]) -> None:
        """Find the bounds of the rules that `nodes` lead to; if they don't settle, there are none."""
        found = self._leads_to(nodes)
        if not found:
            return
        rules = [name for name in self.grammar.rules if name in found]  # as the file has them
        self.rules.update(dict.fromkeys(rules, (UNBOUNDED, 0)))
        if self._rounds(rules, 0):
            # the shortest texts are known: now how far from its end a rule can be, from below
            self.rules.update((name, (self.rules[name][0], 0)) for name in rules)
            if self._rounds(rules, 1):
                return
        self.rules.update(dict.fromkeys(rules, (0, 0) if self.lower else (UNBOUNDED, UNBOUNDED)))
        self.parameters.clear()

    def _leads_to(self, nodes: list[n.Node]) -> set[str]:
        """The rules without bounds yet that `nodes` call in this action, by other rules or their arguments or not."""
        found: set[str] = set()
        seen: set[str] = set()  # parameters
        work = list(nodes)
        while work:
            node = work.pop()
            if isinstance(node, n.Call):
                if node.rule not in self.rules and node.rule not in found:
                    found.add(node.rule)
                    work.append(self.grammar.rules[node.rule].body)
            elif isinstance(node, n.Var):
                if node.name not in seen and node.name not in self.parameters:
                    seen.add(node.name)
                    work += [v for v in self.given.get(node.name, ()) if isinstance(v, n.Node)]
            elif isinstance(node, n.Seq):
                work += self._in_action(node)
            elif isinstance(node, n.Scoped):
                work.append(node.node)
            else:
                work += n.children(node)
        return found

    def _rounds(self, rules: list[str], which: int) -> bool:
        """Work out the bounds of `rules` until those at index `which` change no more; False if they go on changing."""
        for i in range(_MAX_ROUNDS):
            before = {name: self.rules[name] for name in rules}
            self.parameters.clear()
            # callees often stand below their callers
            for name in reversed(rules) if i % 2 == 0 else rules:
                self.rules[name] = self.of(self.grammar.rules[name].body)
            if all(self.rules[name][which] == bounds[which] for name, bounds in before.items()):
                return True
            if which and i >= _MAX_ROUNDS // 2:  # by now it is nesting that grows, and that has no end
                grown = [name for name in rules if self.rules[name][1] > before[name][1]]
                self.rules.update((name, (self.rules[name][0], UNBOUNDED)) for name in grown)
        return False

    def of(self, node: n.Node) -> tuple[float, float]:
        if isinstance(node, n.Literal):
            return len(node.data), len(node.data)
        if isinstance(node, n.Chars):
            return len(node.chars.shortest()), 4
        if isinstance(node, n.Choices):
            return min(map(len, node.values)), max(map(len, node.values))
        if isinstance(node, n.Seq):
            return self.of_seq(node)
        if isinstance(node, n.Alt):
            parts = [self.of(i) for i in node.items]
            return self.pick((s for s, _ in parts), default=UNBOUNDED), max((m for _, m in parts), default=0)
        if isinstance(node, n.Repeat):
            short, far = self.of(node.item)
            return (node.low * short if node.low else 0), far + max(node.low - 1, 0) * _finite(short, node.low > 1)
        if isinstance(node, n.Call):
            short, far = self.rules[node.rule]
            return short, short if id(node) in self.nests else far
        if isinstance(node, n.Scoped):
            return self.of(node.node)
        if isinstance(node, n.Var):
            if node.name not in self.parameters:
                self.parameters[node.name] = self.of_parameter(node.name)
            return self.parameters[node.name]
        if isinstance(node, n.Related):
            return self.of_related(node)
        if node.name not in self.slots:
            self.slots[node.name] = self.of_slot(node.name)
        return self.slots[node.name]

    def of_parameter(self, name: str) -> tuple[float, float]:
        found = []
        for value in self.given.get(name, ()):
            short, far = (len(value), len(value)) if isinstance(value, bytes) else self.of(value)
            if isinstance(value, (n.Slot, n.Choices, n.Related)) and not self.lower:
                short = far  # one of its values, and not the shortest
            found.append((short, far))
        pick = min if self.lower else max
        return pick((short for short, _ in found), default=0), max((far for _, far in found), default=0)

    def of_seq(self, node: n.Seq) -> tuple[float, float]:
        short, far = 0.0, 0.0
        for item in reversed(self._in_action(node)):
            s, m = self.of(item)
            far = max(far, m + short)
            short += s
        return short, far

    def _in_action(self, node: n.Seq) -> tuple[n.Node, ...]:
        """The items of `node` up to where it ends the action, and with it the text."""
        for i, item in enumerate(node.items):
            if isinstance(item, n.Slot) and item.name == STEP and STEP not in self.grammar.bindings:
                return node.items[:i]
        return node.items

    def of_slot(self, name: str) -> tuple[float, float]:
        value = self.grammar.bindings.get(name)
        if value is None:
            return 0, 0
        found = self.of_values(value)
        return self.pick((short for short, _ in found), default=0), max((far for _, far in found), default=0)

    def of_related(self, node: n.Related) -> tuple[float, float]:
        """Some of a slot's values: nobody knows which."""
        found = self.of_values(self.grammar.bindings[node.slot.name])
        pick = min if self.lower else max
        return pick((short for short, _ in found), default=0), max((far for _, far in found), default=0)

    def of_values(self, value) -> list[tuple[float, float]]:
        """The bounds of each text, and of each grammar, that a slot is bound to."""
        inner = [self.of_grammar(grammar).settled(grammar.start) for grammar in grammars_in(value)]
        return [*((len(text), len(text)) for text in texts_in(value)), *inner]


def _given(grammar: Grammar) -> dict[str, list]:
    """Parameter -> what any call gives it (nodes or texts), handed on by other parameters or not."""
    by_rules, handed_on = grammar.of_rules(_given_by_rules)
    given, more = dict(by_rules), _Given(handed_on)
    more.note(grammar.start, grammar.rules)
    for name, values in more.settled().items():
        given[name] = [*given.get(name, ()), *values]
    return given


def _given_by_rules(rules: dict[str, n.Rule]) -> tuple[dict[str, list], list[tuple[str, str]]]:
    """What the rules' own calls give each parameter, and which parameters they hand on as which."""
    given = _Given([])
    for rule in rules.values():
        given.note(rule.body, rules)
    return given.settled(), given.handed_on


class _Given:
    """What parameters are given, and which of them as which others."""

    def __init__(self, handed_on: list[tuple[str, str]]):
        self.values: dict[str, list] = {}
        self.handed_on = list(handed_on)

    def note(self, top: n.Node, rules: dict[str, n.Rule]) -> None:
        for node in n.walk(top, scopes=True):
            pairs = ()
            if isinstance(node, n.Call):
                pairs = zip(rules[node.rule].params, node.args)
            elif isinstance(node, n.Scoped):
                pairs = node.values.items()
            for name, value in pairs:
                if isinstance(value, n.Var):
                    self.handed_on.append((value.name, name))
                else:
                    self.values.setdefault(name, []).extend(value if isinstance(value, tuple) else (value,))

    def settled(self) -> dict[str, list]:
        """The values, handed on as far as they are."""
        onward: dict[str, set[str]] = {}
        for source, name in self.handed_on:
            onward.setdefault(source, set()).add(name)
        out: dict[str, list] = {}
        for first, values in self.values.items():
            seen, work = {first}, [first]
            while work:
                name = work.pop()
                out.setdefault(name, []).extend(values)
                new = onward.get(name, set()) - seen
                seen |= new
                work += new
        return out


def _finite(value: float, used: bool) -> float:
    return value if used else 0


def nesting_calls(rules: dict[str, n.Rule]) -> tuple[set[int], frozenset[int]]:
    """Calls that nest, each after a byte that must stand before it.

    Returns
    -------
    calls : set of int
        Identities of Call nodes. Without them no rule comes to itself with something left to
        do after, or (empty) there are no such calls.
    bytes : frozenset of int
        One of these is read before each.
    """
    sites = [(name, *site) for name, rule in rules.items() for site in _sites(rule.body, rules)]
    never = {id(call) for _, call, _, before, tail in sites if call is not None and (tail or not before)}
    order = sorted({byte for _, _, _, before, _ in sites for byte in before}, key=_preference)

    def cut(chosen: list[int]) -> set[int]:
        left = {id(call) for _, call, _, before, _ in sites if call is not None and before.isdisjoint(chosen)}
        return {id(call) for _, call, _, _, _ in sites if call is not None} - left - never

    def nests(without: set[int]) -> bool:
        edges: dict[str, set[tuple[str, bool]]] = {name: set() for name in rules}
        for name, call, callee, _, tail in sites:
            if id(call) not in without:
                edges[name].add((callee, tail))
        return any(c in g and not tail for g in recursive_groups(edges) for name in g for c, tail in edges[name])

    if not nests(set()) or nests(cut(order)):
        return set(), frozenset()
    chosen = order
    for byte in reversed(order):  # as few as will do
        fewer = [other for other in chosen if other != byte]
        if not nests(cut(fewer)):
            chosen = fewer
    return cut(chosen), frozenset(chosen)


def _sites(node: n.Node, rules: dict[str, n.Rule]) -> Iterator[tuple[n.Call | None, str, frozenset[int], bool]]:
    """(call, rule called, bytes read before, whether nothing is left to do after); None: in an argument."""
    for call, before, tail in _calls(node, frozenset(), True):
        yield call, call.rule, before, tail
        for arg in call.args:
            for callee, _ in references(arg, rules):
                yield None, callee, frozenset(), False


def _calls(node: n.Node, before: frozenset[int], tail: bool) -> Iterator[tuple[n.Call, frozenset[int], bool]]:
    """(call, bytes that are read before it, whether nothing is left to do after it) of the calls in `node`."""
    if isinstance(node, n.Call):
        yield node, before, tail
    elif isinstance(node, n.Seq):
        for i, item in enumerate(node.items):
            yield from _calls(item, before, tail and i == len(node.items) - 1)
            before = before | _always(item)
    elif not isinstance(node, n.Scoped):
        tail = tail and not (isinstance(node, n.Repeat) and node.high != 1)
        for item in n.children(node):
            yield from _calls(item, before, tail)


def _always(node: n.Node) -> frozenset[int]:
    """Bytes that every text of `node` has (not all of them)."""
    if isinstance(node, n.Literal):
        return frozenset(node.data)
    if isinstance(node, n.Seq):
        return frozenset().union(*map(_always, node.items))
    if isinstance(node, n.Choices):
        return frozenset.intersection(*map(frozenset, node.values))
    if isinstance(node, n.Alt) and node.items:
        return frozenset.intersection(*map(_always, node.items))
    if isinstance(node, n.Repeat) and node.low:
        return _always(node.item)
    return frozenset()


def _preference(byte: int) -> tuple[int, int]:
    """Brackets first, then other signs: few tokens have many of them."""
    kind = 0 if byte in b"([{" else 2 if chr(byte).isalnum() or byte >= 0x80 or byte in b" -" else 1
    return kind, byte
