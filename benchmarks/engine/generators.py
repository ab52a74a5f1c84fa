"""`model.generate` with each engine's logits processor; each engine runs in its own process (see `worker`).

The model is an untrained Llama of about 30 million weights: its texts mean nothing, but cost as much as those of any
model of its size. With Tekken's vocabulary most of the cost is its output layer.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from time import perf_counter
from typing import Any, NamedTuple

import torch
from transformers import LlamaConfig, LlamaForCausalLM, LogitsProcessor, LogitsProcessorList
from transformers import logging as transformers_logging

from benchmarks.engine.engines import engine, source
from benchmarks.engine.vocabularies import Tokens, spell, tokenizer
from benchmarks.engine.workloads import household_step
from constrained.decoding import custom_generate

MOST_TOKENS = 256
"""Limit on the new tokens of one text."""
FREE_TOKENS = 80
"""Tokens of one text without a grammar, about as many as with one."""


def untrained_model(size: int) -> LlamaForCausalLM:
    """A Llama of some 30 million weights over `size` tokens, the same in every process."""
    torch.manual_seed(30)
    config = LlamaConfig(
        vocab_size=size, hidden_size=192, intermediate_size=512, num_hidden_layers=10, num_attention_heads=6,
        num_key_value_heads=2, max_position_embeddings=2048, tie_word_embeddings=True, bos_token_id=None,
        eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def _ours(compiled: Any, vocabulary: Any, tokens: Tokens) -> dict[str, Any]:
    """This project's generation loop."""
    return {
        "custom_generate": custom_generate, "grammar": compiled, "tokenizer": tokenizer(tokens.name),
        "return_dict_in_generate": True,
    }  # fmt: skip


def _xgrammar(compiled: Any, vocabulary: Any, tokens: Tokens) -> dict[str, Any]:
    """xgrammar's own processor."""
    from xgrammar.contrib.hf import LogitsProcessor as XGrammarProcessor

    return _with(XGrammarProcessor(compiled))


def _llguidance(compiled: Any, vocabulary: Any, tokens: Tokens) -> dict[str, Any]:
    """llguidance has no processor for transformers: this is its documented loop, for one row."""
    compiled.reset()
    return _with(_LLGuidanceLoop(compiled, tokens.size))


class _LLGuidanceLoop(LogitsProcessor):
    def __init__(self, matcher: Any, size: int):
        import llguidance.torch

        self.library, self.matcher, self.begun = llguidance.torch, matcher, False
        self.mask = self.library.allocate_token_bitmask(1, size)

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        if self.begun:
            self.matcher.consume_token(int(input_ids[0, -1]))
        self.begun = True
        self.library.fill_next_token_bitmask(self.matcher, self.mask, 0)
        self.library.apply_token_bitmask_inplace(scores, self.mask)
        return scores


def _outlines_core(compiled: Any, vocabulary: Any, tokens: Tokens) -> dict[str, Any]:
    """Outlines' adapter of outlines_core."""
    from outlines.backends.outlines_core import OutlinesCoreLogitsProcessor

    return _with(OutlinesCoreLogitsProcessor(compiled, "torch"))


def _outlines_xgrammar(compiled: Any, vocabulary: Any, tokens: Tokens) -> dict[str, Any]:
    """Outlines' adapter of xgrammar."""
    from outlines.backends.xgrammar import XGrammarLogitsProcessor

    return _with(XGrammarLogitsProcessor(compiled, "torch"))


def _outlines_llguidance(compiled: Any, vocabulary: Any, tokens: Tokens) -> dict[str, Any]:
    """Outlines' adapter of llguidance; it compiles the grammar again for each text."""
    from outlines.backends.llguidance import LLGuidanceLogitsProcessor

    return _with(LLGuidanceLogitsProcessor(compiled, vocabulary.tokenizer, "torch"))


def _lmformatenforcer(compiled: Any, vocabulary: Any, tokens: Tokens) -> dict[str, Any]:
    """As in its integration with transformers."""
    return {"prefix_allowed_tokens_fn": lambda row, ids: compiled.get_allowed_tokens(ids.tolist()).allowed_tokens}


