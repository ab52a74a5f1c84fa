"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from constrained.agents.levels import LEVELS, STATE
from constrained.errors import DataError, KnowledgeError
from constrained.training.settings import EVERY_LINEAR, PRECISIONS, PRESETS, SCHEDULES, Tuning

MODELS = "a folder, a .gguf file, smollm2 (a small general model), or a Hub name; see docs/models.md"
"""What `--model` says of models."""

CHOOSERS = "random (any admitted action) or none (the shortest admitted path)"
"""What `--model` says of what may stand in a model's place."""

TOKENIZERS = "a tokenizer.json or its folder, a .gguf file, embedded, smollm2, or a Hub name"
"""What `--tokenizer` says of tokenizers."""

KNOWLEDGE = "a .lark file, or the name of one that ships (`constrained show` lists them)"
"""What an argument that takes action knowledge says."""


def add_model(parser: argparse.ArgumentParser, words: str = f"{MODELS} (default: the embedded model)") -> None:
    """Add --model and --device."""
    parser.add_argument("--model", help=words)
    add_device(parser)


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add --device."""
    words = "where the model runs: cpu, cuda, cuda:1, or auto: on all GPUs (default: the GPU if there is one, else cpu)"
    parser.add_argument("--device", help=words)


def add_sampling(parser: argparse.ArgumentParser) -> None:
    """Add --temperature and --seed."""
    words = "of sampling (default: 0, always the likeliest token)"
    parser.add_argument("--temperature", type=float, default=0.0, metavar="T", help=words)
    words = "of everything random (default: 0)"
    parser.add_argument("--seed", type=int, default=0, help=words)


def add_start(parser: argparse.ArgumentParser) -> None:
    """Add --start."""
    words = "the rule that texts begin with (default: start)"
    parser.add_argument("--start", default="start", metavar="RULE", help=words)


def whole_number(text: str) -> int:
    """A whole number from 1 to a thousand million; the type of an option."""
    if not text.isdecimal() or not 0 < len(text) <= 10 or not 0 < int(text) <= 10**9:
        raise argparse.ArgumentTypeError(f"{text[:20]!a} is not a number from 1 to 10^9")
    return int(text)


def number_from_zero(text: str) -> int:
    """A whole number from 0 to a thousand million; the type of an option."""
    return 0 if text == "0" else whole_number(text)


def seconds(text: str) -> float:
    """The value of an option that takes a time in seconds, more than 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def add_prompt(parser: argparse.ArgumentParser) -> None:
    """Add what a prompt shows."""
    words = """show the model at most N worked examples: those in the knowledge's file, or else made by the environment
        (default: 2 to 5, by environment and strategy)"""
    parser.add_argument("--demonstrations", type=number_from_zero, metavar="N", help=words)
    words = "leave the actions, their rules and conditions out of the prompt; the masks stay the same"
    parser.add_argument("--no-knowledge-prompt", action="store_true", help=words)


LEVEL_WORDS = """form: those that exist, in an order the rules allow; state: only those whose conditions hold now;
    goal-sound: only those after which the goal can still be reached; goal: only those that a heuristic finds useful"""
"""What `--level` says of each level."""


def add_level(parser: argparse.ArgumentParser, **more: Any) -> None:
    """Add --level."""
    words = f"which actions the masks admit. {LEVEL_WORDS} (default: state)"
    parser.add_argument("--level", choices=LEVELS, **{"default": STATE, "help": words, **more})


def read_text(name: str, what: str) -> str:
    """The text of a file, or of standard input for "-"; DataError if it isn't `what`, such as "a text file"."""
    try:
        if name == "-" and sys.stdin is None:
            raise OSError("standard input is closed")
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"can't read {name}: {error}", f"give {what}") from None


def add_bindings(parser: argparse.ArgumentParser) -> None:
    """Add --bind."""
    words = "the values of a slot, as a JSON list, such as RECEPTACLE='[\"desk 1\"]'; repeatable"
    parser.add_argument("--bind", action="append", default=[], metavar="SLOT=JSON", help=words)


