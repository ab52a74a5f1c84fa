"""Which logits a choice needs: those of the tokens allowed, where they are few, or of those that can be the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from constrained.automaton.masks import allowed_ids
from constrained.decoding import bitmask
from constrained.decoding.forward import Forward
from constrained.decoding.sampling import NARROW
from constrained.decoding.screen import MAX_ROWS


@dataclass(frozen=True)
class Need:
    """What whoever chooses looks at.

    Attributes
    ----------
    allowed_only : bool
        Nothing but the logits of allowed tokens.
    best : int
        Of those, nothing but so many of the largest; 0: all.
    temperature : float or None
        One of those is drawn, as often as softmax at this temperature says, and nothing else is looked at.
    generator : torch.Generator or None
        Source of chance for that.
    """

    allowed_only: bool = False
    best: int = 0
    temperature: float | None = None
    generator: torch.Generator | None = None


ALL = Need()


class Columns:
    """Picks the columns of the logits for some texts, once their last hidden states are known.

    Attributes
    ----------
    ids : ndarray or None
        int64 ``[C]``, ascending: what was picked; None: all columns.
    """

    def __init__(self, texts: Sequence[Any], forward: Forward, need: Need):
        self.texts, self.forward, self.need = texts, forward, need
        self.ids: np.ndarray | None = None

    @classmethod
    def of(cls, texts: Sequence[Any], forward: Forward, need: Need) -> Columns | None:
        """None where all columns are needed, or the model gives no others."""
        return cls(texts, forward, need) if need.allowed_only and forward.narrows else None

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor | None:
        """The columns' ids on the device of `hidden`, float ``[len(texts), d]``; None: all."""
        if sum(text.count for text in self.texts) <= NARROW:
            self.ids = np.unique(np.concatenate([allowed_ids(text.row) for text in self.texts]))
        elif len(self.texts) <= MAX_ROWS and self.forward.screen is not None:
            rows, width = torch.from_numpy(np.stack([text.row for text in self.texts])), len(self.forward.screen.scale)
            self.ids = self._screened(hidden, bitmask.expand(rows, width))
        return None if self.ids is None else torch.from_numpy(self.ids).to(hidden.device)

    def _screened(self, hidden: torch.Tensor, allowed: torch.Tensor) -> np.ndarray | None:
        need, screen = self.need, self.forward.screen
        if need.best:
            ids = screen.best(hidden, allowed, need.best).numpy()
            # None at all: the logits are no numbers, which whoever chooses will notice. Many: then all are as fast.
            return ids if 0 < len(ids) <= allowed.shape[1] // 8 else None
        if need.temperature is None or len(self.texts) > 1:
            return None
        weight = self.forward.model.get_output_embeddings().weight
        drawn = screen.draw(hidden, allowed, weight, need.temperature, need.generator)
        return None if drawn is None else np.array([drawn])
