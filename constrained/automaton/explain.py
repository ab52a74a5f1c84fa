"""Describe what may come next at a position, and trace which pieces of a grammar have read a text.

The automaton joins positions that read the same, whichever pieces of the grammar they came from. A
`Trace` reads one text so that each position keeps the frames that led to it on this text.
"""

from __future__ import annotations

from constrained.automaton.automaton import Automaton
from constrained.automaton.control_tokens import MARK
from constrained.automaton.positions import InChoices, InExcept, InJsonText, InLiteral, InText, Position, Stack
from constrained.automaton.state import Prefix
from constrained.grammar.charset import class_text

SHOWN = 6
"""Number of alternatives that a message names at most."""
LONGEST = 80
"""Number of characters of a text that a message shows at most."""


def expected(prefix: Prefix) -> str:
    """Describe what may come next after `prefix` in one line; empty if nothing may."""
    texts: list[str] = []
    for q in prefix.positions:
        if isinstance(q, InChoices):
            texts += [_quoted(value[q.depth :]) for value in q.values[q.low : q.high]]
        else:
            texts.append(expected_text(q))
    texts = [text for text in dict.fromkeys(texts) if text]
    return few(texts, len(texts))


def expected_text(q: Position) -> str:
    """Describe what is read at `q`: texts in quotes, characters as a regular expression; empty if nothing is."""
    if isinstance(q, InLiteral):
        return _quoted(q.data[q.at :])
    if isinstance(q, InChoices):
        shown = q.values[q.low : min(q.high, q.low + SHOWN)]
        return few([_quoted(value[q.depth :]) for value in shown], q.high - q.low)
    if isinstance(q, InExcept):
        return f"/{class_text(q.chars)}*/"
    if isinstance(q, InJsonText):
        return "a text that the schema admits"
    if isinstance(q, InText):
        inside = "the rest of a character, then " if q.inside is not None else ""
        return f"{inside}/{class_text(q.chars)}{_times(q)}/"
    return ""


def few(texts: list[str], count: int) -> str:
    """Join the first of `count` texts, and say how many more there are."""
    more = f" and {count - SHOWN} more" if count > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more


def quoted(text: str) -> str:
    """Quote `text`, shortened if it is long."""
    return repr(text) if len(text) <= LONGEST else f"{text[:LONGEST]!r}... ({len(text):,} characters)"


def _quoted(data: bytes) -> str:
    return quoted(data.removeprefix(MARK).decode("utf-8", "replace"))


def _times(q: InText) -> str:
    """The repeat operator for the remaining characters; a character of which some bytes are read isn't counted."""
    low, high = q.low, q.high
    if q.inside is not None:
        low, high = max(low - 1, 0), None if high is None else high - 1
    if high is None:
        return {0: "*", 1: "+"}.get(low, f"{{{low},}}")
    if (low, high) == (0, 1):
        return "?"
    return "" if low == high == 1 else f"{{{low}}}" if low == high else f"{{{low},{high}}}"


class Trace:
    """The positions after a growing text, with the grammar frames that led to each.

    Attributes
    ----------
    at : dict of Position to list of Frame
        The positions after the text so far, each with the frames that it belongs to.
    """

    def __init__(self, automaton: Automaton):
        self.automaton = automaton
        self._entered: dict[int, dict[Position, Stack]] = {}
        self.at: dict[Position, list[Stack]] = {q: [frame] for q, frame in self._enter(automaton.root).items()}

    def read(self, data: bytes) -> int:
        """Read as much of `data` as the grammar admits, and return the number of bytes read."""
        for count, byte in enumerate(data):
            after = self._step(byte)
            if not after:
                return count
            self.at = after
        return len(data)

    def _step(self, byte: int) -> dict[Position, list[Stack]]:
        result: dict[Position, dict[Stack, None]] = {}
        for q, frames in self.at.items():
            for after in q.step(self.automaton.closure, byte):
                origins = result.setdefault(after, {})
                if _continues(q, after):
                    origins.update(dict.fromkeys(frames))
                    continue
                entered = self._enter(self._next(q, byte))
                # The stack of `after` may be a join: then take the frames of all entered positions of its type.
                alike = [after] if after in entered else [r for r in entered if type(r) is type(after)]
                origins.update((entered[r], None) for r in alike)
        return {q: list(origins) for q, origins in result.items()}

    def _enter(self, frame: Stack) -> dict[Position, Stack]:
        if frame is None:
            return {self.automaton.positions.accept: None}
        if frame.number not in self._entered:
            self._entered[frame.number] = self.automaton.closure.entered_by(frame)
        return self._entered[frame.number]

    def _next(self, q: Position, byte: int) -> Stack:
        """The frame after the text of `q`, if `byte` is the last one of that text."""
        if isinstance(q, InChoices) and q.bind is not None and q.rest is not None:
            value = q.values[q.low][: q.depth] + bytes((byte,))
            return self.automaton.closure.after_choice(q.rest, q.bind, value)
        return q.rest


def _continues(q: Position, after: Position) -> bool:
    """Whether `after` is still in the construct that `q` reads, rather than in the next one."""
    if q.rest is not after.rest:
        return False
    if isinstance(q, InLiteral) and isinstance(after, InLiteral):
        return after.at == q.at + 1 and after.data == q.data
    if isinstance(q, InChoices) and isinstance(after, InChoices):
        return after.depth == q.depth + 1 and after.values is q.values
    if isinstance(q, InExcept):
        return isinstance(after, (InExcept, InText)) and after.chars is q.chars
    if isinstance(q, InJsonText):
        return isinstance(after, InJsonText) and after.table is q.table
    if not isinstance(q, InText) or not isinstance(after, InText) or after.chars is not q.chars:
        return False
    counts = max(q.low - 1, 0), None if q.high is None else q.high - 1
    return after.inside is not None or (after.low, after.high) == counts
