"""Packed masks applied to logits by one kernel, in Triton; see `bitmask.apply`.

Importing this module needs triton (it comes with torch for CUDA). With ``TRITON_INTERPRET=1`` in the environment before
triton is first imported, the same kernel runs on CPU tensors.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import triton
import triton.language as tl

BLOCK = 2048
"""Logits that a program reads together: 8 a thread."""

WARPS = 8


@triton.jit
def _apply(logits, mask, logits_stride, mask_stride, width, size, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.program_id(1) * (BLOCK // 8) + tl.arange(0, BLOCK // 8)
    bit = tl.arange(0, 8)
    column = at[:, None] * 8 + bit[None, :]
    # uint8: a byte of the mask for 8 columns; those beyond it are not allowed
    byte = tl.load(mask + row * mask_stride + at, mask=at < size, other=0).to(tl.int32)[:, None]
    to = logits + row * logits_stride + column
    allowed = ((byte >> bit[None, :]) & 1) != 0
    # One wide store for 8 columns, and nothing is done where all are allowed. Few bytes of a mask are mixed: only
    # there logits are read.
    mixed = (byte != 0) & (byte != 0xFF)
    value = tl.load(to, mask=mixed & (column < width))
    tl.store(to, tl.where(allowed, value, float("-inf")), mask=(byte != 0xFF) & (column < width))


def apply(logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """`bitmask.apply`; the rows of `logits` must be contiguous."""
    rows, width = logits.shape
    mask = (mask if mask.stride(1) == 1 else mask.contiguous()).view(torch.uint8)
    with on_device(logits.device):
        _apply[(rows, triton.cdiv(width, BLOCK))](
            logits, mask, logits.stride(0), mask.stride(0), width, mask.shape[1], BLOCK=BLOCK, num_warps=WARPS
        )
    return logits


def on_device(device: torch.device) -> AbstractContextManager[Any]:
    """Make the tensors' device the current one: Triton launches there."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
