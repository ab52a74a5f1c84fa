"""XGrammar: EBNF, compiled with one thread and, except where `first` asks for it, without its cache."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import ClassVar

import torch
import xgrammar

from benchmarks.engine.engines import BaseAdapter, Batch, Refused, Session
from benchmarks.engine.vocabularies import Tokens


class Adapter(BaseAdapter):
    DISTRIBUTION = "xgrammar"
    NOTATION: ClassVar = {"": "ebnf"}
    EAGER = True

    def prepare(self, tokens: Tokens) -> SimpleNamespace:
        compiler = _compiler(tokens, cache=False)
        rows = xgrammar.allocate_token_bitmask(1, tokens.size)
        return SimpleNamespace(compiler=compiler, size=tokens.size, rows=rows, mask=rows.numpy()[0])

    def caching(self, tokens: Tokens) -> xgrammar.GrammarCompiler:
        """A compiler with the engine's own cache on, for a vocabulary's `compiler`."""
        return _compiler(tokens, cache=True)

    def compile(self, vocabulary, source: str):
        try:
            return vocabulary.compiler.compile_grammar(source)
        except RuntimeError as error:
            raise Refused(str(error).splitlines()[0]) from error

    def start(self, vocabulary, compiled) -> Session:
        matcher = xgrammar.GrammarMatcher(compiled)
        fill = partial(matcher.fill_next_token_bitmask, vocabulary.rows)
        return Session(fill, matcher.accept_token, vocabulary.mask)

    def batch(self, vocabulary, compileds) -> Batch:
        matchers = [xgrammar.GrammarMatcher(compiled) for compiled in compileds]
        filler = xgrammar.BatchGrammarMatcher(max_threads=1)
        rows: torch.Tensor = xgrammar.allocate_token_bitmask(len(matchers), vocabulary.size)
        return Batch(
            partial(filler.batch_fill_next_token_bitmask, matchers, rows),
            partial(filler.batch_accept_token, matchers),
            lambda row, token: matchers[row].accept_token(token),
            lambda row: matchers[row].reset(),
            rows.numpy(),
        )

    def nbytes(self, compiled) -> int:
        return compiled.memory_size_bytes


def _compiler(tokens: Tokens, cache: bool) -> xgrammar.GrammarCompiler:
    info = xgrammar.TokenizerInfo(
        tokens.tokens, xgrammar.VocabType.RAW, vocab_size=tokens.size, stop_token_ids=tokens.eos
    )
    return xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=cache)
