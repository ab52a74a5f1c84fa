"""Which rule wrote a piece of grammar, and where: what lets a text be explained.

Rules share the nodes of their terminals, and rewriting (left recursion, joined texts) makes
new rules of old pieces. So each rule is given nodes of its own before any rewriting, and the
pieces that read text are known by them ever after.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from constrained.grammar import nodes as n
from constrained.grammar.grammar import STEP
from constrained.grammar.lark_reader import IGNORED
from constrained.grammar.source import Source, blank_comments, definitions

_QUOTED = re.compile(r'"(?:\\.|[^"\\\n])*"|/(?!/)(?:\\.|[^/\\\n])+/|//.*')
"""Texts, regular expressions and comments at the ends of lines: no names stand in them."""


@dataclass(frozen=True)
class Spot:
    """A place in a grammar's text, to be shown.

    Attributes
    ----------
    rule : str or None
        The rule that says so.
    definition : str or None
        The rule or terminal where it is written.
    source : str
    line, column : int or None
        One-based; None in an imported definition, which stands elsewhere.
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
        if self.rule in (None, self.definition):
            return f"rule {self.definition}, {place}" if self.definition else place
        elsewhere = ", imported" if self.line is None else ""
        return f"{self.definition} in rule {self.rule}{elsewhere}, {place}"


class Written:
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

    def __init__(self, source: Source, rules: dict[str, n.Rule]):
        self.source = source
        self._lines = source.text.split("\n")
        self._clear = _QUOTED.sub(lambda found: " " * len(found[0]), blank_comments(source.text)).split("\n")
        self._begins = {name: lines[0] for name, lines in definitions(source.text).items()}
        self._owner: dict[int, str] = {}
        self.rules = {name: replace(rule, body=self._own(rule.body, str(name))) for name, rule in rules.items()}

    def _own(self, node: n.Node, rule: str) -> n.Node:
        if node is n.EMPTY or node is n.NEVER:
            return node
        if isinstance(node, (n.Seq, n.Alt)):
            return replace(node, items=tuple(self._own(item, rule) for item in node.items))
        if isinstance(node, n.Repeat):
            return replace(node, item=self._own(node.item, rule))
        if isinstance(node, n.Call):
            return replace(node, args=tuple(self._own(arg, rule) for arg in node.args))
        own = replace(node)
        self._owner[id(own)] = rule
        return own

    def spot(self, node: n.Node, offset: int = 0) -> Spot:
        """Where `node`, which reads text, is written; `offset` bytes into it."""
        if isinstance(node, n.Repeat):
            node = node.item
        rule = self._owner.get(id(node), "").replace(IGNORED, "%ignore") or None
        if isinstance(node, (n.Slot, n.Var)):
            return self.of_word(rule, node.name)
        place = node.place_at(offset) if isinstance(node, n.Literal) else getattr(node, "place", None)
        if place is None:
            return self.of_rule(rule)
        rule = rule or place.definition
        if place.imported:
            return Spot(rule, place.definition, self.source.name)
        return self._at(rule, place.definition, place.line, place.column)

    def slots_of(self, parameter: n.Var) -> list[str]:
        """The slots that calls give this parameter, handed on from rule to rule or not."""
        found: dict[str, None] = {}
        seen = {(self._owner.get(id(parameter)), parameter.name)}
        work = list(seen)
        while work:
            for caller, arg in self._arguments.get(work.pop(), ()):
                if isinstance(arg, n.Slot):
                    found[arg.name] = None
                elif isinstance(arg, n.Var) and (caller, arg.name) not in seen:
                    seen.add((caller, arg.name))
                    work.append((caller, arg.name))
        return list(found)

    @cached_property
    def _arguments(self) -> dict[tuple[str, str], list[tuple[str, n.Node]]]:
        return n.arguments(self.rules)

    def of_rule(self, rule: str | None) -> Spot:
        """Where `rule` begins."""
        if rule not in self._begins:
            return Spot(rule, rule, self.source.name)
        return self._at(rule, rule, self._begins[rule], 1)

    def after_step(self, rule: str) -> Spot:
        """Where `rule` says what may follow its action."""
        return self.of_word(rule, STEP)

    def of_word(self, rule: str | None, word: str) -> Spot:
        """Where `word` first stands in `rule`'s expansion."""
        for number, first, text in self._expansion(rule):
            found = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text)
            if found:
                return self._at(rule, rule, number, first + found.start() + 1)
        return self.of_rule(rule)

    def _expansion(self, rule: str | None) -> Iterator[tuple[int, int, str]]:
        """(line number, characters left out before, text) of the lines of a rule, its name aside."""
        if rule not in self._begins:
            return
        begin = self._begins[rule]
        ends = set(self._begins.values())
        for number in range(begin, len(self._clear) + 1):
            text = self._clear[number - 1]
            if number > begin and (number in ends or text.lstrip().startswith("%")):
                return
            first = text.index(":") + 1 if number == begin and ":" in text else 0
            yield number, first, text[first:]

    def _at(self, rule: str | None, definition: str, line: int, column: int) -> Spot:
        text = self._lines[line - 1] if line <= len(self._lines) else ""
        return Spot(rule, definition, self.source.name, line, column, f"{text}\n{' ' * (column - 1)}^")
