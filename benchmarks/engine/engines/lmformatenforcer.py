"""lm-format-enforcer: regexes over characters; a token that ends within a character reads as in its own adapters."""

from __future__ import annotations

from types import SimpleNamespace
from typing import ClassVar

import numpy as np
from lmformatenforcer import RegexParser, TokenEnforcer, TokenEnforcerTokenizerData

from benchmarks.engine.engines import BaseAdapter, Refused, Session
from benchmarks.engine.vocabularies import Tokens


class Adapter(BaseAdapter):
    DISTRIBUTION = "lm-format-enforcer"
    NOTATION: ClassVar = {"": "regex"}

    def prepare(self, tokens: Tokens) -> SimpleNamespace:
        words = [(i, t.decode("utf-8", "replace"), False) for i, t in enumerate(tokens.tokens) if t]

        def decode(ids) -> str:
            return b"".join(tokens.tokens[i] for i in ids).decode("utf-8", "replace").rstrip("\ufffd")

        data = TokenEnforcerTokenizerData(words, decode, tokens.eos, use_bitmask=False, vocab_size=tokens.size)
        return SimpleNamespace(data=data, words=tokens.words, mask=np.zeros(tokens.words, np.int32))

    def compile(self, vocabulary, source: str):
        try:
            return TokenEnforcer(vocabulary.data, RegexParser(source))
        except Exception as error:  # interegular raises many kinds of exceptions
            raise Refused(f"{type(error).__name__}: {error}") from error

    def session(self, compiled, mask: np.ndarray) -> Session:
        # The enforcer distinguishes texts by all of their tokens and takes the first for the prompt: so there is one.
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
