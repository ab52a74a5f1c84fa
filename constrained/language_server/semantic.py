"""Semantic tokens: what each name in a file is, for editors that colour by meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from constrained.grammar import STEP
from constrained.grammar.lark_outline import IMPORT, SLOT, TERMINAL, Outline, OutlineEntry, symbols_in
from constrained.knowledge.base import Knowledge

TYPES = ("function", "class", "type", "variable", "parameter", "macro", "keyword")
"""The protocol's words for actions, other rules, terminals, slots, parameters, imports, and `_STEP`."""

MODIFIERS = ("definition",)

ACTION, RULE, WORD, VALUE, PARAMETER, IMPORTED, END = range(len(TYPES))

MOST_TOKENS = 20_000

Token = tuple[int, int, int, int, int]
"""Line and column (from 1, in characters), length, type and modifiers of a name."""


def tokens(outline: Outline, knowledge: Knowledge | None) -> list[Token]:
    """The tokens of all names, in the file's order, at most `MOST_TOKENS`."""
    return sorted(set(_tokens(outline, knowledge)))[:MOST_TOKENS]


def _tokens(outline: Outline, knowledge: Knowledge | None) -> Iterator[Token]:
    actions = frozenset(knowledge.graph.actions) if knowledge else frozenset()
    for definition in outline.definitions:
        span = definition.span
        yield span.line, span.column, (span.end or 0) - span.column, _type(definition, actions), 1
        for used in symbols_in(definition.options):
            line, column = outline.source.line_column(used.at)
            definitions = outline.by_name.get(used.text)
            if used.text in definition.params:
                yield line, column, len(used.text), PARAMETER, 0
            elif definitions:
                yield line, column, len(used.text), _type(definitions[0], actions), 0


def _type(definition: OutlineEntry, actions: frozenset[str]) -> int:
    if definition.name == STEP:
        return END
    if definition.name in actions:
        return ACTION
    return {SLOT: VALUE, TERMINAL: WORD, IMPORT: IMPORTED}.get(definition.kind, RULE)


def encode(found: Sequence[Token], lines: Sequence[str], units: Callable[[str], int]) -> list[int]:
    """Encode tokens as the protocol has them: five numbers each, positions relative to the token before.

    `lines`: those of the file. `units`: the length of a text as the editor counts it.
    """
    data: list[int] = []
    previous_line = previous_start = 0
    for line, column, length, kind, modifiers in found:
        text = lines[line - 1]
        down, start = line - 1 - previous_line, units(text[: column - 1])
        data += [down, start if down else start - previous_start, units(text[column - 1 :][:length]), kind, modifiers]
        previous_line, previous_start = line - 1, start
    return data
