"""The int8 prefilter: find the few tokens that can be the most probable, with an 8-bit copy of the output matrix.

Where a mask allows nearly everything, the output matrix is most of a small model's time on a CPU: 131,072 rows of
float32 are read for a single token (100 MB, 12.5 ms on one core). Rounded to 8 bits they are read in 1.6 ms. The
rounding error of each logit has a known bound (Cauchy-Schwarz), so only the few rows whose logit might be among the
best are computed in full. The result is exact, not an approximation.
"""

from __future__ import annotations

import timeit
from collections.abc import Callable
from weakref import WeakKeyDictionary

import torch
from torch import nn

MIN_ROWS = 16_384
"""Output matrices with fewer rows are multiplied in full."""

MAX_BYTES = 128 << 20
"""Memory for the copy of one matrix."""

MAX_TEXTS = 4
"""Most texts at once; with more, the full product is faster (16 texts: 23 ms, prefiltered 27)."""

TRIALS = 64
"""Candidates drawn at once. The first accepted one is taken, usually one of the first two."""

CHANGED = 1e-5
"""Relative change of a row's product with a fixed vector from which on the row counts as changed."""

_PREFILTERS: WeakKeyDictionary[nn.Module, Int8Prefilter | None] = WeakKeyDictionary()


class Int8Prefilter:
    """An output matrix (float32 ``[V, d]`` on the CPU) in 8 bits, and bounds on its error."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        rows, width = weight.shape
        self.bias = bias
        self.rounded = torch.empty((rows, width), dtype=torch.int8)
        self.scale = torch.empty(rows, dtype=torch.bfloat16)
        self.norm, self.error = torch.empty(rows), torch.empty(rows)  # each row's norm, and its rounding error's
        for begin in range(0, rows, 4096):  # in parts, to avoid a second float32 copy of the whole matrix
            part = slice(begin, begin + 4096)
            full = weight[part]
            # A little above the largest value: bfloat16 may round it down, and it must not exceed 127 steps.
            self.scale[part] = (full.abs().amax(1) / 127 * (1 + 2**-7)).bfloat16().clamp_min(1e-30)
            size = self.scale[part].float().unsqueeze(1)
            steps = (full / size).round_()
            self.rounded[part] = steps.to(torch.int8)
            self.norm[part], self.error[part] = full.norm(dim=1), (full - steps * size).norm(dim=1)
        self.probe = torch.randn(width, generator=torch.Generator().manual_seed(0)) / width**0.5
        self.probe_product = weight @ self.probe

    def product(self, hidden: torch.Tensor) -> torch.Tensor:
        """Rounded logits without the bias, float32 ``[n, V]``."""
        return torch.ops.aten._weight_int8pack_mm(hidden.bfloat16(), self.rounded, self.scale).float()

    def matches(self, weight: torch.Tensor) -> bool:
        """Whether the 8-bit copy still agrees with `weight`.

        Merged adapters and ``weight.data[token] = ...`` leave no trace on the tensor, so it is read once; that costs
        about as much as one token.
        """
        if weight.shape != self.rounded.shape:
            return False
        return bool(((weight @ self.probe - self.probe_product).abs() <= CHANGED * self.norm).all())

    def best(self, hidden: torch.Tensor, allowed: torch.Tensor, count: int) -> torch.Tensor:
        """The tokens that include the `count` likeliest allowed ones of every row, int64 ``[C]``, ascending.

        `hidden` is float32 ``[n, d]``, `allowed` bool ``[n, V]``; each token found is allowed in some row.
        """
        # The true logit lies within `error` of the rounded one. At least `count` tokens have a true logit of `bar` or
        # more, so a token whose upper bound is below `bar` can't be among the best.
        logits, error = self._bounded(hidden, allowed)
        low = logits - error
        bar = low.amax(1, keepdim=True) if count == 1 else low.topk(min(count, low.shape[1])).values[:, -1:]
        return ((logits + error >= bar) & allowed).any(0).nonzero().flatten()

    def draw(
        self, hidden: torch.Tensor, allowed: torch.Tensor, weight: torch.Tensor, temperature: float,
        generator: torch.Generator | None = None,
    ) -> int | None:  # fmt: skip
        """Sample an allowed token from the softmax of the logits.

        By rejection (von Neumann 1951): drawn by the upper bounds of the logits, and accepted with the probability by
        which the true one is lower; only the logits of the candidates are computed.
        None after `TRIALS` rejections, or where the logits are NaN: sample from all logits then.

        `hidden` is float32 ``[1, d]``, `allowed` bool ``[1, V]``, `weight` the matrix itself.
        """
        # Candidates are drawn in proportion to exp(high / temperature), by a binary search in the sums of it.
        logits, error = self._bounded(hidden, allowed)
        high = logits.add_(error)[0]
        sums = ((high - high.max()) / temperature).exp_().double().cumsum(0)
        numbers = torch.rand((2, TRIALS), dtype=torch.float64, generator=generator)
        candidates = torch.searchsorted(sums, numbers[0] * sums[-1], right=True).clamp_(max=len(sums) - 1)
        true = (weight[candidates] * hidden).sum(1)
        if self.bias is not None:
            true += self.bias[candidates]
        # One token is accepted with probability exp((true - high) / temperature): what remains is the true softmax.
        accepted = numbers[1] < ((true - high[candidates]) / temperature).exp_()
        hits = (accepted & allowed[0, candidates]).nonzero()
        return int(candidates[hits[0]]) if len(hits) else None

    def _bounded(self, hidden: torch.Tensor, allowed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Rounded logits (-1e30 where not allowed) and bounds on their errors; float32 ``[n, V]`` each."""
        logits = self.product(hidden)
        rounded = hidden.bfloat16().float()
        length = rounded.norm(dim=1, keepdim=True)
        # Rounding errors of the hidden state, of the matrix and of the result, and those of float32 sums.
        lost = (hidden - rounded).norm(dim=1, keepdim=True) + 1e-5 * hidden.norm(dim=1, keepdim=True)
        error = (lost * self.norm).addcmul_(length, self.error).add_(logits.abs(), alpha=2**-7)
        if self.bias is not None:
            logits += self.bias
        return logits.add_((allowed.float() - 1) * 1e30), error  # adding -1e30 is much faster than `masked_fill`


def int8_prefilter(head: nn.Linear) -> Int8Prefilter | None:
    """The prefilter of an output matrix, made on first use; None where it isn't faster."""
    weight = head.weight
    if weight.device.type != "cpu" or weight.dtype != torch.float32:
        return None
    if weight.shape[0] < MIN_ROWS or weight.numel() > MAX_BYTES:
        return None
    cached = _PREFILTERS.get(head)
    if head not in _PREFILTERS or (cached is not None and not cached.matches(weight)):
        made = Int8Prefilter(weight.detach(), None if head.bias is None else head.bias.detach())
        cached = _PREFILTERS[head] = made if _pays(made, head) else None
    return cached


def _pays(made: Int8Prefilter, head: nn.Linear) -> bool:
    """Whether the int8 product is faster here: not every processor or version of torch has a kernel for it."""
    hidden = torch.zeros((1, head.in_features))
    try:
        made.product(hidden)
    except (RuntimeError, AttributeError, NotImplementedError):
        return False
    return 2 * _seconds(lambda: made.product(hidden)) < _seconds(lambda: head(hidden))


def _seconds(run: Callable[[], object]) -> float:
    return min(timeit.repeat(run, number=1, repeat=3))
