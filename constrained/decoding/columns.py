"""Which logits a choice needs: those of the tokens allowed, where they are few, or of those that can be the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

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
    """

    allowed_only: bool = False
    best: int = 0


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
            self.ids = np.unique(np.concatenate([bitmask.ids(text.row) for text in self.texts]))
        elif self.need.best and len(self.texts) <= MAX_ROWS:
            self.ids = self._best(hidden)
        return None if self.ids is None else torch.from_numpy(self.ids).to(hidden.device)

    def _best(self, hidden: torch.Tensor) -> np.ndarray | None:
        screen = self.forward.screen
        if screen is None:
            return None
        rows, width = torch.from_numpy(np.stack([text.row for text in self.texts])), len(screen.scale)
        ids = screen.best(hidden, bitmask.expand(rows, width), self.need.best).numpy()
        # None at all: the logits are no numbers, which whoever chooses will notice. Many: then the whole is as fast.
        return ids if 0 < len(ids) <= width // 8 else None
