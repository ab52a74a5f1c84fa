"""Texts to rows of tokens, and rows to steps: which texts are read together, in an order that a seed fixes.

All that happens in a run is laid out before it begins. So a run that was broken off finds its place again by number
alone, and every process of several knows its share.
"""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from constrained.training.encoding import IGNORED, Encoded

POOL = 50
"""Steps' worth of texts that are sorted by length together: little padding, and still much of chance in the order."""

Row = tuple[int, ...]
"""Numbers of the texts in one row of tokens; several where they are packed."""

Step = list[Row]
"""The rows between two updates of the weights, over all processes."""


def steps_of(lengths: Sequence[int], *, rows: int, epochs: float, seed: int, packed: int | None = None) -> list[Step]:
    """The steps of a whole run.

    Parameters
    ----------
    lengths : sequence of int
        Tokens of each text.
    rows : int
        Of a step; the last of an epoch may have fewer.
    epochs : float
        Times that every text is read; a part of one is a part of its steps.
    packed : int, optional
        Put several texts in a row, as many as fit in so many tokens.
    """
    steps: list[Step] = []
    epoch = 0
    while epoch < epochs:
        rng = random.Random(f"rows {seed} {epoch}")
        order = list(range(len(lengths)))
        rng.shuffle(order)
        of_epoch: list[Step] = []
        if packed:
            filled = _pack(order, lengths, packed)
            rng.shuffle(filled)
            of_epoch = _cut(filled, rows)
        else:
            for start in range(0, len(order), POOL * rows):
                pool = sorted(order[start : start + POOL * rows], key=lambda text: lengths[text])
                made = _cut([(text,) for text in pool], rows)
                rng.shuffle(made)
                of_epoch += made
        whole = round(len(of_epoch) * min(epochs - epoch, 1)) or 1
        steps += of_epoch[:whole]
        epoch += 1
    return steps


def _cut(rows: list[Row], size: int) -> list[Step]:
    return [rows[at : at + size] for at in range(0, len(rows), size)]


def _pack(order: Sequence[int], lengths: Sequence[int], room: int) -> list[Row]:
    """Rows of at most `room` tokens: the longest texts first, each where it leaves least room (best fit decreasing)."""
    packs: list[list[int]] = []
    left: list[tuple[int, int]] = []  # room left and pack, ascending
    for text in sorted(order, key=lambda text: -lengths[text]):
        at = bisect_left(left, (lengths[text], -1))
        if at == len(left):
            packs.append([text])
            insort(left, (room - lengths[text], len(packs) - 1))
        else:
            rest, pack = left.pop(at)
            packs[pack].append(text)
            insort(left, (rest - lengths[text], pack))
    return [tuple(pack) for pack in packs]


class Rows:
    """The texts of a row, by the row: what a `DataLoader` takes for a data set.

    Parameters
    ----------
    texts : sequence of Encoded
    """

    def __init__(self, texts: Sequence[Encoded]):
        self.texts = texts

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, row: Row) -> list[Encoded]:
        return [self.texts[number] for number in row]


@dataclass(frozen=True)
class Shares:
    """The batches of one process: what a `DataLoader` takes for a batch sampler.

    Attributes
    ----------
    steps : list of Step
    batch : int
        Rows that a process reads at once.
    accumulation : int
        Batches that it reads in a step. All processes read as many; where rows are few, some are empty.
    process, processes : int
        This one, and how many there are.
    """

    steps: list[Step]
    batch: int
    accumulation: int
    process: int = 0
    processes: int = 1

    def __len__(self) -> int:
        return len(self.steps) * self.accumulation

    def __iter__(self) -> Iterator[list[Row]]:
        for step in self.steps:
            batches = _cut(step, self.batch)
            for turn in range(self.accumulation):
                at = turn * self.processes + self.process
                yield batches[at] if at < len(batches) else []


def collate(rows: Sequence[Sequence[Encoded]], packing: bool) -> dict[str, torch.Tensor]:
    """One batch, padded on the right: causal attention never looks there.

    Parameters
    ----------
    rows : sequence of sequence of Encoded
        None at all gives one token that teaches nothing, so that processes with nothing left keep step.

    Returns
    -------
    dict
        ``input_ids`` and ``labels``, int64 ``[rows, tokens]``; ``logits_to_keep``, int64, the positions before which
        some row has a learned token; with `packing` ``position_ids``, which begin anew with each text. From those,
        where no attention mask is given, transformers tells the texts of a row apart.
    """
    ids = [[token for text in row for token in text.ids] for row in rows] or [[0]]
    width = max(map(len, ids))
    batch = {
        "input_ids": torch.tensor([row + [0] * (width - len(row)) for row in ids]),
        "labels": torch.full((len(ids), width), IGNORED),
    }
    positions = torch.arange(width).repeat(len(ids), 1)
    for number, row in enumerate(rows):
        at = 0
        for text in row:
            end = at + len(text.ids)
            batch["labels"][number, at:end] = torch.tensor(text.labels)
            positions[number, at:] -= positions[number, at].item()
            at = end
    batch["logits_to_keep"] = (batch["labels"][:, 1:] != IGNORED).any(0).nonzero().squeeze(1)
    if packing:
        batch["position_ids"] = positions
    return batch
