"""The prefix cache: keys and values of the last text, reused for the next text that begins with the same tokens.

An agent's prompts share their beginning (instructions, task, what happened so far): only what differs from the
last call is run through the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from constrained.decoding.forward import Forward


def common_prefix(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two texts of one type share at their beginning."""
    most = min(len(one), len(other))
    # Slices are compared in C, a hundred times as fast as token by token: nearly always one text begins with the other.
    return most if one[:most] == other[:most] else next(i for i in range(most) if one[i] != other[i])


class PrefixCache:
    """Keys and values of one text; pass the same object to successive `generate` calls.

    Attributes
    ----------
    tokens : list of int
        The ids whose keys and values are held.
    past : transformers.Cache or None
        Their keys and values; None if nothing is held.
    forward_passes, tokens_run : int
        Calls of the model, and tokens that went through it, over the life of this object.
    """

    def __init__(self) -> None:
        self.forward_passes = self.tokens_run = 0
        self._forward: Forward | None = None
        self._placed: Any = None  # the model's device
        self.clear()

    def clear(self) -> None:
        """Forget the text; the counters stay."""
        self.tokens: list[int] = []
        self.past: Any = None

    def adopt(self, past: Any, tokens: Sequence[int]) -> None:
        """Continue from `past`, a transformers cache that holds exactly the keys and values of `tokens`."""
        self.past, self.tokens = past, list(tokens)

    def forward(self, model: Any) -> Forward:
        """The `Forward` of `model`; the cache of another model or device is cleared."""
        if self._forward is None or model is not self._forward.model or model.device != self._placed:
            if self._forward is not None:
                self.clear()
            self._forward, self._placed = Forward(model), model.device
        return self._forward

    def next_logits(
        self, model: Any, tokens: Sequence[int], columns: Callable[[torch.Tensor], torch.Tensor | None] | None = None
    ) -> torch.Tensor:
        """The logits after `tokens`, float32 ``[width]``; with `columns` (see `Forward`) ``[C]``.

        `tokens` are the whole text so far, at least one id; the part already held is not run again.
        """
        forward = self.forward(model)
        shared = self._keep(tokens)
        past, self.past = self.past, None
        fresh = torch.tensor([tokens[shared:]], device=forward.device)
        # Tokens count as held only once the call has returned: an interrupted one leaves an empty cache.
        self.tokens = []
        with torch.no_grad():
            logits, past = forward(columns, input_ids=fresh, past_key_values=past)
        self.forward_passes += 1
        self.tokens_run += len(tokens) - shared
        if past is not None:  # None: a model without a cache reads everything again each time
            self.past, self.tokens = past, list(tokens)
        return logits[0]

    def _keep(self, tokens: Sequence[int]) -> int:
        """Crop the cache to the prefix it shares with `tokens`; return its length."""
        held = self.tokens
        shared = min(common_prefix(held, tokens), len(tokens) - 1)  # at least one token must run, to get logits from
        if shared < len(held):
            try:
                self.past.crop(shared - len(held))  # negative: that many off the end
            except (AttributeError, RuntimeError, ValueError, NotImplementedError):
                # Sliding-window and recurrent states no longer have what cropping needs; static caches can't crop.
                shared = 0
            if shared == 0:
                self.clear()
        return shared
