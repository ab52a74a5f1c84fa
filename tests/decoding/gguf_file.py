"""A model of the tests as llama.cpp reads it: a GGUF file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.decoding.tiny import tiny_llama, tiny_tokenizer


def write_gguf(path: Path, model: Any = None, tokenizer: Any = None, kind: str = "F32", **entries: Any) -> Path:
    """The file that llama.cpp's converter would make of a Llama with a byte-level tokenizer; default: the tiny one.

    `model` may also be a Qwen2 or Qwen3. Matrices are stored in blocks of `kind`; `entries` are more texts as metadata.
    """
    gguf = pytest.importorskip("gguf", reason="needs the extra gguf")
    tokenizer = tokenizer or tiny_tokenizer()
    model = model or tiny_llama(len(tokenizer))
    config, writer = model.config, gguf.GGUFWriter(path, model.config.model_type)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    head = getattr(config, "head_dim", config.hidden_size // config.num_attention_heads)
    writer.add_rope_dimension_count(head)
    writer.add_key_length(head)
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
    for key, text in entries.items():
        writer.add_string(key.replace("__", "."), text)
    stored = gguf.GGMLQuantizationType[kind]
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[config.model_type.upper()], config.num_hidden_layers)
    for name, weight in model.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        data = weight.numpy().astype(np.float32)
        for part, heads in (("q_proj", config.num_attention_heads), ("k_proj", config.num_key_value_heads)):
            if part in name and config.model_type == "llama":  # llama.cpp pairs other rows in its rotary embedding
                data = data.reshape(heads, 2, -1, data.shape[1]).swapaxes(1, 2).reshape(data.shape)
        data, flat = np.ascontiguousarray(data), data.ndim == 1
        renamed = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if flat or kind == "F32":
            writer.add_tensor(renamed, data)
        else:
            writer.add_tensor(renamed, gguf.quantize(data, stored), raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
