"""What each name in a file is, for editors that colour by meaning: only who reads the whole file can tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from constrained.grammar import STEP
from constrained.grammar.lark_outline import IMPORT, SLOT, TERMINAL, Outline, OutlineEntry, names_in
from constrained.knowledge.action_knowledge import ActionKnowledge

TYPES = ("function", "class", "type", "variable", "parameter", "macro", "keyword")
"""The protocol's words for actions, other rules, terminals, slots, parameters, what is imported, and `_STEP`."""

MODIFIERS = ("definition",)

ACTION, RULE, WORD, VALUE, PARAMETER, IMPORTED, END = range(len(TYPES))

MOST_TOKENS = 20_000

Token = "tuple[int, int, int, int, int]"


def tokens(outline: Outline, knowledge: ActionKnowledge | None) -> list[Token]:
    """Line and column (from 1, in characters), length, type and modifiers of each name, in the file's order."""
    return sorted(set(_tokens(outline, knowledge)))[:MOST_TOKENS]


def _tokens(outline: Outline, knowledge: ActionKnowledge | None) -> Iterator[Token]:
    actions = frozenset(knowledge.graph.actions) if knowledge else frozenset()
    for definition in outline.definitions:
        place = definition.span
        yield place.line, place.column, (place.end or 0) - place.column, _type(definition, actions), 1
        for used in names_in(definition.options):
            line, column = outline.source.line_column(used.at)
            known = outline.by_name.get(used.text)
            if used.text in definition.params:
                yield line, column, len(used.text), PARAMETER, 0
            elif known:
                yield line, column, len(used.text), _type(known[0], actions), 0


def _type(definition: OutlineEntry, actions: frozenset[str]) -> int:
    if definition.name == STEP:
        return END
    if definition.name in actions:
        return ACTION
    return {SLOT: VALUE, TERMINAL: WORD, IMPORT: IMPORTED}.get(definition.kind, RULE)


def encode(found: Sequence[Token], lines: Sequence[str], units: Callable[[str], int]) -> list[int]:
    """Tokens as the protocol has them: five numbers each, places relative to the token before.

    Parameters
    ----------
    found : sequence of tokens
    lines : sequence of str
        The file's.
    units : callable
        How long an editor counts a text.
    """
    data: list[int] = []
    before = first = 0
    for line, column, length, kind, modifiers in found:
        text = lines[line - 1]
        down, at = line - 1 - before, units(text[: column - 1])
        data += [down, at if down else at - first, units(text[column - 1 :][:length]), kind, modifiers]
        before, first = line - 1, at
    return data
