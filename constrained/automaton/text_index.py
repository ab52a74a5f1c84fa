"""Free text without walking: which tokens are whole characters of a set.

For a run such as ``[^\\]\\n]{1,80}`` nearly every token is allowed, and which ones follows
from three facts about each token: its characters, how many there are, and whether it ends
inside one. Those are read off all tokens at once with NumPy, one array operation a fact.
"""

from __future__ import annotations

import numpy as np

from constrained.grammar.charset import CharSet

_HEAD = np.zeros(256, np.int8)  # length by first byte; 0: not a first byte
_HEAD[:0x80] = 1
_HEAD[0xC2:0xE0] = 2
_HEAD[0xE0:0xF0] = 3
_HEAD[0xF0:0xF5] = 4
_PAYLOAD = np.array([0, 0x7F, 0x1F, 0x0F, 0x07])


class TextIndex:
    """Facts about every token of a vocabulary, in its sorted order.

    Attributes
    ----------
    whole : ndarray of bool
        The token is one or more whole characters.
    characters : ndarray of int32
        How many characters begin in it (meaningful where `whole`).
    """

    def __init__(self, flat: np.ndarray, offsets: np.ndarray, lengths: np.ndarray):
        count = len(lengths)
        owner = np.repeat(np.arange(count, dtype=np.int32), lengths)
        ends = offsets + lengths
        continues = (flat & 0xC0) == 0x80
        heads = np.flatnonzero(~continues)
        tokens = owner[heads]
        expected = _HEAD[flat[heads]].astype(np.int64)
        following = np.append(heads[1:], len(flat))
        room = np.minimum(following, ends[tokens]) - heads  # bytes up to the next head
        well_formed = (expected > 0) & (room == expected)
        points = _code_points(flat, heads, expected, well_formed)
        broken = ~well_formed | (points < 0)
        self.whole = np.ones(count, bool)
        self.whole[tokens[broken]] = False
        self.whole[continues[offsets]] = False  # begins inside a character
        self.characters = np.bincount(tokens, minlength=count).astype(np.int32)
        good = self.whole[tokens]
        self._tokens = tokens[good]
        self._points, self._index = np.unique(points[good], return_inverse=True)
        self._sets: dict[int, tuple[np.ndarray, CharSet]] = {}

    def inside(self, chars: CharSet) -> np.ndarray:
        """bool per sorted token: whole characters, all of them in `chars`."""
        found = self._sets.get(id(chars))
        if found is None:
            starts = np.array([a for a, _ in chars.ranges])
            ends = np.array([b for _, b in chars.ranges])
            at = np.searchsorted(starts, self._points, side="right") - 1
            member = (at >= 0) & (self._points <= ends[at])
            result = self.whole.copy()
            result[self._tokens[~member[self._index]]] = False
            found = self._sets[id(chars)] = (result, chars)
        return found[0]


def _code_points(flat, heads, expected, well_formed) -> np.ndarray:
    """Code point of each well-formed character, -1 for overlong forms and surrogates."""
    points = np.zeros(len(heads), np.int64)
    for length, least in ((1, 0), (2, 0x80), (3, 0x800), (4, 0x10000)):
        at = np.flatnonzero(well_formed & (expected == length))
        value = flat[heads[at]].astype(np.int64) & _PAYLOAD[length]
        for i in range(1, length):
            value = (value << 6) | (flat[heads[at] + i] & 0x3F)
        bad = (value < least) | (value > 0x10FFFF) | ((value >= 0xD800) & (value <= 0xDFFF))
        points[at] = np.where(bad, -1, value)
    return points
