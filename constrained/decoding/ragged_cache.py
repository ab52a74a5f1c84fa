"""Keys and values of texts of different lengths: a token's slot is its position in its own text.

In a batch where each row forces runs of its own, no common "next slot" exists. Here every row stands left-aligned in
its row of the buffers, whatever the others do, so nothing is padded, going back costs nothing (what is later
overwritten is never looked at), and a call that broke off half-way has left nothing behind that counts.
"""

from __future__ import annotations

from functools import partial

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

BLOCK = 64
"""Slots by which the buffers grow at least."""


class RaggedCache(Cache):
    """A transformers cache with a place of its own for every token of every row.

    Before each call of the model, `place` says where the call's tokens go.

    Parameters
    ----------
    capacity : int
        Slots to begin with.
    static : bool
        Never grow, and always show the model all slots: shapes and addresses stay the same, as CUDA graphs and
        compiled models need. Otherwise only the slots in use are shown.
    """

    def __init__(self, capacity: int, *, static: bool = False):
        super().__init__(layer_class_to_replicate=partial(RaggedLayer, self))
        self.capacity, self.static = capacity, static
        self.slots: torch.Tensor | None = None
        self.begin = self.reach = 0

    def place(self, slots: torch.Tensor, begin: int, reach: int) -> None:
        """Where the next call's tokens go.

        Parameters
        ----------
        slots : torch.Tensor
            int64 ``[rows, T]``; ``-1`` for columns that are no token.
        begin : int
            Tokens already read, where all rows have read equally many (used where no mask is given).
        reach : int
            The slots that the call may look at are those below.
        """
        if reach > self.capacity:
            if self.static:
                raise ValueError(f"{reach} slots are needed, but the static cache has {self.capacity}")
            self.capacity = -(-max(reach, self.capacity * 3 // 2) // BLOCK) * BLOCK
        # Beyond the last slot lies one that nobody looks at.
        self.slots = slots.masked_fill(slots < 0, self.capacity)
        self.begin, self.reach = begin, self.capacity if self.static else reach

    def select(self, rows: torch.Tensor) -> None:
        """Let the rows be copies of `rows` (int64 indices), in that order."""
        for layer in self.layers:
            layer.keys, layer.values = layer.keys.index_select(0, rows), layer.values.index_select(0, rows)


class RaggedLayer(CacheLayerMixin):
    """One layer's keys and values, ``[rows, heads, capacity + 1, head_dim]``."""

    is_sliding = False

    def __init__(self, cache: RaggedCache):
        super().__init__()
        self.cache = cache

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.keys, self.values = self._empty(key_states), self._empty(value_states)
        self.is_initialized = True

    def _empty(self, like: torch.Tensor) -> torch.Tensor:
        rows, heads, _, width = like.shape
        return like.new_zeros((rows, heads, self.cache.capacity + 1, width))

    def update(self, key_states, value_states, *args, **kwargs) -> tuple[torch.Tensor, torch.Tensor]:
        """Put a call's keys and values, ``[rows, heads, T, head_dim]``, into their slots; all that it may look at."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        elif self.keys.shape[2] <= self.cache.capacity:
            held = self.keys.shape[2] - 1
            for name in ("keys", "values"):
                old = getattr(self, name)
                new = self._empty(old)
                new[:, :, :held] = old[:, :, :held]
                setattr(self, name, new)
        slots, reach = self.cache.slots[:, None, :, None], self.cache.reach
        self.keys.scatter_(2, slots.expand_as(key_states), key_states)
        self.values.scatter_(2, slots.expand_as(value_states), value_states)
        return self.keys[:, :, :reach], self.values[:, :, :reach]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.cache.reach, 0

    def get_seq_length(self) -> int:
        return self.cache.begin

    def get_max_length(self) -> int:
        return self.cache.capacity if self.cache.static else -1
