"""This project's engine."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import ClassVar

import numpy as np

from benchmarks.engine.engines import BaseAdapter, Batch, Refused, Session
from benchmarks.engine.vocabularies import Tokens, tokenizer
from constrained import BatchMatcher, Grammar, Vocabulary, __version__, compile_grammar
from constrained.errors import ConstrainedError


class Adapter(BaseAdapter):
    NOTATION: ClassVar = {"step": "regex", "bounded": "regex", "probe": "regex", "choices": "choices", "": "lark"}
    KEEPS_VOCABULARIES = True

    def version(self) -> str:
        return __version__

    def prepare(self, tokens: Tokens) -> SimpleNamespace:
        return _prepared(Vocabulary(tokens.tokens, tokens.eos, tokens.special, size=tokens.size))

    def read(self, name: str, folder: str | None) -> SimpleNamespace:
        return _prepared(Vocabulary.from_tokenizer(tokenizer(name), cache=folder))

    def compile(self, vocabulary, source):
        try:
            if isinstance(source, tuple):
                grammar = Grammar.from_choices(source)
            elif source.startswith("start:"):
                grammar = Grammar.from_lark(source)
            else:
                grammar = Grammar.from_regex(source)
            return compile_grammar(grammar, vocabulary.vocabulary)
        except ConstrainedError as error:
            raise Refused(error.message) from error

    def start(self, vocabulary, compiled) -> Session:
        matcher = compiled.matcher()
        return Session(partial(matcher.fill_bitmask, vocabulary.rows), matcher.advance, vocabulary.mask)

    def batch(self, vocabulary, compileds) -> Batch:
        rows = BatchMatcher([compiled.matcher() for compiled in compileds])
        mask = rows.fill_bitmask()  # the batch's own array, the same at every call
        return Batch(
            rows.fill_bitmask,
            rows.advance,
            lambda row, token: rows[row].advance(token),
            lambda row: rows[row].reset(),
            mask,
        )

    def ahead(self, vocabulary, source):
        compiled = self.compile(vocabulary, source)
        try:
            compiled.precompute()
        except ConstrainedError as error:
            raise Refused(error.message) from error
        return compiled

    def nbytes(self, compiled) -> int:
        return compiled.nbytes


def _prepared(vocabulary: Vocabulary) -> SimpleNamespace:
    rows = np.zeros((1, vocabulary.words), np.int32)
    return SimpleNamespace(vocabulary=vocabulary, rows=rows, mask=rows[0])
