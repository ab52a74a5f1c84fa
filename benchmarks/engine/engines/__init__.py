"""One adapter an engine, each a module with the same few functions.

``NOTATION``
    Workload -> "regex", "ebnf", "lark" or "choices", the notation in which the engine is fastest; ``""`` for the rest.
``NEEDS_TOKENIZER``
    It calls the tokenizer itself, so that has to be read before it prepares a vocabulary.
``EAGER``
    Its compile leaves nothing to do later.
``KEEPS_VOCABULARIES``
    It has a cache of prepared vocabularies on disk: ``read(name, folder) -> vocabulary`` prepares from the tokenizer
    itself, and keeps it in `folder` (None: doesn't).
``version() -> str``
``prepare(tokens) -> vocabulary``
    From the tokens' bytes; `vocabulary.mask` is an int32 row, reused by all sessions.
``compile(vocabulary, source) -> compiled``
    Never from a cache. `source` is text in the engine's notation (a tuple of texts for "choices").
``start(vocabulary, compiled) -> Session``
``batch(vocabulary, compileds) -> Batch``
``ahead(vocabulary, source) -> compiled or None``
    Compiled with nothing left to do later; None where the engine has no such thing.
``nbytes(compiled) -> int or None``
    Bytes held beside the vocabulary, where it can be told.

Each is called with the grammar's own text only, so that whatever an engine does with it counts. Where a peer has
several ways, the adapter takes the fastest that its documentation names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.engine.language import to_ebnf, to_lark, to_regex
from benchmarks.engine.workloads import Case

PEERS = ("xgrammar", "llguidance", "outlines_core", "lmformatenforcer")
NAMES = ("ours", *PEERS)


class Refused(Exception):
    """An engine can't do a workload; the message says why."""


@dataclass
class Session:
    """One text being written.

    Attributes
    ----------
    fill : callable
        Without arguments: writes the mask.
    advance : callable
        Token id -> whether it was taken.
    mask : ndarray of int32, shape [words]
    """

    fill: Callable[[], Any]
    advance: Callable[[int], Any]
    mask: np.ndarray


@dataclass
class Batch:
    """Rows that each follow a grammar of their own.

    Attributes
    ----------
    fill : callable
        Without arguments: writes all masks.
    advance : callable
        Token ids, one a row -> whether each was taken.
    advance_row : callable
        Row number, token id -> whether it was taken.
    restart : callable
        Row number -> that row begins anew.
    mask : ndarray of int32, shape [rows, words]
    """

    fill: Callable[[], Any]
    advance: Callable[[list[int]], list]
    advance_row: Callable[[int, int], Any]
    restart: Callable[[int], Any]
    mask: np.ndarray


def row_by_row(begin: Callable[[int], Session], mask: np.ndarray) -> Batch:
    """The batch of an engine that knows none: `begin` starts a session that writes a row of `mask`."""
    rows = [begin(row) for row in range(len(mask))]

    def fill() -> None:
        for row in rows:
            row.fill()

    def restart(row: int) -> None:
        rows[row] = begin(row)

    def advance_row(row: int, token: int):
        rows[row].fill()  # an engine may follow its text only as far as it was asked for masks
        return rows[row].advance(token)

    return Batch(
        fill,
        lambda ids: [row.advance(token) for row, token in zip(rows, ids)],
        advance_row,
        restart,
        mask,
    )


def engine(name: str) -> ModuleType:
    """The adapter; raises ImportError where the engine is not installed."""
    return import_module(f"benchmarks.engine.engines.{name}")


def source(adapter: ModuleType, workload: str, case: Case) -> str | tuple[str, ...]:
    """A case's language in the notation that the engine reads best.

    Raises
    ------
    Refused
        It reads regexes only, and the language is not regular.
    """
    notation = adapter.NOTATION.get(workload, adapter.NOTATION[""])
    if notation == "choices":
        return case.choices
    if notation == "regex":
        if case.regular is None:
            raise Refused("reads regexes only, and nested expressions are not regular")
        return to_regex(case.regular)
    return to_ebnf(case.rules) if notation == "ebnf" else to_lark(case.rules)
