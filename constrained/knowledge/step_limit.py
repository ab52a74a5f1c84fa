"""A path must end in time: the actions from which it still can.

The fewest actions to an end are found over the rules, template arguments and all, as the
lightest derivation (Knuth, "A generalization of Dijkstra's algorithm", 1977); what slots are
bound to is left aside, as that changes with every action.
"""

from __future__ import annotations

from constrained.grammar import Grammar
from constrained.grammar import nodes as n
from constrained.knowledge.follow_sets import ends_step, writes_text


def within(grammar: Grammar, steps: int) -> Grammar:
    """`grammar` without the next actions after which no path ends within `steps`, they included.

    `grammar` itself where that leaves all of them.
    """
    limit = _Limit(grammar, steps)
    limit.settle(grammar.start)
    start = limit.prune(grammar.start, {}, steps, False)
    if start is grammar.start:
        return grammar
    return grammar.with_rules(limit.rules, start)


class _Limit:
    """Costs are actions, cut off at one more than the limit.

    `costs` gives the cost of template parameters; `inside` tells that a node is part of an
    action's text, where the rules it calls are no actions.
    """

    def __init__(self, grammar: Grammar, steps: int):
        self.rules = dict(grammar.rules)
        self._over = steps + 1
        self._found: dict[tuple, int] = {}
        self._round: set[tuple] = set()
        self._settled = False
        self._open: set[str] = set()  # rules being pruned, which may call themselves

    def settle(self, start: n.Node) -> None:
        """Find the costs of all rules as they are called: least fixed point from above."""
        before = None
        while before != self._found:
            before = dict(self._found)
            self._round.clear()
            self.cost(start, {}, False)
        self._settled = True

    def cost(self, node: n.Node, costs: dict[str, int], inside: bool) -> int:
        """The fewest actions that `node` takes; visits every call in it, which `settle` counts on."""
        if isinstance(node, n.Seq):
            parts = zip(node.items, self._modes(node, inside))
            return min(self._over, sum(self.cost(item, costs, mode) for item, mode in parts))
        if isinstance(node, n.Alt):
            return min((self.cost(item, costs, inside) for item in node.items), default=self._over)
        if isinstance(node, n.Repeat):
            return min(self._over, self.cost(node.item, costs, inside) * node.low)
        if isinstance(node, n.Scoped):
            return self.cost(node.node, self._scope(node), inside)
        if isinstance(node, n.Var):
            return costs.get(node.name, 0)
        if isinstance(node, n.Call) and not inside:
            return self._call(node.rule, self._arguments(node, costs))
        return 0

    def prune(self, node: n.Node, costs: dict[str, int], left: int, inside: bool) -> n.Node:
        """`node` without what takes more than `left` actions; the same object if that is nothing."""
        if self.cost(node, costs, inside) > left:
            return n.NEVER
        if isinstance(node, n.Seq):
            return self._prune_seq(node, costs, left, inside)
        if isinstance(node, n.Alt):
            kept = [self.prune(item, costs, left, inside) for item in node.items]
            return node if _same(kept, node.items) else n.alt([k for k in kept if k is not n.NEVER])
        if isinstance(node, n.Repeat):
            others = max(node.low - 1, 0) * self.cost(node.item, costs, inside)
            item = self.prune(node.item, costs, left - others, inside)
            return node if item is node.item else n.repeat(item, node.low, node.high)
        if isinstance(node, n.Scoped):
            value = node.values.get(node.node.name) if isinstance(node.node, n.Var) else None
            if isinstance(value, n.Scoped):
                return self.prune(value, {}, left, inside)
            inner = self.prune(node.node, self._scope(node), left, inside)
            return node if inner is node.node else n.Scoped(inner, node.values)
        if isinstance(node, n.Call) and not inside:
            return self._prune_call(node, self._arguments(node, costs), left)
        return node

    def _prune_seq(self, node: n.Seq, costs: dict[str, int], left: int, inside: bool) -> n.Node:
        modes = self._modes(node, inside)
        each = [self.cost(item, costs, mode) for item, mode in zip(node.items, modes)]
        spare = left - sum(each)
        kept = [
            self.prune(item, costs, spare + own, mode) if mode == inside else item  # else it comes after _STEP
            for item, own, mode in zip(node.items, each, modes)
        ]
        return node if _same(kept, node.items) else n.seq(kept)

    def _prune_call(self, node: n.Call, costs: tuple[int, ...], left: int) -> n.Node:
        rule = self.rules[node.rule]
        name = f"{node.rule} within {left} {costs}"
        if name in self._open:
            return n.Call(name, node.args)
        if name not in self.rules:
            self._open.add(name)
            inside = writes_text(rule.body)
            body = self.prune(rule.body, dict(zip(rule.params, costs)), left - inside, inside)
            self.rules[name] = n.Rule(name, body, rule.params, rule.line)
            self._open.discard(name)
        same = self.rules[name].body is rule.body
        return node if same else n.Call(name, node.args)

    def _call(self, name: str, costs: tuple[int, ...]) -> int:
        key = (name, costs)
        if not self._settled and key not in self._round:
            self._round.add(key)
            rule = self.rules[name]
            inside = writes_text(rule.body)
            found = inside + self.cost(rule.body, dict(zip(rule.params, costs)), inside)
            self._found[key] = min(found, self._over)
        return self._found.get(key, self._over)

    def _arguments(self, node: n.Call, costs: dict[str, int]) -> tuple[int, ...]:
        return tuple(self.cost(arg, costs, False) for arg in node.args)

    def _scope(self, node: n.Scoped) -> dict[str, int]:
        values = node.values.items()
        return {name: self.cost(value, {}, False) for name, value in values if isinstance(value, n.Scoped)}

    @staticmethod
    def _modes(node: n.Seq, inside: bool) -> list[bool]:
        """For each item, whether it is part of an action's text: not after the `_STEP` that ends it."""
        modes = []
        for item in node.items:
            modes.append(inside)
            inside = inside and not ends_step(item)
        return modes


def _same(kept: list[n.Node], items: tuple[n.Node, ...]) -> bool:
    return all(a is b for a, b in zip(kept, items))
