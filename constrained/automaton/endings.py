"""The tokens that may end an item of an array, for states that remember what was written (`distinct.py`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np


class Endings:
    """The tokens of a vocabulary that may end an item, as packed rows.

    Attributes
    ----------
    marked, quoted : ndarray
        With a quote, comma or bracket; with a quote.
    begins : ndarray
        Those that at most begin a string as an item.
    again, again_begun : ndarray
        Those that may end a string and then another item, or begin one.
    closed_again : ndarray
        Those that may close a bracket and then begin another item.
    opens : ndarray
        Those that may open an array and have two items in it, or an object and have two names.
    escaped : ndarray
        Those that may end a string in which they have an escape.
    """

    def __init__(
        self,
        tokens: list[bytes],
        ids: np.ndarray,
        flat: np.ndarray,
        offsets: np.ndarray,
        pack: Callable[[np.ndarray], np.ndarray],
    ):
        at = np.flatnonzero(np.isin(flat, list(b'",[]{}')))
        ranks = np.unique(np.searchsorted(offsets, at, side="right") - 1).tolist()

        def those(fit: Callable[[bytes], Any]) -> np.ndarray:
            return pack(ids[[rank for rank in ranks if fit(tokens[rank])]])

        self.marked, self.quoted = those(lambda token: True), those(lambda token: b'"' in token)
        self.begins, self.opens = those(_BEGINS.fullmatch), those(_OPENS.search)
        self.again = those(lambda token: token.count(b'"') > 2 or _AGAIN.search(token))
        self.again_begun = those(_AGAIN_BEGUN.search)
        self.escaped = those(lambda token: b"\\" in token and b'"' in _ESCAPED.sub(b"", token))
        self.closed_again = those(_CLOSED_AGAIN.search)
        after = {rank: (token := tokens[rank], token.partition(b'"')[2]) for rank in ranks}
        counts = {rank: [len(_CLOSES.findall(part)) for part in parts] for rank, parts in after.items()}
        self._closing = [
            [pack(ids[[r for r in ranks if counts[r][quoted] >= n]]) for n in _CLOSED] for quoted in (False, True)
        ]

    def closing(self, brackets: int, quoted: bool) -> np.ndarray:
        """Those that may close so many brackets, after a quote if `quoted`."""
        return self._closing[quoted][min(brackets, len(_CLOSED)) - 1]


_CLOSED = range(1, 9)
"""Brackets that one token closes, as far as tokens are told apart by that."""

_OPENS = re.compile(rb"[\[{].*,", re.DOTALL)
_CLOSES = re.compile(rb"[\]}]")
_CLOSED_AGAIN = re.compile(rb"[\]}].*,\s*\S", re.DOTALL)
_BEGINS = re.compile(rb'[\s,]*(?:"[^"\\]*)?')
_AGAIN = re.compile(rb'".*,\s*[^"\s]', re.DOTALL)
_AGAIN_BEGUN = re.compile(rb'".*,\s*\S', re.DOTALL)
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
