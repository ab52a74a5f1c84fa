"""Blocks are unpacked to the numbers that llama.cpp's own package makes of them, bit for bit."""

import numpy as np
import pytest
import torch

from constrained.gguf_file import KINDS
from constrained.models.gguf_blocks import PIECE, UNPACK, unpack

gguf = pytest.importorskip("gguf", reason="needs the extra gguf")


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_numbers_are_those_of_the_package(kind):
    rows, columns = 3, PIECE // 2 + 256  # more than one piece
    size = rows * columns // kind.elements * kind.bytes
    raw = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)
    stored = gguf.GGMLQuantizationType[kind.name]
    with np.errstate(all="ignore"):  # any bits are in it: infinities, too
        expected = gguf.dequantize(raw.reshape(rows, -1), stored)
    numbers = torch.empty(rows, columns)
    unpack(torch.from_numpy(raw), kind, numbers)
    ours, theirs = numbers.numpy(), expected.reshape(rows, columns)
    assert np.array_equal(np.isnan(ours), np.isnan(theirs))
    assert np.array_equal(ours[~np.isnan(ours)], theirs[~np.isnan(theirs)])


def test_sizes_are_those_of_the_package():
    for number, kind in KINDS.items():
        stored = gguf.GGMLQuantizationType(number)
        assert (stored.name, *gguf.GGML_QUANT_SIZES[stored]) == kind
    assert UNPACK.keys() == {kind.name for kind in KINDS.values()}
