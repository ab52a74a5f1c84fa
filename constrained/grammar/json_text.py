r"""What stands between the quotes of a JSON string, read by a deterministic automaton of characters.

A character is itself, or an escape as `json.dumps` writes it, with or without `ensure_ascii`. Where any character may
come, each has every escape there is (RFC 8259, section 7). The kernel reads the same tables (``kernel/json_text.c``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from constrained.grammar.charset import MAX_CODE_POINT
from constrained.grammar.nodes import Lazy, Node

MOST_STEPS = 1 << 23
"""Steps of a table, all states by all classes, that the kernel takes."""

NO_END = (1 << 31) - 1
"""In place of a number of characters to an end where there is none."""

_CHARACTER, _ESCAPE, _DIGITS, _PAIR, _PAIR_ESCAPE, _PAIR_DIGITS = range(1, 7)
"""Where in a character: some of its bytes read; after a backslash; after ``\\u``; and the same for a surrogate pair.

A place in a character, `inside`, is one number: this kind (from bit 28 on), the bytes that are left or the digits that
are read (4 bits), and what is known of the character (24 bits). It is 0 between two characters.
"""

LONGEST_CHARACTER = 12
"""Bytes of a surrogate pair, the longest spelling."""

_ANY_ESCAPE = -1
"""Stands for a character that is escaped without need."""

_SHORT = {ord(c): code for c, code in zip('bfnrt"\\/', (8, 12, 10, 13, 9, 0x22, 0x5C, _ANY_ESCAPE))}

NEEDLESS_ESCAPE = (_ANY_ESCAPE, _ANY_ESCAPE)
"""The range that stands for the escapes of characters that need none."""

_EVERY = ((0, MAX_CODE_POINT), NEEDLESS_ESCAPE)
"""The ranges of all characters."""

_ONE_BYTE = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x7F))
"""The characters that stand for themselves in one byte."""


@dataclass(frozen=True, eq=False)
class Table:
    """An automaton of characters whose states all lead to an end; state 0 is the first.

    Attributes
    ----------
    starts, classes : tuple of int
        Where a range of alike characters begins, ascending from 0, and the class they are in; -1: no character.
    after : tuple of tuples of int
        State -> the state after a character of each class, then after one that is escaped without need; -1: none.
    ends : tuple of bool
        Whether a text may end in a state.
    """

    starts: tuple[int, ...]
    classes: tuple[int, ...]
    after: tuple[tuple[int, ...], ...]
    ends: tuple[bool, ...]

    @cached_property
    def fewest(self) -> tuple[int, ...]:
        """The fewest characters from each state to an end."""
        return tuple(distances(np.array(self.after, ndmin=2), np.array(self.ends)).tolist())

    @cached_property
    def farthest(self) -> int:
        """The most characters that a state is from the nearest end."""
        return max(self.fewest)

    def goes_on(self, state: int, left: int | None) -> bool:
        """Whether one of at most `left` characters (None: any number) may come."""
        return any(self._leads(to, left) for to in self.after[state])

    def check(self) -> None:
        """Raise ValueError unless it can be an automaton's: read from a file, it may be anything."""
        states, width = len(self.after), max(self.classes) + 2
        ordered = all(a < b for a, b in pairwise((-1, *self.starts, MAX_CODE_POINT + 1))) and self.starts[0] == 0
        counts = len(self.starts) == len(self.classes) and len(self.ends) == states and states * width <= MOST_STEPS
        rows = all(len(row) == width and all(-1 <= to < states for to in row) for row in self.after)
        if not (ordered and counts and rows and min(self.classes) >= -1 and max(self.fewest) < NO_END):
            raise ValueError("no table of an automaton")

    def bytes_left(self, state: int, inside: int, least: bool = False) -> int:
        """A bound on the fewest bytes to an end, one or more characters from here; a lower one if `least`."""
        nearest = min((self.fewest[to] for to in self._ahead(state, inside) if to >= 0), default=0)  # 0: it only ends
        kind, count = inside >> 28, inside >> 24 & 15
        if least:
            return (1, count, 1, 4 - count, 6, 5, 4 - count)[kind] + nearest
        begun = (12, count, 11, 10 - count, 6, 5, 4 - count)[kind]
        return begun + LONGEST_CHARACTER * nearest

    def step(self, state: int, left: int | None, inside: int, byte: int) -> tuple[int, int | None, int] | None:
        """The state, the characters left and the place inside a character after one more byte."""
        inside, code = _read(inside, byte)
        if inside < 0:
            return None
        if inside:
            return (state, left, inside) if any(self._leads(to, left) for to in self._ahead(state, inside)) else None
        to = self._to(state, code)
        return (to, None if left is None else left - 1, 0) if self._leads(to, left) else None

    def _to(self, state: int, code: int) -> int:
        if code == _ANY_ESCAPE:
            return self.after[state][-1]
        found = self.classes[bisect_right(self.starts, code) - 1]
        return self.after[state][found] if found >= 0 else -1

    def _leads(self, to: int, left: int | None) -> bool:
        return to >= 0 and (left is None or self.fewest[to] < left)

    def completions(self, state: int, inside: int) -> Iterator[bytes]:
        """Yield the fewest bytes that complete a character, for each state that one may lead to."""
        result: dict[int, bytes] = {}
        for to, low, high in self._ranges(state, _characters(inside) if inside else _EVERY):
            data = _spelling(inside, low, high)
            if to >= 0 and (to not in result or len(data) < len(result[to])):
                result[to] = data
        yield from result.values()

    def onward(self, state: int) -> Iterator[tuple[int, int, int]]:
        """Yield each state that is next, and a range of characters that lead there, or `NEEDLESS_ESCAPE`."""
        yield from (way for way in self._ranges(state, _EVERY) if way[0] >= 0)

    def _ahead(self, state: int, inside: int) -> Iterator[int]:
        """Yield the states after the characters that one that is begun may become."""
        if not inside:
            yield from self.after[state]
        else:
            yield from (to for to, _, _ in self._ranges(state, _characters(inside)))

    def _ranges(self, state: int, characters: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, int]]:
        """Yield the state after each range of alike characters among `characters`, and the range."""
        for low, high in characters:
            if low == _ANY_ESCAPE:
                yield self.after[state][-1], low, high
                continue
            for i in range(bisect_right(self.starts, low) - 1, bisect_right(self.starts, high)):
                if self.classes[i] >= 0:
                    last = self.starts[i + 1] - 1 if i + 1 < len(self.starts) else MAX_CODE_POINT
                    yield self.after[state][self.classes[i]], max(low, self.starts[i]), min(high, last)


