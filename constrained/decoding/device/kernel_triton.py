"""The kernels in Triton: one that masks, chooses and advances, one that applies packed masks.

Importing this module needs triton (it comes with torch for CUDA). With ``TRITON_INTERPRET=1`` in the environment before
triton is first imported, the same kernels run on CPU tensors, slowly: so they are tested without a GPU.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from constrained.decoding.device import kernel_torch
from constrained.decoding.device.logits import LARGEST, clean
from constrained.decoding.device.tables import DeviceTables

BLOCK = 4096
"""Logits a program looks at together."""

LIST = 128
"""Listed tokens a program looks at together."""

_LARGEST: tl.constexpr = tl.constexpr(LARGEST)
_NO_TOKEN: tl.constexpr = tl.constexpr(2**31 - 1)


@triton.jit
def _clean(x):
    x = x.to(tl.float32)
    return tl.minimum(tl.where(x >= -_LARGEST, x, -_LARGEST), _LARGEST)  # no comparison holds for NaN


@triton.jit
def _best(score, allowed, ids, best, token):
    """The running greatest score and its token; of equal scores the first (ids come ascending)."""
    score = tl.where(allowed, score, float("-inf"))
    here = tl.max(score, axis=0)
    first = tl.min(tl.where(allowed & (score == here), ids, _NO_TOKEN), axis=0)
    better = (first != _NO_TOKEN) & ((here > best) | (token == _NO_TOKEN))
    return tl.where(better, here, best), tl.where(better, first, token)


@triton.jit
def _step(
    logits,  # [rows, >= width], any float
    kept,  # uint8 [rows, size], 0 where top-k or top-p drop a token
    noise,  # float32 [rows, >= size]
    temperature,  # float32 [rows]
    state,  # int32 [rows], and the others as in DeviceTables
    left,
    tokens,  # int64 [rows], written
    pruned,  # float32 [rows], written
    wide,
    offsets,
    ids,
    after,
    mask_row,
    masks,
    class_of,
    next,
    fewest,
    horizon,
    logits_stride,
    kept_stride,
    noise_stride,
    width,
    size,
    words,
    classes,
    pad,
    NOISE: tl.constexpr,
    KEPT: tl.constexpr,
    PRUNED: tl.constexpr,
    BLOCK: tl.constexpr,
    LIST: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    logits += row * logits_stride
    kept += row * kept_stride
    noise += row * noise_stride
    here = tl.load(state + row)
    budget = tl.load(left + row)
    heat = tl.load(temperature + row)
    running = here != 0
    wide_row = tl.load(wide + here)
    is_wide = wide_row >= 0
    near = budget < tl.load(horizon + here)  # the budget rules something out
    by_row = tl.where(is_wide & (near == 0), size, 0)  # tokens that the mask row decides
    by_class = tl.where(is_wide & near, size, 0)  # those that the distance of their class's next state decides
    next += tl.maximum(wide_row, 0).to(tl.int64) * classes
    masks += tl.load(mask_row + wide_row, mask=is_wide, other=0).to(tl.int64) * words

    best = tl.full((), float("-inf"), tl.float32)
    token = tl.full((), _NO_TOKEN, tl.int32)
    top = tl.full((), float("-inf"), tl.float32)  # greatest logit so far
    total = tl.full((), 0.0, tl.float32)  # sums of exp(logit - top): of all tokens,
    inside = tl.full((), 0.0, tl.float32)  # and of the allowed ones

    # the whole vocabulary: of a wide state, or because the pruned mass is asked for
    columns = tl.where(is_wide, size, 0)
    if PRUNED:
        columns = tl.where(running, width, 0)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        word = tl.load(masks + column // 32, mask=column < by_row, other=0)
        kind = tl.load(class_of + column, mask=column < by_class, other=0)
        target = tl.load(next + kind, mask=column < by_class, other=-1)
        need = tl.load(fewest + target, mask=target >= 0, other=_NO_TOKEN)
        allowed = (((word >> (column % 32)) & 1) != 0) | (need < budget)
        value = _clean(tl.load(logits + column, mask=column < width, other=float("-inf")))
        if PRUNED:
            counted = tl.where(column < width, value, float("-inf"))
            higher = tl.maximum(top, tl.max(counted, axis=0))
            scale = tl.exp(top - higher)
            weight = tl.exp(counted - higher)
            total = total * scale + tl.sum(weight, axis=0)
            inside = inside * scale + tl.sum(tl.where(allowed, weight, 0.0), axis=0)
            top = higher
        chosen = allowed
        if KEPT:
            chosen = allowed & (tl.load(kept + column, mask=allowed, other=0) != 0)
        score = value
        if NOISE:
            score = value + heat * tl.load(noise + column, mask=allowed, other=0.0)
        best, token = _best(score, chosen, column, best, token)

    # the short list of a narrow state
    begin = tl.load(offsets + here)
    count = tl.where(running, tl.load(offsets + here + 1) - begin, 0)
    target_listed = tl.full((), -1, tl.int32)
    for start in range(0, count, LIST):
        at = start + tl.arange(0, LIST)
        column = tl.load(ids + begin + at, mask=at < count, other=0)
        target = tl.load(after + begin + at, mask=at < count, other=0)
        need = tl.load(fewest + target)
        allowed = (at < count) & (need < budget)
        value = _clean(tl.load(logits + column, mask=allowed, other=float("-inf")))
        if PRUNED:
            inside += tl.sum(tl.where(allowed, tl.exp(value - top), 0.0), axis=0)
        chosen = allowed
        if KEPT:
            chosen = allowed & (tl.load(kept + column, mask=allowed, other=0) != 0)
        score = value
        if NOISE:
            score = value + heat * tl.load(noise + column, mask=allowed, other=0.0)
        before = token
        best, token = _best(score, chosen, column, best, token)
        found = tl.max(tl.where(allowed & (column == token), target, -1), axis=0)
        target_listed = tl.where(token != before, found, target_listed)

    running = running & (token != _NO_TOKEN)
    safe = tl.where(running, token, 0)
    kind = tl.load(class_of + safe, mask=is_wide, other=0)
    target = tl.where(is_wide, tl.load(next + kind, mask=is_wide, other=0), target_listed)
    tl.store(tokens + row, tl.where(running, token, pad).to(tl.int64))
    target = tl.where(running, target, 0)
    tl.store(state + row, target)
    tl.store(left + row, tl.where(target != 0, budget - 1, budget))  # the end-of-text token is not counted
    if PRUNED:
        mass = tl.maximum(1.0 - inside / tl.maximum(total, 1e-38), 0.0)
        tl.store(pruned + row, tl.where(running, mass, 0.0))


@triton.jit
def _apply(logits, mask, logits_stride, mask_stride, width, words, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    word = tl.load(mask + row * mask_stride + column // 32, mask=column // 32 < words, other=0)
    shut = ((word >> (column % 32)) & 1) == 0
    # what is allowed is neither read nor written
    tl.store(logits + row * logits_stride + column, float("-inf"), mask=shut & (column < width))


def step(
    tables: DeviceTables,
    state: torch.Tensor,
    left: torch.Tensor,
    logits: torch.Tensor,
    *,
    temperature: torch.Tensor,
    noise: torch.Tensor | None,
    pad: int,
    top_k: int | None = None,
    top_p: float | None = None,
    pruned: torch.Tensor | None = None,
) -> torch.Tensor:
    """As `kernel_torch.step`, in one kernel; top-k and top-p, which must sort, are torch's before it."""
    kept = None
    if top_k is not None or top_p is not None:
        may = kernel_torch.allowed(tables, state, left)
        values = clean(logits)[:, : tables.size]
        kept = kernel_torch.within(values, may, temperature, top_k, top_p).view(torch.uint8)
    tokens = torch.empty(len(state), dtype=torch.int64, device=logits.device)
    _step[(len(state),)](
        logits,
        tokens if kept is None else kept,
        temperature if noise is None else noise,
        temperature,
        state,
        left,
        tokens,
        temperature if pruned is None else pruned,
        tables.wide,
        tables.offsets,
        tables.ids,
        tables.after,
        tables.mask_row,
        tables.masks,
        tables.class_of,
        tables.next,
        tables.fewest,
        tables.horizon,
        logits.stride(0),
        0 if kept is None else kept.stride(0),
        0 if noise is None else noise.stride(0),
        logits.shape[1],
        tables.size,
        tables.words,
        tables.next.shape[1],
        pad,
        NOISE=noise is not None,
        KEPT=kept is not None,
        PRUNED=pruned is not None,
        BLOCK=BLOCK,
        LIST=LIST,
        num_warps=8,
        enable_fp_fusion=False,  # a fused multiply-add would round otherwise than torch on the CPU does
    )
    return tokens


def apply(logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Minus infinity in place for what the packed `mask` does not allow, columns beyond it included.

    Parameters
    ----------
    logits : torch.Tensor
        Any float ``[rows, width]``, rows contiguous.
    mask : torch.Tensor
        int32 ``[rows, words]`` on the same device.
    """
    rows, width = logits.shape
    _apply[(rows, triton.cdiv(width, BLOCK))](
        logits, mask, logits.stride(0), mask.stride(0), width, mask.shape[1], BLOCK=BLOCK, num_warps=8
    )
    return logits
