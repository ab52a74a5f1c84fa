"""llguidance: Lark or a regex; masks are written straight to their address, as its own helpers do."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import ClassVar

import llguidance
import numpy as np

from benchmarks.engine.engines import BaseAdapter, Batch, Refused, Session
from benchmarks.engine.vocabularies import Tokens, spell


class _Tokenizer:
    """The interface that `llguidance.TokenizerWrapper` expects."""

    bos_token_id = None

    def __init__(self, tokens: Tokens):
        self.vocabulary = tokens
        self.eos_token_id = tokens.eos[0]
        self.tokens = [t or b"<special %d>" % i for i, t in enumerate(tokens.tokens)]
        self.special_token_ids = [i for i, t in enumerate(tokens.tokens) if not t]

    def __call__(self, text) -> list[int]:
        return spell(self.vocabulary, text.decode() if isinstance(text, bytes) else text)


class Adapter(BaseAdapter):
    DISTRIBUTION = "llguidance"
    NOTATION: ClassVar = {"step": "regex", "bounded": "regex", "probe": "regex", "": "lark"}
    NEEDS_TOKENIZER = True

    def version(self) -> str:
        return llguidance.__version__

    def prepare(self, tokens: Tokens) -> SimpleNamespace:
        wrapper = llguidance.TokenizerWrapper(_Tokenizer(tokens))
        tokenizer = llguidance.LLTokenizer(wrapper, n_vocab=tokens.size, eos_token=tokens.eos)
        return SimpleNamespace(tokenizer=tokenizer, words=tokens.words, mask=np.zeros(tokens.words, np.int32))

    def compile(self, vocabulary, source: str):
        grammar = source if source.startswith("start:") else llguidance.LLMatcher.grammar_from_regex(source)
        matcher = llguidance.LLMatcher(vocabulary.tokenizer, grammar)
        if matcher.is_error():
            raise Refused(matcher.get_error().splitlines()[0])
        return matcher

    def session(self, compiled, mask: np.ndarray) -> Session:
        compiled.reset()
        fill = partial(compiled.unsafe_compute_mask_ptr, mask.ctypes.data, mask.nbytes)
        return Session(fill, compiled.consume_token, mask)

    def batch(self, vocabulary, compileds) -> Batch:
        matchers = list(compileds)
        executor = llguidance.LLExecutor(num_threads=1)
        mask = np.zeros((len(matchers), vocabulary.words), np.int32)
        rows = [(matcher, row) for row, matcher in enumerate(matchers)]
        return Batch(
            partial(executor.unsafe_compute_mask_ptr, rows, mask.ctypes.data, 4 * vocabulary.words, len(rows)),
            lambda ids: executor.consume_token_par(list(zip(matchers, ids))),
            lambda row, token: matchers[row].consume_token(token),
            lambda row: matchers[row].reset(),
            mask,
        )
