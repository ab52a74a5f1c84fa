"""Examples to padded batches of tokens, in an order that a seed fixes.

A batch holds examples of about the same length, so little is padding; the
order can be entered again anywhere, so a run can be resumed exactly.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from constrained.training.encoding import IGNORED
from tools.embedded_model.examples import Example

POOL = 2048  # examples encoded and sorted by length at a time
LONGEST = 512  # tokens; longer examples (late steps with a long path) are left out
# How often each step format is shown.
FORMATS = {"act": 0.20, "react": 0.50, "knowagent": 0.30}


@dataclass(frozen=True)
class Batch:
    """Token ids and labels, both ``[examples, tokens]`` int64; labels -100 outside answers."""

    ids: torch.Tensor
    labels: torch.Tensor


@dataclass(frozen=True)
class Position:
    """A place in the endless order: the next pool of an epoch, and the batch in it."""

    epoch: int = 0
    pool: int = 0
    batch: int = 0


def encode(tokenizer, texts: Sequence[tuple[str, str, str]]) -> list[tuple[list[int], int]]:
    """Token ids of each example, end token included, and where its answer begins."""
    pieces = tokenizer([piece for parts in texts for piece in parts], add_special_tokens=False)
    pieces = pieces["input_ids"] if pieces else []
    end = tokenizer.eos_token_id
    return [(pieces[i] + pieces[i + 1] + pieces[i + 2] + [end], len(pieces[i])) for i in range(0, len(pieces), 3)]


def pad(rows: Sequence[tuple[list[int], int]], filler: int) -> Batch:
    """One batch, padded on the right: causal attention never looks there."""
    width = max(len(ids) for ids, _ in rows)
    ids = torch.full((len(rows), width), filler)
    labels = torch.full((len(rows), width), IGNORED)
    for row, (tokens, start) in enumerate(rows):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        labels[row, start : len(tokens)] = torch.tensor(tokens[start:])
    return Batch(ids, labels)


def batches(
    examples: Sequence[Example],
    tokenizer,
    *,
    tokens: int,
    seed: int,
    position: Position = Position(),
) -> Iterator[tuple[Batch, Position]]:
    """Endless batches of at most `tokens` tokens, each with the position after it."""
    while True:
        rng = random.Random(f"batches {seed} {position.epoch}")
        order = list(range(len(examples)))
        rng.shuffle(order)
        formats = rng.choices(list(FORMATS), weights=list(FORMATS.values()), k=len(order))
        for pool in range(position.pool, (len(order) + POOL - 1) // POOL):
            span = range(pool * POOL, min(len(order), (pool + 1) * POOL))
            rows = encode(tokenizer, [examples[order[i]].texts(formats[i]) for i in span])
            cuts = _cut(sorted((r for r in rows if len(r[0]) <= LONGEST), key=lambda r: len(r[0])), tokens)
            random.Random(f"pool {seed} {position.epoch} {pool}").shuffle(cuts)
            for number in range(position.batch, len(cuts)):
                position = Position(position.epoch, pool, number + 1)
                yield pad(cuts[number], tokenizer.pad_token_id), position
            position = Position(position.epoch, pool + 1, 0)
        position = Position(position.epoch + 1, 0, 0)


def _cut(rows: list, tokens: int) -> list[list]:
    """Rows in order of length, cut so that each batch with its padding fits."""
    cuts: list[list] = []
    for row in rows:
        if cuts and (len(cuts[-1]) + 1) * len(row[0]) <= tokens:
            cuts[-1].append(row)
        else:
            cuts.append([row])
    return cuts
