"""Settings of fine-tuning, with presets: KnowAgent's (the default), Lumos's and our own."""

from __future__ import annotations

from dataclasses import dataclass

from constrained.errors import TrainingError

SCHEDULES = {"cosine": "cosine", "linear": "linear", "constant": "constant_with_warmup"}
"""Schedules of the learning rate after its warm-up: our name -> transformers' name."""

PRECISIONS = ("auto", "fp32", "bf16", "fp16")

EVERY_LINEAR = ("all-linear",)
"""Targets: every linear layer except the output layer."""


@dataclass(frozen=True)
class Tuning:
    """How to fine-tune; the defaults are KnowAgent's (appendix A, and its released scripts).

    An update reads 16 texts, as in those scripts (2 on each of 8 devices), but as 4 batches of 4 on one device.

    Attributes
    ----------
    rank, alpha, dropout
        The parameters of the LoRA adapter.
    targets : tuple of str
        Names of the layers that get an adapter, such as ``q_proj``; `EVERY_LINEAR`: all.
    rate : float
        Peak learning rate of AdamW.
    schedule : str
        How the learning rate falls: a key of `SCHEDULES`.
    warmup : float
        Share of the steps in which it rises.
    decay : float
        Weight decay.
    epochs : float
        Passes over the texts; may be a fraction.
    batch : int
        Texts in a batch of one process; rows of texts, with `packing`.
    accumulation : int
        Batches between two updates of the weights.
    max_length : int
        Tokens in a text; longer texts are left out. With `packing`, also tokens in a row.
    precision : str
        One of `PRECISIONS`. "auto": bf16 on a GPU that supports it, else fp16 there; fp32 on a CPU.
    packing : bool
        Put several texts in a row; none attends to another.
    whole : bool
        Tune all weights instead of an adapter.
    checkpointing : bool
        Gradient checkpointing: recompute activations. Less memory, about a third more time.
    seed : int
        For the order of the texts, the adapter's initial weights and dropout.

    Raises
    ------
    TrainingError
        A value is out of range.
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
    accumulation: int = 4
    max_length: int = 4096
    precision: str = "auto"
    packing: bool = False
    whole: bool = False
    checkpointing: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
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
        self._check("targets", self.targets and not isinstance(self.targets, str), "a tuple of layer names")

    def _check(self, name: str, valid: object, accepted: str) -> None:
        if not valid:
            raise TrainingError(f"{name} is {getattr(self, name)!r}", f"give {accepted}")


PRESETS = {
    "knowagent": Tuning(),
    "lumos": Tuning(whole=True, epochs=2.0, rate=2e-5, schedule="linear", batch=4, accumulation=32, max_length=1024),
    "small": Tuning(rank=16, alpha=32, targets=EVERY_LINEAR, rate=3e-4, epochs=2.0, batch=16, accumulation=1),
    "chooser": Tuning(rate=1.5e-3, decay=1e-4, epochs=6.0, batch=32, accumulation=1),
}
"""The papers' settings (Lumos's appendix C: all weights, 128 texts a step), and ours. "small" is for a model of a few
million weights, on which an adapter of the papers' size would have little effect; "chooser" for a graph network that
chooses planning actions, where a batch counts states."""
