"""Which rule each node of a grammar belongs to and where it is written, so that a text can be explained.

Rules share the nodes of their terminals, and rewriting (left recursion, joined texts) makes
new rules of old pieces. So each rule is given nodes of its own before any rewriting, and the
leaves, which rewriting keeps, identify the rule from then on.
"""

from __future__ import annotations

import re
from copy import copy
from dataclasses import replace
from functools import cached_property

from constrained.grammar.lark_definitions import Definition
from constrained.grammar.lark_reader import IGNORED, LarkRules
from constrained.grammar.nodes import STEP, Node, Related, Repeat, RuleRef, Slot, Var, place_of
from constrained.grammar.source import SourceSpan
from constrained.grammar.traverse import Pieces, Unit, argument_sources, rebuild, units


class SourceMap:
    """Where the nodes of one grammar are written.

    `read`: what `read_lark` gave, but with nodes for each rule of its own: build the grammar from this.
    """

    def __init__(self, read: LarkRules):
        self._owner: dict[Node, str] = {}  # nodes are compared by identity
        rules = {name: replace(rule, body=self._copy(rule.body, name)) for name, rule in read.rules.items()}
        self.read = replace(read, rules=rules)

    def _copy(self, node: Node, rule: str) -> Node:
        def leaf(node: Node) -> Node:
            if isinstance(node, RuleRef):
                return copy(node)
            copied = copy(node)
            if isinstance(node, Related):
                values = leaf(node.values)
                assert isinstance(values, (Slot, Related))
                copied = replace(node, values=values)
            self._owner[copied] = rule
            return copied

        return rebuild(node, leaf)

    def span(self, node: Node, offset: int = 0) -> SourceSpan:
        """Where `node`, which reads text, is written; `offset` bytes into it."""
        if isinstance(node, Repeat):
            node = node.item
        owner = self._owner.get(node)
        if isinstance(node, (Slot, Var, Related)):
            return self.word_span(owner, node.slot.name if isinstance(node, Related) else node.name)
        place = place_of(node, offset)
        if place is None:
            return self.rule_span(owner)
        return SourceSpan(*place, rule=self._shown(owner) if owner else place[-1])

    def slots_of(self, parameter: Var) -> list[str]:
        """The slots that calls give this parameter, directly or by way of other rules' parameters."""
        _, given = argument_sources(self._arguments, (self._owner[parameter], parameter.name))
        slots = (arg for _, arg in given if isinstance(arg, (Slot, Related)))
        return list(dict.fromkeys(arg.slot.name if isinstance(arg, Related) else arg.name for arg in slots))

    @cached_property
    def _arguments(self) -> dict[Unit, Pieces]:
        return units(self.read.rules)

    def rule_span(self, rule: str | None) -> SourceSpan:
        """Where `rule` is defined."""
        definition = self._definition(rule)
        if rule is None or definition is None:
            return SourceSpan(self.read.source, definition=rule, rule=rule)
        return self._of_rule(rule, definition.span)

    def after_step(self, rule: str) -> SourceSpan:
        """Where `rule` says what may follow its action."""
        return self.word_span(rule, STEP)

    def word_span(self, rule: str | None, word: str) -> SourceSpan:
        """Where a name is first used in `rule`."""
        definition = self._definition(rule)
        span = definition.first_use(word) if definition else None
        return self._of_rule(rule, span) if rule and span else self.rule_span(rule)

    def _definition(self, rule: str | None) -> Definition | None:
        """The definition of a rule, or of the rule that reading or rewriting made it from."""
        return self.read.definitions.get(re.split(r"[${]", rule or "")[0])

    def _shown(self, rule: str) -> str:
        definition = self._definition(rule)
        return definition.shown if definition else "%ignore" if rule == IGNORED else rule

    def _of_rule(self, rule: str, span: SourceSpan) -> SourceSpan:
        name = self._shown(rule)
        return span._replace(rule=name, definition=name)