def _with(processor: Any) -> dict[str, Any]:
    return {"logits_processor": LogitsProcessorList([processor])}


class Kind(NamedTuple):
    """A way to keep `model.generate` within a grammar."""

    engine: str
    distribution: str | None  # whose version is reported
    options: Callable[[Any, Any, Tokens], dict[str, Any]]
    """Compiled grammar, prepared vocabulary, tokens -> keyword arguments of `model.generate` for one text."""


KINDS: dict[str, Kind] = {
    "ours": Kind("ours", None, _ours),
    "xgrammar": Kind("xgrammar", "xgrammar", _xgrammar),
    "llguidance": Kind("llguidance", "llguidance", _llguidance),
    "outlines (outlines_core)": Kind("outlines_core", "outlines", _outlines_core),
    "outlines (xgrammar)": Kind("xgrammar", "outlines", _outlines_xgrammar),
    "outlines (llguidance)": Kind("llguidance", "outlines", _outlines_llguidance),
    "lmformatenforcer": Kind("lmformatenforcer", "lm-format-enforcer", _lmformatenforcer),
}


class Generator:
    """A model with one engine's constraint, or none; runs in its own process (see `worker`)."""

    def __init__(self, name: str, tokens: Tokens):
        transformers_logging.set_verbosity_error()
        torch.set_num_threads(1)
        self.name, self.tokens = name, tokens
        self.model = untrained_model(tokens.size)
        self.kind = KINDS.get(name)
        self.compiled: dict[int, Any] = {}
        if self.kind:
            self.adapter = engine(self.kind.engine)
            if self.adapter.NEEDS_TOKENIZER:
                tokenizer(tokens.name)
            self.vocabulary = self.adapter.prepare(tokens)

    def hello(self) -> dict:
        """The engine's version, and the number of weights."""
        distribution = self.kind and self.kind.distribution
        weights = sum(p.numel() for p in self.model.parameters())
        return {"version": version(distribution) if distribution else None, "weights": weights}

    def prepare(self, number: int) -> float:
        """Compile the grammar of a step; returns the seconds (0 if the adapter compiles for each text itself)."""
        if self.kind is None:
            return 0.0
        text = source(self.adapter, "", household_step(number)[1])
        if self.kind.options is _outlines_llguidance:
            self.compiled[number] = text
            return 0.0
        began = perf_counter()
        self.compiled[number] = self.adapter.compile(self.vocabulary, text)
        return perf_counter() - began

    def write(self, number: int, sample: bool) -> dict:
        """Write one prepared step, sampled at temperature 1 or greedily.

        Returns
        -------
        dict
            "seconds"; "tokens"; forward "passes" and "forced" tokens, if known; "whole": the text is in the language;
            "text".
        """
        prompt, case = household_step(number)
        ids = torch.tensor([spell(self.tokens, prompt)])
        torch.manual_seed(number)
        began = perf_counter()
        if self.kind is None:
            options = {"min_new_tokens": FREE_TOKENS, "max_new_tokens": FREE_TOKENS}
        else:
            options = self.kind.options(self.compiled[number], self.vocabulary, self.tokens)
            options["max_new_tokens"] = MOST_TOKENS
        with torch.inference_mode():
            out = self.model.generate(
                ids, attention_mask=torch.ones_like(ids), do_sample=sample, top_k=0, top_p=1.0,
                eos_token_id=self.tokens.eos, pad_token_id=self.tokens.eos[0], **options,
            )  # fmt: skip
        seconds = perf_counter() - began
        written = (out if isinstance(out, torch.Tensor) else out.sequences)[0, ids.shape[1] :].tolist()
        count = len(written) - (written[-1] in self.tokens.eos)
        data = b"".join(self.tokens.tokens[i] for i in written)
        ours = self.name == "ours"
        return {
            "seconds": seconds,
            "tokens": count,
            "passes": out.forward_passes if ours else len(written),
            "forced": int(out.forced[0, :count].sum()) if ours else None,
            "whole": case.whole(data),
            "text": data.decode("utf-8", "replace"),
        }