def distances(after: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The fewest steps from each state to an end; `NO_END` where none can be reached.

    Parameters
    ----------
    after : numpy.ndarray of int
        (states, classes) The state after each step; -1: none.
    ends : numpy.ndarray of bool
        (states,) Whether a state is an end.
    """
    # Steps are sorted by where they lead: those into one state stand in a row.
    states, width = after.shape
    into = np.argsort(after, axis=None, kind="stable")
    begin = np.searchsorted(after.ravel()[into], np.arange(states + 1))
    source = into // max(width, 1)
    found = np.full(states, NO_END)
    nearest, count = np.flatnonzero(ends), 0
    while nearest.size:
        found[nearest] = count
        many = begin[nearest + 1] - begin[nearest]
        last = np.cumsum(many)
        before = source[np.arange(last[-1]) + np.repeat(begin[nearest] - last + many, many)]
        nearest, count = np.unique(before[found[before] == NO_END]), count + 1
    return found


@dataclass(eq=False)
class TextState(Lazy):
    """What may still come in a state of a JSON text that has no table, with bounds on its length.

    There may be too many states to make all of them. Where they are saved, each is a rule.

    Attributes
    ----------
    name : str
        The name of that rule.
    fewest : callable
        Returns the fewest characters of a text.
    high : int or None
        The most characters, where they are counted.
    """

    name: str
    fewest: Callable[[], int]
    high: int | None


@dataclass(eq=False)
class JsonText(Node):
    """A nonempty text of at most `high` characters that a table accepts.

    Attributes
    ----------
    write : callable
        Writes the same without a table: a node for each state and count that a text reaches.
    make : callable
        Makes the table; None where it has too many states. Called when a text first comes here.
    """

    write: Callable[[], Node]
    make: Callable[[], Table | None]
    high: int | None

    @cached_property
    def written(self) -> Node:
        """What reads the text where there is no table."""
        return self.write()

    @cached_property
    def table(self) -> Table | None:
        """The table that reads the text; None if `written` reads it."""
        return self.make()


def _read(inside: int, byte: int) -> tuple[int, int]:
    """Where in a character the next byte leads, -1 for nowhere, and if it ends there (0), the character."""
    kind, count, value = inside >> 28, inside >> 24 & 15, inside & 0xFFFFFF
    if not kind:
        if byte == 0x5C:
            return _ESCAPE << 28, 0
        if byte < 0x80:
            return (0, byte) if byte >= 0x20 and byte != 0x22 else (-1, 0)
        left = 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
        return (_CHARACTER << 28 | left << 24 | byte & 0x3F >> left, 0) if 0xC2 <= byte < 0xF5 else (-1, 0)
    if kind == _CHARACTER:  # UTF-8: no longer than it needs to be, no surrogate, and not above the last character
        value, count = value << 6 | byte & 0x3F, count - 1
        too_long = (count == 1 and value < 0x20) or (count == 2 and not 0x10 <= value <= 0x10F)
        if byte & 0xC0 != 0x80 or too_long:
            return -1, 0
        return (_CHARACTER << 28 | count << 24 | value, 0) if count else (0, value)
    if kind == _ESCAPE and byte in _SHORT:
        return 0, _SHORT[byte]
    if kind == _PAIR:
        return (_PAIR_ESCAPE << 28 | value if byte == 0x5C else -1), 0
    if kind in (_ESCAPE, _PAIR_ESCAPE):
        return (kind + 1 << 28 | value << 12 if byte == ord("u") else -1), 0
    # A digit of \uXXXX. The value of a pair holds its first half above the twelve bits of the digits read so far.
    digit = "0123456789abcdef".find(chr(byte).lower())
    if digit < 0 or byte >= 0x80:
        return -1, 0
    if count < 3:
        return kind << 28 | count + 1 << 24 | value & 0xFFF000 | (value & 0xFFF) << 4 | digit, 0
    code = (value & 0xFFF) << 4 | digit
    if kind == _PAIR_DIGITS:
        return (0, 0x10000 + (value >> 12 << 10) + code - 0xDC00) if 0xDC00 <= code < 0xE000 else (-1, 0)
    if 0xD800 <= code < 0xDC00:
        return _PAIR << 28 | code - 0xD800, 0
    return 0, _ANY_ESCAPE if 0x20 <= code < 0x7F else code


def _characters(inside: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of what a character that is begun may become."""
    kind, count, value = inside >> 28, inside >> 24 & 15, inside & 0xFFFFFF
    if kind == _CHARACTER:
        low = value << 6 * count if value else 0x800 if count == 2 else 0x10000
        yield low, (value + 1 << 6 * count) - 1
    elif kind == _ESCAPE:
        yield from ((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C), (0x7F, MAX_CODE_POINT), (_ANY_ESCAPE, _ANY_ESCAPE))
    elif kind == _DIGITS:  # four digits: a character that is escaped with need, one without, or half a surrogate pair
        low = value << 4 * (4 - count)
        high = low + (1 << 4 * (4 - count)) - 1
        if low < 0x20:
            yield low, min(high, 0x1F)
        if high >= 0x7F:
            yield max(low, 0x7F), high
        if low < 0x7F and high >= 0x20:
            yield _ANY_ESCAPE, _ANY_ESCAPE
        if low < 0xDC00 and high >= 0xD800:
            yield 0x10000 + (max(low - 0xD800, 0) << 10), 0x103FF + (min(high - 0xD800, 0x3FF) << 10)
    elif kind == _PAIR_DIGITS:
        low = (value & 0xFFF) << 4 * (4 - count)
        high = low + (1 << 4 * (4 - count)) - 1
        first = 0x10000 + (value >> 12 << 10)
        if low < 0xE000 and high >= 0xDC00:
            yield first + max(low - 0xDC00, 0), first + min(high - 0xDC00, 0x3FF)
    else:
        yield 0x10000 + (value << 10), 0x103FF + (value << 10)


def _spelling(inside: int, low: int, high: int) -> bytes:
    """The fewest bytes that make what is begun a character from `low` to `high`."""
    kind, count, value = inside >> 28, inside >> 24 & 15, inside & 0xFFFFFF
    if low == _ANY_ESCAPE and kind == _DIGITS:
        low = max(value << 4 * (4 - count), 0x20)
    elif kind in (0, _ESCAPE):
        plain = () if kind else [max(low, first) for first, last in _ONE_BYTE if max(low, first) <= min(high, last)]
        short = [byte for byte, code in _SHORT.items() if low <= code <= high]
        if plain or short:
            return bytes((plain[0],)) if plain else bytes((0x5C, short[0]))[kind == _ESCAPE :]
        if not kind and high >= 0x80:
            return chr(max(low, 0x80)).encode(errors="surrogatepass")
    if kind == _CHARACTER:
        return chr(low).encode(errors="surrogatepass")[-count:]
    units = chr(low).encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
    return escaped[(0, 0, 1, 2 + count, 6, 7, 8 + count)[kind] :].encode()
