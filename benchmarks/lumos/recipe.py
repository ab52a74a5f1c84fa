"""The ways of training in Lumos's Table 2b, and the sizes of a run."""

from __future__ import annotations

from dataclasses import dataclass

from constrained.training.settings import Tuning


@dataclass(frozen=True)
class Variant:
    """A way of training (Lumos, section 4.3).

    `asked` is the way its models are asked, a key of `WAYS`; `modules` are roles with a model of their own (none: one
    model for all); `paper` is its row of `papers.LUMOS_TABLE_2B`.
    """

    name: str
    asked: str
    modules: tuple[str, ...] = ()
    paper: str = ""


WAYS = {
    "answer": ("cot", "act"),
    "reasoning": ("cot", "cot"),
    "onetime": ("lumos_onetime", "react"),
    "iterative": ("lumos", "react"),
}
"""Ways of asking: strategy and step format. A chain of thought in the form of a bare action is only its answer."""

_MODULES = ("planner", "grounder")
PAPER_MODEL = "Llama-2-7b"

VARIANTS = (
    Variant("vanilla training", "answer", (), "vanilla training"),
    Variant("chain-of-thought training", "reasoning", (), "chain-of-thought training"),
    Variant("one model for all steps", "onetime", (), "one model for all steps"),
    Variant("Lumos-O", "onetime", _MODULES, "Lumos-O, maths"),
    Variant("Lumos-I", "iterative", _MODULES, "Lumos-I, maths"),
)


@dataclass(frozen=True)
class Recipe:
    """Sizes of a run: together with the data they determine its figures.

    Attributes
    ----------
    hidden, layers, heads, inner, entries, context : int
        Of every model.
    copies : int
        Augmented copies of each of SVAMP's training problems, with other numbers.
    characters, calculations : int
        Limits on GSM8K's problems: a small model learns nothing from a long one.
    rows : int or None
        Only the first training problems of each data set; None: all.
    base_epochs, epochs : float
        Of the base model, and of each model trained from it.
    base_rate, rate : float
        Their peak learning rates.
    batch : int
        Texts in a step.
    seed : int
    """

    hidden: int = 128
    layers: int = 3
    heads: int = 4
    inner: int = 384
    entries: int = 2048
    context: int = 256
    copies: int = 2
    characters: int = 130
    calculations: int = 2
    rows: int | None = None
    base_epochs: float = 1.0
    epochs: float = 1.0
    base_rate: float = 2e-3
    rate: float = 1e-3
    batch: int = 8
    seed: int = 0

    def tuning(self, base: bool) -> Tuning:
        """The settings for the base model, or for one trained from it."""
        return Tuning(
            whole=True,
            epochs=self.base_epochs if base else self.epochs,
            rate=self.base_rate if base else self.rate,
            batch=self.batch,
            accumulation=1,
            max_length=self.context,
            decay=0.1 if base else 0.0,
            seed=self.seed,
        )


QUICK = Recipe(
    hidden=32, layers=1, heads=2, inner=64, entries=1024, copies=4, rows=8, base_epochs=2.0, epochs=6.0, base_rate=1e-2,
    rate=1e-2,
)  # fmt: skip
"""To try it in a minute; its figures mean nothing."""
