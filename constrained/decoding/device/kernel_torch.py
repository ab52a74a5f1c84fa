"""The kernels in plain torch: the reference for the Triton ones, and what runs on a CPU.

Fixed shapes, no copies to the host, no branches on values: the same code also runs in a CUDA graph.
"""

from __future__ import annotations

import torch

from constrained.decoding import bitmask
from constrained.decoding.device.explore import FINISHED, NEVER
from constrained.decoding.device.tables import DeviceTables

LARGEST = 1.0e38
"""Logits are clamped to this size; minus infinity and NaN become the least, so that no sum is ever NaN."""

ROUNDS = 7
"""Of Philox: the fewest that pass all tests of randomness (Salmon et al. 2011, table 2)."""

WORD = 0xFFFFFFFF

apply = bitmask.apply


def allowed(tables: DeviceTables, state: torch.Tensor, left: torch.Tensor) -> torch.Tensor:
    """The tokens allowed in each row, bool ``[rows, size]``; a finished row allows the end-of-text tokens."""
    return _allowed(tables, state, left)[:, : tables.size]


def mask(tables: DeviceTables, state: torch.Tensor, left: torch.Tensor) -> torch.Tensor:
    """`allowed`, packed: int32 ``[rows, words]``."""
    bits = _allowed(tables, state, left)[:, :-1].view(torch.uint8)
    shifts = torch.arange(8, dtype=torch.uint8, device=state.device)
    return (bits.unflatten(1, (-1, 8)) << shifts).sum(-1, dtype=torch.uint8).view(torch.int32)


def _allowed(tables: DeviceTables, state: torch.Tensor, left: torch.Tensor) -> torch.Tensor:
    """`allowed`, bool ``[rows, 32 * words + 1]``; the last column collects the lists' padding."""
    left = left.unsqueeze(1)
    ids, after, valid = _listed(tables, state)
    fits = valid & (tables.fewest[after] < left)
    out = torch.zeros(len(state), 32 * tables.words + 1, dtype=torch.bool, device=state.device)
    out.scatter_(1, torch.where(fits, ids, out.shape[1] - 1).long(), True)
    if len(tables.next):  # wide states have no list
        wide = tables.wide[state]
        # computed by class: there are hundreds of classes, but a hundred thousand tokens
        after = tables.next[wide.clamp(min=0)]  # [rows, classes]
        fits = (wide >= 0).unsqueeze(1) & (after >= 0) & (tables.fewest[after.clamp(min=0)] < left)
        out[:, : tables.size] |= fits[:, tables.class_of]
    return out


def after(tables: DeviceTables, state: torch.Tensor, tokens: torch.Tensor, left: torch.Tensor) -> torch.Tensor:
    """The state after one token in each row, int32 ``[rows]``; -1 where it is not allowed."""
    ids, targets, valid = _listed(tables, state)
    targets_of = torch.where(valid & (ids == tokens.unsqueeze(1)), targets, -1).amax(1)
    inside = (tokens >= 0) & (tokens < tables.size)
    if len(tables.next):
        wide = tables.wide[state]
        classes = tables.class_of[tokens.clamp(0, tables.size - 1)]
        targets_of = torch.where(wide >= 0, tables.next[wide.clamp(min=0), classes], targets_of)
    fits = inside & (targets_of >= 0) & (tables.fewest[targets_of.clamp(min=0)] < left)
    return torch.where(fits, targets_of, -1)


def step(
    tables: DeviceTables,
    state: torch.Tensor,
    left: torch.Tensor,
    logits: torch.Tensor,
    *,
    temperature: torch.Tensor,
    key: torch.Tensor | None,
    draws: torch.Tensor,
    pad: int,
    top_k: int | None = None,
    top_p: float | None = None,
    pruned: torch.Tensor | None = None,
) -> torch.Tensor:
    """Mask, choose, advance: see `DeviceMatcher.step`. `state`, `left`, `draws` and `pruned` are written in place."""
    values = clean(logits)
    may = allowed(tables, state, left)
    finished = state == FINISHED
    inside = values[:, : tables.size]
    kept = may
    if top_k is not None or top_p is not None:
        kept = within(inside, may, temperature, top_k, top_p)
    # The greatest logit, or with Gumbel noise a sample: either way one argmax among what is kept.
    score = inside
    if key is not None:
        score = inside + temperature.unsqueeze(1) * gumbel(key, draws, tables.size)
        draws.add_(1)
    tokens = score.masked_fill(~kept, -torch.inf).argmax(1)
    finished |= ~kept.any(1)  # happens only if `left` was changed without `set_budget`
    if pruned is not None:  # the share of exp(logit) on tokens outside the mask
        weights = (values - values.amax(1, keepdim=True)).exp()
        mass = 1 - (weights[:, : tables.size] * may).sum(1) / weights.sum(1)
        pruned.copy_(mass.clamp_(min=0).masked_fill_(finished, 0))
    unlimited = torch.full_like(left, NEVER)  # that the budget allows the choice is checked above
    state.copy_(torch.where(finished, FINISHED, after(tables, state, tokens, unlimited)))
    left.sub_((state != FINISHED).int())  # the end-of-text token is not counted
    return tokens.masked_fill_(finished, pad)


