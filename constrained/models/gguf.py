"""Read a model in a GGUF file into transformers' classes, twenty times as fast as transformers' own reader.

That reader makes arrays of each token and merge, three times, and a table of all names of tensors for each module: 20 s
for the 135 million weights of SmolLM2, which take 1 s here. Configuration, weights and token ids are the same
(`tests/models/test_gguf.py`). Architectures and kinds of blocks that aren't known here are left to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, AutoConfig

from constrained.decoding.plain_llama import PlainLlama, is_plain
from constrained.errors import ModelError
from constrained.gguf_file import SPECIAL_TOKENS, GgufFile
from constrained.models.gguf_blocks import unpack


@dataclass(frozen=True)
class Architecture:
    """The properties in which supported architectures differ."""

    head_dim: str | None = None
    """Key of the width of a head; None: as wide as all heads together fill the model's width."""
    biases: bool = False
    """Queries, keys and values have biases."""
    norms: bool = False
    """Queries and keys are normalised."""
    interleaved: bool = False
    """llama.cpp rotates neighbouring rows of queries and keys; transformers those half a head apart."""


ARCHITECTURES = {
    "llama": Architecture("rope.dimension_count", interleaved=True),
    "qwen2": Architecture(biases=True),
    "qwen3": Architecture("attention.key_length", norms=True),
}

SETTINGS = {
    "context_length": "max_position_embeddings",
    "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size",
    "embedding_length": "hidden_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "rope.freq_base": "rope_theta",
    "vocab_size": "vocab_size",
}
"""Key after the architecture's name -> setting of transformers' configuration."""

UNUSED = "rope_freqs.weight"
"""A tensor that transformers' reader leaves out, too."""


def read_model(file: GgufFile, dtype: torch.dtype | None = None, **options: Any) -> tuple[Any, dict[str, Any]] | None:
    """A file's model, and transformers' report on its loading; None if the file is to be left to transformers' reader.

    Parameters
    ----------
    dtype : torch.dtype, optional
        Of the weights; default: float32, whatever they are stored in, as transformers has it.
    **options
        For ``from_pretrained``.

    Raises
    ------
    ModelError
        The metadata and the tensors contradict each other.
    """
    settings = _settings(file)
    if not settings:
        return None
    config = AutoConfig.for_model(file.metadata["general.architecture"], **settings)
    dtype = dtype or torch.float32
    weights = _weights(file, config, dtype)
    if weights is None:
        return None
    model_class: Any = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    model, report = model_class.from_pretrained(
        None, config=config, state_dict=weights, dtype=dtype, output_loading_info=True, **options
    )
    model.config._name_or_path = model.name_or_path = str(file.path)
    return model, report


def read_plain(file: GgufFile) -> PlainLlama | None:
    """A file's Llama in float32, without transformers' modules; None if it isn't plain. Raises as `read_model`."""
    settings = _settings(file)
    if not settings:
        return None
    settings |= {"model_type": file.metadata["general.architecture"], "hidden_act": "silu"}
    counts = settings.keys() - {"rms_norm_eps", "rope_theta"}
    if not is_plain(settings) or any(isinstance(settings[name], float) for name in counts):
        return None
    weights = _weights(file, SimpleNamespace(**settings), torch.float32)
    return None if weights is None else PlainLlama(settings, weights)


def _settings(file: GgufFile) -> dict[str, Any] | None:
    """The settings of the model's configuration; None if one is missing or isn't a positive number."""
    prefix, metadata = file.metadata.get("general.architecture", ""), file.metadata
    architecture = ARCHITECTURES.get(prefix)
    if architecture is None:
        return None
    tokens = metadata.get("tokenizer.ggml.tokens")
    found = {f"{prefix}.vocab_size": len(tokens)} if isinstance(tokens, list) else {}
    keys = SETTINGS | ({architecture.head_dim: "head_dim"} if architecture.head_dim else {})
    settings = {setting: (found | metadata).get(f"{prefix}.{key}") for key, setting in keys.items()}
    if not all(isinstance(value, (int, float)) and value > 0 for value in settings.values()):
        return None
    settings |= {
        f"{name}_token_id": metadata.get(f"tokenizer.ggml.{key}_token_id") for key, name in SPECIAL_TOKENS.items()
    }
    return settings | {"tie_word_embeddings": "output.weight" not in file.tensors}


