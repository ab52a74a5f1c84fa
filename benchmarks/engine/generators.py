"""`model.generate` with each engine's logits processor; each engine runs in its own process (see `worker`).

The model is an untrained Llama of about 30 million weights: its texts mean nothing, but cost as much as those of any
model of its size. With Tekken's vocabulary most of the cost is its output layer.
"""

from __future__ import annotations

from importlib.metadata import version
from time import perf_counter
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM, LogitsProcessor, LogitsProcessorList
from transformers import logging as transformers_logging

from benchmarks.engine.engines import engine, source
from benchmarks.engine.vocabularies import Tokens, encode, spell, tokenizer
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


class Tokenizer:
    """The part of a tokenizer that forced text needs."""

    def __init__(self, tokens: Tokens):
        self.name = tokens.name

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        return encode(self.name, text)


class Ours:
    """This project's generation loop."""

    engine, distribution = "ours", None

    def __init__(self, vocabulary: Any, tokens: Tokens):
        self.vocabulary, self.tokens = vocabulary, tokens

    def options(self, compiled: Any) -> dict[str, Any]:
        """Keyword arguments of `model.generate` for one text within the grammar."""
        return {
            "custom_generate": custom_generate, "grammar": compiled, "tokenizer": Tokenizer(self.tokens),
            "return_dict_in_generate": True,
        }  # fmt: skip


class XGrammar(Ours):
    """xgrammar's own processor."""

    engine, distribution = "xgrammar", "xgrammar"

    def options(self, compiled: Any) -> dict[str, Any]:
        from xgrammar.contrib.hf import LogitsProcessor as XGrammarProcessor

        return {"logits_processor": LogitsProcessorList([XGrammarProcessor(compiled)])}


class LLGuidance(Ours):
    """llguidance has no processor for transformers: this is its documented loop, for one row."""

    engine, distribution = "llguidance", "llguidance"

    def options(self, compiled: Any) -> dict[str, Any]:
        compiled.reset()
        return {"logits_processor": LogitsProcessorList([_LLGuidanceLoop(compiled, self.tokens.size)])}


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


class OutlinesCore(Ours):
    """Outlines' adapter of outlines_core."""

    engine, distribution = "outlines_core", "outlines"

    def options(self, compiled: Any) -> dict[str, Any]:
        from outlines.backends.outlines_core import OutlinesCoreLogitsProcessor

        return {"logits_processor": LogitsProcessorList([OutlinesCoreLogitsProcessor(compiled, "torch")])}


class OutlinesXGrammar(Ours):
    """Outlines' adapter of xgrammar."""

    engine, distribution = "xgrammar", "outlines"

    def options(self, compiled: Any) -> dict[str, Any]:
        from outlines.backends.xgrammar import XGrammarLogitsProcessor

        return {"logits_processor": LogitsProcessorList([XGrammarLogitsProcessor(compiled, "torch")])}


class OutlinesLLGuidance(Ours):
    """Outlines' adapter of llguidance; it compiles the grammar again for each text."""

    engine, distribution = "llguidance", "outlines"

    def options(self, compiled: Any) -> dict[str, Any]:
        from outlines.backends.llguidance import LLGuidanceLogitsProcessor

        processor = LLGuidanceLogitsProcessor(compiled, self.vocabulary.tokenizer, "torch")
        return {"logits_processor": LogitsProcessorList([processor])}


class LMFormatEnforcer(Ours):
    """As in its integration with transformers."""

    engine, distribution = "lmformatenforcer", "lm-format-enforcer"

    def options(self, compiled: Any) -> dict[str, Any]:
        return {"prefix_allowed_tokens_fn": lambda row, ids: compiled.get_allowed_tokens(ids.tolist()).allowed_tokens}


KINDS: dict[str, type[Ours]] = {
    "ours": Ours,
    "xgrammar": XGrammar,
    "llguidance": LLGuidance,
    "outlines (outlines_core)": OutlinesCore,
    "outlines (xgrammar)": OutlinesXGrammar,
    "outlines (llguidance)": OutlinesLLGuidance,
    "lmformatenforcer": LMFormatEnforcer,
}


class Generator:
    """A model with one engine's constraint, or none; runs in its own process (see `worker`)."""

    def __init__(self, name: str, tokens: Tokens):
        transformers_logging.set_verbosity_error()
        torch.set_num_threads(1)
        self.name, self.tokens = name, tokens
        self.model = untrained_model(tokens.size)
        self.kind: type[Ours] | None = KINDS.get(name)
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
        if self.kind is OutlinesLLGuidance:
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
            guide = self.kind(self.vocabulary, self.tokens)
            options = {"max_new_tokens": MOST_TOKENS} | guide.options(self.compiled[number])
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
