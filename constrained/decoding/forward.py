"""Run a model for the logits after the last token of each row: all of them, or partial logits.

With a vocabulary of 131,072 tokens the output matrix is most of a small model's work (12 ms of 16 ms for 30 million
weights on one core). Where the mask leaves a few hundred tokens, only their rows of the matrix are multiplied. The
logits are the same, as each is a product of one row.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import nn

from constrained.automaton.masks import allowed_ids
from constrained.decoding import bitmask
from constrained.decoding.int8_prefilter import MAX_TEXTS, Int8Prefilter, int8_prefilter
from constrained.decoding.llama_forward import last_hidden_state
from constrained.decoding.sampling import NARROW

TRIED = 4
"""Tokens on which a model's logits are compared with its output matrix."""

ATTENTION_KINDS = {"full_attention", "sliding_attention"}
"""Layers whose attention a mask over all slots describes."""

_IS_PRODUCT: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()
"""Output matrix -> whether its product with the last hidden state is the model's logits."""


def devices(model: Any) -> tuple[torch.device, torch.device]:
    """The devices of a model's input ids and of its logits; they differ where layers are on several devices.

    accelerate's hooks (``device_map``) say where a module runs; its weights may lie elsewhere until then.
    """
    first, last = model.get_input_embeddings(), model.get_output_embeddings()
    brought_back = any(getattr(hook, "io_same_device", False) for hook in _hooks(model))
    return _runs_on(first), _runs_on(first if last is None or brought_back else last)


def _hooks(module: Any) -> Sequence[Any]:
    hook = getattr(module, "_hf_hook", None)
    return getattr(hook, "hooks", [hook])


def _runs_on(module: nn.Module) -> torch.device:
    result = [device for hook in _hooks(module) if (device := getattr(hook, "execution_device", None)) is not None]
    return torch.device(result[-1]) if result else next(module.parameters()).device


class TokenSequence(Protocol):
    """A text as a model reads it."""

    @property
    def ids(self) -> list[int]: ...


AnySequence = TypeVar("AnySequence", bound=TokenSequence)


class Forward:
    """A causal language model (or its PEFT wrapper), called for the logits after each row.

    `own_dtype`: return logits as the model computes them: bfloat16 logits are read in half the time of their float32
    copy.
    """

    def __init__(self, model: Any, *, own_dtype: bool = False):
        self.model, self.own_dtype = model, own_dtype
        self.passes = 0  # calls so far
        self.device = devices(model)[0]  # where input ids go
        # A PEFT wrapper hides the signature of the model below it.
        base = model.get_base_model() if hasattr(model, "get_base_model") else model
        self.accepted = inspect.signature(base.forward).parameters
        # Only the logits after the last token are needed: over a long prompt the others cost more than the model.
        self._options = {"logits_to_keep": 1} if "logits_to_keep" in self.accepted else {}

    def __call__(
        self,
        columns: Callable[[torch.Tensor], torch.Tensor | None] | None = None,
        rows: torch.Tensor | None = None,
        **inputs: Any,
    ) -> tuple[torch.Tensor, Any]:
        """Run the model.

        Parameters
        ----------
        columns : callable, optional
            Last hidden states ``[n, d]`` -> int64 ``[C]`` ids whose logits are wanted, or None for all; default: all.
            Only where `supports_partial_logits`.
        rows : torch.Tensor, optional
            int64 ``[n]`` rows whose logits are wanted; default: all. Only where `supports_partial_logits`.
        **inputs
            ``input_ids``, ``past_key_values`` and other arguments of the model's ``forward``.

        Returns
        -------
        logits : torch.Tensor
            ``[n, C]``, after the last column of ``input_ids``; float32, or with `own_dtype` the model's.
        past : Cache or None
            Keys and values, if the model keeps some.
        """
        inputs.setdefault("use_cache", True)
        if "past_key_values" not in self.accepted:  # a recurrent model reads everything again in each call
            inputs.pop("past_key_values", None)
        below = last_hidden_state(self.model, **inputs)
        if below is None and columns is None and rows is None:  # all rows and columns are wanted: call the whole model
            out = self.model(**inputs, **self._options)
            logits, past = out.logits[:, -1], getattr(out, "past_key_values", None)
        else:
            # Run the layers below the head, then multiply by the head's wanted rows and columns only.
            if below is None:
                out = self.model.base_model(**inputs)
                below = out.last_hidden_state, getattr(out, "past_key_values", None)
            (states, past), head = below, self.model.get_output_embeddings()
            hidden = states[:, -1] if rows is None else states[rows.to(states.device), -1]
            ids = None if columns is None else columns(hidden)
            weight, bias = head.weight, head.bias
            if ids is not None:
                weight, bias = weight[ids], None if bias is None else bias[ids]
            logits = nn.functional.linear(hidden, weight, bias)
        self.passes += 1
        return logits if self.own_dtype else logits.float(), past

    @property
    def asynchronous(self) -> bool:
        """See `constrained.decoding.loop.NextLogits`."""
        return self.device.type != "cpu"

    @cached_property
    def supports_partial_logits(self) -> bool:
        """Whether the logits are the output matrix times the last hidden state, and nothing more."""
        model = self.model
        head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
        # A quantized or sharded matrix has no rows to pick; the base model of a PEFT wrapper isn't the backbone.
        if type(head) is not nn.Linear or not head.weight.is_floating_point() or head.weight.is_meta:
            return False
        if model.base_model is model or hasattr(model, "get_base_model"):
            return False
        # A hook or a compiled forward of the model or its head must still be called.
        if any("forward" in m.__dict__ or m._forward_hooks or m._forward_pre_hooks for m in (model, head)):
            return False
        # Soft capping is nearly linear for small logits: the comparison below might not notice it.
        if getattr(model.config.get_text_config(), "final_logit_softcapping", None):
            return False
        if head not in _IS_PRODUCT:
            _IS_PRODUCT[head] = _is_product(model, head)
        return _IS_PRODUCT[head]

    @cached_property
    def prefilter(self) -> Int8Prefilter | None:
        """The int8 prefilter, if it pays (needs `supports_partial_logits`); it doesn't notice changed weights."""
        return int8_prefilter(self.model.get_output_embeddings())


