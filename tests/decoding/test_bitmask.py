"""Packed masks on torch tensors do what NumPy's own unpacking does."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from constrained.automaton.masks import allowed_count, allowed_ids
from constrained.decoding import bitmask

MASKS = st.integers(1, 5).flatmap(
    lambda words: st.integers(1, 4).flatmap(
        lambda rows: arrays(np.int32, (rows, words), elements=st.integers(-(2**31), 2**31 - 1))
    )
)


def reference(mask: np.ndarray, width: int) -> np.ndarray:
    bits = np.unpackbits(mask.view(np.uint8), axis=1, bitorder="little").astype(bool)
    return np.pad(bits, ((0, 0), (0, max(0, width - bits.shape[1]))))[:, :width]


@given(MASKS, st.integers(1, 200))
def test_expand_is_numpys_unpackbits_at_any_width(mask, width):
    for expand in (bitmask.expand, bitmask.expand_by_shifts):
        assert np.array_equal(expand(torch.from_numpy(mask), width).numpy(), reference(mask, width))


@given(MASKS, st.integers(1, 200), st.sampled_from([torch.float32, torch.bfloat16, torch.float16]))
def test_apply_keeps_allowed_logits_and_removes_all_others(mask, width, dtype):
    logits = torch.randn(mask.shape[0], width).to(dtype)
    before = logits.clone()
    found = bitmask.apply(logits, torch.from_numpy(mask))
    allowed = torch.from_numpy(reference(mask, width))
    assert found is logits and found.dtype == dtype
    assert torch.equal(found[allowed], before[allowed])
    assert bool((found[~allowed] == -torch.inf).all())


@given(MASKS)
def test_ids_and_count_of_a_row(mask):
    for row in mask:
        expected = np.flatnonzero(reference(row[None], 32 * len(row))[0])
        assert np.array_equal(allowed_ids(row), expected)
        assert allowed_count(row) == len(expected)
