"""Parse a text by the grammar that wrote it, and return the part that each rule and slot wrote.

Texts are parsed node by node. Where a slot is bound to a grammar, such as the admitted actions, the automaton of that
grammar reads its part. A thought that looks like an action is still read as a thought. A slot that isn't bound may have
written any text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from constrained.automaton.automaton import begin
from constrained.automaton.state import Prefix
from constrained.errors import ActionError
from constrained.grammar import ContextFreeGrammar, nodes


@dataclass(frozen=True, eq=False)
class Chosen:
    """A parameter whose value isn't known before the text: any value of `slot` (at `key`, if it depends on one)."""

    slot: str
    key: Value | None = None


class Part(NamedTuple):
    """The characters ``start:end`` of a text, written by the rule or slot `name`; `chosen` identifies the value."""

    name: str
    start: int
    end: int
    chosen: Chosen | None = None


Parts = tuple[Part, ...]
Value: TypeAlias = "bytes | Chosen | tuple[nodes.Node, Values]"
Values: TypeAlias = Mapping[str, Value]


def parse(grammar: ContextFreeGrammar, text: str) -> dict[str, str]:
    """The part of `text` that each rule and slot of `grammar` matched, by name; the first part if there are several.

    Raises ActionError: `grammar` doesn't admit the text.
    """
    for parts in parses(grammar, text):
        return {part.name: text[part.start : part.end] for part in reversed(parts)}
    shown = text if len(text) <= 80 else f"{text[:80]}..."
    raise ActionError(f"{shown!r} is no text of the grammar that it is read by")


def parses(grammar: ContextFreeGrammar, text: str) -> Iterator[Parts]:
    """Yield all parses of `text` up to the end of an action, each as its parts. The shipped formats are unambiguous."""
    for end, parts in _TextParser(grammar, text).ends(grammar.start, {}, 0, ()):
        if end >= len(text):
            yield tuple(sorted(parts, key=lambda part: (part.start, -part.end)))


