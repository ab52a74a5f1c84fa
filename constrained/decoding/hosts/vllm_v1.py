"""vLLM's logits processor interface of the V1 sampler (`vllm.v1.sample.logits_processor`, vLLM 0.10 and later).

vLLM can't be installed where this was written: it is tested against the interface as documented
(docs.vllm.ai, "Custom Logits Processors" and "Logits Processors"), by a stand-in that goes through the documented
steps, and has not been run inside vLLM.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from constrained.automaton import BatchMatcher
from constrained.decoding.hosts.follower import Follower
from constrained.decoding.hosts.vllm_requests import Requests, validate

try:
    from vllm.v1.sample.logits_processor import LogitsProcessor
except ImportError:  # no vLLM here, or one that has only the newer interface
    LogitsProcessor = object


class VllmV1LogitsProcessor(LogitsProcessor):
    """Keeps the requests that ask for it inside their grammars.

    The engine tells how its batch changes (`update_state`) before each forward pass, and hands over the logits after
    it (`apply`). Tokens are read as late as possible, in `apply`: with asynchronous scheduling a request's list of
    tokens ends with a placeholder until then. Some versions of vLLM fill it in only for processors that were named at
    the start, not for plugins; then constrained requests end at once, and the log says what to do. Speculative
    decoding is not for this interface: vLLM itself refuses the two together.

    Parameters
    ----------
    vllm_config : vllm.config.VllmConfig
    device : torch.device
    is_pin_memory : bool
        Unused: masks are pinned where the logits are on a GPU.
    """

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool):
        self._requests = Requests(vllm_config, device)
        self._rows: dict[int, tuple[Follower, list[int]]] = {}  # place in the batch -> follower, generated tokens
        self._batch: BatchMatcher | None = None  # of the rows in order, until one changes

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raise ValueError for a constraint that can't be served."""
        validate(sampling_params)

    def is_argmax_invariant(self) -> bool:
        """False: a mask may forbid the likeliest token."""
        return False

    def needs_output_token_ids(self) -> bool:
        """Whether real tokens must stand in the lists, not placeholders."""
        return bool(self._rows)

    def update_state(self, batch_update: Any) -> None:
        """Follow the batch: what was removed, then added, then moved, in vLLM's documented order.

        Parameters
        ----------
        batch_update : BatchUpdate or None
            None: no request came, went or moved.
        """
        if batch_update is None:
            return
        rows = self._rows
        for index in batch_update.removed:
            rows.pop(index, None)
        for index, params, _, output_tokens in batch_update.added:
            follower = self._requests.begin(params)
            rows.pop(index, None)  # an added request may take a finished one's place
            if follower is not None:
                rows[index] = (follower, output_tokens)
        for source, target, direction in batch_update.moved:
            moved, other = rows.pop(source, None), rows.pop(target, None)
            if moved is not None:
                rows[target] = moved
            if direction.name == "SWAP" and other is not None:
                rows[source] = other
        self._batch = None

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Mask the rows of constrained requests in place.

        Parameters
        ----------
        logits : torch.Tensor
            float ``[requests, width]``.
        """
        if not self._rows:
            return logits
        for index, (follower, tokens) in list(self._rows.items()):
            after = self._requests.follow(follower, tokens)
            if after is not follower:
                self._rows[index] = (after, tokens)
                self._batch = None
        order = sorted(self._rows)
        if self._batch is None:
            self._batch = BatchMatcher(self._rows[index][0].matcher for index in order)
        return self._requests.apply(logits, order, self._fill)

    def _fill(self, table: np.ndarray) -> None:
        self._batch.fill_bitmask(table)
