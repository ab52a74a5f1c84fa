"""What is measured: a KnowAgent step, its tables on the device, and a model with random weights."""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from benchmarks.engine import vocabularies
from benchmarks.engine.engines import engine, source
from benchmarks.engine.vocabularies import Tokens, load, spell
from benchmarks.engine.workloads import household_step
from constrained import CompiledGrammar, Grammar, Vocabulary, compile_grammar
from constrained.decoding.device import DeviceTables

CONTEXT = 128
"""Tokens read before those that are timed."""

NEW_TOKENS = 192
"""Limit on the tokens of a text."""


@dataclass(eq=False)
class Workload:
    """Grammar, tables, prompt and model; `tokenizer` spells forced text, `xgrammar` is the grammar compiled by it."""

    vocabulary: Vocabulary
    grammar: Grammar
    compiled: CompiledGrammar
    tables: DeviceTables
    model: Any
    prompt: list[int]
    tokenizer: Any
    xgrammar: Any
    build_seconds: float
    name: str

    @classmethod
    def of(cls, options: argparse.Namespace) -> Workload:
        prompt, case = household_step(0)
        if options.vocabulary == "embedded":
            from constrained.models import load as load_model

            embedded = load_model()
            vocabulary, tokenizer = embedded.vocabulary, embedded.tokenizer
            tokens = Tokens("embedded", list(vocabulary.tokens), list(vocabulary.eos_token_ids),
                            sorted(vocabulary.special_set))  # fmt: skip
            ids = tokenizer.encode(prompt)
        else:
            tokens = load(options.vocabulary)
            vocabulary, tokenizer = tokens.vocabulary, vocabularies.tokenizer(tokens.name)
            ids = spell(tokens, prompt)
        ours = engine("ours")
        grammar = Grammar.from_lark(source(ours, "", case))
        compiled = compile_grammar(grammar, vocabulary)
        began = time.perf_counter()
        tables = DeviceTables.build(compiled, tokenizer=tokenizer, device=options.device)
        return cls(
            vocabulary, grammar, compiled, tables, untrained(tables, options), ids[-CONTEXT:], tokenizer,
            _by_xgrammar(tokens, case), time.perf_counter() - began, options.vocabulary,
        )  # fmt: skip

    def facts(self) -> dict:
        config, tables = self.model.config, self.tables
        return {
            "vocabulary": self.name,
            "size": self.vocabulary.size,
            "dtype": str(self.model.dtype).removeprefix("torch."),
            "model": {
                "layers": config.num_hidden_layers,
                "width": config.hidden_size,
                "weights": sum(p.numel() for p in self.model.parameters()),
                "context": len(self.prompt),
            },
            "states": tables.states,
            "wide states": tables.mask_row.shape[0],
            "mask rows": tables.masks.shape[0],
            "classes": tables.next.shape[1],
            "bytes": tables.nbytes,
            "build seconds": self.build_seconds,
        }


def untrained(tables: DeviceTables, options: argparse.Namespace) -> LlamaForCausalLM:
    """A Llama with random weights over the tables' vocabulary, made on their device."""
    torch.manual_seed(0)
    heads = max(1, options.width // 128 if options.width > 128 else 1)
    config = LlamaConfig(
        vocab_size=tables.size, hidden_size=options.width, intermediate_size=round(2.7 * options.width / 8) * 8,
        num_hidden_layers=options.layers, num_attention_heads=heads, num_key_value_heads=heads,
        max_position_embeddings=CONTEXT + NEW_TOKENS + 64, tie_word_embeddings=True,
        bos_token_id=None, eos_token_id=None, pad_token_id=0, dtype=getattr(torch, options.dtype),
    )  # fmt: skip
    before = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, options.dtype))
    try:
        with torch.device(tables.device):
            return LlamaForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(before)


def _by_xgrammar(tokens: Tokens, case: Any) -> Any:
    """The grammar compiled by xgrammar; None where it isn't installed."""
    try:
        peer = engine("xgrammar")
    except ImportError:
        return None
    return peer.compile(peer.prepare(tokens), source(peer, "", case))


@contextmanager
def waits(device: torch.device) -> Iterator[list]:
    """The host's waits for the device, as torch tells them; none on a CPU."""
    result: list = []
    if device.type == "cpu":
        yield result
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield result
        finally:
            torch.cuda.set_sync_debug_mode("default")
            result += [one for one in caught if "synchroniz" in str(one.message)]