def _targets(architecture: Architecture, config: Any) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Name of each tensor in the file -> name and shape of the model's weight."""
    width, inner = config.hidden_size, config.intermediate_size
    head = getattr(config, "head_dim", None) or width // config.num_attention_heads
    queries, keys = config.num_attention_heads * head, config.num_key_value_heads * head
    layer = {
        "attn_norm.weight": ("input_layernorm.weight", (width,)),
        "attn_q.weight": ("self_attn.q_proj.weight", (queries, width)),
        "attn_k.weight": ("self_attn.k_proj.weight", (keys, width)),
        "attn_v.weight": ("self_attn.v_proj.weight", (keys, width)),
        "attn_output.weight": ("self_attn.o_proj.weight", (width, queries)),
        "ffn_norm.weight": ("post_attention_layernorm.weight", (width,)),
        "ffn_gate.weight": ("mlp.gate_proj.weight", (inner, width)),
        "ffn_up.weight": ("mlp.up_proj.weight", (inner, width)),
        "ffn_down.weight": ("mlp.down_proj.weight", (width, inner)),
    }
    if architecture.biases:
        widths = {"q": queries, "k": keys, "v": keys}
        layer |= {f"attn_{one}.bias": (f"self_attn.{one}_proj.bias", (size,)) for one, size in widths.items()}
    if architecture.norms:
        layer |= {f"attn_{one}_norm.weight": (f"self_attn.{one}_norm.weight", (head,)) for one in "qk"}
    result = {
        f"blk.{i}.{name}": (f"model.layers.{i}.{target}", shape)
        for i in range(config.num_hidden_layers)
        for name, (target, shape) in layer.items()
    }
    result["token_embd.weight"] = "model.embed_tokens.weight", (config.vocab_size, width)
    result["output_norm.weight"] = "model.norm.weight", (width,)
    if not config.tie_word_embeddings:
        result["output.weight"] = "lm_head.weight", (config.vocab_size, width)
    return result


def _weights(file: GgufFile, config: Any, dtype: torch.dtype) -> dict[str, torch.Tensor] | None:
    """The model's weights by name; None if the file has others, or some of a kind that isn't known here."""
    if config.num_hidden_layers > len(file.tensors):  # checked before the layers are made
        raise _damaged(file, f"{config.num_hidden_layers:,} layers have {len(file.tensors):,} tensors")
    architecture = ARCHITECTURES[file.metadata["general.architecture"]]
    targets = _targets(architecture, config)
    if not file.tensors.keys() - {UNUSED} <= targets.keys() or not all(one.kind for one in file.tensors.values()):
        return None
    return dict(_numbers(file, targets, config if architecture.interleaved else None, dtype))


def _numbers(
    file: GgufFile, targets: dict[str, tuple[str, tuple[int, ...]]], interleaved: Any, dtype: torch.dtype
) -> Iterator[tuple[str, torch.Tensor]]:
    """Name and numbers of each of the model's weights. `interleaved`: the configuration, if rows are."""
    # Private pages: nothing is written, but torch warns of memory that can't be.
    memory = torch.from_numpy(np.memmap(file.path, np.uint8, "c"))
    for name, (target, shape) in targets.items():
        tensor = file.tensors.get(name)
        if tensor is None or tensor.shape != shape or tensor.kind is None:
            problem = f"has the shape {list(tensor.shape)}" if tensor else "is missing"
            raise _damaged(file, f"the tensor {name} of shape {list(shape)} {problem}")
        raw = memory[tensor.begin : tensor.begin + tensor.bytes]
        heads = {"attn_q": "num_attention_heads", "attn_k": "num_key_value_heads"}.get(name.split(".")[-2])
        if interleaved and heads:  # rows are whole numbers of blocks: they are moved before they are unpacked
            raw = raw.view(getattr(interleaved, heads), -1, 2, tensor.bytes // shape[0]).transpose(1, 2).flatten()
        numbers = torch.empty(shape, dtype=dtype)
        unpack(raw, tensor.kind, numbers)
        yield target, numbers


def _damaged(file: GgufFile, what: str) -> ModelError:
    return ModelError(f"{file.path} is damaged: {what}", "download it again, or convert the model again")
