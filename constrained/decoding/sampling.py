"""Sample the next token among the allowed ones, and measure the pruned mass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from constrained.arguments import NUMBER, WHOLE, check
from constrained.automaton.masks import allowed_count, allowed_ids
from constrained.decoding import bitmask
from constrained.decoding.request import Forbidden, Token
from constrained.errors import ConstrainedError, ModelError

NARROW = 256
"""Most allowed tokens whose logits are gathered by id; with more, the whole row is masked."""

LEAST, MOST = 1e-30, 1e30
"""Bounds of a temperature above 0, and the least top-p: beyond them float32 rounds to 0 or infinity."""


@dataclass(frozen=True)
class Sampler:
    """How to choose a token: greedily at temperature 0, else by sampling.

    Parameters
    ----------
    temperature : float
    top_k : int, optional
        Keep only this number of the most probable allowed tokens.
    top_p : float, optional
        Keep the fewest most probable allowed tokens whose probabilities sum to at least this (nucleus sampling:
        Holtzman et al. 2020, section 3.1).
    generator : torch.Generator, optional
        Source of random numbers; default: torch's global one of the logits' device.
    show_forbidden : bool
        Also find the likeliest token that is excluded: one more pass over the logits.

    Raises
    ------
    ConstrainedError
        If a number is out of range.
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    generator: torch.Generator | None = None
    show_forbidden: bool = False

    def __post_init__(self):
        for name, kind in (("temperature", NUMBER), ("top_k", WHOLE), ("top_p", NUMBER)):
            if name == "temperature" or getattr(self, name) is not None:
                check(name, getattr(self, name), kind)
        if self.temperature != 0 and not LEAST <= self.temperature <= MOST:
            hint = f"use 0 (greedy), or a number from {LEAST} to {MOST}"
            raise ConstrainedError(f"temperature is {self.temperature}", hint)
        if self.top_k is not None and self.top_k < 1:
            raise ConstrainedError(f"top_k is {self.top_k}", "use 1 or more, or None to keep all")
        if self.top_p is not None and not LEAST <= self.top_p <= 1:
            raise ConstrainedError(f"top_p is {self.top_p}", f"use a number from {LEAST} to 1")

    @property
    def plain(self) -> bool:
        """Whether only a temperature is set: no top-k, top-p or forbidden token."""
        return self.top_k is None and self.top_p is None and not self.show_forbidden

    def choose(self, logits: torch.Tensor, mask: np.ndarray) -> Token:
        """Choose among the tokens that a packed mask allows.

        Parameters
        ----------
        logits : torch.Tensor
            float32 ``[V]``; columns beyond the mask are never chosen.
        mask : ndarray
            int32 ``[words]``, at least one bit set within the logits.
        """
        if allowed_count(mask) <= NARROW:
            allowed = torch.from_numpy(allowed_ids(mask)).to(logits.device)
            values = logits.index_select(0, allowed)
        else:
            allowed = None
            row = torch.from_numpy(mask).to(logits.device)
            values = bitmask.apply(logits.clone().unsqueeze(0), row.unsqueeze(0)).squeeze(0)
        # Log-sum-exp: exact even where the allowed tokens have almost no probability.
        total, inside = torch.stack((logits.logsumexp(0), values.logsumexp(0))).tolist()
        if not math.isfinite(total):
            raise nan_logits()
        if inside == -math.inf:  # all allowed tokens have probability 0: choose among them uniformly
            allowed = torch.from_numpy(allowed_ids(mask)).to(logits.device)
            values, inside = torch.zeros(len(allowed), device=logits.device), math.log(len(allowed))
            pruned = 1.0
        else:
            pruned = probability_outside(inside, total)
        index = self._pick(values)
        probability = min(1.0, math.exp(values[index].item() - inside))
        token = index if allowed is None else int(allowed[index])
        forbidden = likeliest_outside(logits, mask, total) if self.show_forbidden else None
        return Token(token, probability, pruned, forbidden=forbidden)

    def _pick(self, values: torch.Tensor) -> int:
        """Index into `values` (logits, minus infinity where excluded)."""
        if self.temperature == 0:
            return int(values.argmax())
        # Shifted before the division: a tiny temperature can't overflow.
        probabilities = torch.softmax((values - values.max()) / self.temperature, 0)
        if self.top_k is None and self.top_p is None:
            return int(draw(probabilities[None], self.generator))
        probabilities, order = probabilities.sort(descending=True, stable=True)
        if self.top_k is not None:
            probabilities[self.top_k :] = 0
            probabilities /= probabilities.sum()
        if self.top_p is not None:
            probabilities[probabilities.cumsum(0) - probabilities >= self.top_p] = 0
        return int(order[int(draw(probabilities[None], self.generator))])