def bindings(arguments: argparse.Namespace) -> dict[str, Any]:
    """Slot -> values, as given by --bind; KnowledgeError if one is not SLOT=JSON."""
    return dict(map(_binding, arguments.bind))


def _binding(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    try:
        parsed = json.loads(value) if equals else None
    except (ValueError, RecursionError):  # no JSON, or digits or brackets without end
        parsed = None
    if not isinstance(parsed, (list, dict, str)):
        shown = f"{text[:80]}..." if len(text) > 80 else text
        raise KnowledgeError(f"--bind {shown!r} is not SLOT=JSON", "for example --bind 'RECEPTACLE=[\"desk 1\"]'")
    return name, parsed


def add_tuning(parser: argparse.ArgumentParser) -> None:
    """Add --preset, and an option for each field of `Tuning` that overrides it."""
    group = parser.add_argument_group("tuning", "Options that are not given are taken from --preset.")

    def add(name: str, words: str, **more: Any) -> None:
        default = getattr(Tuning(), name)
        shown = " ".join(default) if isinstance(default, tuple) else default
        more.setdefault("type", type(default))
        group.add_argument(f"--{name.replace('_', '-')}", default=None, help=f"{words} (knowagent: {shown})", **more)

    words = """the papers' settings, knowagent (LoRA on two kinds of layers) or lumos (all weights, 128 texts a step);
        small, for a few million weights; chooser, for --pddl (default: knowagent; with --pddl, chooser)"""
    group.add_argument("--preset", choices=tuple(PRESETS), help=words)
    add("rank", "width of the adapter's matrices: a wider one can learn more and takes more memory", metavar="N")
    add("alpha", "scale of the adapter: its output is multiplied by alpha / rank", metavar="N")
    add("dropout", "share of the adapter's inputs set to 0 at random, against overfitting", metavar="P")
    add("targets", f"layers that get an adapter, or {EVERY_LINEAR[0]}", type=str, nargs="+", metavar="NAME")
    add("rate", "peak learning rate; tuning all weights needs a lower one than an adapter, e.g. 2e-5", metavar="R")
    add("schedule", "how the learning rate falls after its warm-up", choices=tuple(SCHEDULES))
    add("warmup", "share of the steps in which the learning rate rises", metavar="P")
    add("decay", "weight decay", metavar="P")
    add("epochs", "how often every text is read; 0.5 reads half of them", metavar="N")
    add("batch", "texts that a process reads at once; limited by memory", metavar="N")
    add("accumulation", "batches per update: a step is batch x accumulation x processes", metavar="N")
    add("max_length", "longest text in tokens; longer texts are left out and counted, none is cut", metavar="N")
    add("precision", "arithmetic; auto: bf16 on a GPU that has it, fp32 on a CPU", choices=PRECISIONS)
    flag: dict[str, Any] = {"type": None, "action": argparse.BooleanOptionalAction}
    add("packing", "put several texts in one row, without attention between them: faster if lengths differ", **flag)
    add("whole", "tune all weights and save a whole model instead of an adapter", **flag)
    add("checkpointing", "gradient checkpointing: much less memory, about a third more time", **flag)
    add("seed", "of the order of the texts, the adapter's first weights, and dropout", metavar="N")


def tuning_of(arguments: argparse.Namespace) -> Tuning:
    """The preset, with the options that were given; TrainingError if a value is out of its range."""
    overrides = {field.name: getattr(arguments, field.name) for field in fields(Tuning)}
    if overrides["targets"] is not None:
        overrides["targets"] = tuple(overrides["targets"])
    return replace(
        PRESETS[arguments.preset or "knowagent"],
        **{name: value for name, value in overrides.items() if value is not None},
    )


def own_device() -> str | None:
    """The GPU of this process if Accelerate started several processes, else None."""
    process = os.environ.get("LOCAL_RANK")
    if process is None:
        return None
    import torch

    return f"cuda:{process}" if torch.cuda.is_available() else None
