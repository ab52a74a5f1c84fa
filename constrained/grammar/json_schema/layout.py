"""White space between the pieces of a JSON text: always bounded, so that none goes on for ever."""

from __future__ import annotations

from dataclasses import dataclass

from constrained.errors import GrammarError
from constrained.grammar import nodes as n
from constrained.grammar.charset import charset
from constrained.grammar.nodes import EMPTY, Chars, Node, alt, literal, repeat, seq

INDENT = 100
"""Spaces or tabs that a line may begin with."""


@dataclass(frozen=True)
class Layout:
    """What may stand after ``{`` or ``[`` and before ``}`` or ``]``, and how ``,`` and ``:`` are written."""

    edge: Node
    comma: Node
    colon: Node

    def around(self, opening: str, inside: Node, closing: str) -> Node:
        """`inside` between brackets."""
        return seq([literal(opening), self.edge, inside, self.edge, literal(closing)])


def layout(whitespace: str) -> Layout:
    """The layout of that name.

    Raises
    ------
    GrammarError
        There is none.
    """
    if whitespace not in LAYOUTS:
        raise GrammarError(f"no white space named {whitespace!r}", hint=f"there are: {', '.join(LAYOUTS)}")
    return LAYOUTS[whitespace]


_SPACE = repeat(literal(" "), 0, 1)
_LINE = n.seq([literal("\n"), repeat(Chars(charset([(9, 9), (32, 32)])), 0, INDENT)])
_BREAK = alt([EMPTY, literal(" "), _LINE])

LAYOUTS = {
    "flexible": Layout(_BREAK, seq([literal(","), _BREAK]), seq([literal(":"), _SPACE])),
    "single": Layout(EMPTY, seq([literal(","), _SPACE]), seq([literal(":"), _SPACE])),
    "dumps": Layout(EMPTY, literal(", "), literal(": ")),
    "compact": Layout(EMPTY, literal(","), literal(":")),
}
