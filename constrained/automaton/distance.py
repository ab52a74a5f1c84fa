"""How far the end can be, read off the grammar: a bound no position exceeds.

Lets a budget that is still larger cost nothing. Bounds are in bytes: with single-byte
tokens, as many bytes are at most as many tokens.
"""

from __future__ import annotations

from constrained.automaton import positions as p
from constrained.automaton.nesting import nesting_calls
from constrained.automaton.state import State
from constrained.grammar import nodes as n
from constrained.grammar.grammar import STEP, Grammar

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
        bounds = self._of_grammar(grammar)
        rules = [node.rule for r in grammar.rules.values() for node in n.walk(r.body) if id(node) in bounds.nests]
        deepest, begins = max((bounds.rules[name][1] for name in rules), default=0), bounds.begins
        for inner in filter(lambda v: isinstance(v, Grammar), grammar.bindings.values()):
            other, more = self.nesting(inner)
            deepest, begins = max(deepest, other), begins | more
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
            self._nodes[node] = self._of_grammar(grammar).of(node)
        return self._nodes[node]

    def _of_grammar(self, grammar: Grammar) -> _Bounds:
        if id(grammar) not in self._bounds:
            self._bounds[id(grammar)] = _Bounds(grammar, self._lower)
            self._bounds[id(grammar)].settle()
        return self._bounds[id(grammar)]


class _Bounds:
    """Per node (shortest text, farthest position from its end), as upper bounds, or lower ones.

    Where slots may be empty for some key, an alternative can be missing, so the longest
    alternative stands for all of them. A parameter stands for the longest of all that any
    call gives it. Found from above: rules start as unbounded, so no bound is ever too low.
    Calls that nest count only as their shortest text: how deep they go depends on the text.
    """

    def __init__(self, grammar: Grammar, lower: bool):
        self.grammar = grammar
        self.lower = lower
        self.pick = max if not lower and any(isinstance(v, dict) for v in grammar.bindings.values()) else min
        self.given = _given(grammar)
        self.nests, self.begins = grammar.of_rules(nesting_calls)
        self.rules = {name: (UNBOUNDED, 0) for name in grammar.rules}
        self.slots = {name: self.of_slot(name) for name in grammar.slots}
        self.parameters: dict[str, tuple[float, float]] = {}

    def settle(self) -> None:
        """Find the rules' bounds; if they don't settle, there are none."""
        if self._rounds(0):
            # the shortest texts are known: now how far from its end a rule can be, from below
            self.rules = {name: (short, 0) for name, (short, _) in self.rules.items()}
            if self._rounds(1):
                return
        self.rules = dict.fromkeys(self.rules, (0, 0) if self.lower else (UNBOUNDED, UNBOUNDED))
        self.parameters.clear()

    def _rounds(self, which: int) -> bool:
        """Work the rules' bounds out until those at index `which` change no more; False if they go on changing."""
        for i in range(_MAX_ROUNDS):
            before = dict(self.rules)
            self.parameters.clear()
            # callees often stand below their callers
            for name in reversed(before) if i % 2 == 0 else before:
                self.rules[name] = self.of(self.grammar.rules[name].body)
            if all(self.rules[name][which] == bounds[which] for name, bounds in before.items()):
                return True
            if which and i >= _MAX_ROUNDS // 2:  # by now it is nesting that grows, and that has no end
                grown = [name for name, (_, far) in self.rules.items() if far > before[name][1]]
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
        return self.slots[node.name]

    def of_parameter(self, name: str) -> tuple[float, float]:
        found = []
        for value in self.given.get(name, ()):
            short, far = (len(value), len(value)) if isinstance(value, bytes) else self.of(value)
            if isinstance(value, (n.Slot, n.Choices)) and not self.lower:
                short = far  # one of its values, and not the shortest
            found.append((short, far))
        pick = min if self.lower else max
        return pick((short for short, _ in found), default=0), max((far for _, far in found), default=0)

    def of_seq(self, node: n.Seq) -> tuple[float, float]:
        short, far = 0.0, 0.0
        items = node.items
        for i, item in enumerate(items):
            if isinstance(item, n.Slot) and item.name == STEP and STEP not in self.grammar.bindings:
                items = items[:i]
                break
        for item in reversed(items):
            s, m = self.of(item)
            far = max(far, m + short)
            short += s
        return short, far

    def of_slot(self, name: str) -> tuple[float, float]:
        value = self.grammar.bindings.get(name)
        if value is None:
            return 0, 0
        if isinstance(value, Grammar):
            inner = _Bounds(value, self.lower)
            inner.settle()
            return inner.of(value.start)
        lengths = [len(t) for t in _texts(value)]
        return self.pick(lengths, default=0), max(lengths, default=0)


def _given(grammar: Grammar) -> dict[str, list]:
    """Parameter -> what any call gives it (nodes or texts), handed on by other parameters or not."""
    given: dict[str, list] = {}
    handed_on = []
    for top in (grammar.start, *(r.body for r in grammar.rules.values())):
        for node in n.walk(top, scopes=True):
            pairs = ()
            if isinstance(node, n.Call):
                pairs = zip(grammar.rules[node.rule].params, node.args)
            elif isinstance(node, n.Scoped):
                pairs = node.values.items()
            for name, value in pairs:
                if isinstance(value, n.Var):
                    handed_on.append((value.name, name))
                else:
                    given.setdefault(name, []).extend(value if isinstance(value, tuple) else (value,))
    growing = True
    while growing:
        growing = False
        for source, name in handed_on:
            new = [v for v in given.get(source, ()) if not any(v is w for w in given.get(name, ()))]
            given.setdefault(name, []).extend(new)
            growing = growing or bool(new)
    return given


def _finite(value: float, used: bool) -> float:
    return value if used else 0


def _texts(value):
    return value if isinstance(value, tuple) else [t for texts in value.values() for t in texts]
