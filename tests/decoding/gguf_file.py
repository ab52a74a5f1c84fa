"""A model of the tests as llama.cpp reads it: a GGUF file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.decoding.tiny import tiny_llama, tiny_tokenizer


def write_gguf(path: Path, model: Any = None, tokenizer: Any = None) -> Path:
    """The file that llama.cpp's converter would make of a Llama with a byte-level tokenizer; default: the tiny one."""
    gguf = pytest.importorskip("gguf", reason="needs the extra gguf")
    tokenizer = tokenizer or tiny_tokenizer()
    model = model or tiny_llama(len(tokenizer))
    config, writer = model.config, gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.head_dim)
    writer.add_rope_freq_base(10_000.0)  # as Llama's configuration has it by default
    writer.add_vocab_size(config.vocab_size)
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    pieces = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    kinds = gguf.TokenType
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(pieces)
    writer.add_token_types([kinds.CONTROL if piece in ("<s>", "</s>") else kinds.NORMAL for piece in pieces])
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in merges])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_add_bos_token(False)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    for name, weight in model.state_dict().items():
        data = weight.numpy().astype(np.float32)
        for kind, heads in (("q_proj", config.num_attention_heads), ("k_proj", config.num_key_value_heads)):
            if kind in name:  # llama.cpp pairs other columns in its rotary embedding
                data = data.reshape(heads, 2, -1, data.shape[1]).swapaxes(1, 2).reshape(data.shape)
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), np.ascontiguousarray(data))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
