"""Choose the next token from the logits of the allowed ones, and measure what the mask took away."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from constrained.automaton.masks import allowed_count, allowed_ids
from constrained.decoding import bitmask
from constrained.decoding.record import Forbidden
from constrained.errors import ConstrainedError, ModelError

NARROW = 256
"""Up to so many allowed tokens their logits are gathered by id; above, the whole row is masked."""


class Choice(NamedTuple):
    """One chosen token.

    Attributes
    ----------
    token : int
    probability : float
        Its probability among the allowed tokens, before temperature, top-k and top-p.
    pruned_mass : float
        Probability the model gave to tokens that were not allowed.
    forbidden : Forbidden or None
        The likeliest of these, if the sampler shows it and there is one.
    """

    token: int
    probability: float
    pruned_mass: float
    forbidden: Forbidden | None = None


@dataclass(frozen=True)
class Sampler:
    """How to choose: greedily at temperature 0, else by chance.

    Parameters
    ----------
    temperature : float
    top_k : int, optional
        Keep only so many of the most probable allowed tokens.
    top_p : float, optional
        Keep the fewest most probable allowed tokens whose probabilities sum to at least this (nucleus sampling:
        Holtzman et al. 2020, section 3.1).
    generator : torch.Generator, optional
        Source of chance; default: torch's global one of the logits' device.
    show_forbidden : bool
        Also tell the likeliest token that is excluded: one more pass over the logits.

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
        if not 0 <= self.temperature < math.inf:
            raise ConstrainedError(f"temperature is {self.temperature}", "use 0 (greedy) or a positive number")
        if self.top_k is not None and self.top_k < 1:
            raise ConstrainedError(f"top_k is {self.top_k}", "use 1 or more, or None to keep all")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ConstrainedError(f"top_p is {self.top_p}", "use a number above 0 and at most 1")

    def choose(self, logits: torch.Tensor, row: np.ndarray) -> Choice:
        """Choose among the tokens that a packed mask row allows.

        Parameters
        ----------
        logits : torch.Tensor
            float32 ``[V]``; columns beyond the mask are never chosen.
        row : ndarray
            int32 ``[words]``, at least one bit set within the logits.
        """
        if allowed_count(row) <= NARROW:
            allowed = torch.from_numpy(allowed_ids(row)).to(logits.device)
            values = logits.index_select(0, allowed)
        else:
            allowed = None
            mask = torch.from_numpy(row).to(logits.device)
            values = bitmask.apply(logits.clone().unsqueeze(0), mask.unsqueeze(0)).squeeze(0)
        # Sums of exponentials in logarithms: exact even where the allowed tokens hold next to nothing.
        everything, mass = torch.stack((logits.logsumexp(0), values.logsumexp(0))).tolist()
        if not math.isfinite(everything):
            raise ModelError("the model's logits are NaN or infinite", "load it with dtype='float32' or 'bfloat16'")
        if mass == -math.inf:  # the model itself excludes all of them: none is likelier than another
            allowed = torch.from_numpy(allowed_ids(row)).to(logits.device)
            values, mass = torch.zeros(len(allowed), device=logits.device), math.log(len(allowed))
            pruned = 1.0
        else:
            pruned = outside(mass, everything)
        place = self._pick(values)
        probability = min(1.0, math.exp(values[place].item() - mass))
        token = place if allowed is None else int(allowed[place])
        forbidden = likeliest_outside(logits, row, everything) if self.show_forbidden else None
        return Choice(token, probability, pruned, forbidden)

    def _pick(self, values: torch.Tensor) -> int:
        """Index into `values` (logits, minus infinity where excluded)."""
        if self.temperature == 0:
            return int(values.argmax())
        # Shifted before it is divided, so that a tiny temperature can't overflow.
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


def draw(chances: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
    """One index a row, by chance.

    Looked up where a random number falls among the running sums: one random number a row, where torch.multinomial
    takes one for each of 131,072 columns, and 2.8 ms for them.

    Parameters
    ----------
    chances : torch.Tensor
        float ``[rows, C]``, not negative; need not sum to 1.
    generator : torch.Generator, optional
        Source of chance; default: torch's global one of the device.

    Returns
    -------
    torch.Tensor
        int64 ``[rows, 1]``; never a column whose chance is 0.
    """
    sums = chances.double().cumsum(-1)
    device = chances.device if generator is None else generator.device
    numbers = torch.rand((len(sums), 1), dtype=torch.float64, device=device, generator=generator).to(sums.device)
    total = sums[:, -1:]
    below = torch.minimum(numbers * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(sums, below, right=True)


def likeliest_outside(logits: torch.Tensor, row: np.ndarray, everything: float) -> Forbidden | None:
    """The likeliest token that a packed mask row excludes, of the row's own width; None if the model excludes all.

    Parameters
    ----------
    logits : torch.Tensor
        float32 ``[V]``.
    row : ndarray
        int32 ``[words]``.
    everything : float
        Logarithm of the sum of the exponentials of `logits`.
    """
    rest = logits[: 32 * len(row)].clone()
    rest[torch.from_numpy(allowed_ids(row)).to(rest.device)] = -math.inf
    token = int(rest.argmax())
    probability = math.exp(rest[token].item() - everything)
    return Forbidden(token, probability) if probability else None


def outside(allowed: float, everything: float) -> float:
    """Share of the probability that isn't allowed, from two sums of exponentials in logarithms."""
    return max(0.0, -math.expm1(allowed - everything))
