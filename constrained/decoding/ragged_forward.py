"""Ragged forward: a model reads texts of different lengths side by side, without padding.

Rows are asked at different times: one waits at a choice while another has ten forced tokens to read. A call takes a
block of tokens from all rows, as wide as pays: rows that have less are right-aligned in it, rows that have more go on
in the next call. In the cache a token's slot is its position in its own text, whatever the other rows do.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from constrained.decoding.forward import ALL_LOGITS, AnySequence, Forward, NeededLogits, PartialLogits, TokenSequence
from constrained.decoding.prefix_cache import common_prefix

CALL_COST = 32
"""What calling a model costs, in tokens read: one token took 3.8 ms, 32 took 7.4 ms (30 million weights, one core)."""

CALL_COST_ON_DEVICE = 430
"""The same on an accelerator: one token took 7.0 ms, 256 took 11.2 ms (7 billion weights in bfloat16, an H200)."""

FIRST_PIECE, SHORTEST_PIECE = 32, 8
"""Columns of the first piece of a long prompt, and of the shortest; the next ones depend on the time that one takes."""

BLOCK = 64
"""Slots by which the cache grows at least, and to a multiple of which a device looks at them."""


class RaggedForward:
    """Reads the texts of a batch with a model that `supports_ragged`.

    Parameters
    ----------
    capacity : int
        Tokens of the longest text, as far as is known.
    static : bool
        See `RaggedCache`.
    copies : int
        Adjacent rows with the same prompt, which is read once for all of them.
    own_dtype : bool
        See `Forward`.
    """

    def __init__(
        self,
        model: Any,
        texts: Sequence[TokenSequence],
        capacity: int,
        *,
        static: bool = False,
        needed: NeededLogits = ALL_LOGITS,
        copies: int = 1,
        own_dtype: bool = False,
    ):
        self.forward = Forward(model, own_dtype=own_dtype)
        self.needed, self._copies = needed, copies
        self.cache = RaggedCache(capacity, rows=len(texts) if static else None)
        self.texts = list(texts)
        self.read = [0] * len(self.texts)  # tokens of each text that the model has read
        self.tokens_run = 0  # that went through the model, padding not counted
        self.call_seconds: float | None = None
        self._pieces = PromptSplitter()
        config = model.config.get_text_config()
        self._window = getattr(config, "sliding_window", None)
        self._by_kind = getattr(config, "layer_types", None) is not None
        self._additive = config._attn_implementation == "eager"

    @property
    def asynchronous(self) -> bool:
        """See `constrained.decoding.loop.NextLogits`."""
        return self.forward.asynchronous

    def next_logits(self, texts: Sequence[AnySequence]) -> tuple[list[AnySequence], torch.Tensor, np.ndarray | None]:
        """See `constrained.decoding.loop.NextLogits`."""
        self._read_shared_prompts()
        self._change_rows(texts)
        # Each row reads at most `width` tokens; the rows that have then read all of theirs are asked.
        waiting = {id(text): text for text in texts}
        unread = [len(t.ids) - n if id(t) in waiting else 0 for t, n in zip(self.texts, self.read)]
        width = block_width(unread, CALL_COST if not self.asynchronous else CALL_COST_ON_DEVICE)
        if self.call_seconds is not None:
            width = self._pieces.limit(width, self.call_seconds)
        taken = [min(n, width) for n in unread]
        rows = [row for row, n in enumerate(unread) if 0 < n <= width]
        asked = [waiting[id(self.texts[row])] for row in rows]
        columns = PartialLogits.of(asked, self.forward, self.needed)
        logits = self._call(taken, width, columns, rows if len(rows) < len(self.texts) else None)
        return asked, logits, None if columns is None else columns.ids

    def read_prompts(self) -> torch.Tensor:
        """The logits after every text, in one call; ``[rows, width]``."""
        self._read_shared_prompts()
        unread = [len(text.ids) - n for text, n in zip(self.texts, self.read)]
        return self._call(unread, max(unread))

    def step(self, tokens: torch.Tensor, slots: torch.Tensor, reach: int) -> torch.Tensor:
        """The logits after some more tokens of each row, which stay on the device; ``[rows, width]``.

        `tokens` and `slots` are int64 ``[rows, T]`` right-aligned; a slot of -1 is no token;
        `reach` is greater than all slots.
        """
        device = self.forward.device
        return self._forward(tokens.to(device), slots.to(device), reach)

    def _forward(
        self,
        tokens: torch.Tensor,
        slots: torch.Tensor,
        reach: int,
        *,
        even: bool = False,
        columns: PartialLogits | None = None,
        rows: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Run the model over a block as `step` takes it; `even`: plain causal attention is enough, without a mask."""
        begin = reach - tokens.shape[1]
        if self.asynchronous and not (even or self.cache.static):
            # Few shapes: for each new one cuDNN plans attention anew, for some 60 ms of a step (32 layers, an H200).
            reach = max(reach, min(-(-reach // BLOCK) * BLOCK, self.cache.capacity))
        self.cache.place(slots, begin=begin, reach=reach)
        logits, _ = self.forward(
            columns,
            rows,
            input_ids=tokens,
            position_ids=slots.clamp(min=0),
            attention_mask=None if even else self.mask(slots),
            past_key_values=self.cache,
        )
        return logits

    def reorder(self, texts: Sequence[TokenSequence], rows: Sequence[int]) -> None:
        """Replace the rows by `texts`, where text `i` continues row `rows[i]`."""
        self.texts = list(texts)
        if list(rows) != list(range(len(self.read))):
            self.cache.select(torch.tensor(rows, device=self.forward.device))
        self.read = [self.read[row] for row in rows]

    def _read_shared_prompts(self) -> None:
        """Read a prompt once for all of its copies, except the last token, which each row reads to get its logits."""
        copies, self._copies = self._copies, 1
        if copies == 1:
            return
        texts = self.texts
        self.texts = texts[::copies]
        shared = [
            min(common_prefix(first.ids, other.ids) for other in texts[i * copies : (i + 1) * copies]) - 1
            for i, first in enumerate(self.texts)
        ]
        self.read = [0] * len(shared)
        if any(shared):
            self._call(shared, max(shared), rows=[0])
            self.reorder(texts, [i // copies for i in range(len(texts))])
        else:
            self.texts, self.read = texts, [0] * len(texts)

    def _change_rows(self, texts: Sequence[TokenSequence]) -> None:
        """Give each joining text a row. Finished rows are dropped when texts join, or once they are half of all rows.

        Until then they cost less than copying the cache. A row's old contents are never looked at.
        """
        joined = set(map(id, texts)).difference(map(id, self.texts))
        sparse = len(texts) * 2 <= len(self.texts) and any(self.read) and not self.cache.static
        if not joined and not sparse:
            return
        unfinished = set(map(id, texts))
        rows = [row for row, text in enumerate(self.texts) if id(text) in unfinished]
        new = [text for text in texts if id(text) in joined]
        self.reorder([*(self.texts[row] for row in rows), *new], rows + [0] * len(new))
        self.read[len(rows) :] = [0] * len(new)

    def _call(
        self, taken: list[int], width: int, columns: PartialLogits | None = None, rows: list[int] | None = None
    ) -> torch.Tensor:
        """Read `taken` tokens of each row, right-aligned in a block of `width`; logits after its last column.

        Of `rows` only, if given.
        """
        # int64 [rows, width]: tokens, and their positions in their own texts; rows with nothing to read are padding.
        count = len(self.texts)
        ids, slots = np.zeros((count, width), np.int64), np.full((count, width), -1, np.int64)
        for row, (text, begin, n) in enumerate(zip(self.texts, self.read, taken)):
            if n:
                ids[row, width - n :] = text.ids[begin : begin + n]
                slots[row, width - n :] = range(begin, begin + n)
        reach = int(slots.max()) + 1
        device = self.forward.device
        # Plain causal attention suffices if all rows begin here and are equally long, or if one row reads one token.
        even = int(slots.min()) >= 0 and not self.cache.static and (reach == width or (count == 1 and width == 1))
        # With partial logits the head multiplies only the asked rows; otherwise these are selected from its result.
        wanted = None if rows is None else torch.tensor(rows, dtype=torch.int64, device=device)
        partial_logits = self.forward.supports_partial_logits
        block = torch.from_numpy(ids).to(device), torch.from_numpy(slots).to(device)
        logits = self._forward(*block, reach, even=even, columns=columns, rows=wanted if partial_logits else None)
        # Counted after the call, so that an interrupted call is repeated.
        self.read = [n + more for n, more in zip(self.read, taken)]
        self.tokens_run += sum(taken)
        return logits if wanted is None or partial_logits else logits[wanted.to(logits.device)]

    def mask(self, slots: torch.Tensor) -> Any:
        """Attention mask of a block: each token sees its own text up to itself.

        bool ``[rows, 1, T, reach]`` (or what is added to the scores, for eager attention), for each kind of layer
        where the model has several.
        """
        slot = torch.arange(self.cache.reach, device=slots.device)
        own = slots.clamp(min=0)[:, None, :, None]
        full = slot <= own
        sliding = full if self._window is None else full & (slot > own - self._window)
        if self._additive:  # eager attention adds the mask to its scores
            dtype = self.forward.model.dtype
            full, sliding = (torch.where(m, 0.0, torch.finfo(dtype).min).to(dtype) for m in (full, sliding))
        return {"full_attention": full, "sliding_attention": sliding} if self._by_kind else sliding


def block_width(unread: Sequence[int], call_cost: int = CALL_COST) -> int:
    """Columns of the block that reads most tokens for its cost.

    `unread` are the tokens that each row has still to read, 0 for finished rows, which are carried along; `call_cost`
    is what calling the model costs, in tokens.
    """
    rows = len(unread)

    def tokens_per_cost(width: int) -> float:
        return sum(min(n, width) for n in unread) / (call_cost + rows * width)

    return max({n for n in unread if n}, key=lambda width: (tokens_per_cost(width), -width))


class PromptSplitter:
    """Splits long prompts into pieces that take about a given time, so that other texts wait no longer than that."""

    def __init__(self) -> None:
        self._columns = FIRST_PIECE
        self._began: float | None = None  # when the call of the last piece began

    def limit(self, width: int, seconds: float) -> int:
        """The number of columns, at most `width`, of a block that takes about `seconds`."""
        now, began = time.monotonic(), self._began
        if began is not None and now - began < seconds / 2:
            self._columns *= 2
        elif began is not None and now - began > seconds:
            self._columns = max(SHORTEST_PIECE, self._columns // 2)
        self._began = now if width > self._columns else None
        return min(width, self._columns)


class RaggedCache(Cache):
    """A transformers cache in which a token's slot is its position in its own text.

    Every row is left-aligned in its row of the buffers. So nothing is padded; going back costs nothing, as later
    tokens overwrite what is never looked at; and an interrupted call leaves nothing behind that counts.

    Before each call of the model, `place` sets the slots of the call's tokens.

    `capacity`: the initial number of slots. `rows`: makes the cache static, with this number of rows: it never grows,
    and the model always sees all slots, so that shapes and addresses stay the same, as CUDA graphs and compiled models
    need. Otherwise the model sees only the slots in use.
    """

    def __init__(self, capacity: int, *, rows: int | None = None):
        new_layer: Any = partial(RaggedLayer, self)  # stands for the class of the layers
        super().__init__(layer_class_to_replicate=new_layer)
        self.capacity, self.rows = capacity, rows
        self.slots: torch.Tensor | None = None
        self.begin = self.reach = 0

    @property
    def static(self) -> bool:
        return self.rows is not None

    def tensors(self) -> list[torch.Tensor]:
        """The keys and values of all layers, as far as there are any."""
        layers = [layer for layer in cast(list[RaggedLayer], self.layers) if layer.is_initialized]
        return [tensor for layer in layers for tensor in (layer.keys, layer.values)]

    def place(self, slots: torch.Tensor, begin: int, reach: int) -> None:
        """Set where the next call's tokens go: `slots`, int64 ``[rows, T]``, -1 for columns that are no token.

        `begin` is the number of tokens already read, where all rows have read equally many (used where no mask is
        given); the call may look at the slots below `reach`.
        """
        if reach > self.capacity:
            if self.static:
                raise ValueError(f"{reach} slots are needed, but the static cache has {self.capacity}")
            self.capacity = -(-max(reach, self.capacity * 3 // 2) // BLOCK) * BLOCK
        # Padding goes to one extra slot behind the last, which is never looked at.
        self.slots = slots.masked_fill(slots < 0, self.capacity)
        self.begin, self.reach = begin, self.capacity if self.static else reach

    def select(self, rows: torch.Tensor) -> None:
        """Replace the rows by copies of `rows` (int64 indices), in that order."""
        for layer in cast(list[RaggedLayer], self.layers):
            here = rows.to(layer.keys.device)
            for name in ("keys", "values"):
                held = getattr(layer, name)
                chosen = held.index_select(0, here)
                if self.static and len(rows) <= len(held):
                    held[: len(rows)] = chosen
                else:
                    setattr(layer, name, chosen)


class RaggedLayer(CacheLayerMixin):
    """One layer's keys and values, ``[rows, heads, capacity + 1, head_dim]``."""

    keys: torch.Tensor
    values: torch.Tensor
    is_sliding = False

    def __init__(self, cache: RaggedCache):
        super().__init__()
        self.cache = cache

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.keys, self.values = self._empty(key_states), self._empty(value_states)
        self.is_initialized = True

    def _empty(self, like: torch.Tensor) -> torch.Tensor:
        rows, heads, _, width = like.shape
        return like.new_zeros((self.cache.rows or rows, heads, self.cache.capacity + 1, width))

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Put a call's keys and values, ``[rows, heads, T, head_dim]``, into their slots; return all in reach."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        elif self.keys.shape[2] <= self.cache.capacity:  # the cache has grown since: copy, without the slot of padding
            held = self.keys.shape[2] - 1
            for name in ("keys", "values"):
                old = getattr(self, name)
                new = self._empty(old)
                new[:, :, :held] = old[:, :, :held]
                setattr(self, name, new)
        assert self.cache.slots is not None, "place comes before the call"
        slots, reach = self.cache.slots.to(key_states.device)[:, None, :, None], self.cache.reach
        keys, values, rows = self.keys, self.values, key_states.shape[0]
        if rows < keys.shape[0]:  # a static cache has more rows than the call
            keys, values = keys[:rows], values[:rows]
        keys.scatter_(2, slots.expand_as(key_states), key_states)
        values.scatter_(2, slots.expand_as(value_states), value_states)
        return keys[:, :, :reach], values[:, :, :reach]

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.cache.reach, 0

    def get_seq_length(self) -> int:
        return self.cache.begin

    def get_max_length(self) -> int:
        return self.cache.capacity if self.cache.static else -1

    get_max_cache_shape = get_max_length  # its name in transformers 4.57
