"""A Llama on the CPU: its weights and the operations of its layers, without transformers' modules.

The numbers are those of transformers' Llama, to the last bit; importing its modules takes two seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn
from torch.nn.functional import linear, scaled_dot_product_attention, silu

Attention = Callable[[Any, torch.Tensor, torch.Tensor, torch.Tensor, "torch.Tensor | None"], torch.Tensor]
"""Module, queries, keys and values ``[rows, heads, T, d]``, mask -> attended values ``[rows, T, heads, d]``."""


class PlainLlama(nn.Module):
    """A Llama in float32 with the part of transformers' interface that generation uses.

    Parameters
    ----------
    settings : mapping
        What its ``config.json`` says.
    weights : mapping of str to Tensor
        By transformers' names.

    Raises
    ------
    ValueError
        It isn't plain: it has biases, a rotation or an activation of another kind, or other weights.
    """

    def __init__(self, settings: Mapping[str, Any], weights: Mapping[str, torch.Tensor]):
        super().__init__()
        if not is_plain(settings) or any(name.endswith("bias") for name in weights):
            raise ValueError("it is no plain Llama")
        self.config = config = SimpleNamespace(**{"eos_token_id": None, **settings}, _attn_implementation="sdpa")
        config.get_text_config = lambda: config
        named = {name: nn.Parameter(weight.float(), requires_grad=False) for name, weight in weights.items()}
        for name, weight in named.items():
            self.register_parameter(name.replace(".", "_"), weight)
        try:
            embedding = named["model.embed_tokens.weight"]
            # Tiny weights, replaced below: to make them at full size, or on "meta", would take a second.
            self.embedding, self.head = nn.Embedding(1, 1), nn.Linear(1, 1, bias=False)
            self.embedding.weight = embedding
            self.head.weight = embedding if config.tie_word_embeddings else named["lm_head.weight"]
            self.head.out_features, self.head.in_features = self.head.weight.shape
            self._layers = _layers(config, named, self.embedding)
        except KeyError as error:
            raise ValueError(f"the weight {error} is missing") from None

    def forward(
        self,
        input_ids: torch.Tensor,
        past_key_values: Any = None,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        use_cache: bool = True,
        logits_to_keep: int = 0,
    ) -> SimpleNamespace:
        """The logits of the last `logits_to_keep` columns, 0: of all, and the cache."""
        hidden, past = self.run(input_ids, past_key_values, attention_mask, position_ids, use_cache)
        return SimpleNamespace(logits=self.head(hidden[:, -logits_to_keep:]), past_key_values=past)

    def base_model(self, **inputs: Any) -> SimpleNamespace:
        """The last hidden state, and the cache."""
        hidden, past = self.run(**inputs)
        return SimpleNamespace(last_hidden_state=hidden, past_key_values=past)

    @torch.no_grad()
    def run(
        self,
        input_ids: torch.Tensor,
        past_key_values: Any = None,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        use_cache: bool = True,
    ) -> tuple[torch.Tensor, Any]:
        """The last hidden states, float32 ``[rows, T, d]``, and the cache.

        `attention_mask`: bool ``[rows, 1, T, slots]``; None: each token sees those before it.
        """
        past, new = 0 if past_key_values is None else int(past_key_values.get_seq_length()), input_ids.shape[1]
        if past_key_values is None and use_cache:
            past_key_values = KeysAndValues()
        if position_ids is None:
            position_ids = torch.arange(past, past + new).unsqueeze(0)
        if attention_mask is None and past and new > 1:
            attention_mask = (torch.arange(past + new) <= torch.arange(past, past + new)[:, None])[None, None]
        hidden = run_layers(self._layers, input_ids, position_ids, attention_mask, past_key_values, _attention)
        return hidden, past_key_values

    @property
    def device(self) -> torch.device:
        return self.embedding.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.embedding.weight.dtype

    def get_input_embeddings(self) -> nn.Embedding:
        return self.embedding

    def get_output_embeddings(self) -> nn.Linear:
        return self.head

    def _supports_default_dynamic_cache(self) -> bool:
        return True


def is_plain(settings: Mapping[str, Any]) -> bool:
    """Whether a ``config.json`` is that of a Llama that `PlainLlama` computes."""
    rotation = settings.get("rope_parameters") or {"rope_theta": settings.get("rope_theta"), "rope_type": "default"}
    heads, keys = settings.get("num_attention_heads"), settings.get("num_key_value_heads")
    return (
        settings.get("model_type") == "llama"
        and settings.get("hidden_act") == "silu"
        and rotation.get("rope_type") == "default"
        and isinstance(rotation.get("rope_theta"), (int, float))
        and isinstance(heads, int)
        and isinstance(keys, int)
        and keys > 0
        and heads % keys == 0
        and not settings.get("quantization_config")
    )


class KeysAndValues:
    """Keys and values of some texts, ``[rows, heads, tokens, d]`` for each layer; used as a transformers cache is."""

    is_compileable = False

    def __init__(self) -> None:
        self.layers: list[tuple[torch.Tensor, torch.Tensor]] = []

    def update(self, keys: torch.Tensor, values: torch.Tensor, layer: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Append to a layer's keys and values, and return all of them."""
        if layer == len(self.layers):
            self.layers.append((keys, values))
        else:
            held = self.layers[layer]
            self.layers[layer] = torch.cat((held[0], keys), -2), torch.cat((held[1], values), -2)
        return self.layers[layer]

    def get_seq_length(self) -> int:
        return self.layers[0][0].shape[-2] if self.layers else 0

    def crop(self, most: int) -> None:
        """Keep so many tokens; negative: all but the last so many."""
        self.layers = [(keys[..., :most, :], values[..., :most, :]) for keys, values in self.layers]


