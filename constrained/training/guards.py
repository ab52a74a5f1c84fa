"""What a tuning leaves as it found it, and what goes wrong in it, said in a sentence."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from transformers.utils import logging

from constrained.errors import DataError, TrainingError
from constrained.training.batching import collate
from constrained.training.encoding import Encoded
from constrained.training.settings import Tuning

_NO_MEMORY = ("out of memory", "not enough memory", "can't allocate memory", "cannot allocate memory")
_NO_SPACE = ("no space left", "pytorchstreamwriter")

APART = 0.01
"""How far a packed text's logits may lie from its own by itself, as a share of the largest: rounding, in bf16 too."""

PROBED = 24
"""Tokens of each text that are read to see that."""


@contextmanager
def quiet() -> Iterator[None]:
    """Without transformers' and PEFT's remarks and bars, which are for who calls them."""
    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            for module in ("peft", "transformers", "accelerate", "torch"):
                warnings.filterwarnings("ignore", module=rf"{module}\b")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def randomness_kept() -> Iterator[None]:
    """The caller's random numbers go on as if nothing had been tuned; Trainer seeds all generators there are."""
    states = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])


@contextmanager
def readable(tuning: Tuning, folder: Path) -> Iterator[None]:
    """Memory and disk that are full, as one error each."""
    try:
        yield
    except (MemoryError, RuntimeError, OSError, SafetensorError) as error:
        text = str(error).lower()
        if isinstance(error, MemoryError) or any(words in text for words in _NO_MEMORY):
            raise TrainingError(f"no memory is left for this tuning: {_first_line(error)}", _smaller(tuning)) from error
        if any(words in text for words in _NO_SPACE):
            raise DataError(
                f"can't write to {folder}: {_first_line(error)}",
                "free some space and call again: it goes on from the last checkpoint",
            ) from error
        raise


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _smaller(tuning: Tuning) -> str:
    """What takes less memory, of what isn't done already."""
    ways = []
    if tuning.batch > 1:
        ways.append(f"batch {tuning.batch // 2} with accumulation {tuning.accumulation * 2}")
    if not tuning.checkpointing:
        ways.append("gradient checkpointing")
    if tuning.packing:
        ways.append("no packing")
    ways.append(f"a max_length below {tuning.max_length}")
    if tuning.whole:
        ways.append("an adapter instead of the whole model")
    return f"try, in another folder, {', or '.join(ways)}"


def check_apart(model: Any, texts: list[Encoded], device: torch.device) -> None:
    """See that texts in one row don't see each other.

    Models whose attention can't be told so, or that carry a state along the row, would learn from the wrong text.

    Raises
    ------
    TrainingError
        They do.
    """
    pair = [Encoded(text.ids[:PROBED], text.labels[:PROBED]) for text in (texts[0], texts[-1])]
    training = model.training
    model.eval()
    with torch.no_grad():
        packed, alone = (
            model(**{key: batch[key].to(device) for key in ("input_ids", "position_ids")}, use_cache=False).logits[
                0, -len(pair[1].ids) :
            ]
            for batch in (collate([pair], True), collate([pair[1:]], True))
        )
    model.train(training)
    if (packed - alone).abs().max() > APART * alone.abs().max():
        raise TrainingError(
            "with this model, texts that are packed into one row see each other", "tune without packing"
        )
