"""Which of all tokens can be among the most probable, found with an 8-bit copy of the output matrix.

Where a mask allows nearly everything, the output matrix is most of a small model's time on a CPU: 131,072 rows of
float32 are read for a single token (12.5 ms of 100 MB on one core). Rounded to 8 bits they are read in 1.6 ms. How
far each rounded logit can be off is known (Cauchy and Schwarz), so a few rows are left whose logit might be among
the best; theirs are computed in full. The result is exact, not an approximation.
"""

from __future__ import annotations

import time
from weakref import WeakKeyDictionary

import torch
from torch import nn

SMALLEST = 16_384
"""Output matrices of fewer rows are not worth it."""

MAX_BYTES = 128 << 20
"""Most memory for the copy of a matrix."""

MAX_ROWS = 4
"""Texts at once; the whole matrix, once read, serves many (16 rows: 23 ms, screened 27)."""

TRIALS = 64
"""Tokens drawn at once; the first that is accepted counts, usually one of the first two."""

CHANGED = 1e-5
"""By how much of its length a row's product with a fixed vector must be off to count as changed."""

_SCREENS: WeakKeyDictionary[nn.Module, Screen | None] = WeakKeyDictionary()


class Screen:
    """An output matrix in 8 bits, and how far it is off.

    Parameters
    ----------
    weight : torch.Tensor
        float32 ``[V, d]`` on the CPU.
    bias : torch.Tensor or None
        float32 ``[V]``.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None):
        rows, width = weight.shape
        self.bias = bias
        self.rounded = torch.empty((rows, width), dtype=torch.int8)
        self.scale = torch.empty(rows, dtype=torch.bfloat16)
        self.norm, self.lost = torch.empty(rows), torch.empty(rows)  # lengths of each row and of what rounding took
        for begin in range(0, rows, 4096):  # in parts, so that no second float32 copy is ever whole
            part = slice(begin, begin + 4096)
            full = weight[part]
            # A little above the largest, for bfloat16 may round it down and 127 must do.
            self.scale[part] = (full.abs().amax(1) / 127 * (1 + 2**-7)).bfloat16().clamp_min(1e-30)
            step = self.scale[part].float().unsqueeze(1)
            eighth = (full / step).round_()
            self.rounded[part] = eighth.to(torch.int8)
            self.norm[part], self.lost[part] = full.norm(dim=1), (full - eighth * step).norm(dim=1)
        self.probe = torch.randn(width, generator=torch.Generator().manual_seed(0)) / width**0.5
        self.probed = weight @ self.probe

    def product(self, hidden: torch.Tensor) -> torch.Tensor:
        """Rounded logits without the bias, float32 ``[n, V]``."""
        return torch.ops.aten._weight_int8pack_mm(hidden.bfloat16(), self.rounded, self.scale).float()

    def matches(self, weight: torch.Tensor) -> bool:
        """The copy is still one of `weight`.

        Merged adapters and ``weight.data[token] = ...`` leave no trace on the tensor, so it is read once, which costs
        about one token.
        """
        if weight.shape != self.rounded.shape:
            return False
        return bool(((weight @ self.probe - self.probed).abs() <= CHANGED * self.norm).all())

    def best(self, hidden: torch.Tensor, allowed: torch.Tensor, count: int) -> torch.Tensor:
        """Tokens among which the `count` likeliest allowed ones of every row are.

        Parameters
        ----------
        hidden : torch.Tensor
            float32 ``[n, d]``.
        allowed : torch.Tensor
            bool ``[n, V]``.
        count : int

        Returns
        -------
        torch.Tensor
            int64 ``[C]``, ascending; each is allowed in some row.
        """
        logits, off = self._within(hidden, allowed)
        low = logits - off
        bar = low.amax(1, keepdim=True) if count == 1 else low.topk(min(count, low.shape[1])).values[:, -1:]
        return ((logits + off >= bar) & allowed).any(0).nonzero().flatten()

    def draw(
        self, hidden: torch.Tensor, allowed: torch.Tensor, weight: torch.Tensor, temperature: float,
        generator: torch.Generator | None = None,
    ) -> int | None:  # fmt: skip
        """An allowed token by chance, as often as softmax of its logit says.

        By rejection (von Neumann 1951): drawn from the highest that the logits can be, and accepted with the chance by
        which the true one is lower; so only the logits of those drawn are computed.

        Parameters
        ----------
        hidden : torch.Tensor
            float32 ``[1, d]``.
        allowed : torch.Tensor
            bool ``[1, V]``.
        weight : torch.Tensor
            The matrix itself.
        temperature : float
        generator : torch.Generator, optional

        Returns
        -------
        int or None
            None after `TRIALS` rejections, or where the logits are no numbers: draw from all logits then.
        """
        logits, off = self._within(hidden, allowed)
        high = logits.add_(off)[0]
        sums = ((high - high.max()) / temperature).exp_().double().cumsum(0)
        numbers = torch.rand((2, TRIALS), dtype=torch.float64, generator=generator)
        places = torch.searchsorted(sums, numbers[0] * sums[-1], right=True).clamp_(max=len(sums) - 1)
        true = (weight[places] * hidden).sum(1)
        if self.bias is not None:
            true += self.bias[places]
        accepted = numbers[1] < ((true - high[places]) / temperature).exp_()
        found = (accepted & allowed[0, places]).nonzero()
        return int(places[found[0]]) if len(found) else None

    def _within(self, hidden: torch.Tensor, allowed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Rounded logits, far below all where not allowed, and how far each can be off; float32 ``[n, V]``."""
        logits = self.product(hidden)
        rounded = hidden.bfloat16().float()
        length = rounded.norm(dim=1, keepdim=True)
        # What rounding took from the hidden state, from the matrix and from the result, and what float32 sums lose.
        taken = (hidden - rounded).norm(dim=1, keepdim=True) + 1e-5 * hidden.norm(dim=1, keepdim=True)
        off = (taken * self.norm).addcmul_(length, self.lost).add_(logits.abs(), alpha=2**-7)
        if self.bias is not None:
            logits += self.bias
        return logits.add_((allowed.float() - 1) * 1e30), off  # adding is much faster than masking here


def screen(head: nn.Linear) -> Screen | None:
    """The screen of an output matrix, made on first use; None where it doesn't pay."""
    weight = head.weight
    if weight.device.type != "cpu" or weight.dtype != torch.float32:
        return None
    if weight.shape[0] < SMALLEST or weight.numel() > MAX_BYTES:
        return None
    found = _SCREENS.get(head)
    if head not in _SCREENS or (found is not None and not found.matches(weight)):
        made = Screen(weight.detach(), None if head.bias is None else head.bias.detach())
        found = _SCREENS[head] = made if _pays(made, head) else None
    return found


def _pays(made: Screen, head: nn.Linear) -> bool:
    """Reading 8 bits is faster here: not every processor, nor every version of torch, has the kernel for it."""
    hidden = torch.zeros((1, head.in_features))
    try:
        made.product(hidden)
    except (RuntimeError, AttributeError, NotImplementedError):
        return False
    return 2 * _seconds(lambda: made.product(hidden)) < _seconds(lambda: head(hidden))


def _seconds(call) -> float:
    times = []
    for _ in range(3):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return min(times)
