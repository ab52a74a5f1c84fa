"""A batch's masks on their way to the device: filled on the host, moved once a step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from constrained.automaton import Vocabulary
from constrained.errors import VocabularyError


class MaskTransfer:
    """Host memory for packed masks, pinned where a GPU is, so that one copy a step goes out without waiting.

    The memory is written again only after the last copy out of it is done.
    """

    def __init__(self) -> None:
        self._host = torch.empty(0, dtype=torch.int32)
        self._copied: torch.cuda.Event | None = None

    def move(self, shape: tuple[int, int], device: torch.device, fill: Callable[[np.ndarray], None]) -> torch.Tensor:
        """Let `fill` write int32 ``[rows, words]`` on the host, and bring it to `device`.

        Returns
        -------
        torch.Tensor
            int32 ``[rows, words]``; on the CPU the host memory itself, valid until the next call.
        """
        rows, words = shape
        pinned = device.type == "cuda"
        if self._host.numel() < rows * words or self._host.is_pinned() != pinned:
            self._host = torch.empty(rows * words, dtype=torch.int32, pin_memory=pinned)
        host = self._host[: rows * words].view(rows, words)
        if self._copied is not None:
            self._copied.synchronize()
        fill(host.numpy())
        if device.type == "cpu":
            return host
        moved = host.to(device, non_blocking=pinned)
        if pinned:
            self._copied = torch.cuda.Event()
            self._copied.record(torch.cuda.current_stream(device))
        return moved


def check_width(vocabulary: Vocabulary, width: int) -> None:
    """Refuse logits in which some of the vocabulary's tokens have no column: a mask could leave nothing to choose.

    Raises
    ------
    VocabularyError
    """
    if width < vocabulary.size:
        raise VocabularyError(
            f"the model's logits have {width} columns, but the vocabulary has {vocabulary.size} tokens",
            hint="build the vocabulary for this model: Vocabulary.from_tokenizer(tokenizer) of a tokenizer without "
            "added tokens, or resize the model's embeddings",
        )
