"""This project's engine."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import numpy as np

import constrained
from benchmarks.engine.engines import Batch, Refused, Session
from benchmarks.engine.vocabularies import Tokens, tokenizer
from constrained import BatchMatcher, Grammar, Vocabulary, compile_grammar
from constrained.errors import ConstrainedError

NOTATION = {"step": "regex", "bounded": "regex", "probe": "regex", "choices": "choices", "": "lark"}
NEEDS_TOKENIZER = False
KEEPS_VOCABULARIES = True
EAGER = False


def version() -> str:
    return constrained.__version__


def prepare(tokens: Tokens) -> SimpleNamespace:
    return _prepared(Vocabulary(tokens.tokens, tokens.eos, tokens.special, size=tokens.size))


def read(name: str, folder: str | None) -> SimpleNamespace:
    return _prepared(Vocabulary.from_tokenizer(tokenizer(name), cache=folder))


def _prepared(vocabulary: Vocabulary) -> SimpleNamespace:
    rows = np.zeros((1, vocabulary.words), np.int32)
    return SimpleNamespace(vocabulary=vocabulary, rows=rows, mask=rows[0])


def compile(vocabulary, source):
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


def start(vocabulary, compiled) -> Session:
    matcher = compiled.matcher()
    return Session(partial(matcher.fill_bitmask, vocabulary.rows), matcher.advance, vocabulary.mask)


def batch(vocabulary, compileds) -> Batch:
    rows = BatchMatcher([compiled.matcher() for compiled in compileds])
    mask = rows.fill_bitmask()  # the batch's own, the same array at every call
    return Batch(
        rows.fill_bitmask,
        rows.advance,
        lambda row, token: rows[row].advance(token),
        lambda row: rows[row].reset(),
        mask,
    )


def ahead(vocabulary, source):
    compiled = compile(vocabulary, source)
    try:
        compiled.precompute()
    except ConstrainedError as error:
        raise Refused(error.message) from error
    return compiled


def nbytes(compiled) -> int | None:
    return compiled.nbytes
