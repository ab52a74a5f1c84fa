"""Keys and values of the last text a model read, kept for the next text that begins alike.

An agent's prompts share their beginning (instructions, task, what happened so far): only what differs from the
last call is run through the model.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch


class PrefixCache:
    """What one model has read last; pass the same object to successive `generate` calls.

    Attributes
    ----------
    tokens : list of int
        The ids whose keys and values are held.
    forward_passes, tokens_run : int
        Calls of the model, and tokens that went through it, since this object was made.
    """

    def __init__(self):
        self.forward_passes = self.tokens_run = 0
        self._model: Any = None
        self.clear()

    def clear(self) -> None:
        """Forget the text; the counters stay."""
        self.tokens: list[int] = []
        self._past: Any = None

    def next_logits(self, model: Any, tokens: Sequence[int]) -> torch.Tensor:
        """The model's logits for what follows `tokens`.

        Parameters
        ----------
        model : transformers causal language model
        tokens : sequence of int
            The whole text so far, at least one id; the part already held is not run again.

        Returns
        -------
        torch.Tensor
            float32 ``[width]``.
        """
        if model is not self._model:
            self.clear()
            self._model = model
            # Logits of the last place are all that is needed: over a long prompt the rest costs more than the model.
            # An adapter's wrapper hides the signature of the model below it.
            base = model.get_base_model() if hasattr(model, "get_base_model") else model
            accepted = inspect.signature(base.forward).parameters
            self._options = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        kept = self._keep(tokens)
        past, self._past = self._past, None
        fresh = torch.tensor([tokens[kept:]], device=model.device)
        # What is held counts only once the call is through: one broken off half-way leaves an empty cache.
        self.tokens = []
        with torch.inference_mode():
            out = model(input_ids=fresh, past_key_values=past, use_cache=True, **self._options)
            logits = out.logits[0, -1].float()
        self.forward_passes += 1
        self.tokens_run += len(tokens) - kept
        past = getattr(out, "past_key_values", None)
        if past is not None:  # None: a model that keeps nothing reads everything again each time
            self._past, self.tokens = past, list(tokens)
        return logits

    def _keep(self, tokens: Sequence[int]) -> int:
        """Crop what is held to the beginning it shares with `tokens`; its length."""
        held = self.tokens
        most = min(len(held), len(tokens) - 1)  # at least one token must run, to get logits from
        if held[:most] == tokens[:most]:
            shared = most
        else:
            shared = next(i for i in range(most) if held[i] != tokens[i])
        if shared < len(held):
            try:
                self._past.crop(shared - len(held))  # negative: that many off the end
            except (RuntimeError, ValueError, NotImplementedError):
                # Sliding windows and recurrent states have forgotten what cropping would need.
                shared = 0
            if shared == 0:
                self.clear()
        return shared
