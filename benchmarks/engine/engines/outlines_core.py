"""outlines_core: regexes, an index of all states ahead of time."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version as installed
from types import SimpleNamespace

import numpy as np
import outlines_core

from benchmarks.engine.engines import Batch, Refused, Session, row_by_row
from benchmarks.engine.vocabularies import Tokens

NOTATION = {"": "regex"}
NEEDS_TOKENIZER = False
KEEPS_VOCABULARIES = False
EAGER = True


def version() -> str:
    return installed("outlines_core")


def prepare(tokens: Tokens) -> SimpleNamespace:
    ids: dict[bytes, list[int]] = {}
    for i, token in enumerate(tokens.tokens):
        if token:
            ids.setdefault(token, []).append(i)
    if len(tokens.eos) > 1:
        raise Refused("knows one EOS id only")
    vocabulary = outlines_core.Vocabulary(tokens.eos[0], ids)
    return SimpleNamespace(vocabulary=vocabulary, words=tokens.words, mask=np.zeros(tokens.words, np.int32))


def compile(vocabulary, source: str):
    try:
        return outlines_core.Index(source, vocabulary.vocabulary)
    except (ValueError, RuntimeError) as error:
        raise Refused(str(error).splitlines()[0]) from error


def start(vocabulary, compiled) -> Session:
    return _session(compiled, vocabulary.mask)


def _session(compiled, mask: np.ndarray) -> Session:
    guide = outlines_core.Guide(compiled)

    def advance(token: int) -> bool:
        try:
            guide.advance(token, return_tokens=False)
        except ValueError:
            return False
        return True

    return Session(partial(guide.write_mask_into, mask.ctypes.data, mask.size, 4), advance, mask)


def batch(vocabulary, compileds) -> Batch:
    mask = np.zeros((len(compileds), vocabulary.words), np.int32)
    return row_by_row(lambda row: _session(compileds[row], mask[row]), mask)


def ahead(vocabulary, source: str):
    return compile(vocabulary, source)


def nbytes(compiled) -> int | None:
    return None
