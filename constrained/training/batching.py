"""Batches of training texts, in an order that the seed determines.

A *row* is a row of tokens: one text, or several packed together. A *step* is all that is read between two updates of
the weights, in all processes. The whole run is laid out before it begins, so an interrupted run finds its position by
number alone, and each of several processes knows its share.
"""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch.utils.data import Dataset

from constrained.training.encoding import IGNORED, Encoded

POOL = 50
"""Number of steps whose texts are sorted by length together: little padding, and a mostly random order."""

Row = tuple[int, ...]
"""Indices of the texts in one row."""

BatchStep = list[Row]


def lay_out_steps(
    lengths: Sequence[int], *, rows: int, epochs: float, seed: int, packed: int | None = None
) -> list[BatchStep]:
    """Lay out the steps of a whole run.

    Parameters
    ----------
    lengths : sequence of int
        Tokens in each text.
    rows : int
        Rows in a step; the last step of an epoch may have fewer.
    epochs : float
        Passes over the texts; of a fractional epoch that fraction of its steps is done.
    packed : int, optional
        Pack texts into rows of at most this many tokens.
    """
    steps: list[BatchStep] = []
    epoch = 0
    while epoch < epochs:
        rng = random.Random(f"rows {seed} {epoch}")
        order = list(range(len(lengths)))
        rng.shuffle(order)
        epoch_steps: list[BatchStep] = []
        if packed:
            packed_rows = _pack(order, lengths, packed)
            rng.shuffle(packed_rows)
            epoch_steps = _split(packed_rows, rows)
        else:
            # Texts of a step have similar lengths, but the order of a pool's steps is random again.
            for start in range(0, len(order), POOL * rows):
                pool = sorted(order[start : start + POOL * rows], key=lambda text: lengths[text])
                pool_steps = _split([(text,) for text in pool], rows)
                rng.shuffle(pool_steps)
                epoch_steps += pool_steps
        steps += epoch_steps[: round(len(epoch_steps) * min(epochs - epoch, 1)) or 1]
        epoch += 1
    return steps


def _split(rows: list[Row], size: int) -> list[BatchStep]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def _pack(order: Sequence[int], lengths: Sequence[int], capacity: int) -> list[Row]:
    """Pack texts into rows of at most `capacity` tokens by best fit decreasing: longest first, into the fullest row."""
    packs: list[list[int]] = []
    free: list[tuple[int, int]] = []  # (free tokens, pack), ascending
    for text in sorted(order, key=lambda text: -lengths[text]):
        best = bisect_left(free, (lengths[text], -1))
        if best == len(free):
            packs.append([text])
            insort(free, (capacity - lengths[text], len(packs) - 1))
        else:
            left, pack = free.pop(best)
            packs[pack].append(text)
            insort(free, (left - lengths[text], pack))
    return [tuple(pack) for pack in packs]


@dataclass
class RowDataset(Dataset):
    """Texts, fetched by row."""

    texts: Sequence[Encoded]

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, row: Row) -> list[Encoded]:
        return [self.texts[number] for number in row]


@dataclass(frozen=True)
class BatchSampler:
    """The batches of one process."""

    steps: list[BatchStep]
    batch: int  # rows in a batch
    accumulation: int  # batches of each process in a step; some are empty if a step has too few rows
    process: int = 0  # the number of this process
    processes: int = 1

    def __len__(self) -> int:
        return len(self.steps) * self.accumulation

    def __iter__(self) -> Iterator[list[Row]]:
        for step in self.steps:
            batches = _split(step, self.batch)
            for turn in range(self.accumulation):
                number = turn * self.processes + self.process
                yield batches[number] if number < len(batches) else []


def collate(rows: Sequence[Sequence[Encoded]], packing: bool) -> dict[str, torch.Tensor]:
    """Make one batch, padded on the right: causal attention never reads the padding.

    `rows`: if empty, the batch is one token without a label, so that every process makes the same number of passes.
    Returns ``input_ids`` and ``labels``, int64 ``[rows, tokens]``; ``logits_to_keep``, int64, the positions whose next
    token is learned in some row; with `packing` ``position_ids``, which restart at each text. Without an attention
    mask, transformers separates the texts of a row by those.
    """
    ids = [[token for text in row for token in text.ids] for row in rows] or [[0]]
    width = max(map(len, ids))
    batch = {
        "input_ids": torch.tensor([row + [0] * (width - len(row)) for row in ids]),
        "labels": torch.full((len(ids), width), IGNORED),
    }
    # Within a packed row positions restart at each text: from there on, subtract the text's first position.
    positions = torch.arange(width).repeat(len(ids), 1)
    for number, row in enumerate(rows):
        start = 0
        for text in row:
            end = start + len(text.ids)
            batch["labels"][number, start:end] = torch.tensor(text.labels)
            positions[number, start:] -= positions[number, start].item()
            start = end
    batch["logits_to_keep"] = (batch["labels"][:, 1:] != IGNORED).any(0).nonzero().squeeze(1)
    if packing:
        batch["position_ids"] = positions
    return batch
