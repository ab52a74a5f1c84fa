"""How a schema is read: what is honoured, refused or left out, and noted; and the space between its pieces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from constrained.errors import GrammarError
from constrained.grammar.charset import charset
from constrained.grammar.json_schema.shape import Schema
from constrained.grammar.json_schema.values import escaped
from constrained.grammar.nodes import EMPTY, Chars, Distinct, Node, alt, literal, repeat, seq
from constrained.grammar.patterns.formats import PATTERNS as FORMATS
from constrained.limits import Limits


@dataclass(frozen=True)
class Options:
    """See `Grammar.from_json_schema`.

    Attributes
    ----------
    left_out : dict
        Its keys are the pointers of keywords that are not honoured.
    unknown : dict
        Its keys are the pointers of annotations that are no keywords of the standard's.
    distinct : dict or None
        Rule -> what differs in what it reads (`nodes.Distinct`); None where that can't be remembered.
    closing : str
        What ends the text that the JSON stands in, such as ``</tool_call>``, and so may not stand literally in its
        strings; its first character occurs in it once. Empty if there is none.
    """

    limits: Limits
    any_order: bool = False
    closed: bool = False
    lenient: bool = False
    strict: bool = False
    formats: bool = True
    left_out: dict[str, None] = field(default_factory=dict)
    unknown: dict[str, None] = field(default_factory=dict)
    distinct: dict[str, Distinct] | None = None
    closing: str = ""

    def refuse(self, part: Schema, keyword: str, what: str, hint: str) -> None:
        """Leave a keyword out if `lenient`; else raise GrammarError."""
        if not self.lenient:
            raise part.error(keyword, what, f"{hint}; or lenient=True leaves it out")
        self.left_out[f"{part.pointer}/{escaped(keyword)}"] = None

    def enforces(self, format_name) -> bool:
        """Whether a `format` of that name restricts strings."""
        return self.formats and isinstance(format_name, str) and format_name in FORMATS

    def note(self, part: Schema, keyword: str) -> None:
        """Note a keyword that the standard doesn't know, and so takes for an annotation; if `strict`, raise."""
        if self.strict:
            raise part.error(
                keyword, f"{keyword[:80]!r} is no keyword that is known here", "correct it, or leave it out"
            )
        self.unknown[f"{part.pointer}/{escaped(keyword)}"] = None


INDENT = 100
"""Spaces or tabs that a line may begin with: white space is bounded, so that none goes on for ever."""


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
