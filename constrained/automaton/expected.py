"""What may come at a position, in words."""

from __future__ import annotations

from constrained.automaton import positions as p
from constrained.automaton.state import State
from constrained.grammar.charset import class_text

SHOWN = 6
"""Texts, or kinds of text, that are named where there are many."""
LONGEST = 80
"""Characters of a text that are shown."""


def expected_text(q: p.Position) -> str:
    """What is read at `q`: texts in quotes, characters as a regular expression; empty where nothing is."""
    if isinstance(q, p.InLiteral):
        return _quoted(q.data[q.at :])
    if isinstance(q, p.InChoices):
        return few(
            [_quoted(value[q.depth :]) for value in q.values[q.low : min(q.high, q.low + SHOWN)]], q.high - q.low
        )
    if isinstance(q, p.InText):
        inside = "the rest of a character, then " if q.inside is not None else ""
        return f"{inside}/{class_text(q.chars)}{_times(q)}/"
    return ""


def expected(state: State) -> str:
    """What may come at `state`, in one line; empty if nothing may."""
    texts = []
    for q in state.positions:
        if isinstance(q, p.InChoices):
            texts += [_quoted(value[q.depth :]) for value in q.values[q.low : q.high]]
        else:
            texts.append(expected_text(q))
    texts = [text for text in dict.fromkeys(texts) if text]
    return few(texts, len(texts))


def few(texts: list[str], count: int) -> str:
    """The first of `count` texts, and how many more there are."""
    more = f" and {count - SHOWN} more" if count > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more


def _times(q: p.InText) -> str:
    """The repeat still open: with a character begun, what comes after it."""
    low, high = q.low, q.high
    if q.inside is not None:
        low, high = max(low - 1, 0), None if high is None else high - 1
    if high is None:
        return {0: "*", 1: "+"}.get(low, f"{{{low},}}")
    if (low, high) == (0, 1):
        return "?"
    return "" if low == high == 1 else f"{{{low}}}" if low == high else f"{{{low},{high}}}"


def _quoted(data: bytes) -> str:
    return quoted(data.decode("utf-8", "replace"))


def quoted(text: str) -> str:
    """`text` in quotes, cut short where it is long."""
    return repr(text) if len(text) <= LONGEST else f"{text[:LONGEST]!r}... ({len(text):,} characters)"
