"""Step limits: admit only actions from which a path can still end in time.

The fewest actions to an end are found over the rules, template arguments included, as the lightest derivation (Knuth,
"A generalization of Dijkstra's algorithm", 1977). What slots are bound to is not looked at, as it changes with every
action.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from constrained.automaton import Grammar
from constrained.grammar.nodes import NEVER, Alt, Call, Node, Repeat, Rule, Scoped, Seq, Var, alt, repeat, seq
from constrained.knowledge.follow_sets import ends_step, writes_text


def within_steps(grammar: Grammar, steps: int) -> Grammar:
    """`grammar` without the next actions after which no path ends within `steps`, themselves included.

    `grammar` itself if that leaves all of them.
    """
    limit = _StepLimit(grammar, steps)
    limit.settle(grammar.start)
    start = limit.prune(grammar.start, {}, steps, False)
    return grammar if start is grammar.start else grammar.with_rules(limit.rules, start)


class _StepLimit:
    """The costs of nodes in actions, at most one more than the limit, and the pruning of those that cost too much.

    In all methods, `costs` is the cost of each template parameter, and `inside` tells that the node is part of an
    action's text, where the rules it calls are no actions.
    """

    def __init__(self, grammar: Grammar, steps: int):
        self.rules = dict(grammar.rules)
        self._over = steps + 1
        self._found: dict[tuple[str, tuple[int, ...]], int] = {}
        self._round: set[tuple[str, tuple[int, ...]]] = set()
        self._settled = False
        self._being_pruned: set[str] = set()  # rules may call themselves

    def settle(self, start: Node) -> None:
        """Find the cost of each rule with the arguments it is called with: the least fixed point."""
        before = None
        while before != self._found:
            before = dict(self._found)
            self._round.clear()
            self.cost(start, {}, False)
        self._settled = True

    def cost(self, node: Node, costs: Mapping[str, int], inside: bool) -> int:
        """The fewest actions that `node` takes. It visits every call in `node`, which `settle` relies on."""
        match node:
            case Seq():
                parts = zip(node.items, _inside_action(node, inside))
                return min(self._over, sum(self.cost(item, costs, part_inside) for item, part_inside in parts))
            case Alt():
                return min((self.cost(item, costs, inside) for item in node.items), default=self._over)
            case Repeat():
                return min(self._over, self.cost(node.item, costs, inside) * node.low)
            case Scoped():
                return self.cost(node.node, self._scope_costs(node), inside)
            case Var():
                return costs.get(node.name, 0)
            case Call() if not inside:
                return self._call_cost(node.rule, self._argument_costs(node, costs))
        return 0

    def prune(self, node: Node, costs: Mapping[str, int], left: int, inside: bool) -> Node:
        """`node` without what takes more than `left` actions; the same object if nothing does."""
        if self.cost(node, costs, inside) > left:
            return NEVER
        match node:
            case Seq():
                return self._prune_seq(node, costs, left, inside)
            case Alt():
                kept = [self.prune(item, costs, left, inside) for item in node.items]
                return node if _same(kept, node.items) else alt([k for k in kept if k is not NEVER])
            case Repeat():
                others = max(node.low - 1, 0) * self.cost(node.item, costs, inside)
                item = self.prune(node.item, costs, left - others, inside)
                return node if item is node.item else repeat(item, node.low, node.high)
            case Scoped():
                value = node.values.get(node.node.name) if isinstance(node.node, Var) else None
                if isinstance(value, Scoped):
                    return self.prune(value, {}, left, inside)
                inner = self.prune(node.node, self._scope_costs(node), left, inside)
                return node if inner is node.node else Scoped(inner, node.values)
            case Call() if not inside:
                return self._prune_call(node, self._argument_costs(node, costs), left)
        return node

    def _prune_seq(self, node: Seq, costs: Mapping[str, int], left: int, inside: bool) -> Node:
        inside_action = _inside_action(node, inside)
        each = [self.cost(item, costs, part_inside) for item, part_inside in zip(node.items, inside_action)]
        spare = left - sum(each)
        # an item on the other side of the _STEP is left as it is: it is pruned once the action is done
        kept = [
            self.prune(item, costs, spare + own, part_inside) if part_inside == inside else item
            for item, own, part_inside in zip(node.items, each, inside_action)
        ]
        return node if _same(kept, node.items) else seq(kept)

    def _prune_call(self, node: Call, costs: tuple[int, ...], left: int) -> Node:
        rule = self.rules[node.rule]
        name = f"{node.rule} within {left} {costs}"
        if name in self._being_pruned:
            return Call(name, node.args)
        if name not in self.rules:
            self._being_pruned.add(name)
            inside = writes_text(rule.body)
            body = self.prune(rule.body, dict(zip(rule.params, costs)), left - inside, inside)
            self.rules[name] = Rule(name, body, rule.params, rule.line)
            self._being_pruned.discard(name)
        return node if self.rules[name].body is rule.body else Call(name, node.args)

    def _call_cost(self, name: str, costs: tuple[int, ...]) -> int:
        key = (name, costs)
        if not self._settled and key not in self._round:
            self._round.add(key)
            rule = self.rules[name]
            inside = writes_text(rule.body)
            found = inside + self.cost(rule.body, dict(zip(rule.params, costs)), inside)
            self._found[key] = min(found, self._over)
        return self._found.get(key, self._over)

    def _argument_costs(self, node: Call, costs: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(self.cost(arg, costs, False) for arg in node.args)

    def _scope_costs(self, node: Scoped) -> dict[str, int]:
        values = node.values.items()
        return {name: self.cost(value, {}, False) for name, value in values if isinstance(value, Scoped)}


def _inside_action(node: Seq, inside: bool) -> list[bool]:
    """For each item, whether it is part of an action's text: not if it comes after the `_STEP` that ends it."""
    found = []
    for item in node.items:
        found.append(inside)
        inside = inside and not ends_step(item)
    return found


def _same(kept: Sequence[Node], items: Sequence[Node]) -> bool:
    return all(a is b for a, b in zip(kept, items))
