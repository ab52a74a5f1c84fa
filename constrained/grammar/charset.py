"""Character classes: sets of Unicode characters, read as UTF-8 bytes, and their notation in regular expressions.

A set never becomes a table of UTF-8 sequences. The state inside a character is the
range of code points that are still possible after the bytes read so far; each byte narrows it. States
whose whole range lies inside the set are one state, so that `[^\\]]` has four states, not
thousands.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby, pairwise

import numpy as np

MAX_CODE_POINT = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
# (lead byte range, code points first and last, continuation bytes), per UTF-8 length
_LENGTHS = (
    (0xC2, 0xDF, 0x80, 0x7FF, 1),
    (0xE0, 0xEF, 0x800, 0xFFFF, 2),
    (0xF0, 0xF4, 0x10000, MAX_CODE_POINT, 3),
)

DONE = (0, 0, 0)
"""The state after a whole character."""


class CharSet:
    """A set of Unicode scalar values.

    Build with :func:`charset`, which interns: equal sets are one object.

    `ranges`: disjoint, ascending, inclusive code point ranges; never surrogates.
    """

    __slots__ = ("_edges", "_ends", "_folded", "_starts", "ranges")

    def __init__(self, ranges: tuple[tuple[int, int], ...]):
        self.ranges = ranges
        self._starts = [a for a, _ in ranges]
        self._ends = [b for _, b in ranges]
        self._edges: dict[tuple | None, dict[int, tuple]] = {}
        self._folded: CharSet | None = None

    def __contains__(self, code_point: int) -> bool:
        i = bisect_right(self._starts, code_point) - 1
        return i >= 0 and code_point <= self._ends[i]

    def __bool__(self) -> bool:
        return bool(self.ranges)

    def __repr__(self) -> str:
        return f"CharSet({len(self.ranges)} ranges)"

    def overlap(self, low: int, high: int) -> int:
        """0 if no character of ``low..high`` is in the set, 2 if all are, else 1."""
        i = bisect_right(self._starts, low) - 1
        if i >= 0 and high <= self._ends[i]:
            return 2
        if i >= 0 and low <= self._ends[i]:
            return 1
        return 1 if i + 1 < len(self._starts) and self._starts[i + 1] <= high else 0

    def complement(self) -> CharSet:
        out, at = [], 0
        for low, high in self.ranges:
            if at < low:
                out.append((at, low - 1))
            at = high + 1
        if at <= MAX_CODE_POINT:
            out.append((at, MAX_CODE_POINT))
        return charset(out)

    def __and__(self, other: CharSet) -> CharSet:
        few, many = sorted((self, other), key=lambda c: len(c.ranges))
        return charset((max(a, low), min(b, high)) for a, b in few.ranges for low, high in many.within(a, b))

    def meets(self, other: CharSet) -> bool:
        """Whether some character is in both."""
        few, many = sorted((self, other), key=lambda c: len(c.ranges))
        return any(many.overlap(a, b) for a, b in few.ranges)

    def within(self, low: int, high: int) -> tuple[tuple[int, int], ...]:
        """The ranges that share a character with ``low..high``."""
        return self.ranges[bisect_left(self._ends, low) : bisect_right(self._starts, high)]

    def __or__(self, other: CharSet) -> CharSet:
        return charset([*self.ranges, *other.ranges])

    def fold_case(self) -> CharSet:
        """The set closed under ``re.IGNORECASE``, by asking `re` about each cased character."""
        if self._folded is None:
            self._folded = self._fold_case() if self.ranges else self
        return self._folded

    def _fold_case(self) -> CharSet:
        inside = "".join(f"{re.escape(chr(a))}-{re.escape(chr(b))}" for a, b in self.ranges)
        characters = re.findall(f"[{inside}]", _cased_characters(), re.IGNORECASE)
        return charset([*self.ranges, *((ord(c), ord(c)) for c in characters)])

    def shortest(self) -> bytes:
        """A member of the fewest UTF-8 bytes, printable where there is one."""
        for low, high in ((0x61, 0x7A), (0x20, 0x7E), (0, MAX_CODE_POINT)):
            for a, b in self.ranges:
                if a <= high and b >= low:
                    return chr(max(a, low)).encode()
        raise ValueError("empty set")

    def edges(self, state: tuple | None) -> dict[int, tuple]:
        """Return, for each byte, the next state after `state` (None: before a character)."""
        cached = self._edges.get(state)
        if cached is None:
            cached = self._edges[state] = self._make_edges(state)
        return cached

    def _make_edges(self, state: tuple | None) -> dict[int, tuple]:
        if state is not None:
            return self._continue(*state)
        # Each lead byte of two bytes and more begins a range of code points, as wide as its continuation bytes count.
        edges = {b: DONE for b in range(0x80) if b in self}
        for lead, last, low, high, left in _LENGTHS:
            width = 1 << (6 * left)
            base = low - low % width
            for b in range(lead, last + 1):
                start = base + (b - (0xC0, 0xE0, 0xF0)[left - 1] - (base // width)) * width
                self._open(edges, b, max(start, low), min(start + width - 1, high), left)
        return edges

    def _open(self, edges: dict, byte: int, low: int, high: int, left: int) -> None:
        """Add the edge by a byte after which `left` bytes and the characters `low` to `high` are possible."""
        how = self.overlap(low, high)
        if how == 2 and high - low + 1 == 1 << (6 * left):
            edges[byte] = (left, -1, -1)  # every continuation is in the set
        elif how:
            edges[byte] = (left, low, high)

    def _continue(self, left: int, low: int, high: int) -> dict[int, tuple]:
        """The edges by a continuation byte, which divides the range of code points by 64."""
        rest = left - 1
        if low < 0:
            return dict.fromkeys(range(128, 192), DONE if not rest else (rest, -1, -1))
        edges: dict[int, tuple] = {}
        width = 1 << (6 * rest)
        base = low - low % (width << 6)
        for i in range(64):
            a, b = max(base + i * width, low), min(base + (i + 1) * width - 1, high)
            if a > b:
                continue
            if not rest:
                if a in self:
                    edges[0x80 + i] = DONE
            else:
                self._open(edges, 0x80 + i, a, b, rest)
        return edges


_INTERNED: dict[tuple, CharSet] = {}


def charset(ranges) -> CharSet:
    """The set of inclusive code point ranges, given in any order; surrogates are dropped."""
    ranges = tuple(ranges)
    cached = _INTERNED.get(ranges)
    if cached is not None:  # they were in order
        return cached
    merged: list[list[int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    clean = []
    for low, high in merged:
        if low < _SURROGATES[0] <= high:
            clean.append((low, _SURROGATES[0] - 1))
        if low <= _SURROGATES[1] < high:
            clean.append((_SURROGATES[1] + 1, high))
        if high < _SURROGATES[0] or low > _SURROGATES[1]:
            clean.append((low, high))
    key = tuple(clean)
    cached = _INTERNED.get(key)
    if cached is None:
        cached = _INTERNED[key] = CharSet(key)
    return cached


def union(sets: Iterable[CharSet]) -> CharSet:
    """The characters that are in one of some sets."""
    return charset([one for chars in sets for one in chars.ranges])


def first_characters(texts: Iterable[bytes]) -> CharSet:
    """The characters that some texts in UTF-8 begin with."""
    return charset((ord(text.decode()[0]),) * 2 for text in texts if text)


def partition(sets: list[CharSet]) -> list[CharSet]:
    """The coarsest classes of the characters in `sets` that each set contains wholly or not at all."""
    edges: dict[int, int] = {}
    for i, chars in enumerate(sets):
        for low, high in chars.ranges:
            edges[low] = edges.get(low, 0) ^ 1 << i
            edges[high + 1] = edges.get(high + 1, 0) ^ 1 << i
    classes: dict[int, list[tuple[int, int]]] = {}
    holding, places = 0, sorted(edges)
    for low, high in pairwise(places):
        holding ^= edges[low]
        if holding:
            classes.setdefault(holding, []).append((low, high - 1))
    return [charset(ranges) for ranges in classes.values()]


_CATEGORIES = frozenset((r"\w", r"\d", r"\s"))


@lru_cache(maxsize=64)
def matching(pattern: str, flags: int = 0) -> CharSet:
    """The characters that a one-character `re` pattern matches, by asking `re`."""
    if pattern in _CATEGORIES:  # by their complements, which `re` finds in longer runs
        return matching(pattern.upper(), flags).complement()
    alike = ((0x40000, 0xDFFFF), (0xF0000, MAX_CODE_POINT))  # planes without characters, and of private ones
    ranges = [(low, high) for low, high in alike if re.match(pattern, chr(low), flags)]
    for low, high in ((0, 0x3FFFF), (0xE0000, 0xEFFFF)):
        codes = np.arange(low, high + 1, dtype="<u4")  # an index is a code point
        codes[(codes >= _SURROGATES[0]) & (codes <= _SURROGATES[1])] = 0
        text = codes.tobytes().decode("utf-32-le")
        ranges += [(low + m.start(), low + m.end() - 1) for m in re.finditer(f"(?:{pattern})+", text, flags)]
    return charset(ranges)


@lru_cache(maxsize=1)
def categories() -> dict[str, CharSet]:
    """The characters of each general category of Unicode, such as "Lu", and of each group, such as "L"."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    low = 0
    for name, alike in groupby(map(unicodedata.category, map(chr, range(MAX_CODE_POINT + 1)))):
        high = low + sum(1 for _ in alike) - 1
        for group in (name, name[0], *(["LC"] if name in ("Lu", "Ll", "Lt") else [])):
            ranges.setdefault(group, []).append((low, high))
        low = high + 1
    return {name: charset(spans) for name, spans in ranges.items()}


