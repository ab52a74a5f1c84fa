"""What a kernel does with logits that aren't numbers, and the noise that makes a choice a random one."""

from __future__ import annotations

import torch

LARGEST = 1.0e38
"""Logits are cut to this size either way: minus infinity and NaN are the least, so no sum is ever NaN."""


def clean(logits: torch.Tensor) -> torch.Tensor:
    """float32 copy of `logits`, finite: NaN counts as the least likely there is."""
    return torch.nan_to_num(logits.float(), nan=-LARGEST, posinf=LARGEST, neginf=-LARGEST).clamp_(-LARGEST, LARGEST)


def gumbel(rows: int, size: int, *, device, generator: torch.Generator | None = None) -> torch.Tensor:
    """Standard Gumbel noise, float32 ``[rows, size]``: minus the logarithm of exponential noise.

    The token where ``logit + temperature * noise`` is greatest is distributed as ``softmax(logits / temperature)``
    (Maddison, Tarlow & Minka 2014, section 2), whatever the order in which it is looked for.
    """
    noise = torch.empty(rows, size, dtype=torch.float32, device=device)
    tiny = torch.finfo(torch.float32).tiny
    return noise.exponential_(generator=generator).clamp_(min=tiny).log_().neg_()
