"""Which rule wrote a piece of grammar, and where: what lets a text be explained.

Rules share the nodes of their terminals, and rewriting (left recursion, joined texts) makes
new rules of old pieces. So each rule is given nodes of its own before any rewriting, and the
pieces that read text are known by them ever after.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property

from constrained.grammar import nodes as n
from constrained.grammar.lark_definitions import STEP, Definition, Mark, load
from constrained.grammar.lark_reader import IGNORED
from constrained.grammar.source import Source
from constrained.limits import DEFAULT, Limits


@dataclass(frozen=True)
class Spot:
    """A place in a grammar's text, or in that of a file it imports, to be shown.

    Attributes
    ----------
    rule : str or None
        The rule that says so.
    definition : str or None
        The rule or terminal where it is written.
    source : str
    line, column : int or None
        One-based.
    context : str
        The line, with a caret under the column; empty if there is none.
    """

    rule: str | None
    definition: str | None
    source: str
    line: int | None = None
    column: int | None = None
    context: str = ""

    def __str__(self) -> str:
        place = self.source if self.line is None else f"{self.source}:{self.line}:{self.column}"
        if self.definition is None:
            return place
        if self.rule in (None, self.definition):
            return f"{'terminal' if self.definition.isupper() else 'rule'} {self.definition}, {place}"
        return f"{self.definition} in rule {self.rule}, {place}"


class SourceMap:
    """Where the pieces of one grammar are written.

    Parameters
    ----------
    source : Source
    rules : dict of str to Rule
        As `read_lark` gives them.

    Attributes
    ----------
    rules : dict of str to Rule
        The same, with nodes of their own: build the grammar from these.
    """

    def __init__(self, source: Source, rules: dict[str, n.Rule], limits: Limits = DEFAULT):
        self.source = source
        self._definitions, _ = load(source, limits)
        self._owner: dict[int, tuple[n.Node, str]] = {}  # by the node's identity
        self.rules = {name: replace(rule, body=self._own(rule.body, name)) for name, rule in rules.items()}

    def _own(self, node: n.Node, rule: str) -> n.Node:
        if node is n.EMPTY or node is n.NEVER:
            return node
        if isinstance(node, (n.Seq, n.Alt)):
            return replace(node, items=tuple(self._own(item, rule) for item in node.items))
        if isinstance(node, n.Repeat):
            return replace(node, item=self._own(node.item, rule))
        if isinstance(node, n.Call):
            return replace(node, args=tuple(self._own(arg, rule) for arg in node.args))
        own = replace(node, values=self._own(node.values, rule)) if isinstance(node, n.Related) else replace(node)
        self._owner[id(own)] = own, rule
        return own

    def __getstate__(self) -> dict:
        return {**vars(self), "_owner": list(self._owner.values())}

    def __setstate__(self, state: dict) -> None:  # in another process, the same nodes are others
        vars(self).update(state, _owner={id(node): (node, rule) for node, rule in state["_owner"]})

    def spot(self, node: n.Node, offset: int = 0) -> Spot:
        """Where `node`, which reads text, is written; `offset` bytes into it."""
        if isinstance(node, n.Repeat):
            node = node.item
        _, owner = self._owner.get(id(node), (node, None))
        if isinstance(node, (n.Slot, n.Var, n.Related)):
            return self.of_word(owner, node.slot.name if isinstance(node, n.Related) else node.name)
        place = node.place_at(offset) if isinstance(node, n.Literal) else getattr(node, "place", None)
        if place is None:
            return self.of_rule(owner)
        rule = self._called(owner) if owner else place.definition
        return _spot(rule, place.definition, place)

    def slots_of(self, parameter: n.Var) -> list[str]:
        """The slots that calls give this parameter, handed on from rule to rule or not."""
        found: dict[str, None] = {}
        _, owner = self._owner.get(id(parameter), (parameter, None))
        seen = {(owner, parameter.name)}
        work = list(seen)
        while work:
            for caller, arg in self._arguments.get(work.pop(), ()):
                if isinstance(arg, (n.Slot, n.Related)):
                    found[arg.slot.name if isinstance(arg, n.Related) else arg.name] = None
                elif isinstance(arg, n.Var) and (caller, arg.name) not in seen:
                    seen.add((caller, arg.name))
                    work.append((caller, arg.name))
        return list(found)

    @cached_property
    def _arguments(self) -> dict[tuple[str, str], list[tuple[str, n.Node]]]:
        return n.arguments(self.rules)

    def of_rule(self, rule: str | None) -> Spot:
        """Where `rule` begins."""
        definition = self._definition(rule)
        if definition is None:
            return Spot(rule, rule, self.source.name)
        return self._at(rule, definition.place)

    def after_step(self, rule: str) -> Spot:
        """Where `rule` says what may follow its action."""
        return self.of_word(rule, STEP)

    def of_word(self, rule: str | None, word: str) -> Spot:
        """Where a name is first used in `rule`."""
        definition = self._definition(rule)
        uses = (use for use in definition.uses() if use.text == word) if definition else ()
        place = next((use.place for use in uses), None)
        return self._at(rule, place) if place else self.of_rule(rule)

    def _definition(self, rule: str | None) -> Definition | None:
        """Of a rule, those included that reading or rewriting made of it."""
        return self._definitions.get(re.split(r"[${]", rule or "")[0])

    def _called(self, rule: str) -> str:
        definition = self._definition(rule)
        return definition.shown if definition else "%ignore" if rule == IGNORED else rule

    def _at(self, rule: str, place: Mark) -> Spot:
        name = self._called(rule)
        return _spot(name, name, place)


def _spot(rule: str, definition: str, place: Mark | n.Place) -> Spot:
    context = place.source.context(place.line, place.column)
    return Spot(rule, definition, place.source.name, place.line, place.column, context)
