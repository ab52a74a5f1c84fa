"""The kernel in Triton that masks, chooses and advances.

Importing this module needs triton (it comes with torch for CUDA). With ``TRITON_INTERPRET=1`` in the environment before
triton is first imported, the same kernel runs on CPU tensors, slowly: that is how it is tested without a GPU.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from constrained.decoding.bitmask_triton import BLOCK, WARPS, apply, on_device
from constrained.decoding.device import kernel_torch
from constrained.decoding.device.kernel_torch import LARGEST, ROUNDS, clean
from constrained.decoding.device.tables import DeviceTables

LIST = 128
"""Listed tokens that a program reads together."""

PROGRAMS = 1024
"""Programs that keep a GPU busy: where a batch has fewer rows, each row's vocabulary is split among several.

An H200 runs about as many at once; with 256, a sampled step of 64 rows took twice as long.
"""

MOST_SPLITS = 32

__all__ = ["apply", "step"]

_LARGEST: tl.constexpr = tl.constexpr(LARGEST)
_NO_TOKEN: tl.constexpr = tl.constexpr(2**31 - 1)
_ROUNDS: tl.constexpr = tl.constexpr(ROUNDS)


@triton.jit
def _clean(x):
    x = x.to(tl.float32)
    return tl.minimum(tl.where(x >= -_LARGEST, x, -_LARGEST), _LARGEST)  # no comparison holds for NaN


@triton.jit
def _first_of_best(score, token):
    """(greatest score, its token): of equal scores the lowest token; lanes of `_NO_TOKEN` don't count."""
    counts = token != _NO_TOKEN
    best = tl.max(tl.where(counts, score, float("-inf")))
    return best, tl.min(tl.where(counts & (score == best), token, _NO_TOKEN))


@triton.jit
def _words(key, quad, draw, row):
    """Four random words for each four tokens; see `kernel_torch.gumbel`."""
    zero = quad * 0
    return tl.philox(tl.load(key), quad, zero + draw, zero + row.to(tl.int32), zero, _ROUNDS)


@triton.jit
def _gumbel(bits):
    uniform = tl.minimum((bits.to(tl.float32) + 0.5) * 2.3283064365386963e-10, 0.999999940395355)  # 2**-32, 1 - 2**-24
    exponential = tl.where(uniform < 1e-3, uniform * (1 + 0.5 * uniform), -tl.log(1 - uniform))
    return -tl.log(exponential)


