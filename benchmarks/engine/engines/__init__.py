"""One adapter per engine, each a module with a class `Adapter`.

Each engine is given only the grammar's own text, so all work that it does with it counts. Where a peer has several ways
of doing something, the adapter takes the fastest that its documentation names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from benchmarks.engine.language import to_ebnf, to_lark, to_regex
from benchmarks.engine.vocabularies import Tokens
from benchmarks.engine.workloads import Case

PEERS = ("xgrammar", "llguidance", "outlines_core", "lmformatenforcer")
NAMES = ("ours", *PEERS)


class Refused(Exception):
    """An engine can't do a workload; the message says why."""


@dataclass
class Session:
    """A text being written: `fill()` writes `mask` (int32, [words]), `advance(id)` tells whether it took the token."""

    fill: Callable[[], Any]
    advance: Callable[[int], Any]
    mask: np.ndarray


@dataclass
class Batch:
    """Rows with a grammar each.

    Attributes
    ----------
    fill : callable
        Without arguments: writes all masks.
    advance : callable
        Token ids, one per row -> whether each was taken.
    advance_row : callable
        Row, token id -> whether it was taken.
    restart : callable
        Row -> that row begins again.
    mask : ndarray of int32, shape [rows, words]
    """

    fill: Callable[[], Any]
    advance: Callable[[list[int]], Sequence]
    advance_row: Callable[[int, int], Any]
    restart: Callable[[int], Any]
    mask: np.ndarray


class BaseAdapter(ABC):
    """The interface, with defaults for most engines.

    A vocabulary is a namespace with at least `words` and the reused row `mask`.
    """

    DISTRIBUTION: str
    NOTATION: ClassVar[Mapping[str, str]]
    """Workload -> "regex", "ebnf", "lark" or "choices", the notation that suits the engine best; "" for the rest."""
    NEEDS_TOKENIZER = False
    """It calls the tokenizer, which must be read before it prepares a vocabulary."""
    EAGER = False
    """Its compile leaves nothing to do later."""
    KEEPS_VOCABULARIES = False
    """It caches prepared vocabularies on disk: `read(name, folder)` prepares from the tokenizer (None: no cache)."""

    def version(self) -> str:
        return version(self.DISTRIBUTION)

    @abstractmethod
    def prepare(self, tokens: Tokens) -> SimpleNamespace:
        """A vocabulary, from the tokens' bytes."""

    def read(self, name: str, folder: str | None) -> SimpleNamespace:
        raise Refused("it keeps no vocabularies")

    @abstractmethod
    def compile(self, vocabulary, source) -> Any:
        """Compile a text in the engine's notation (a tuple of texts for "choices"), never from a cache."""

    def session(self, compiled, mask: np.ndarray) -> Session:
        """Begin a text whose masks are written to `mask`; an engine without it has its own `start` and `batch`."""
        raise Refused("its masks have a place of their own")

    def start(self, vocabulary, compiled) -> Session:
        return self.session(compiled, vocabulary.mask)

    def batch(self, vocabulary, compileds) -> Batch:
        """A batch; by default of an engine without batches: a session per row."""
        mask = np.zeros((len(compileds), vocabulary.words), np.int32)
        rows = [self.session(*pair) for pair in zip(compileds, mask)]

        def fill() -> None:
            for row in rows:
                row.fill()

        def restart(row: int) -> None:
            rows[row] = self.session(compileds[row], mask[row])

        def advance_row(row: int, token: int):
            rows[row].fill()  # an engine may advance through its text only by asking for masks
            return rows[row].advance(token)

        return Batch(fill, lambda ids: [row.advance(i) for row, i in zip(rows, ids)], advance_row, restart, mask)

    def ahead(self, vocabulary, source) -> Any | None:
        """Compile with no work left to do later; None if the engine can't."""
        return self.compile(vocabulary, source) if self.EAGER else None

    def nbytes(self, compiled) -> int | None:
        """Bytes held besides the vocabulary, if the engine tells."""
        return None


def engine(name: str) -> BaseAdapter:
    """The adapter; raises ImportError if the engine is not installed."""
    return import_module(f"benchmarks.engine.engines.{name}").Adapter()


def source(adapter: BaseAdapter, workload: str, case: Case) -> str | tuple[str, ...]:
    """A case's language in the notation that suits the engine best.

    Raises
    ------
    Refused
        It reads regexes only, and the language is not regular.
    """
    notation = adapter.NOTATION.get(workload, adapter.NOTATION[""])
    if notation == "choices":
        assert case.choices is not None
        return case.choices
    if notation == "regex":
        if case.regular is None:
            raise Refused("reads regexes only, and nested expressions are not regular")
        return to_regex(case.regular)
    return to_ebnf(case.rules) if notation == "ebnf" else to_lark(case.rules)
