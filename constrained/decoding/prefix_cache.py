"""Keys and values of the last text a model read, kept for the next text that begins alike.

An agent's prompts share their beginning (instructions, task, what happened so far): only what differs from the
last call is run through the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from constrained.decoding.forward import Forward


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
        self._forward: Forward | None = None
        self.clear()

    def clear(self) -> None:
        """Forget the text; the counters stay."""
        self.tokens: list[int] = []
        self._past: Any = None

    def adopt(self, past: Any, tokens: Sequence[int]) -> None:
        """Go on from `past`, a transformers cache that holds exactly the keys and values of `tokens`."""
        self._past, self.tokens = past, list(tokens)

    @property
    def past(self) -> Any:
        """The transformers cache of :attr:`tokens`; None where nothing is held."""
        return self._past

    def forward(self, model: Any) -> Forward:
        """What calls `model`; what was held of another model is forgotten."""
        if self._forward is None or model is not self._forward.model:
            if self._forward is not None:
                self.clear()
            self._forward = Forward(model)
        return self._forward

    def next_logits(
        self, model: Any, tokens: Sequence[int], columns: Callable[[torch.Tensor], torch.Tensor | None] | None = None
    ) -> torch.Tensor:
        """The model's logits for what follows `tokens`.

        Parameters
        ----------
        model : transformers causal language model
        tokens : sequence of int
            The whole text so far, at least one id; the part already held is not run again.
        columns : callable, optional
            See `Forward`.

        Returns
        -------
        torch.Tensor
            float32 ``[width]``, or ``[C]``.
        """
        forward = self.forward(model)
        kept = self._keep(tokens)
        past, self._past = self._past, None
        fresh = torch.tensor([tokens[kept:]], device=model.device)
        # What is held counts only once the call is through: one broken off half-way leaves an empty cache.
        self.tokens = []
        with torch.no_grad():
            logits, past = forward(columns, input_ids=fresh, past_key_values=past)
        self.forward_passes += 1
        self.tokens_run += len(tokens) - kept
        if past is not None:  # None: a model that keeps nothing reads everything again each time
            self._past, self.tokens = past, list(tokens)
        return logits[0]

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
            except (AttributeError, RuntimeError, ValueError, NotImplementedError):
                # Sliding windows and recurrent states have forgotten what cropping would need; static ones can't.
                shared = 0
            if shared == 0:
                self.clear()
        return shared
