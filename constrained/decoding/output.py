"""What `custom_generate` returns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers.generation import GenerateDecoderOnlyOutput

from constrained.decoding.record import Token


@dataclass
class ConstrainedOutput(GenerateDecoderOnlyOutput):
    """What `model.generate` returns with ``return_dict_in_generate=True``.

    Attributes
    ----------
    sequences : torch.Tensor
        int64 ``[rows, prompt + steps]``, padded after each text's end.
    scores : tuple of torch.Tensor, optional
        With ``output_scores``, not of beams: float32 ``[rows, width]`` for each step, masked and processed; where a
        token was forced, 0 for it and minus infinity for all others.
    sequences_scores : torch.Tensor, optional
        Of beams: float32 ``[rows]``, the sum of log-probabilities over the length to the power of the penalty; minus
        infinity, and nothing written, where the grammar has fewer texts than were to be returned.
    pruned_mass : torch.Tensor, optional
        With ``output_pruned_mass``: float32 ``[rows, steps]``, the probability that the model put on tokens outside
        the mask; NaN where it wasn't asked.
    forced : torch.Tensor, optional
        bool ``[rows, steps]``: the token had no alternative, and the model wasn't asked; not of device tables, where
        it always is.
    complete : torch.Tensor
        bool ``[rows]``: the text is whole; False only where a stopping criterion of the caller's cut it, or there was
        no other text.
    forward_passes : int
        Calls of the model.
    past_key_values : Cache, optional
        Of one prompt without beams: what the model has read; tokens at the end may be missing.
    """

    sequences_scores: torch.Tensor | None = None
    pruned_mass: torch.Tensor | None = None
    forced: torch.Tensor | None = None
    complete: torch.Tensor | None = None
    forward_passes: int | None = None


def sequences(input_ids: torch.Tensor, written: Sequence[Sequence[Token]], pad: int) -> torch.Tensor:
    """Prompts and what was written behind them, int64 ``[rows, prompt + steps]``."""
    ids = table([[token.id for token in row] for row in written], pad)
    return torch.cat((input_ids, ids.to(input_ids.device, torch.long)), 1)


def pruned_mass(written: Sequence[Sequence[Token]]) -> torch.Tensor:
    """float32 ``[rows, steps]``, NaN where the model wasn't asked."""
    return table([[math.nan if token.forced else token.pruned_mass for token in row] for row in written], math.nan)


def forced(written: Sequence[Sequence[Token]]) -> torch.Tensor:
    """bool ``[rows, steps]``."""
    return table([[token.forced for token in row] for row in written], False)


def table(rows: Sequence[list[Any]], fill: Any) -> torch.Tensor:
    """Rows of different lengths as one tensor, filled up on the right."""
    longest = max(map(len, rows))
    return torch.tensor([row + [fill] * (longest - len(row)) for row in rows])


def scores(
    written: Sequence[Sequence[Token]], kept: Sequence[dict[int, torch.Tensor]], width: int, pad: int
) -> tuple[torch.Tensor, ...]:
    """Each step's scores, float32 ``[rows, width]``; what wasn't asked is certain."""
    out = []
    for step in range(max(map(len, written))):
        rows = torch.full((len(written), width), -torch.inf)
        for row, (tokens, steps) in enumerate(zip(written, kept)):
            if step in steps:
                rows[row] = steps[step]
            else:
                rows[row, tokens[step].id if step < len(tokens) else pad] = 0.0
        out.append(rows)
    return tuple(out)
