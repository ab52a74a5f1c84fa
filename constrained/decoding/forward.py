"""One call of a model, for the logits at the last place of each row: all of them, or some columns only.

With a vocabulary of 131,072 tokens the output matrix is most of a small model's work (12 ms of 16 ms for 30 million
weights on one core). Where the mask leaves a few hundred tokens, only their rows of it are multiplied: the same
numbers, as each logit is a product of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from constrained.decoding.screen import Screen, screen

TRIED = 4
"""Tokens on which a model's logits are compared with its output matrix."""

_PRODUCTS: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()
"""Output matrices whose product with the last hidden state was compared with the logits of their model."""


class Forward:
    """A causal language model, called for what follows each row.

    Parameters
    ----------
    model : transformers causal language model, or a PEFT wrapper of one

    Attributes
    ----------
    passes : int
        Calls so far.
    """

    def __init__(self, model: Any):
        self.model = model
        self.passes = 0
        # An adapter's wrapper hides the signature of the model below it.
        self.accepted = inspect.signature(_unwrapped(model).forward).parameters
        # Logits of the last place are all that is needed: over a long prompt the rest costs more than the model.
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
            Where `narrows` says so: last hidden states ``[n, d]`` -> int64 ``[C]`` ids whose logits are wanted, or
            None for all; default: all.
        rows : torch.Tensor, optional
            int64 ``[n]`` rows whose logits are wanted, where `narrows` says so; default: all.
        **inputs
            ``input_ids``, ``past_key_values`` and whatever else the model's ``forward`` is to get.

        Returns
        -------
        logits : torch.Tensor
            float32 ``[n, C]``, after the last column of ``input_ids``.
        past : Cache or None
            Keys and values, where the model keeps some.
        """
        inputs.setdefault("use_cache", True)
        if "past_key_values" not in self.accepted:  # a recurrent model: it reads everything again each time
            inputs.pop("past_key_values", None)
        if columns is None and rows is None:
            out = self.model(**inputs, **self._options)
            logits = out.logits[:, -1]
        else:
            out = self.model.base_model(**inputs)
            hidden, head = out.last_hidden_state[:, -1], self.model.get_output_embeddings()
            hidden = hidden if rows is None else hidden[rows]
            ids = None if columns is None else columns(hidden)
            weight, bias = head.weight, head.bias
            if ids is not None:
                weight, bias = weight[ids], None if bias is None else bias[ids]
            logits = nn.functional.linear(hidden, weight, bias)
        self.passes += 1
        return logits.float(), getattr(out, "past_key_values", None)

    @cached_property
    def narrows(self) -> bool:
        """Some logits can be had without the others.

        So where they are the output matrix times the last hidden state and nothing more; that is tried out once, on a
        few tokens.
        """
        model = self.model
        head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
        # A quantised or sharded matrix has no rows to pick; a PEFT wrapper's base is no backbone.
        if type(head) is not nn.Linear or not head.weight.is_floating_point() or head.weight.is_meta:
            return False
        if model.base_model is model or hasattr(model, "get_base_model"):
            return False
        # What somebody hung on the model or its head (a hook, a compiled forward) must go on being called.
        if any("forward" in m.__dict__ or m._forward_hooks or m._forward_pre_hooks for m in (model, head)):
            return False
        # Soft capping is as good as linear for small logits, so that trying it out might not show it.
        if getattr(model.config.get_text_config(), "final_logit_softcapping", None):
            return False
        if head not in _PRODUCTS:
            _PRODUCTS[head] = _is_product(model, head)
        return _PRODUCTS[head]

    @cached_property
    def screen(self) -> Screen | None:
        """For the largest logits, where `narrows` says so and it pays; looked up once, so not while weights change."""
        return screen(self.model.get_output_embeddings())


@torch.no_grad()
def _is_product(model: Any, head: nn.Linear) -> bool:
    """The model's logits are its last hidden state times the head, for all that a few tokens tell."""
    # One token alone might be the padding, whose embedding is zero, and so are its logits.
    ids = torch.linspace(0, head.out_features - 1, TRIED, device=model.device).long().unsqueeze(0)
    hidden = getattr(model.base_model(input_ids=ids, use_cache=False), "last_hidden_state", None)
    if hidden is None or hidden.shape[-1] != head.in_features:
        return False
    own, product = model(input_ids=ids, use_cache=False).logits.float(), head(hidden).float()
    size = own.abs().max().item()
    return own.shape == product.shape and size > 0 and torch.allclose(product, own, rtol=1e-4, atol=1e-4 * size)


def _unwrapped(model: Any) -> Any:
    return model.get_base_model() if hasattr(model, "get_base_model") else model
