"""Parse a text by the grammar that wrote it: the part that each rule and slot wrote.

Texts are parsed node by node; a grammar that a slot is bound to, such as the admitted actions, by its automaton. A
thought that looks like an action is still read as a thought. A slot that isn't bound may have written any text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from constrained.automaton.automaton import State, automaton_of
from constrained.errors import ActionError
from constrained.grammar import ContextFreeGrammar, nodes


@dataclass(frozen=True, eq=False)
class Chosen:
    """One text, wherever a parameter writes it: any value of a slot; `key`: the value that it depends on."""

    slot: str
    key: Value | None = None


class Part(NamedTuple):
    """The characters ``start:end`` of a text, written by the rule or slot `name`; `chosen` is the slot's value."""

    name: str
    start: int
    end: int
    chosen: Chosen | None = None


Parts = tuple[Part, ...]
Value: TypeAlias = "bytes | Chosen | tuple[nodes.Node, Values]"
Values: TypeAlias = Mapping[str, Value]


def parse(grammar: ContextFreeGrammar, text: str) -> dict[str, str]:
    """The text that each rule and slot of `grammar` wrote in `text`; the first, if it wrote several.

    Raises ActionError: `grammar` doesn't admit the text.
    """
    for parts in readings(grammar, text):
        return {part.name: text[part.start : part.end] for part in reversed(parts)}
    shown = text if len(text) <= 80 else f"{text[:80]}..."
    raise ActionError(f"{shown!r} is no text of the grammar that it is read by")


def readings(grammar: ContextFreeGrammar, text: str) -> Iterator[Parts]:
    """All parses of `text`, up to where an action ends, each as its parts; in the shipped formats there is one."""
    for end, parts in _Parser(grammar, text).ends(grammar.start, {}, 0, ()):
        if end >= len(text):
            yield tuple(sorted(parts, key=lambda part: (part.start, -part.end)))


class _Parser:
    def __init__(self, grammar: ContextFreeGrammar, text: str):
        self.grammar, self.text = grammar, text

    def ends(self, node: nodes.Node, values: Values, at: int, parts: Parts) -> Iterator[tuple[int, Parts]]:
        """The ends of texts of `node` that begin at `at`, the longest first, with `parts` and their own.

        The end of an action is one behind the text's.
        """
        text = self.text
        match node:
            case nodes.Literal(data=data):
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
                if high is None or high > 0:  # once, then the remaining repetitions
                    rest = nodes.repeat(item, max(low - 1, 0), None if high is None else high - 1)
                    for end, more in self._sequence((item, rest), values, at, parts):
                        if end > at or low:
                            yield end, more
                if low == 0:
                    yield at, parts
            case nodes.Call(rule=name):
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
        """Whether what `node` begins with can stand at `at`, as far as its first literal tells: most do not."""
        while isinstance(node, nodes.Call) or (isinstance(node, nodes.Seq) and node.items):
            node = self.grammar.rules[node.rule].body if isinstance(node, nodes.Call) else node.items[0]
        if isinstance(node, nodes.Slot) and node.name == nodes.STEP:
            return at == len(self.text)
        return not isinstance(node, nodes.Literal) or self.text.startswith(node.data.decode(), at)

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

    def _arguments(self, call: nodes.Call, values: Values) -> Values:
        found: dict[str, Value] = {}
        after: Value | None = None  # a slot's key stands after it
        for name, argument in reversed(list(zip(self.grammar.rules[call.rule].params, call.args))):
            match argument:
                case nodes.Var():
                    after = values[argument.name]
                case nodes.Literal():
                    after = argument.data
                case nodes.Slot() | nodes.Related():
                    after = self._chosen(argument, values, after)
                case _:
                    after = argument, values
            found[name] = after
        return found

    def _chosen(self, node: nodes.Slot | nodes.Related, values: Values, after: Value | None = None) -> Chosen:
        """One value of a slot; `after`: that of the argument after it."""
        while isinstance(node, nodes.Related):
            if node.relation == nodes.AT and isinstance(node.to, (nodes.Var, nodes.Literal)):
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
        """The ends of those of `values` that stand at `at`."""
        for value in sorted(values, key=len, reverse=True):
            word = value.decode()
            if self.text.startswith(word, at):
                yield at + len(word)

    def _written(self, grammar: ContextFreeGrammar, at: int) -> Iterator[int]:
        """The ends of the texts of `grammar` that begin at `at`."""
        state: State | None = automaton_of(grammar).start
        ends, end = [], at
        while state is not None:
            if state.accepting:
                ends.append(end)
            state = state.read(self.text[end].encode()) if end < len(self.text) else None
            end += 1
        return reversed(ends)


def text_of(value: Value | None, parts: Parts, text: str) -> str | None:
    """The text of a parameter's value, where it is known or stands among the parts of a text."""
    if isinstance(value, bytes):
        return value.decode()
    return next((text[part.start : part.end] for part in parts if part.chosen and part.chosen is value), None)


def _scope(given: Mapping[str, nodes.ScopeValue]) -> Values:
    found: dict[str, Value] = {}
    for name, value in given.items():
        if isinstance(value, nodes.Scoped):
            found[name] = value.node, _scope(value.values)
        elif isinstance(value, nodes.Node):
            found[name] = value, {}
        else:
            found[name] = value if isinstance(value, bytes) else Chosen("")
    return found
