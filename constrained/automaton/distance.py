"""How far the end can be, read off the grammar: a bound no position exceeds.

Lets a budget that is still larger cost nothing. Bounds are in bytes: with single-byte
tokens, as many bytes are at most as many tokens.
"""

from __future__ import annotations

from constrained.grammar import nodes as n
from constrained.grammar.grammar import STEP, Grammar

UNBOUNDED = float("inf")
_MAX_ROUNDS = 64


def farthest(grammar: Grammar) -> float:
    """An upper bound on the fewest bytes from any position of `grammar` to its end."""
    return _Bounds(grammar).of_start()[1]


class _Bounds:
    """Per node (shortest text, farthest position from its end), as upper bounds.

    Where slots may be empty for some key, an alternative can be missing, so the longest
    alternative stands for all of them.
    """

    def __init__(self, grammar: Grammar):
        self.grammar = grammar
        values = grammar.bindings.values()
        partial = any(isinstance(v, dict) for v in values)
        self.pick = max if partial else min
        lengths = [len(t) for v in values if not isinstance(v, Grammar) for t in _texts(v)]
        self.longest_value = max(lengths, default=0)
        self.var = (self.longest_value, self.longest_value)
        self.rules = {name: (UNBOUNDED, 0) for name in grammar.rules}

    def of_start(self) -> tuple[float, float]:
        for _ in range(_MAX_ROUNDS):
            before = (dict(self.rules), self.var)
            for name, rule in self.grammar.rules.items():
                self.rules[name] = self.of(rule.body)
            if (self.rules, self.var) == before:
                return self.of(self.grammar.start)
        return UNBOUNDED, UNBOUNDED

    def of(self, node: n.Node) -> tuple[float, float]:
        if isinstance(node, n.Literal):
            return len(node.data), len(node.data)
        if isinstance(node, n.Chars):
            return 4, 4
        if isinstance(node, n.Choices):
            return min(map(len, node.values)), max(map(len, node.values))
        if isinstance(node, n.Seq):
            return self.of_seq(node)
        if isinstance(node, n.Alt):
            parts = [self.of(i) for i in node.items]
            return self.pick(s for s, _ in parts), max(m for _, m in parts)
        if isinstance(node, n.Repeat):
            short, far = self.of(node.item)
            return (node.low * short if node.low else 0), far + max(node.low - 1, 0) * _finite(short, node.low > 1)
        if isinstance(node, n.Call):
            for arg in node.args:
                if not isinstance(arg, (n.Slot, n.Var)):
                    self.var = tuple(map(max, self.var, self.of(arg)))
            return self.rules[node.rule]
        if isinstance(node, n.Scoped):
            for value in node.values.values():
                if isinstance(value, n.Scoped):
                    self.var = tuple(map(max, self.var, self.of(value.node)))
                else:
                    longest = max(map(len, value)) if isinstance(value, tuple) else len(value)
                    self.var = tuple(max(x, longest) for x in self.var)
            return self.of(node.node)
        if isinstance(node, n.Var):
            return self.var
        return self.of_slot(node.name)

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
            return _Bounds(value).of_start()
        lengths = [len(t) for t in _texts(value)]
        return self.pick(lengths, default=0), max(lengths, default=0)


def _finite(value: float, used: bool) -> float:
    return value if used else 0


def _texts(value):
    return value if isinstance(value, tuple) else [t for texts in value.values() for t in texts]