def within(
    values: torch.Tensor, may: torch.Tensor, temperature: torch.Tensor, top_k: int | None, top_p: float | None
) -> torch.Tensor:
    """The allowed tokens `may` that top-k, then top-p keep, bool ``[rows, size]``.

    Top-p keeps the fewest of the likeliest tokens whose probabilities sum to at least `top_p` (nucleus sampling:
    Holtzman et al. 2020, section 3.1), of what top-k kept, at the temperature; a greedy row always keeps its best.
    Of equal logits at the edge of top-k, any may be kept.
    """
    values = values.masked_fill(~may, -torch.inf)
    if top_k is None:
        ordered, order = values.sort(dim=1, descending=True, stable=True)
    else:
        ordered, order = values.topk(min(top_k, values.shape[1]), dim=1)
    keep = ordered > -torch.inf
    if top_p is not None:
        scale = temperature.clamp(min=torch.finfo(torch.float32).tiny).unsqueeze(1)
        scaled = ((ordered - ordered[:, :1]) / scale).masked_fill_(~keep, -torch.inf)
        probabilities = scaled.softmax(1)
        keep &= probabilities.cumsum(1) - probabilities < top_p
    return torch.zeros_like(may).scatter_(1, order, keep)


def _listed(tables: DeviceTables, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(ids, after, valid) of the narrow states, each ``[rows, longest_list]``."""
    begin = tables.offsets[state].unsqueeze(1)
    end = tables.offsets[state + 1].unsqueeze(1)
    index = begin + torch.arange(tables.longest_list, dtype=torch.int32, device=state.device)
    valid = index < end
    index = torch.where(valid, index, 0)
    return tables.ids[index], tables.after[index], valid


def clean(logits: torch.Tensor) -> torch.Tensor:
    """float32 copy of `logits`, finite: NaN counts as the least likely."""
    return torch.nan_to_num(logits.float(), nan=-LARGEST, posinf=LARGEST, neginf=-LARGEST).clamp_(-LARGEST, LARGEST)


def gumbel(key: torch.Tensor, draws: torch.Tensor, size: int) -> torch.Tensor:
    """Standard Gumbel noise, float32 ``[rows, size]``, a function of key, draw, row and token.

    The token where ``logit + temperature * noise`` is greatest is distributed as ``softmax(logits / temperature)``
    (Maddison, Tarlow & Minka 2014, section 2). As nothing is stored, a kernel computes the noise of allowed tokens
    alone. `key` is int64 ``[1]``, `draws` int32 ``[rows]``.
    """
    rows, device = len(draws), draws.device
    counter = torch.zeros(rows, (size + 3) // 4, dtype=torch.int64, device=device)
    words = philox(
        key,
        counter + torch.arange((size + 3) // 4, device=device),  # four tokens share a counter
        counter + draws.unsqueeze(1),
        counter + torch.arange(rows, device=device).unsqueeze(1),
        counter,
    )
    bits = torch.stack(words, -1).flatten(1)[:, :size]
    uniform = ((bits.float() + 0.5) * 2.0**-32).clamp_(max=1 - 2.0**-24)
    exponential = torch.where(uniform < 1e-3, uniform * (1 + 0.5 * uniform), -torch.log(1 - uniform))
    return -torch.log(exponential)


def philox(key: torch.Tensor, *counter: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Four words of 32 bits (in int64) for each counter of four: Philox4x32 (Salmon et al. 2011, section 4.3)."""
    c0, c1, c2, c3 = counter
    low, high = key & WORD, (key >> 32) & WORD
    for _ in range(ROUNDS):
        first, third = 0xD2511F53 * c0, 0xCD9E8D57 * c2  # the product's 64 bits are right, whatever its sign
        c0, c1 = (third >> 32) & WORD ^ c1 ^ low, third & WORD
        c2, c3 = (first >> 32) & WORD ^ c3 ^ high, first & WORD
        low, high = low + 0x9E3779B9 & WORD, high + 0xBB67AE85 & WORD
    return c0, c1, c2, c3
