"""The ways of training that Lumos compares (Tables 1, 2b, 2c and 4), and the sizes of a run."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.papers import LUMOS_TABLE_1B, LUMOS_TABLE_1C, LUMOS_TABLE_2B, LUMOS_TABLE_2C, LUMOS_TABLE_4
from constrained.training.settings import Tuning

DOMAINS = {"maths": ("svamp", "gsm8k"), "questions": ("strategyqa", "hotpotqa")}
"""Domain -> what its agents play. SVAMP and HotpotQA are only tested on."""

SUITES = {"svamp": "SVAMP", "gsm8k": "GSM8K", "strategyqa": "StrategyQA", "hotpotqa": "HotpotQA"}
"""Our name of a data set, and the papers'."""

PAPER_MODEL = "Llama-2-7b"

PUBLISHED = {
    (method, column): figure
    for table in (LUMOS_TABLE_1B, LUMOS_TABLE_2B, LUMOS_TABLE_1C, LUMOS_TABLE_2C, LUMOS_TABLE_4)
    for (method, model), figures in table.items()
    if model == PAPER_MODEL
    for column, figure in figures.items()
}
"""Method and data set, as the paper names them -> accuracy in percent."""


@dataclass(frozen=True)
class Variant:
    """A way of training (Lumos, sections 4.3 and 4.4, appendix E).

    `asked` is the way its models are asked, a key of `WAYS`; `domains` are what it is trained on and plays; `modules`
    are roles with a model of their own (none: one model for all); `paper` is the method's name in `PUBLISHED`.
    """

    name: str
    asked: str
    domains: tuple[str, ...]
    modules: tuple[str, ...] = ()
    paper: str = ""

    @property
    def suites(self) -> tuple[str, ...]:
        """What it plays."""
        return tuple(suite for domain in self.domains for suite in DOMAINS[domain])


WAYS = {
    "answer": ("cot", "act"),
    "reasoning": ("cot", "cot"),
    "onetime": ("lumos_onetime", "react"),
    "iterative": ("lumos", "react"),
    "low": ("lumos", "react"),
    "rewoo": ("rewoo", "react"),
}
"""Ways of asking: strategy and step format. A chain of thought in the form of a bare action is only its answer; "low"
plans a subgoal for each action."""

LONGEST_TURN = 3
"""Most actions of a subgoal in StrategyQA's annotations: so many times more subgoals a low-level plan may have."""

_MODULES = ("planner", "grounder")

VARIANTS = (
    *(
        variant
        for domain, short in (("maths", "maths"), ("questions", "QA"))
        for variant in (
            Variant(f"vanilla training, {short}", "answer", (domain,), (), "vanilla training"),
            Variant(f"chain-of-thought training, {short}", "reasoning", (domain,), (), "chain-of-thought training"),
            Variant(f"one model for all steps, {short}", "onetime", (domain,), (), "one model for all steps"),
            Variant(f"Lumos-O, {short}", "onetime", (domain,), _MODULES, f"Lumos-O, {short}"),
            Variant(f"Lumos-I, {short}", "iterative", (domain,), _MODULES, f"Lumos-I, {short}"),
        )
    ),
    Variant("Lumos-I, both domains", "iterative", ("maths", "questions"), _MODULES, "Lumos-I"),
    Variant("Lumos-I, QA, low-level subgoals", "low", ("questions",), _MODULES, "Lumos-I, QA, low-level subgoals"),
    Variant("ReWOO's plans, QA", "rewoo", ("questions",), ("planner", "policy")),
)
"""The rows. The published figures of ReWOO's own data are read off a chart ("about 57"), and left out."""

ANSWERER = "answerer"
"""The model of all of Lumos's variants for the action QA, trained on the annotations' answers: GPT-3.5 in the paper."""


@dataclass(frozen=True)
class Recipe:
    """Sizes of a run: together with the data they determine its figures.

    Attributes
    ----------
    hidden, layers, heads, inner, entries, context : int
        Of every model.
    characters, calculations : int
        Limits on GSM8K's problems: a small model learns nothing from a long one.
    rows, questions : int
        Only so many training problems of GSM8K, the first ones, and questions of StrategyQA.
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
    context: int = 512
    characters: int = 160
    calculations: int = 3
    rows: int = 2000
    questions: int = 150
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
    hidden=32, layers=1, heads=2, inner=64, entries=1024, rows=60, questions=6, base_epochs=1.0, epochs=2.0,
    base_rate=1e-2, rate=1e-2,
)  # fmt: skip
"""To try it in a few minutes; its figures mean nothing."""
