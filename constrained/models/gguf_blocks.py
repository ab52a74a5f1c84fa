"""The numbers in a GGUF file's blocks: floats from integers, with a scale a block.

The layouts are those of ggml-quants.h in llama.cpp. The results are, bit for bit, those of the package gguf
(`tests/models/test_gguf_blocks.py`), in a quarter of its time, and without importing it (half a second).
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from constrained.gguf_file import TensorType

PIECE = 1 << 19
"""Elements unpacked at a time: what is in between stays in the processor's cache."""


def unpack(raw: torch.Tensor, kind: TensorType, out: torch.Tensor) -> None:
    """Write the numbers in `raw`, uint8 ``[bytes]``, to `out`, float32 of any shape with as many elements."""
    blocks, numbers = raw.view(-1, kind.bytes), out.view(-1, kind.elements)
    step = PIECE // kind.elements
    for begin in range(0, len(blocks), step):
        numbers[begin : begin + step] = UNPACK[kind.name](blocks[begin : begin + step])


def _halves(blocks: torch.Tensor, begin: int, count: int = 1) -> torch.Tensor:
    """Half-precision numbers from byte `begin` of each block, float32 ``[blocks, count]``."""
    return blocks[:, begin : begin + 2 * count].contiguous().view(torch.float16).float()


def _nibbles(packed: torch.Tensor) -> torch.Tensor:
    """The low halves of the last dimension's bytes, then the high ones: ``[..., n]`` -> ``[..., 2, n]``."""
    return torch.stack((packed & 15, packed >> 4), dim=-2)


def _fifth_bits(packed: torch.Tensor) -> torch.Tensor:
    """The bits of four bytes, each as 16 or 0: uint8 ``[blocks, 4]`` -> ``[blocks, 32]``."""
    bits = packed.unsqueeze(-1) >> torch.arange(8, dtype=torch.uint8)
    return (bits & 1).flatten(1) << 4


def _sixteen_steps(blocks: torch.Tensor) -> torch.Tensor:
    return _halves(blocks, 0) * (_nibbles(blocks[:, 2:]).flatten(1).float() - 8)


def _sixteen_steps_from(blocks: torch.Tensor) -> torch.Tensor:
    return (_nibbles(blocks[:, 4:]).flatten(1) * _halves(blocks, 0)).add_(_halves(blocks, 2))


def _five_bits(blocks: torch.Tensor) -> torch.Tensor:
    steps = _nibbles(blocks[:, 6:]).flatten(1) | _fifth_bits(blocks[:, 2:6])
    return _halves(blocks, 0) * (steps.float() - 16)


def _five_bits_from(blocks: torch.Tensor) -> torch.Tensor:
    steps = _nibbles(blocks[:, 8:]).flatten(1) | _fifth_bits(blocks[:, 4:8])
    return (steps * _halves(blocks, 0)).add_(_halves(blocks, 2))


def _eight_bits(blocks: torch.Tensor) -> torch.Tensor:
    return blocks[:, 2:].view(torch.int8) * _halves(blocks, 0)


def _scales(blocks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Scale and minimum of a superblock's eight rows, float32 ``[blocks, 8, 1]``: six bits each, in bytes 4 to 15."""
    low, least, high = blocks[:, 4:16].view(-1, 3, 4).unbind(1)
    scale = torch.cat((low & 63, high & 15 | low >> 2 & 48), dim=1)
    minimum = torch.cat((least & 63, high >> 4 | least >> 2 & 48), dim=1)
    return (_halves(blocks, 0) * scale).unsqueeze(-1), (_halves(blocks, 2) * minimum).unsqueeze(-1)


def _super_four_bits(blocks: torch.Tensor) -> torch.Tensor:
    scale, minimum = _scales(blocks)
    steps = _nibbles(blocks[:, 16:].view(-1, 4, 32)).flatten(1, 2)
    return (scale * steps).sub_(minimum).flatten(1)


def _super_five_bits(blocks: torch.Tensor) -> torch.Tensor:
    scale, minimum = _scales(blocks)
    fifth = blocks[:, 16:48].unsqueeze(1) >> torch.arange(8, dtype=torch.uint8).view(8, 1)
    steps = _nibbles(blocks[:, 48:].view(-1, 4, 32)).flatten(1, 2) | (fifth & 1) << 4
    return (scale * steps).sub_(minimum).flatten(1)


def _super_six_bits(blocks: torch.Tensor) -> torch.Tensor:
    low = _nibbles(blocks[:, :128].view(-1, 2, 64)).view(-1, 8, 32)
    pairs = torch.arange(0, 8, 2, dtype=torch.uint8).view(4, 1)
    high = (blocks[:, 128:192].view(-1, 2, 1, 32) >> pairs & 3).view(-1, 8, 32)
    steps = (low | high << 4).view(-1, 16, 16).float() - 32
    scale = _halves(blocks, 208) * blocks[:, 192:208].view(torch.int8)
    return (scale.unsqueeze(-1) * steps).flatten(1)


UNPACK: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "F32": lambda blocks: blocks.view(torch.float32),
    "F16": lambda blocks: blocks.view(torch.float16),
    "BF16": lambda blocks: blocks.view(torch.bfloat16),
    "Q4_0": _sixteen_steps,
    "Q4_1": _sixteen_steps_from,
    "Q5_0": _five_bits,
    "Q5_1": _five_bits_from,
    "Q8_0": _eight_bits,
    "Q4_K": _super_four_bits,
    "Q5_K": _super_five_bits,
    "Q6_K": _super_six_bits,
}
"""Kind -> uint8 ``[blocks, bytes of a block]`` to numbers ``[blocks, elements of a block]``."""
