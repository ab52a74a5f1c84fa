"""lm-format-enforcer: regexes over characters; a token that ends inside one reads as its own adapters read it."""

from __future__ import annotations

from importlib.metadata import version as installed
from types import SimpleNamespace

import numpy as np
from lmformatenforcer import RegexParser, TokenEnforcer, TokenEnforcerTokenizerData

from benchmarks.engine.engines import Batch, Refused, Session, row_by_row
from benchmarks.engine.vocabularies import Tokens

NOTATION = {"": "regex"}
NEEDS_TOKENIZER = False
KEEPS_VOCABULARIES = False
EAGER = False


def version() -> str:
    return installed("lm-format-enforcer")


def prepare(tokens: Tokens) -> SimpleNamespace:
    words = [(i, t.decode("utf-8", "replace"), False) for i, t in enumerate(tokens.tokens) if t]

    def decode(ids) -> str:
        return b"".join(tokens.tokens[i] for i in ids).decode("utf-8", "replace").rstrip("\ufffd")

    data = TokenEnforcerTokenizerData(words, decode, tokens.eos, use_bitmask=False, vocab_size=tokens.size)
    return SimpleNamespace(data=data, words=tokens.words, mask=np.zeros(tokens.words, np.int32))


def compile(vocabulary, source: str):
    try:
        return TokenEnforcer(vocabulary.data, RegexParser(source))
    except Exception as error:  # interegular raises whatever its parser meets
        raise Refused(f"{type(error).__name__}: {error}") from error


def start(vocabulary, compiled) -> Session:
    return _session(compiled, vocabulary.mask)


def _session(compiled, mask: np.ndarray) -> Session:
    # The enforcer tells texts apart by all of their tokens and takes any first one as the prompt: so there is one.
    written = [-1]
    bits = np.zeros(mask.size * 32, np.uint8)

    def fill() -> None:
        bits[:] = 0
        bits[compiled.get_allowed_tokens(written).allowed_tokens] = 1
        mask[:] = np.packbits(bits, bitorder="little").view(np.int32)

    def advance(token: int) -> bool:
        written.append(token)
        return True

    return Session(fill, advance, mask)


def batch(vocabulary, compileds) -> Batch:
    mask = np.zeros((len(compileds), vocabulary.words), np.int32)
    return row_by_row(lambda row: _session(compileds[row], mask[row]), mask)


def ahead(vocabulary, source):
    return None


def nbytes(compiled) -> int | None:
    return None