@torch.no_grad()
def _is_product(model: Any, head: nn.Linear) -> bool:
    """Compare the model's logits with its last hidden state times the head, on a few tokens."""
    # One token alone might be the padding, whose embedding is zero, and so are its logits.
    ids = torch.linspace(0, head.out_features - 1, TRIED, device=devices(model)[0]).long().unsqueeze(0)
    hidden = getattr(model.base_model(input_ids=ids, use_cache=False), "last_hidden_state", None)
    if hidden is None or hidden.shape[-1] != head.in_features:
        return False
    logits, product = model(input_ids=ids, use_cache=False).logits.float(), head(hidden).float()
    size = logits.abs().max().item()
    return logits.shape == product.shape and size > 0 and torch.allclose(product, logits, rtol=1e-4, atol=1e-4 * size)


def supports_ragged(model: Any) -> bool:
    """Whether the model accepts positions and attention masks; otherwise texts are read one by one."""
    config = model.config.get_text_config()
    accepted = Forward(model).accepted
    return (
        getattr(config, "_attn_implementation", None) in ("sdpa", "eager")
        and {"position_ids", "attention_mask", "past_key_values"} <= accepted.keys()
        and set(getattr(config, "layer_types", None) or ["full_attention"]) <= ATTENTION_KINDS
        and getattr(config, "attention_chunk_size", None) is None
        and getattr(config, "kv_sharing_modes", None) is None
        and model._supports_default_dynamic_cache()
    )


@dataclass(frozen=True)
class NeededLogits:
    """The logits that a sampler needs."""

    allowed_only: bool = False  # only those of allowed tokens
    best: int = 0  # only this number of the largest of those; 0: all
    temperature: float | None = None  # or one, drawn by softmax at this temperature
    generator: torch.Generator | None = None  # with its random numbers


ALL_LOGITS = NeededLogits()


class PartialLogits:
    """Chooses which columns of the logits some texts need, given their last hidden states."""

    def __init__(self, texts: Sequence[Any], forward: Forward, needed: NeededLogits):
        self.texts, self.forward, self.needed = texts, forward, needed
        self.ids: np.ndarray | None = None  # int64 [C], ascending: the columns picked; None: all

    @classmethod
    def of(cls, texts: Sequence[Any], forward: Forward, needed: NeededLogits) -> PartialLogits | None:
        """The partial logits of some texts; None where all are needed, or the model can't compute fewer."""
        return cls(texts, forward, needed) if needed.allowed_only and forward.supports_partial_logits else None

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor | None:
        """The ids of the columns (on the device of `hidden`, float ``[len(texts), d]``); None: all columns."""
        # If all texts together need few columns, take these. Otherwise, for few texts, those that the prefilter leaves.
        for text in self.texts:
            text.look()
        if sum(text.count for text in self.texts) <= NARROW:
            self.ids = np.unique(np.concatenate([allowed_ids(text.mask) for text in self.texts]))
        elif len(self.texts) <= MAX_TEXTS and self.forward.prefilter is not None:
            prefilter = self.forward.prefilter
            masks = torch.from_numpy(np.stack([text.mask for text in self.texts]))
            self.ids = self._prefiltered(prefilter, hidden, bitmask.expand(masks, len(prefilter.scale)))
        return None if self.ids is None else torch.from_numpy(self.ids).to(hidden.device)

    def _prefiltered(self, prefilter: Int8Prefilter, hidden: torch.Tensor, allowed: torch.Tensor) -> np.ndarray | None:
        needed = self.needed
        if needed.best:
            ids = prefilter.best(hidden, allowed, needed.best).numpy()
            # No column: the logits are NaN, which the sampler will report. Many: computing all of them is as fast.
            return ids if 0 < len(ids) <= allowed.shape[1] // 8 else None
        if needed.temperature is None or len(self.texts) > 1:
            return None
        weight = self.forward.model.get_output_embeddings().weight
        drawn = prefilter.draw(hidden, allowed, weight, needed.temperature, needed.generator)
        return None if drawn is None else np.array([drawn])
