"""White space between the pieces of JSON: always bounded, so that none goes on for ever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from constrained.errors import GrammarError
from constrained.grammar.charset import charset
from constrained.grammar.nodes import EMPTY, Chars, Node, alt, literal, repeat, seq

INDENT = 100
"""Spaces or tabs that a line may begin with."""


@dataclass(frozen=True)
class Layout:
    """What can stand after ``{`` or ``[`` and before ``}`` or ``]``, and how ``,`` and ``:`` are written.

    `separators`: the same for texts without line breaks, as (comma, colon).
    """

    edge: Node
    comma: Node
    colon: Node
    separators: tuple[tuple[str, str], ...]

    def around(self, opening: str, inside: Node, closing: str) -> Node:
        """`inside` between brackets."""
        return seq([literal(opening), self.edge, inside, self.edge, literal(closing)])

    def between(self, opening: str, items: Sequence[Node], closing: str) -> Node:
        """Items between brackets, with commas."""
        if not items:
            return literal(opening + closing)
        parts = [seq([self.comma if i else EMPTY, item]) for i, item in enumerate(items)]
        return self.around(opening, seq(parts), closing)

    def in_a_row(self, own: Sequence[Node], rest: Node, low: int, high: int | None) -> Node:
        """The items in `own` in order, then any number of `rest`, with commas: `low` to `high` in all, one at least."""
        first, *following = own or [rest]
        beyond = max(len(own), 1)
        tail = repeat(seq([self.comma, rest]), max(low - beyond, 0), None if high is None else max(high - beyond, 0))
        for index in range(len(following), 0, -1):
            tail = seq([self.comma, following[index - 1], tail])
            tail = tail if index < low else alt([EMPTY, tail])
        return seq([first, tail])


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
_LINE = seq([literal("\n"), repeat(Chars(charset([(9, 9), (32, 32)])), 0, INDENT)])
_BREAK = alt([EMPTY, literal(" "), _LINE])

_EACH = tuple((comma, colon) for comma in (",", ", ") for colon in (":", ": "))

LAYOUTS = {
    "flexible": Layout(_BREAK, seq([literal(","), _BREAK]), seq([literal(":"), _SPACE]), _EACH),
    "single": Layout(EMPTY, seq([literal(","), _SPACE]), seq([literal(":"), _SPACE]), _EACH),
    "dumps": Layout(EMPTY, literal(", "), literal(": "), ((", ", ": "),)),
    "compact": Layout(EMPTY, literal(","), literal(":"), ((",", ":"),)),
}
