"""Step limits: admit only actions after which a path can still end in time.

The fewest actions to an end are computed over the rules, template arguments included, as the lightest derivation
(Knuth, "A generalization of Dijkstra's algorithm", 1977). The values of slots are ignored, as they change with every
action.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from constrained.automaton import Grammar
from constrained.grammar.nodes import NEVER, Alt, Node, Repeat, Rule, RuleRef, Scoped, Seq, Var, alt, find, repeat, seq
from constrained.knowledge.follow_sets import ends_step, writes_text


def within_steps(grammar: Grammar, steps: int) -> Grammar:
    """`grammar` without the next actions that no path of at most `steps` actions begins with.

    The same object if nothing is removed.
    """
    limit = _StepLimit(grammar, steps)
    limit.solve(grammar.start)
    start = limit.prune(grammar.start, _NO_VALUES, steps, False)
    return grammar if start is grammar.start else grammar.with_rules(limit.rules, start)


class _ArgumentValues(NamedTuple):
    """What the parameters of a rule or a scope stand for."""

    costs: Mapping[str, int]
    pieces: Mapping[str, Node]  # of those that stand for a piece of grammar with no parameters of its own


_NO_VALUES = _ArgumentValues({}, {})


class _StepLimit:
    """The costs of nodes in actions, capped at one more than the limit, and the pruning of those that cost too much.

    In all methods, `costs` is the cost of each template parameter, and `inside` says that the node is part of an
    action's text, where the rules it calls are not actions.
    """

    def __init__(self, grammar: Grammar, steps: int):
        self.rules = dict(grammar.all_rules())
        self._over = steps + 1
        self._call_costs: dict[tuple[str, tuple[int, ...]], int] = {}
        self._visited: set[tuple[str, tuple[int, ...]]] = set()  # in this round of the fixed point
        self._settled = False
        self._being_pruned: set[str] = set()  # rules may call themselves
        self._pieces: dict[Node, int] = {}  # those that rules were pruned with, numbered

    def solve(self, start: Node) -> None:
        """Find the cost of each rule with the arguments it is called with: the least fixed point."""
        before = None
        while before != self._call_costs:
            before = dict(self._call_costs)
            self._visited.clear()
            self.cost(start, {}, False)
        self._settled = True

    def cost(self, node: Node, costs: Mapping[str, int], inside: bool) -> int:
        """The fewest actions in a text of `node`. Visits all calls in `node`, which `solve` relies on."""
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
            case RuleRef() if not inside:
                return self._call_cost(node.rule, self._argument_costs(node, costs))
        return 0

    def prune(self, node: Node, values: _ArgumentValues, left: int, inside: bool) -> Node:
        """`node` without the alternatives that take more than `left` actions; the same object if there are none."""
        # Too expensive as a whole; otherwise some way through the node is cheap enough, and only alternatives go.
        if self.cost(node, values.costs, inside) > left:
            return NEVER
        match node:
            case Seq():
                return self._prune_seq(node, values, left, inside)
            case Alt():
                items = [self.prune(item, values, left, inside) for item in node.items]
                return node if _same(items, node.items) else alt([item for item in items if item is not NEVER])
            case Repeat():
                # The other repetitions take at least this much.
                others = max(node.low - 1, 0) * self.cost(node.item, values.costs, inside)
                item = self.prune(node.item, values, left - others, inside)
                return node if item is node.item else repeat(item, node.low, node.high)
            case Scoped():
                # A scope around a bare parameter is the parameter's value.
                value = node.values.get(node.node.name) if isinstance(node.node, Var) else None
                if isinstance(value, Scoped):
                    return self.prune(value, _NO_VALUES, left, inside)
                pieces = {name: value for name, value in node.values.items() if isinstance(value, Scoped)}
                inner = self.prune(node.node, _ArgumentValues(self._scope_costs(node), pieces), left, inside)
                return node if inner is node.node else Scoped(inner, node.values)
            case Var() if not inside and node.name in values.pieces:
                piece = values.pieces[node.name]
                pruned = self.prune(piece, _NO_VALUES, left, False)
                return node if pruned is piece else pruned
            case RuleRef() if not inside:
                return self._prune_call(node, values, left)
        return node

    def _prune_seq(self, node: Seq, values: _ArgumentValues, left: int, inside: bool) -> Node:
        inside_action = _inside_action(node, inside)
        item_costs = [
            self.cost(item, values.costs, part_inside) for item, part_inside in zip(node.items, inside_action)
        ]
        spare = left - sum(item_costs)
        # an item on the other side of the _STEP is left as it is: it is pruned once the action is done
        items = [
            self.prune(item, values, spare + cost, part_inside) if part_inside == inside else item
            for item, cost, part_inside in zip(node.items, item_costs, inside_action)
        ]
        return node if _same(items, node.items) else seq(items)

    def _prune_call(self, node: RuleRef, values: _ArgumentValues, left: int) -> Node:
        rule = self.rules[node.rule]
        costs = self._argument_costs(node, values.costs)
        # Which arguments are pieces of grammar that can be pruned themselves: those passed on, and those with calls but
        # without parameters.
        pieces: dict[str, Node] = {}
        for param, arg in zip(rule.params, node.args):
            if isinstance(arg, Var):
                if arg.name in values.pieces:
                    pieces[param] = values.pieces[arg.name]
            elif find(arg, RuleRef) and not find(arg, Var):
                pieces[param] = arg
        # One pruned copy of the rule for each limit, costs and pieces; a copy that is being made may call itself.
        numbers = [self._pieces.setdefault(piece, len(self._pieces)) for piece in pieces.values()]
        name = f"{node.rule} within {left} {costs} {numbers}"
        if name in self._being_pruned:
            return RuleRef(name, node.args)
        if name not in self.rules:
            self._being_pruned.add(name)
            inside = writes_text(rule.body)
            within = _ArgumentValues(dict(zip(rule.params, costs)), pieces)
            body = self.prune(rule.body, within, left - inside, inside)
            self.rules[name] = Rule(name, body, rule.params, rule.line)
            self._being_pruned.discard(name)
        return node if self.rules[name].body is rule.body else RuleRef(name, node.args)

    def _call_cost(self, name: str, costs: tuple[int, ...]) -> int:
        key = (name, costs)
        if not self._settled and key not in self._visited:
            self._visited.add(key)
            rule = self.rules[name]
            inside = writes_text(rule.body)
            cost = inside + self.cost(rule.body, dict(zip(rule.params, costs)), inside)
            self._call_costs[key] = min(cost, self._over)
        return self._call_costs.get(key, self._over)

    def _argument_costs(self, node: RuleRef, costs: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(self.cost(arg, costs, False) for arg in node.args)

    def _scope_costs(self, node: Scoped) -> dict[str, int]:
        values = node.values.items()
        return {name: self.cost(value, {}, False) for name, value in values if isinstance(value, Scoped)}


def _inside_action(node: Seq, inside: bool) -> list[bool]:
    """For each item, whether it is part of an action's text: not after the `_STEP` that ends the action."""
    flags = []
    for item in node.items:
        flags.append(inside)
        inside = inside and not ends_step(item)
    return flags


def _same(first: Sequence[Node], second: Sequence[Node]) -> bool:
    return all(map(operator.is_, first, second))