@triton.jit
def _noise_from(key, start, draw, row, BLOCK: tl.constexpr):
    """Noise of the `BLOCK` tokens from `start`, eight a row."""
    a, b, c, d = _words(key, start // 4 + tl.arange(0, BLOCK // 4), draw, row)
    return _gumbel(tl.reshape(tl.join(tl.join(a, c), tl.join(b, d)), (BLOCK // 8, 8)))


@triton.jit
def _noise_of(key, tokens, draw, row):
    """Noise of these tokens."""
    a, b, c, d = _words(key, tokens // 4, draw, row)
    first = tl.where(tokens % 2 == 0, a, b)
    return _gumbel(tl.where(tokens % 4 < 2, first, tl.where(tokens % 2 == 0, c, d)))


@triton.jit
def _step(
    logits,  # [rows, >= width], any float
    kept,  # uint8 [rows, size], 0 where top-k or top-p drop a token
    key,  # int64 [1]
    draws,  # int32 [rows]: the number of this draw
    temperature,  # float32 [rows]
    state,  # int32 [rows], and the others as in DeviceTables
    left,
    tokens,  # int64 [rows], written
    pruned,  # float32 [rows], written
    arrived,  # int32 [rows], 0 before
    part_token,  # int32 [rows, SPLITS]: what each program found
    part_sums,  # float32 [rows, SPLITS, 4]
    wide,
    offsets,
    ids,
    after,
    mask_row,
    masks,  # as uint8
    class_of,
    next,
    fewest,
    horizon,
    logits_stride,
    kept_stride,
    width,
    size,
    words,
    classes,
    pad,
    NOISE: tl.constexpr,
    KEPT: tl.constexpr,
    PRUNED: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK: tl.constexpr,
    LIST: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    split = tl.program_id(1)
    logits += row * logits_stride
    kept += row * kept_stride
    here = tl.load(state + row)
    budget = tl.load(left + row)
    row_temperature = tl.load(temperature + row)
    draw = tl.load(draws + row)
    running = here != 0
    wide_row = tl.load(wide + here)
    is_wide = wide_row >= 0
    near = budget < tl.load(horizon + here)  # the budget rules something out
    by_row = tl.where(is_wide & (near == 0), size, 0)  # tokens that the mask row decides
    by_class = tl.where(is_wide & near, size, 0)  # those that the distance of their class's next state decides
    next += tl.maximum(wide_row, 0).to(tl.int64) * classes
    masks += tl.load(mask_row + wide_row, mask=is_wide, other=0).to(tl.int64) * words * 4

    # The whole vocabulary: for a wide state, or because the pruned mass is asked for. Each lane keeps its own best.
    score = tl.full((BLOCK // 8, 8), float("-inf"), tl.float32)
    token = tl.full((BLOCK // 8, 8), _NO_TOKEN, tl.int32)
    top = tl.full((BLOCK // 8, 8), -_LARGEST, tl.float32)  # greatest logit so far
    total = tl.full((BLOCK // 8, 8), 0.0, tl.float32)  # sums of exp(logit - top): of all tokens,
    inside = tl.full((BLOCK // 8, 8), 0.0, tl.float32)  # and of the allowed ones
    bit = tl.arange(0, 8)[None, :]
    columns = tl.where(is_wide, size, 0)
    if PRUNED:
        columns = tl.where(running, width, 0)
    span = tl.cdiv(columns, SPLITS * BLOCK) * BLOCK
    for start in range(split * span, tl.minimum((split + 1) * span, columns), BLOCK):
        at = start // 8 + tl.arange(0, BLOCK // 8)
        column = at[:, None] * 8 + bit
        byte = tl.load(masks + at, mask=at * 8 < by_row, other=0).to(tl.int32)[:, None]
        allowed = ((byte >> bit) & 1) != 0
        if by_class > 0:
            kind = tl.load(class_of + column, mask=column < by_class, other=0)
            target = tl.load(next + kind, mask=column < by_class, other=-1)
            allowed = tl.load(fewest + target, mask=target >= 0, other=_NO_TOKEN) < budget
        value = _clean(tl.load(logits + column, mask=column < width, other=float("-inf")))
        if PRUNED:
            counted = tl.where(column < width, value, float("-inf"))
            higher = tl.maximum(top, counted)
            scale = tl.exp(top - higher)
            weight = tl.exp(counted - higher)
            total = total * scale + weight
            inside = inside * scale + tl.where(allowed, weight, 0.0)
            top = higher
        # Whole blocks, not only what is allowed: that makes the loads wide.
        if KEPT:
            allowed = allowed & (tl.load(kept + column, mask=column < by_row + by_class, other=0) != 0)
        if NOISE:  # noqa: SIM102 (one is decided when the kernel is compiled)
            if tl.max(allowed.to(tl.int32)) > 0:
                value += row_temperature * _noise_from(key, start, draw, row, BLOCK)
        better = allowed & (value > score)  # columns ascend: the first of equals stays
        score = tl.where(better, value, score)
        token = tl.where(better, column, token)
    best, chosen = _first_of_best(score, token)
    highest = tl.max(top)
    everything = tl.sum(total * tl.exp(top - highest))
    within = tl.sum(inside * tl.exp(top - highest))

    # Of several programs for a row, the last to arrive continues with what all of them found.
    last = SPLITS - 1
    if SPLITS > 1:
        part = row * SPLITS + split
        tl.store(part_token + part, chosen)
        tl.store(part_sums + part * 4, best)
        if PRUNED:
            tl.store(part_sums + part * 4 + 1, highest)
            tl.store(part_sums + part * 4 + 2, everything)
            tl.store(part_sums + part * 4 + 3, within)
        tl.debug_barrier()
        last = tl.atomic_add(arrived + row, 1, sem="acq_rel", scope="gpu")
    if last == SPLITS - 1:
        if SPLITS > 1:
            parts = row * SPLITS + tl.arange(0, SPLITS)
            found = tl.load(part_token + parts, cache_modifier=".cg")  # from the cache that all programs share
            best, chosen = _first_of_best(tl.load(part_sums + parts * 4, cache_modifier=".cg"), found)
            if PRUNED:
                tops = tl.load(part_sums + parts * 4 + 1, cache_modifier=".cg")
                highest = tl.max(tops)
                rest = tl.load(part_sums + parts * 4 + 2, cache_modifier=".cg")
                everything = tl.sum(rest * tl.exp(tops - highest))
                rest = tl.load(part_sums + parts * 4 + 3, cache_modifier=".cg")
                within = tl.sum(rest * tl.exp(tops - highest))

        # The short list of a narrow state.
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
                within += tl.sum(tl.where(allowed, tl.exp(value - highest), 0.0))
            if KEPT:
                allowed = allowed & (tl.load(kept + column, mask=allowed, other=0) != 0)
            if NOISE:
                value += row_temperature * _noise_of(key, column, draw, row)
            best_here, first = _first_of_best(value, tl.where(allowed, column, _NO_TOKEN))
            better = (first != _NO_TOKEN) & ((best_here > best) | (chosen == _NO_TOKEN))
            found_target = tl.max(tl.where(column == first, target, -1))
            target_listed = tl.where(better, found_target, target_listed)
            best = tl.where(better, best_here, best)
            chosen = tl.where(better, first, chosen)

        running = running & (chosen != _NO_TOKEN)
        kind = tl.load(class_of + tl.where(running, chosen, 0), mask=is_wide, other=0)
        target_wide = tl.load(next + kind, mask=is_wide, other=0)
        goes_to = tl.where(running, tl.where(is_wide, target_wide, target_listed), 0)
        tl.store(tokens + row, tl.where(running, chosen, pad).to(tl.int64))
        tl.store(state + row, goes_to)
        tl.store(left + row, tl.where(goes_to != 0, budget - 1, budget))  # the end-of-text token is not counted
        if NOISE:
            tl.store(draws + row, draw + 1)
        if PRUNED:
            mass = tl.maximum(1.0 - within / tl.maximum(everything, 1e-38), 0.0)
            tl.store(pruned + row, tl.where(running, mass, 0.0))


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
    """`kernel_torch.step` in one kernel; top-k and top-p, which must sort, run in torch before it."""
    kept = None
    if top_k is not None or top_p is not None:
        may = kernel_torch.allowed(tables, state, left)
        values = clean(logits)[:, : tables.size]
        kept = kernel_torch.within(values, may, temperature, top_k, top_p).view(torch.uint8)
    rows, device = len(state), logits.device
    splits = max(1, min(MOST_SPLITS, PROGRAMS // rows, triton.cdiv(tables.size, BLOCK)))
    splits = 1 << (splits.bit_length() - 1)
    tokens = torch.empty(rows, dtype=torch.int64, device=device)
    with on_device(device):
        _step[(rows, splits)](
            logits,
            tokens if kept is None else kept,
            draws if key is None else key,
            draws,
            temperature,
            state,
            left,
            tokens,
            temperature if pruned is None else pruned,
            torch.zeros(rows, dtype=torch.int32, device=device),
            torch.empty((rows, splits), dtype=torch.int32, device=device),
            torch.empty((rows, splits, 4), device=device),
            tables.wide,
            tables.offsets,
            tables.ids,
            tables.after,
            tables.mask_row,
            tables.masks.view(torch.uint8),
            tables.class_of,
            tables.next,
            tables.fewest,
            tables.horizon,
            logits.stride(0),
            0 if kept is None else kept.stride(0),
            logits.shape[1],
            tables.size,
            tables.words,
            tables.next.shape[1],
            pad,
            NOISE=key is not None,
            KEPT=kept is not None,
            PRUNED=pruned is not None,
            SPLITS=splits,
            BLOCK=BLOCK,
            LIST=LIST,
            num_warps=WARPS,
            enable_fp_fusion=False,  # a fused multiply-add rounds differently than torch on the CPU
        )
    return tokens
