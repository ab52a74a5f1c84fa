"""Settings of a tuning: KnowAgent's by default, Lumos's beside them."""

from __future__ import annotations

from dataclasses import dataclass

from constrained.errors import TrainingError

SCHEDULES = {"cosine": "cosine", "linear": "linear", "constant": "constant_with_warmup"}
"""How the learning rate falls after its warm-up: our name, and transformers'."""

PRECISIONS = ("auto", "fp32", "bf16", "fp16")

EVERY_LINEAR = ("all-linear",)
"""Targets: every linear layer but the one that makes the logits."""


@dataclass(frozen=True)
class Tuning:
    """How to tune; the defaults are KnowAgent's (appendix A, and its released scripts).

    Attributes
    ----------
    rank, alpha, dropout
        Of the LoRA adapter.
    targets : tuple of str
        Names of the layers that get one, such as ``q_proj``; `EVERY_LINEAR`: all.
    rate : float
        Peak learning rate of AdamW.
    schedule : str
        How it falls: a key of `SCHEDULES`.
    warmup : float
        Share of the steps in which it rises.
    decay : float
        Weight decay.
    epochs : float
        Times that every text is read.
    batch : int
        Texts that a process reads at once; rows of texts, with `packing`.
    accumulation : int
        Batches before the weights are updated.
    max_length : int
        Tokens of a text; longer ones are left out. With `packing`, also of a row.
    precision : str
        Of the multiplications, one of `PRECISIONS`. "auto": bf16 on a GPU that has it, else fp16 there; fp32 on a CPU.
    packing : bool
        Fill rows with several texts; none sees another.
    whole : bool
        Tune all weights, and no adapter.
    checkpointing : bool
        Keep few activations and make the others again: less memory, about a third more time.
    seed : int
        Of the order of the texts, the adapter's first weights, and dropout.

    Raises
    ------
    TrainingError
        A value is out of its range.
    """

    rank: int = 8
    alpha: int = 16
    dropout: float = 0.05
    targets: tuple[str, ...] = ("q_proj", "v_proj")
    rate: float = 1e-4
    schedule: str = "cosine"
    warmup: float = 0.03
    decay: float = 0.0
    epochs: float = 5.0
    batch: int = 4
    accumulation: int = 1
    max_length: int = 4096
    precision: str = "auto"
    packing: bool = False
    whole: bool = False
    checkpointing: bool = False
    seed: int = 0

    def __post_init__(self):
        for name in ("rank", "alpha", "batch", "accumulation", "max_length"):
            self._check(name, getattr(self, name) >= 1, "1 or more")
        for name in ("rate", "epochs"):
            self._check(name, getattr(self, name) > 0, "more than 0")
        for name in ("dropout", "warmup"):
            self._check(name, 0 <= getattr(self, name) < 1, "0 or more, and less than 1")
        self._check("decay", self.decay >= 0, "0 or more")
        self._check("seed", 0 <= self.seed < 2**32, "0 or more, and less than 2**32")
        self._check("schedule", self.schedule in SCHEDULES, f"one of {', '.join(SCHEDULES)}")
        self._check("precision", self.precision in PRECISIONS, f"one of {', '.join(PRECISIONS)}")
        self._check("targets", self.targets and not isinstance(self.targets, str), "a tuple of names of layers")

    def _check(self, name: str, holds: object, range_: str) -> None:
        if not holds:
            raise TrainingError(f"{name} is {getattr(self, name)!r}", f"give {range_}")


PRESETS = {
    "knowagent": Tuning(),
    "lumos": Tuning(whole=True, epochs=2.0, rate=2e-5, schedule="linear", batch=4, accumulation=32, max_length=1024),
    "small": Tuning(rank=16, alpha=32, targets=EVERY_LINEAR, rate=3e-4, epochs=2.0, batch=16),
}
"""The papers' own settings; Lumos's (its appendix C) tune all weights, 128 texts at a time. And ours for a model of a few
million weights, in which an adapter of the papers' size would hardly be felt."""
