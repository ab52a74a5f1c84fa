"""Read PDDL's notation: expressions in parentheses, with the offset of each word.

The time is linear in the length of the text. A comma counts as a space, since existing files have commas between
variables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from constrained.errors import PddlError
from constrained.grammar.source import Source
from constrained.planning.model import Formula

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


class SExpression(tuple):
    """An expression in parentheses, with their offset in the text, `at`."""

    at: int


def read_expression(source: Source, what: str) -> Formula:
    """Read a text that is one expression in parentheses.

    Parameters
    ----------
    source : Source
    what : str
        What the text is, for messages: "the PDDL problem".

    Raises
    ------
    PddlError
        The text nests too deeply, is empty, ends too early, closes too much, or goes on after the expression.
    """
    whole: SExpression | None = None
    open_lists: list[tuple[list, int]] = []  # what each open parenthesis holds so far, and its offset
    for match in _TOKEN.finditer(source.text):
        token = match.group()
        if token[0] == ";":
            continue
        if whole is not None:
            raise _after(source, match, what, whole)
        if token == "(":
            open_lists.append(([], match.start()))
            if len(open_lists) > MAX_DEPTH:
                raise _error(source, match.start(), f"{what} nests deeper than {MAX_DEPTH}")
        elif token == ")":
            if not open_lists:
                raise _error(source, match.start(), f"{what} has a closing parenthesis too many")
            items, start = open_lists.pop()
            closed = SExpression(items)
            closed.at = start
            if open_lists:
                open_lists[-1][0].append(closed)
            else:
                whole = closed
        elif open_lists:
            open_lists[-1][0].append(Word(token, match.start()))
        else:
            message = f"{what} begins with {token[:40]!r} instead of a parenthesis"
            raise _error(source, match.start(), message)
    if whole is not None:
        return whole
    if not open_lists:
        raise PddlError(f"{what} is empty", hint="it reads (define ...)", source=source.name)
    # The text ends inside a list: the innermost is where something is missing.
    items, start = open_lists[-1]
    name = f"({items[0]} ..." if items and isinstance(items[0], str) else "("
    message = f"{what} ends inside {name} opened on line {source.line_column(start)[0]}"
    raise _error(source, start, message, "a closing parenthesis is missing, or the file is cut short")


def _after(source: Source, match: re.Match[str], what: str, whole: SExpression) -> PddlError:
    """The error that a text goes on after its expression."""
    begun = f"that begins on line {source.line_column(whole.at)[0]}"
    if match.group() == ")":
        hint = "leave it out; or one before it closes a list too early"
        return _error(source, match.start(), f"{what} {begun} has a closing parenthesis too many", hint)
    hint = "a file has one (define ...): give others as files of their own"
    if match.group() != "(":
        hint = "leave it out, or begin a comment with ';'"
    return _error(source, match.start(), f"something follows {what} {begun}", hint)


def _error(source: Source, offset: int, message: str, hint: str | None = None) -> PddlError:
    """A PddlError at an offset of the text, with the line and a caret."""
    return PddlError(message, hint, **source.span(offset).for_error())


def words_in(part: Part) -> Iterator[Word]:
    """The words of an expression, from left to right."""
    if isinstance(part, Word):
        yield part
    elif isinstance(part, tuple):
        for inner in part:
            yield from words_in(inner)
