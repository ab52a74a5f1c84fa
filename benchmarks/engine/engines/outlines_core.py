"""outlines_core: regexes, compiled to an index of all states ahead of time."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import outlines_core

from benchmarks.engine.engines import BaseAdapter, Refused, Session
from benchmarks.engine.vocabularies import Tokens


class Adapter(BaseAdapter):
    DISTRIBUTION = "outlines_core"
    NOTATION: ClassVar = {"": "regex"}
    EAGER = True

    def prepare(self, tokens: Tokens) -> SimpleNamespace:
        ids: dict[bytes, list[int]] = {}
        for i, token in enumerate(tokens.tokens):
            if token:
                ids.setdefault(token, []).append(i)
        if len(tokens.eos) > 1:
            raise Refused("knows one EOS id only")
        vocabulary = outlines_core.Vocabulary(tokens.eos[0], ids)
        return SimpleNamespace(vocabulary=vocabulary, words=tokens.words, mask=np.zeros(tokens.words, np.int32))

    def compile(self, vocabulary, source: str):
        try:
            return outlines_core.Index(source, vocabulary.vocabulary)
        except (ValueError, RuntimeError) as error:
            raise Refused(str(error).splitlines()[0]) from error

    def session(self, compiled, mask: np.ndarray) -> Session:
        guide = outlines_core.Guide(compiled)

        def advance(token: int) -> bool:
            try:
                guide.advance(token, return_tokens=False)
            except ValueError:
                return False
            return True

        return Session(partial(guide.write_mask_into, mask.ctypes.data, mask.size, 4), advance, mask)