def choose_together(samplers: Sequence[Sampler], logits: torch.Tensor, masks: Sequence[np.ndarray]) -> list[Token]:
    """`Sampler.choose` for many rows, with a single wait for the device.

    `samplers` are `plain`; `logits` are float32 ``[rows, V]``.
    """
    # Everything below is [rows, ...] on the device; `tolist` at the end is the one wait.
    device = logits.device
    values = bitmask.apply(logits.clone(), bitmask.moved(masks, device))
    picks, greedy = values.argmax(1, keepdim=True), torch.tensor([[s.temperature == 0] for s in samplers])
    if not greedy.all():  # sample in all rows, and keep the most probable token in greedy ones
        heat = torch.tensor([[s.temperature or 1.0] for s in samplers]).to(device)
        numbers = [random_numbers(1, device, s.generator) if s.temperature else torch.zeros(1, 1) for s in samplers]
        chances = torch.softmax((values - values.amax(1, keepdim=True)) / heat, 1)
        drawn = search(chances, torch.cat([number.to(device) for number in numbers]))
        picks = torch.where(greedy.to(device), picks, drawn)
    sums = logits.logsumexp(1, keepdim=True), values.logsumexp(1, keepdim=True)
    tokens = []
    for row, figures in enumerate(torch.cat((picks.double(), *sums, values.gather(1, picks)), 1).tolist()):
        pick, total, inside, value = figures
        if math.isfinite(total) and inside > -math.inf:
            pruned = probability_outside(inside, total)
            tokens.append(Token(int(pick), min(1.0, math.exp(value - inside)), pruned))
        else:  # an error, or the model itself excludes all that is allowed
            tokens.append(samplers[row].choose(logits[row], masks[row]))
    return tokens


def draw(chances: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
    """Sample one index a row.

    By a binary search in the cumulative sums: one random number a row, where torch.multinomial draws one for each of
    131,072 columns, which takes 2.8 ms.

    `chances` are float ``[rows, C]``, not negative, and need not sum to 1. Returns int64 ``[rows, 1]``, never a column
    whose chance is 0.
    """
    return search(chances, random_numbers(len(chances), chances.device, generator))


def random_numbers(rows: int, device: torch.device, generator: torch.Generator | None) -> torch.Tensor:
    """Uniform random numbers in [0, 1), float64 ``[rows, 1]`` on `device`."""
    source = device if generator is None else generator.device
    return torch.rand((rows, 1), dtype=torch.float64, device=source, generator=generator).to(device)


def search(chances: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
    """Sample as `draw` does, from given random numbers, float64 ``[rows, 1]``."""
    sums = chances.double().cumsum(-1)
    total = sums[:, -1:]
    below = torch.minimum(numbers * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(sums, below, right=True)


def likeliest_outside(logits: torch.Tensor, mask: np.ndarray, total: float) -> Forbidden | None:
    """The likeliest token that a packed mask excludes, within its width; None if all have probability 0.

    `logits` are float32 ``[V]``, `total` is their log-sum-exp; `mask` is int32 ``[words]``.
    """
    rest = logits[: 32 * len(mask)].clone()
    rest[torch.from_numpy(allowed_ids(mask)).to(rest.device)] = -math.inf
    token = int(rest.argmax())
    probability = math.exp(rest[token].item() - total)
    return Forbidden(token, probability) if probability else None


def nan_logits() -> ModelError:
    return ModelError("the model's logits are NaN or infinite", "load it with dtype='float32' or 'bfloat16'")


def probability_outside(allowed: float, total: float) -> float:
    """The probability outside the mask, from two log-sum-exps."""
    return max(0.0, -math.expm1(allowed - total))
