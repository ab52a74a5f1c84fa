"""The tiny model as llama.cpp reads it: random weights and the same byte-level tokenizer, in a GGUF file."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np

from tests.decoding.tiny import tiny_llama, tiny_tokenizer

WEIGHTS = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def write_tiny_gguf(path: Path) -> None:
    """Weights go in as they are, so that it writes otherwise than transformers would (which pairs other columns)."""
    tokenizer = tiny_tokenizer()
    model = tiny_llama(len(tokenizer))
    config = model.config
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    description = json.loads(tokenizer.backend_tokenizer.to_str())
    pieces = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(pieces)
    kinds = gguf.TokenType
    writer.add_token_types([kinds.CONTROL if p in ("<s>", "</s>") else kinds.NORMAL for p in pieces])
    writer.add_token_merges([" ".join(pair) for pair in description["model"]["merges"]])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_add_bos_token(False)
    for name, weight in model.state_dict().items():
        stem = name.removesuffix(".weight")
        if stem.startswith("model.layers."):
            _, _, layer, part = stem.split(".", 3)
            stem = f"blk.{layer}.{WEIGHTS[part]}"
        else:
            stem = WEIGHTS[stem]
        writer.add_tensor(f"{stem}.weight", weight.numpy().astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
