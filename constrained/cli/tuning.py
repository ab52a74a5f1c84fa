"""The options of every command that tunes a model, and the `Tuning` that they make."""

from __future__ import annotations

import argparse
import os
from dataclasses import fields, replace

from constrained.training.settings import EVERY_LINEAR, PRECISIONS, PRESETS, SCHEDULES, Tuning


def add_tuning(parser: argparse.ArgumentParser) -> None:
    """Add an option for each field of `Tuning`, and one for the papers' settings that the others change."""
    group = parser.add_argument_group("tuning", "what isn't given is as --preset has it")

    def add(name: str, words: str, **more) -> None:
        default = getattr(Tuning(), name)
        shown = " ".join(default) if isinstance(default, tuple) else default
        more.setdefault("type", type(default))
        group.add_argument(f"--{name.replace('_', '-')}", default=None, help=f"{words} (knowagent: {shown})", **more)

    group.add_argument(
        "--preset",
        choices=tuple(PRESETS),
        default="knowagent",
        help="a paper's settings: knowagent "
        "(LoRA on two layers of a kind) or lumos (all weights, 128 texts a step); or small, for models "
        "of a few million weights (LoRA on every layer, a higher rate) (default: %(default)s)",
    )
    add("rank", "width of the adapter's matrices: a wider one can learn more, and takes more memory", metavar="N")
    add("alpha", "how strongly the adapter counts: by alpha / rank", metavar="N")
    add("dropout", "share of the adapter's inputs that are left out at random, against learning by heart", metavar="P")
    add("targets", f"layers that get an adapter, or {EVERY_LINEAR[0]}", type=str, nargs="+", metavar="NAME")
    add("rate", "peak learning rate; all weights need a lower one than an adapter, 2e-5 say", metavar="R")
    add("schedule", "how the learning rate falls after its warm-up", choices=tuple(SCHEDULES))
    add("warmup", "share of the steps in which the learning rate rises", metavar="P")
    add("decay", "weight decay", metavar="P")
    add("epochs", "times that every text is read; 0.5 reads half of them", metavar="N")
    add("batch", "texts that a process reads at once: what fits into memory", metavar="N")
    add("accumulation", "batches before the weights change: a step is batch x accumulation x processes", metavar="N")
    add("max_length", "tokens of a text; longer texts are left out and counted, none is cut", metavar="N")
    add("precision", "of the multiplications: auto is bf16 on a GPU that has it, fp32 on a CPU", choices=PRECISIONS)
    bool_ = {"type": None, "action": argparse.BooleanOptionalAction}
    add("packing", "fill rows with several texts, none of which sees another: faster where lengths differ", **bool_)
    add("whole", "tune all weights and save a whole model, no adapter", **bool_)
    add("checkpointing", "gradient checkpointing: much less memory, about a third more time", **bool_)
    add("seed", "of the order of the texts, the adapter's first weights, and dropout", metavar="N")


def tuning_of(arguments: argparse.Namespace) -> Tuning:
    """The preset with what was given.

    Raises
    ------
    TrainingError
        A value is out of its range.
    """
    given = {field.name: getattr(arguments, field.name) for field in fields(Tuning)}
    if given["targets"] is not None:
        given["targets"] = tuple(given["targets"])
    return replace(PRESETS[arguments.preset], **{name: value for name, value in given.items() if value is not None})


def own_device() -> str | None:
    """The GPU of this process, where Accelerate started several."""
    import torch

    process = os.environ.get("LOCAL_RANK")
    return f"cuda:{process}" if process is not None and torch.cuda.is_available() else None
