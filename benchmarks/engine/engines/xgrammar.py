"""XGrammar: EBNF, compiled with one thread and without its cache."""

from __future__ import annotations

from functools import partial
from importlib.metadata import version as installed
from types import SimpleNamespace

import numpy as np
import torch
import xgrammar

from benchmarks.engine.engines import Batch, Refused, Session
from benchmarks.engine.vocabularies import Tokens

NOTATION = {"": "ebnf"}
NEEDS_TOKENIZER = False
KEEPS_VOCABULARIES = False
EAGER = True


def version() -> str:
    return installed("xgrammar")


def prepare(tokens: Tokens) -> SimpleNamespace:
    info = xgrammar.TokenizerInfo(
        tokens.tokens, xgrammar.VocabType.RAW, vocab_size=tokens.size, stop_token_ids=tokens.eos
    )
    compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    rows = xgrammar.allocate_token_bitmask(1, tokens.size)
    return SimpleNamespace(compiler=compiler, size=tokens.size, rows=rows, mask=rows.numpy()[0])


def compile(vocabulary, source: str):
    try:
        return vocabulary.compiler.compile_grammar(source)
    except RuntimeError as error:
        raise Refused(str(error).splitlines()[0]) from error


def start(vocabulary, compiled) -> Session:
    matcher = xgrammar.GrammarMatcher(compiled)
    return Session(partial(matcher.fill_next_token_bitmask, vocabulary.rows), matcher.accept_token, vocabulary.mask)


def batch(vocabulary, compileds) -> Batch:
    matchers = [xgrammar.GrammarMatcher(compiled) for compiled in compileds]
    filler = xgrammar.BatchGrammarMatcher(max_threads=1)
    rows: torch.Tensor = xgrammar.allocate_token_bitmask(len(matchers), vocabulary.size)
    mask: np.ndarray = rows.numpy()
    return Batch(
        partial(filler.batch_fill_next_token_bitmask, matchers, rows),
        partial(filler.batch_accept_token, matchers),
        lambda row, token: matchers[row].accept_token(token),
        lambda row: matchers[row].reset(),
        mask,
    )


def ahead(vocabulary, source: str):
    return compile(vocabulary, source)


def nbytes(compiled) -> int | None:
    return compiled.memory_size_bytes
