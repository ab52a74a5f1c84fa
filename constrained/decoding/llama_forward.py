"""A forward pass of a Llama on the CPU, without the calls of its modules.

For a small model, a pass over one token is mostly calls: with 4 layers, 57 modules. Here their operations are written
out, in the same order and on the same weights. The numbers are the same to the last bit. A `PlainLlama` has nothing but
the weights: transformers' own modules take two seconds to import.
"""

from __future__ import annotations

import sys
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.nn.modules.module import _has_any_global_hook

from constrained.decoding.plain_llama import PlainLlama, run_layers

MODELING = "transformers.models.llama.modeling_llama"

TRIED = 4
"""Tokens on which the result is compared with the model's own."""

_SAME: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()
"""Model -> whether the result was its own: another version of transformers may compute otherwise."""


def last_hidden_state(
    model: Any, input_ids: torch.Tensor, past_key_values: Any = None, attention_mask: torch.Tensor | None = None,
    position_ids: torch.Tensor | None = None, use_cache: bool = True, **others: Any,
) -> tuple[torch.Tensor, Any] | None:  # fmt: skip
    """(The last hidden states, float32 ``[rows, T, d]``, the cache); None where `model` itself must be called.

    This is so unless it is a Llama in float32 on the CPU as transformers made it (no adapter, no hook, no quantised,
    compiled or sharded module); where gradients are wanted, or `others` of its arguments are given; and where it would
    make a mask of its own.
    """
    if isinstance(model, PlainLlama):
        return model.run(input_ids, past_key_values, attention_mask, position_ids, use_cache, **others)
    if others or not is_plain_llama(model) or torch.is_grad_enabled():
        return None
    past = 0 if past_key_values is None else int(past_key_values.get_seq_length())
    # Without a mask: a prompt, or one token after a past. A static cache gives slots that must be masked, too.
    static = past_key_values is not None and past_key_values.is_compileable
    if (static or (past and input_ids.shape[1] > 1)) if attention_mask is None else attention_mask.dim() != 4:
        return None
    if model not in _SAME:
        _SAME[model] = _is_same(model)
    if not _SAME[model]:
        return None
    if past_key_values is None and use_cache:
        from transformers import DynamicCache

        past_key_values = DynamicCache(config=model.config)
    if position_ids is None:
        position_ids = torch.arange(past, past + input_ids.shape[1]).unsqueeze(0)
    return _run(model.model, input_ids, position_ids, attention_mask, past_key_values), past_key_values


def is_plain_llama(model: Any) -> bool:
    """Whether a model is an unmodified Llama in float32 on the CPU: no module is replaced, wrapped or hooked.

    This is looked up at each call, as modules may have been replaced in between; it takes 45 µs of 2 ms.
    """
    classes: Any = sys.modules.get(MODELING)  # importing it takes seconds where no Llama is used
    if classes is None or type(model) is not classes.LlamaForCausalLM:
        return False
    weight = model.get_input_embeddings().weight
    if type(weight) is not nn.Parameter or weight.dtype != torch.float32 or weight.device.type != "cpu":
        return False
    if model.config._attn_implementation != "sdpa" or model.training or _has_any_global_hook():
        return False
    kinds = {
        nn.Embedding, nn.Linear, nn.ModuleList, classes.LlamaForCausalLM, classes.LlamaModel, classes.LlamaDecoderLayer,
        classes.LlamaAttention, classes.LlamaMLP, classes.LlamaRMSNorm, classes.LlamaRotaryEmbedding,
    }  # fmt: skip
    modules = [model]
    for module in modules:  # the list grows while it is read
        if type(module) not in kinds or "forward" in module.__dict__:
            return False
        if module._forward_hooks or module._forward_pre_hooks:
            return False
        modules += [part for name, part in module._modules.items() if name != "act_fn"]  # the activation is called
    return True


@torch.no_grad()
def _is_same(model: Any) -> bool:
    ids = torch.linspace(0, model.config.vocab_size - 1, TRIED).long().unsqueeze(0)
    own = model.model(input_ids=ids, use_cache=False).last_hidden_state
    return torch.allclose(_run(model.model, ids, torch.arange(TRIED).unsqueeze(0), None, None), own, rtol=1e-4)


def _run(model: Any, ids: torch.Tensor, positions: torch.Tensor, mask: torch.Tensor | None, past: Any) -> torch.Tensor:
    sdpa = sys.modules[MODELING].ALL_ATTENTION_FUNCTIONS["sdpa"]

    def attention(own: Any, query: Any, key: Any, value: Any, mask: Any) -> torch.Tensor:
        return sdpa(own, query, key, value, mask, dropout=0.0, scaling=own.scaling)[0]

    return run_layers(model, ids, positions, mask, past, attention)