@lru_cache(maxsize=1)
def _cased_characters() -> str:
    every = (chr(c) for c in range(MAX_CODE_POINT + 1) if not 0xD800 <= c <= 0xDFFF)
    return "".join(c for c in every if c.lower() != c or c.upper() != c)


_NAMED = ("\\w", "\\d", "\\s", "\\W", "\\D", "\\S")
_SHOWN = 12
"""The most ranges that are written out."""


def class_text(chars: CharSet) -> str:
    """`chars` in the notation of regular expressions; a long list of ranges is cut short."""
    rest = chars.complement()
    if not rest:
        return "(?s:.)"
    negated = chars.ranges[-1][1] == MAX_CODE_POINT and len(rest.ranges) <= len(chars.ranges)
    ranges = rest.ranges if negated else chars.ranges
    if len(ranges) > _SHOWN:
        named = next((name for name in _NAMED if matching(name, 0) is chars), None)
        if named:
            return named
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1] and not negated:
        return _character(ranges[0][0], ".*+?(){}|$^/[]\\")
    parts = [_range(low, high) for low, high in ranges[:_SHOWN]]
    more = f"... {len(ranges) - _SHOWN} more ranges" if len(ranges) > _SHOWN else ""
    return f"[{'^' if negated else ''}{''.join(parts)}{more}]"


def _range(low: int, high: int) -> str:
    first, last = _character(low), _character(high)
    return first if low == high else f"{first}{last}" if high == low + 1 else f"{first}-{last}"


def _character(code: int, special: str = "]^-[\\") -> str:
    char = chr(code)
    if char in special:
        return f"\\{char}"
    if char in "\n\t\r":
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}[char]
    if char.isprintable():
        return char
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