class _TextParser:
    def __init__(self, grammar: ContextFreeGrammar, text: str):
        self.grammar, self.text = grammar, text

    def ends(self, node: nodes.Node, values: Values, at: int, parts: Parts) -> Iterator[tuple[int, Parts]]:
        """Yield (end, parts) for each text of `node` that begins at `at`, the longest first.

        Where `node` ends the action, the end is ``len(text) + 1``.
        """
        text = self.text
        match node:
            case nodes.LiteralText(data=data):
                if self.text.startswith(word := data.decode(), at):
                    yield at + len(word), parts
            case nodes.Choices(values=listed):
                yield from ((end, parts) for end in self._listed(listed, at))
            case nodes.Chars(chars=chars):
                if at < len(text) and ord(text[at]) in chars:
                    yield at + 1, parts
            case nodes.Seq(items=items):
                yield from self._sequence(items, values, at, parts)
            case nodes.Alt(items=items):
                for item in items:
                    if self._may_begin(item, at):
                        yield from self.ends(item, values, at, parts)
            case nodes.Repeat(item=nodes.Chars(chars=chars), low=low, high=high):
                most, last = at, len(text) if high is None else min(len(text), at + high)
                while most < last and ord(text[most]) in chars:
                    most += 1
                yield from ((stop, parts) for stop in range(most, at + low - 1, -1))
            case nodes.Repeat(item=item, low=low, high=high):
                if high is None or high > 0:  # the item, then the remaining repetitions
                    rest = nodes.repeat(item, max(low - 1, 0), None if high is None else high - 1)
                    for end, more in self._sequence((item, rest), values, at, parts):
                        if end > at or low:
                            yield end, more
                if low == 0:
                    yield at, parts
            case nodes.RuleRef(rule=name):
                rule = self.grammar.rules[name]
                for end, more in self.ends(rule.body, self._arguments(node, values), at, parts):
                    yield end, (*more, Part(name, at, end))
            case nodes.Scoped(node=inner, values=given):
                yield from self.ends(inner, _scope(given), at, parts)
            case nodes.Slot(name=nodes.STEP):
                if at == len(text):
                    yield at + 1, parts
            case nodes.Slot(name=name) if name in self.grammar.bindings:
                value = self.grammar.bindings[name]
                assert not isinstance(value, dict), "values by key are for templates"
                stops = self._written(value, at) if isinstance(value, ContextFreeGrammar) else self._listed(value, at)
                yield from ((stop, (*parts, Part(name, at, stop))) for stop in stops)
            case nodes.Slot() | nodes.Related():
                yield from self._value(self._chosen(node, values), at, parts)
            case nodes.Var(name=name):
                yield from self._value(values[name], at, parts)
            case _:
                yield from ((end, parts) for end in self._written(self.grammar.with_start(node), at))

    def _may_begin(self, node: nodes.Node, at: int) -> bool:
        """Whether `node` may begin at `at`, judged by its first literal; this rules out most alternatives cheaply."""
        while isinstance(node, nodes.RuleRef) or (isinstance(node, nodes.Seq) and node.items):
            node = self.grammar.rules[node.rule].body if isinstance(node, nodes.RuleRef) else node.items[0]
        if isinstance(node, nodes.Slot) and node.name == nodes.STEP:
            return at == len(self.text)
        return not isinstance(node, nodes.LiteralText) or self.text.startswith(node.data.decode(), at)

    def _sequence(
        self, items: tuple[nodes.Node, ...], values: Values, at: int, parts: Parts
    ) -> Iterator[tuple[int, Parts]]:
        if not items or at > len(self.text):
            yield at, parts
            return
        for middle, more in self.ends(items[0], values, at, parts):
            if len(items) == 1 or middle > len(self.text):
                yield middle, more
            elif self._may_begin(items[1], middle):
                yield from self._sequence(items[1:], values, middle, more)

    def _arguments(self, call: nodes.RuleRef, values: Values) -> Values:
        result: dict[str, Value] = {}
        after: Value | None = None  # a slot's key is the argument after it
        for name, argument in reversed(list(zip(self.grammar.rules[call.rule].params, call.args))):
            match argument:
                case nodes.Var():
                    after = values[argument.name]
                case nodes.LiteralText():
                    after = argument.data
                case nodes.Slot() | nodes.Related():
                    after = self._chosen(argument, values, after)
                case _:
                    after = argument, values
            result[name] = after
        return result

    def _chosen(self, node: nodes.Slot | nodes.Related, values: Values, after: Value | None = None) -> Chosen:
        """The `Chosen` for a slot; `after`, the value of the argument after it, may be its key."""
        while isinstance(node, nodes.Related):
            if node.relation == nodes.AT and isinstance(node.to, (nodes.Var, nodes.LiteralText)):
                after = values[node.to.name] if isinstance(node.to, nodes.Var) else node.to.data
            node = node.values
        return Chosen(node.name, None if isinstance(after, tuple) else after)

    def _value(self, value: Value, at: int, parts: Parts) -> Iterator[tuple[int, Parts]]:
        if isinstance(value, tuple):
            yield from self.ends(*value, at, parts)
        elif (written := text_of(value, parts, self.text)) is not None:
            yield from ((end, parts) for end in self._listed((written.encode(),), at))
        elif isinstance(value, Chosen):
            yield from ((end, (*parts, Part(value.slot, at, end, value))) for end in range(len(self.text), at, -1))

    def _listed(self, values: tuple[bytes, ...], at: int) -> Iterator[int]:
        """Yield the ends of those of `values` that are at `at`."""
        for value in sorted(values, key=len, reverse=True):
            word = value.decode()
            if self.text.startswith(word, at):
                yield at + len(word)

    def _written(self, grammar: ContextFreeGrammar, at: int) -> Iterator[int]:
        """Yield the ends of the texts of `grammar` that begin at `at`."""
        state: Prefix | None = begin(grammar)
        ends, end = [], at
        while state is not None:
            if state.accepting:
                ends.append(end)
            state = state.read(self.text[end].encode()) if end < len(self.text) else None
            end += 1
        return reversed(ends)


def text_of(value: Value | None, parts: Parts, text: str) -> str | None:
    """The text of a parameter's value, if it is known or is among the parts of `text`."""
    if isinstance(value, bytes):
        return value.decode()
    return next((text[part.start : part.end] for part in parts if part.chosen and part.chosen is value), None)


def _scope(given: Mapping[str, nodes.ScopeValue]) -> Values:
    result: dict[str, Value] = {}
    for name, value in given.items():
        if isinstance(value, nodes.Scoped):
            result[name] = value.node, _scope(value.values)
        elif isinstance(value, nodes.Node):
            result[name] = value, {}
        else:
            result[name] = value if isinstance(value, bytes) else Chosen("")
    return result
