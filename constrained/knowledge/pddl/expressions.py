"""PDDL's notation: parenthesised expressions, and typed lists of names.

What is read is what PDDL's grammar calls an expression (McDermott et al., *PDDL: the
Planning Domain Definition Language*, 1998): words and expressions in parentheses,
comments from `;` to the end of the line. A comma counts as a space, as files in use
have it between variables. The reader is not recursive, and its work is bounded by the
length of the text.
"""

from __future__ import annotations

import re
from typing import Union

from constrained.errors import PddlError

Formula = tuple[Union[str, "Formula"], ...]
"""("objectType", "?o", "MugType"), ("and", (...), (...)), ...; the variables of a quantifier
stay a flat list: ("exists", ("?o", "-", "object"), (...))."""

MAX_CHARACTERS = 4_000_000  # the largest game file of ALFWorld has 104,757
MAX_DEPTH = 60  # ALFWorld's goals nest nine deep

_TOKEN = re.compile(r";[^\n]*|[()]|[^\s,();]+")


class Word(str):
    """A word that knows where it stands: `at` characters from the beginning of its text."""

    at: int

    def __new__(cls, text: str, at: int):
        word = super().__new__(cls, text)
        word.at = at
        return word


def read_expression(text: str, what: str, *, places: bool = False, source: str | None = None) -> Formula:
    """Read the first parenthesised expression.

    Parameters
    ----------
    text : str
    what : str
        What the text is, for messages: "the PDDL problem".
    places : bool
        Make the words `Word`s, which takes longer.
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
        )
    stack: list[tuple[list, int]] = []
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token[0] == ";":
            continue
        if token == "(":
            stack.append(([], match.start()))
            if len(stack) > MAX_DEPTH:
                raise error_at(text, match.start(), f"{what} nests deeper than {MAX_DEPTH}", source=source)
        elif token == ")":
            if not stack:
                raise error_at(text, match.start(), f"{what} closes what was never opened", source=source)
            done = tuple(stack.pop()[0])
            if not stack:
                return done
            stack[-1][0].append(done)
        elif stack:
            stack[-1][0].append(Word(token, match.start()) if places else token)
        else:
            message = f"{what} begins with {token[:40]!r} instead of a parenthesis"
            raise error_at(text, match.start(), message, source=source)
    if not stack:
        raise PddlError(f"{what} is empty", hint="it reads (define ...)")
    opened, start = stack[-1]
    name = f"({opened[0]} ..." if opened and isinstance(opened[0], str) else "("
    line = text.count("\n", 0, start) + 1
    message = f"{what} ends inside {name} opened on line {line}"
    raise error_at(text, start, message, "a closing parenthesis is missing, or the file is cut short", source)


def typed_names(tokens: Formula) -> list[tuple[str, str]]:
    """Pair each name with its type in a list such as ``a b - object r - receptacle``.

    Names after which no type follows are of PDDL's root type ``object``.
    """
    pairs: list[tuple[str, str]] = []
    waiting: list[str] = []
    tokens_left = iter(tokens)
    for token in tokens_left:
        if not isinstance(token, str):
            raise PddlError(f"a typed list holds an expression where a name belongs: {token!r}")
        if token != "-":
            waiting.append(token)
            continue
        kind = next(tokens_left, None)
        if not isinstance(kind, str):
            raise PddlError(f"no type follows '{' '.join(waiting[-3:])} -' in a typed list")
        pairs += [(name, kind) for name in waiting]
        waiting = []
    return pairs + [(name, "object") for name in waiting]


def error_at(text: str, at: int, message: str, hint: str | None = None, source: str | None = None) -> PddlError:
    """A PddlError at a place of the text, with the line and a caret."""
    line = text.count("\n", 0, at) + 1
    begin = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    shown = text[begin : end if end >= 0 else None].replace("\t", " ")[:200]
    column = at - begin + 1
    context = f"{shown}\n{' ' * (column - 1)}^" if column <= len(shown) + 1 else ""
    return PddlError(message, line=line, column=column, context=context, hint=hint, source=source)