def run_layers(
    model: Any, ids: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor | None, past: Any, attention: Attention
) -> torch.Tensor:
    """The last hidden states of a Llama's layers; `model` is transformers' ``LlamaModel``, or has the same parts."""
    hidden = model.embed_tokens(ids)
    rows, width, _ = hidden.shape
    # The rotation of a pair (a, b) by an angle, for whole vectors: x * cos + swapped(x) * (-sin, sin).
    cos, sin = (part.unsqueeze(1) for part in model.rotary_emb(hidden, position_ids=positions))
    half = cos.shape[-1] // 2
    sin = torch.cat((-sin[..., :half], sin[..., half:]), -1)
    for index, layer in enumerate(model.layers):
        normed, own, mlp = _norm(layer.input_layernorm, hidden), layer.self_attn, layer.mlp
        shape = (rows, width, -1, own.head_dim)
        query, key, value = (
            _linear(matrix, normed).view(shape).transpose(1, 2) for matrix in (own.q_proj, own.k_proj, own.v_proj)
        )
        query = query * cos + query.roll(half, -1) * sin
        key = key * cos + key.roll(half, -1) * sin
        if past is not None:
            key, value = past.update(key, value, index)
        attended = attention(own, query, key, value, mask)
        hidden = hidden + _linear(own.o_proj, attended.reshape(rows, width, -1))
        normed = _norm(layer.post_attention_layernorm, hidden)
        gated = mlp.act_fn(_linear(mlp.gate_proj, normed)) * _linear(mlp.up_proj, normed)
        hidden = hidden + _linear(mlp.down_proj, gated)
    return _norm(model.norm, hidden)


def _linear(module: Any, given: torch.Tensor) -> torch.Tensor:
    weights = module._parameters
    return linear(given, weights["weight"], weights["bias"])


def _norm(module: Any, given: torch.Tensor) -> torch.Tensor:
    variance = given.pow(2).mean(-1, keepdim=True)
    return module._parameters["weight"] * (given * torch.rsqrt(variance + module.variance_epsilon))


def _attention(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None
) -> torch.Tensor:
    groups = query.shape[1] // key.shape[1]
    if groups > 1:  # grouped-query attention: some queries share their keys and values
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    causal = mask is None and query.shape[2] > 1
    attended = scaled_dot_product_attention(query, key, value, mask, is_causal=causal, scale=module.scaling)
    return attended.transpose(1, 2).contiguous()


def _layers(config: Any, weights: Mapping[str, torch.Tensor], embedding: nn.Embedding) -> SimpleNamespace:
    """The weights in the shape of transformers' ``LlamaModel``."""
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    theta = (getattr(config, "rope_parameters", None) or vars(config))["rope_theta"]
    frequencies = 1.0 / (theta ** (torch.arange(0, head_dim, 2, dtype=torch.float) / head_dim))

    def part(name: str, **more: Any) -> SimpleNamespace:
        return SimpleNamespace(_parameters={"weight": weights[f"model.{name}.weight"], "bias": None}, **more)

    def rotation(hidden: torch.Tensor, position_ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        angles = position_ids[..., None].float() * frequencies
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos(), angles.sin()

    def layer(name: str) -> SimpleNamespace:
        norms = {
            norm: part(f"{name}.{norm}", variance_epsilon=config.rms_norm_eps)
            for norm in ("input_layernorm", "post_attention_layernorm")
        }
        projections = {one: part(f"{name}.self_attn.{one}") for one in ("q_proj", "k_proj", "v_proj", "o_proj")}
        if len(weights[f"model.{name}.self_attn.k_proj.weight"]) != config.num_key_value_heads * head_dim:
            raise ValueError("the keys are not as wide as the configuration says")
        gated = {one: part(f"{name}.mlp.{one}") for one in ("gate_proj", "up_proj", "down_proj")}
        return SimpleNamespace(
            self_attn=SimpleNamespace(head_dim=head_dim, scaling=head_dim**-0.5, **projections),
            mlp=SimpleNamespace(act_fn=silu, **gated),
            **norms,
        )

    return SimpleNamespace(
        embed_tokens=embedding,
        rotary_emb=rotation,
        layers=[layer(f"layers.{number}") for number in range(config.num_hidden_layers)],
        norm=part("norm", variance_epsilon=config.rms_norm_eps),
    )
