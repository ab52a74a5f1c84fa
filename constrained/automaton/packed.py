"""Packed mask rows: int32 words, bit ``i % 32`` of word ``i // 32`` for token ``i``."""

from __future__ import annotations

import numpy as np


def count(row: np.ndarray) -> int:
    """Number of tokens that a row allows."""
    return int(np.bitwise_count(row.view(np.uint32)).sum())


def ids(row: np.ndarray) -> np.ndarray:
    """Ids that a row allows, ascending int64; costs by words in use, not by vocabulary."""
    words = np.flatnonzero(row)
    bits = np.unpackbits(row[words].view(np.uint8), bitorder="little").reshape(-1, 32)
    word, bit = np.nonzero(bits)
    return words[word] * 32 + bit
