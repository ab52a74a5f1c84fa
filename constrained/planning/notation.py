"""Read PDDL's notation: expressions in parentheses, parsed without recursion, with the offset of each word.

The time is linear in the length of the text. A comma counts as a space, since existing files have commas between
variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from constrained.errors import PddlError
from constrained.planning.model import Formula

MAX_CHARACTERS = 4_000_000
"""Characters of a problem; the largest of ALFWorld's game files has 104,757."""

MAX_DEPTH = 60
"""Nested parentheses; ALFWorld's goals nest nine deep."""

_TOKEN = re.compile(r";[^\n]*|[()]|[^\s,();]+")

Part = Formula | str


class Word(str):
    """A word with its offset in the text, `at`."""

    at: int

    def __new__(cls, text: str, at: int) -> Word:
        word = super().__new__(cls, text)
        word.at = at
        return word


def read_expression(text: str, what: str, source: str | None = None) -> Formula:
    """Read the first expression in parentheses.

    Parameters
    ----------
    text : str
    what : str
        What the text is, for messages: "the PDDL problem".
    source : str, optional
        The file's name, for messages.

    Raises
    ------
    PddlError
        The text is too long, too deep, empty, ends too early or closes too much.
    """
    if len(text) > MAX_CHARACTERS:
        raise PddlError(
            f"{what} has {len(text):,} characters, more than {MAX_CHARACTERS:,}",
            hint="give one problem or domain, not several joined",
            source=source,
        )
    open_lists: list[tuple[list, int]] = []
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token[0] == ";":
            continue
        if token == "(":
            open_lists.append(([], match.start()))
            if len(open_lists) > MAX_DEPTH:
                raise error_at(text, match.start(), f"{what} nests deeper than {MAX_DEPTH}", source=source)
        elif token == ")":
            if not open_lists:
                raise error_at(text, match.start(), f"{what} has a closing parenthesis too many", source=source)
            closed = tuple(open_lists.pop()[0])
            if not open_lists:
                return closed
            open_lists[-1][0].append(closed)
        elif open_lists:
            open_lists[-1][0].append(Word(token, match.start()))
        else:
            message = f"{what} begins with {token[:40]!r} instead of a parenthesis"
            raise error_at(text, match.start(), message, source=source)
    if not open_lists:
        raise PddlError(f"{what} is empty", hint="it reads (define ...)", source=source)
    items, start = open_lists[-1]
    name = f"({items[0]} ..." if items and isinstance(items[0], str) else "("
    line = text.count("\n", 0, start) + 1
    message = f"{what} ends inside {name} opened on line {line}"
    raise error_at(text, start, message, "a closing parenthesis is missing, or the file is cut short", source)


def error_at(text: str, at: int, message: str, hint: str | None = None, source: str | None = None) -> PddlError:
    """A PddlError at an offset of the text, with the line and a caret."""
    line = text.count("\n", 0, at) + 1
    begin = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    shown = text[begin : end if end >= 0 else None].replace("\t", " ")[:200]
    column = at - begin + 1
    context = f"{shown}\n{' ' * (column - 1)}^" if column <= len(shown) + 1 else ""
    return PddlError(message, line=line, column=column, context=context, hint=hint, source=source)


def words_in(part: Part) -> Iterator[Word]:
    """The words of an expression, from left to right."""
    if isinstance(part, Word):
        yield part
    elif isinstance(part, tuple):
        for inner in part:
            yield from words_in(inner)
