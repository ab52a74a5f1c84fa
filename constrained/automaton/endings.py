"""The tokens that may end an item of an array, for states that remember what was written (`distinct.py`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Container
from functools import cached_property
from typing import Any

import numpy as np


class Endings:
    """The tokens of a vocabulary that may end an item, as packed rows that are made when they are asked for.

    Attributes
    ----------
    marked, quoted : ndarray
        With a quote, comma or bracket; with a quote.
    begins : ndarray
        Those that at most begin a string as an item.
    only_begins : ndarray
        Those that begin a string, and no more.
    again, again_begun : ndarray
        Those that may end a string and then another item, or begin one.
    closed_again : ndarray
        Those that may close a bracket and then begin another item.
    opens : ndarray
        Those that may open an array and have two items in it, or an object and have two names.
    escapes, blank : ndarray
        Those that have a backslash; that end with white space.
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
        def with_any(wanted: bytes) -> np.ndarray:
            of_token = np.searchsorted(offsets, np.flatnonzero(which_are(flat, wanted)), side="right") - 1
            return of_token[np.diff(of_token, prepend=-1) > 0]  # each once

        ranks = with_any(b'",[]{}')
        self._tokens, self._ids, self._pack = [tokens[rank] for rank in ranks.tolist()], ids[ranks], pack
        self._ids_of_all, self._last = ids, flat[np.append(offsets[1:], len(flat)) - 1]
        self._with_backslash = lambda: ids[with_any(b"\\")]
        self._closing: dict[tuple[int, bool], np.ndarray] = {}

    def _those(self, fit: Callable[[bytes], Any]) -> np.ndarray:
        return self._pack(self._ids[[bool(fit(token)) for token in self._tokens]])

    @cached_property
    def marked(self) -> np.ndarray:
        return self._pack(self._ids)

    @cached_property
    def quoted(self) -> np.ndarray:
        return self._those(lambda token: b'"' in token)

    @cached_property
    def begins(self) -> np.ndarray:
        return self._those(_BEGINS.fullmatch)

    @cached_property
    def only_begins(self) -> np.ndarray:
        return self._those(_ONLY_BEGINS.fullmatch)

    @cached_property
    def opens(self) -> np.ndarray:
        return self._those(_OPENS.search)

    @cached_property
    def again(self) -> np.ndarray:
        return self._those(lambda token: token.count(b'"') > 2 or _AGAIN.search(token))

    @cached_property
    def again_begun(self) -> np.ndarray:
        return self._those(_AGAIN_BEGUN.search)

    @cached_property
    def escaped(self) -> np.ndarray:
        return self._those(lambda token: b"\\" in token and b'"' in _ESCAPED.sub(b"", token))

    @cached_property
    def escapes(self) -> np.ndarray:
        return self._pack(self._with_backslash())

    @cached_property
    def blank(self) -> np.ndarray:
        return self._pack(self._ids_of_all[np.isin(self._last, list(b" \t\n\r"))])

    @cached_property
    def closed_again(self) -> np.ndarray:
        return self._those(_CLOSED_AGAIN.search)

    def closing(self, brackets: int, quoted: bool) -> np.ndarray:
        """The tokens that may close at least this many brackets, read from inside a string if `quoted`."""
        key = min(brackets, _CLOSED), quoted
        if key not in self._closing:
            after = (lambda token: token.partition(b'"')[2]) if quoted else _outside_strings
            self._closing[key] = self._those(lambda token: len(_CLOSES.findall(after(token))) >= key[0])
        return self._closing[key]


def which_are(flat: np.ndarray, wanted: Container[int]) -> np.ndarray:
    """bool per byte of `flat`: whether it is one of `wanted`. (NumPy's own ways take several times as long.)"""
    return np.frombuffer(flat.tobytes().translate(bytes(byte in wanted for byte in range(256))), bool)


def _outside_strings(token: bytes) -> bytes:
    """What may be outside of strings in a token that begins there."""
    return token if b"\\" in token else _STRING.sub(b"", token)  # with an escape it is open where a string ends


_CLOSED = 8
"""Brackets that one token closes, as far as tokens are told apart by that."""

_OPENS = re.compile(rb"[\[{].*,", re.DOTALL)
_CLOSES = re.compile(rb"[\]}]")
_STRING = re.compile(rb'"[^"]*"?')
_CLOSED_AGAIN = re.compile(rb"[\]}].*,\s*\S", re.DOTALL)
_ONLY_BEGINS = re.compile(rb'"[^"\\]*')
_BEGINS = re.compile(rb'[\s,]*(?:"[^"\\]*)?')
_AGAIN = re.compile(rb'".*,\s*[^"\s]', re.DOTALL)
_AGAIN_BEGUN = re.compile(rb'".*,\s*\S', re.DOTALL)
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
