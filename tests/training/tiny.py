"""A model that is tuned in a second: two layers, weights of chance."""

from __future__ import annotations

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from constrained.models import LoadedModel, load


def tiny_model(tokenizer=None, seed: int = 0) -> LoadedModel:
    """The same weights for the same seed; the embedded model's tokenizer by default."""
    tokenizer = tokenizer or load().tokenizer
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return load((LlamaForCausalLM(config), tokenizer))
