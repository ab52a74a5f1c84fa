"""Parse a text by the grammar that wrote it: the part that each rule and slot wrote.

The strategies' formats (`grammars/steps/`, `grammars/lumos/`) are simple: fixed words, free text up to a line break,
and slots. These are parsed node by node; a grammar that a slot is bound to, such as the admitted actions, by its
automaton. A thought that looks like an action is still read as a thought.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from constrained.automaton.automaton import State, automaton_of
from constrained.errors import ActionError
from constrained.grammar import ContextFreeGrammar, nodes


class Part(NamedTuple):
    """The characters ``start:end`` of a text, written by the rule or slot `name`."""

    name: str
    start: int
    end: int


Parts = tuple[Part, ...]


def parse(grammar: ContextFreeGrammar, text: str) -> dict[str, str]:
    """The text that each rule and slot of `grammar` wrote in `text`; the first, if it wrote several.

    Raises ActionError: `grammar` doesn't admit the text.
    """
    for parts in readings(grammar, text):
        return {part.name: text[part.start : part.end] for part in reversed(parts)}
    shown = text if len(text) <= 80 else f"{text[:80]}..."
    raise ActionError(f"{shown!r} is no text of the grammar that it is read by")


def readings(grammar: ContextFreeGrammar, text: str) -> Iterator[Parts]:
    """All parses of `text`, each as its parts in order; in the shipped formats there is one."""
    return (parts for end, parts in _ends(grammar, grammar.start, text, 0) if end == len(text))


def _ends(grammar: ContextFreeGrammar, node: nodes.Node, text: str, at: int) -> Iterator[tuple[int, Parts]]:
    """The ends of texts of `node` that begin at `at`, the longest first, with their parts."""
    match node:
        case nodes.Literal(data=data):
            yield from _listed((data,), text, at)
        case nodes.Choices(values=values):
            yield from _listed(values, text, at)
        case nodes.Chars(chars=chars):
            if at < len(text) and ord(text[at]) in chars:
                yield at + 1, ()
        case nodes.Seq(items=items):
            yield from _sequence(grammar, items, text, at)
        case nodes.Alt(items=items):
            for item in items:
                yield from _ends(grammar, item, text, at)
        case nodes.Repeat(item=item, low=low, high=high):
            most = len(text) - at if high is None else high
            if isinstance(item, nodes.Chars):
                end, last = at, min(len(text), at + most)
                while end < last and ord(text[end]) in item.chars:
                    end += 1
                yield from ((stop, ()) for stop in range(end, at + low - 1, -1))
                return
            if most > 0:  # once, then the remaining repetitions
                rest = nodes.repeat(item, max(low - 1, 0), None if high is None else high - 1)
                for end, parts in _sequence(grammar, (item, rest), text, at):
                    if end > at or low:
                        yield end, parts
            if low == 0:
                yield at, ()
        case nodes.Call(rule=name, args=()):
            for end, parts in _ends(grammar, grammar.rules[name].body, text, at):
                yield end, (Part(name, at, end), *parts)
        case nodes.Slot(name=name):
            value = grammar.bindings.get(name, ())
            assert not isinstance(value, dict), "values by key are for templates"
            found = _written(value, text, at) if isinstance(value, ContextFreeGrammar) else _listed(value, text, at)
            yield from ((end, (Part(name, at, end),)) for end, _ in found)
        case _:
            raise TypeError(f"a step format has no {type(node).__name__.lower()} nodes")


def _sequence(
    grammar: ContextFreeGrammar, items: tuple[nodes.Node, ...], text: str, at: int
) -> Iterator[tuple[int, Parts]]:
    if not items:
        yield at, ()
        return
    for middle, parts in _ends(grammar, items[0], text, at):
        for end, more in _sequence(grammar, items[1:], text, middle):
            yield end, parts + more


def _listed(values: tuple[bytes, ...], text: str, at: int) -> Iterator[tuple[int, Parts]]:
    """The ends of those of `values` that stand at `at`."""
    for value in sorted(values, key=len, reverse=True):
        word = value.decode()
        if text.startswith(word, at):
            yield at + len(word), ()


def _written(grammar: ContextFreeGrammar, text: str, at: int) -> Iterator[tuple[int, Parts]]:
    """The ends of the texts of `grammar` that begin at `at`."""
    state: State | None = automaton_of(grammar).start
    ends, end = [], at
    while state is not None:
        if state.accepting:
            ends.append(end)
        state = state.read(text[end].encode()) if end < len(text) else None
        end += 1
    return ((end, ()) for end in reversed(ends))
