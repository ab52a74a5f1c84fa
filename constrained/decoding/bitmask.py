"""Packed token masks on torch tensors, in the layout of XGrammar and llguidance; their transfer to the device.

A mask is int32 ``[rows, ceil(V / 32)]``; bit ``i % 32`` of word ``i // 32`` is 1 where token ``i`` is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import torch

from constrained.automaton import Vocabulary
from constrained.errors import VocabularyError


def expand(mask: torch.Tensor, width: int) -> torch.Tensor:
    """Unpack a mask to booleans.

    Parameters
    ----------
    mask : torch.Tensor
        int32 ``[rows, words]``.
    width : int
        Columns of the result: those beyond ``32 * words`` are False.

    Returns
    -------
    torch.Tensor
        bool ``[rows, width]``.
    """
    if mask.device.type == "cpu":  # 131,072 tokens take 9 microseconds; `expand_by_shifts` takes 335
        packed = np.ascontiguousarray(mask.numpy()).view(np.uint8)
        return torch.from_numpy(np.unpackbits(packed, axis=1, count=width, bitorder="little")).view(torch.bool)
    return expand_by_shifts(mask, width)


def expand_by_shifts(mask: torch.Tensor, width: int) -> torch.Tensor:
    """`expand` in torch's own operations, on any device."""
    # The shift is arithmetic; "& 1" makes bit 31 of a negative word come out right all the same.
    shifts = torch.arange(32, dtype=torch.int32, device=mask.device)
    bits = ((mask.unsqueeze(-1) >> shifts) & 1).flatten(1).bool()  # [rows, 32 * words]
    missing = width - bits.shape[1]
    return torch.nn.functional.pad(bits, (0, missing)) if missing > 0 else bits[:, :width]


def apply(logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Set the logits of tokens that aren't allowed to minus infinity, in place.

    Parameters
    ----------
    logits : torch.Tensor
        float ``[rows, width]``; columns beyond the mask are not allowed either.
    mask : torch.Tensor
        int32 ``[rows, words]`` on the same device.

    Returns
    -------
    torch.Tensor
        `logits`.
    """
    if logits.device.type == "cuda" and logits.stride(1) == 1 and (kernel := _kernel()) is not None:
        return kernel(logits, mask)
    return logits.masked_fill_(~expand(mask, logits.shape[1]), -torch.inf)


@cache
def _kernel() -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor] | None:
    """The module of the Triton kernel, which reads the mask and writes only forbidden logits; None without triton."""
    try:
        from constrained.decoding.bitmask_triton import apply
    except ImportError:
        return None
    return apply


def filled(shape: tuple[int, int], device: torch.device, fill: Callable[[np.ndarray], object]) -> torch.Tensor:
    """A mask on `device`, int32 ``[rows, words]``, that `fill` writes on the host.

    On a GPU one copy from pinned memory, not waited for: torch reuses the memory only after the copy is done.
    """
    pinned = device.type == "cuda"
    host = torch.empty(shape, dtype=torch.int32, pin_memory=pinned)
    fill(host.numpy())
    return host.to(device, non_blocking=pinned)


def moved(masks: Sequence[np.ndarray], device: torch.device) -> torch.Tensor:
    """A mask on `device` with the given rows (each int32 ``[words]``); see `filled`."""
    return filled((len(masks), len(masks[0])), device, lambda host: np.stack(masks, out=host))


def check_width(vocabulary: Vocabulary, width: int) -> None:
    """Raise VocabularyError if logits have fewer columns than there are tokens: a mask could exclude all of them."""
    if width < vocabulary.size:
        raise VocabularyError(
            f"the model's logits have {width} columns, but the vocabulary has {vocabulary.size} tokens",
            hint="build the vocabulary for this model: Vocabulary.from_tokenizer(tokenizer) of a tokenizer without "
            "added tokens, or resize the model's embeddings",
        )
