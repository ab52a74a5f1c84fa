"""The models: a base trained from scratch on the problems, and from it one per module of each way of training."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from transformers import AutoTokenizer

from benchmarks.lumos.dataset import Dataset, load_dataset, make_dataset, tokenizer_texts, training_texts, work_out
from benchmarks.lumos.recipe import ANSWERER, VARIANTS, WAYS, Recipe, Variant
from benchmarks.lumos.suites import STRATEGIES
from constrained.files import to_json, write_whole
from constrained.models import LoadedModel, load
from constrained.training.encoding import Span, TrainingText
from constrained.training.tuning import Tuned, tune
from tools.embedded_model.pretraining import Recipe as Sizes
from tools.embedded_model.pretraining import make_model
from tools.embedded_model.tokenizer import train_tokenizer


def run_folder(recipe: Recipe, output: Path) -> Path:
    """The folder of a run: another recipe has another folder."""
    return output / hashlib.sha256(to_json(asdict(recipe)).encode()).hexdigest()[:10]


def prepare(recipe: Recipe, folder: Path) -> tuple[LoadedModel, Dataset]:
    """The untrained model and the data set, which is read if it was made before."""
    kept, path = load_dataset(folder / "texts.json"), folder / "tokenizer"
    if kept is not None:
        return _untrained(recipe, AutoTokenizer.from_pretrained(path)), kept
    short, base, left_out = work_out(recipe)
    tokenizer = train_tokenizer(tokenizer_texts(short, base), recipe.entries, digits=True, context=recipe.context)
    model = _untrained(recipe, tokenizer)
    dataset = make_dataset(short, base, left_out, model)
    tokenizer.save_pretrained(path)
    write_whole(folder / "texts.json", to_json(asdict(dataset)))
    return model, dataset


def _untrained(recipe: Recipe, tokenizer) -> LoadedModel:
    sizes = Sizes(recipe.hidden, recipe.layers, recipe.heads, recipe.inner, recipe.entries, seed=recipe.seed)
    return load((make_model(sizes, tokenizer, recipe.context), tokenizer))


def train_all(
    recipe: Recipe, folder: Path, model: LoadedModel, dataset: Dataset, variants: Sequence[Variant] = VARIANTS
) -> Iterator[tuple[str, Tuned]]:
    """Train the base model, then all others from it; yields the name and result of each, trained now or before."""
    texts = [TrainingText((Span(text, True),)) for text in dataset.base]
    done = tune(model, texts, recipe.tuning(base=True), folder / "base")
    yield "base", done
    base = load(done.folder)
    for variant in variants:
        for name, roles in modules(variant).items():
            texts = training_texts(dataset, variant.asked, variant.domains, roles)
            yield name, tune(base, texts, recipe.tuning(base=False), folder / name)
    if any(map(needs_answerer, variants)):
        texts = training_texts(dataset, "iterative", ["questions"], [ANSWERER])
        yield ANSWERER, tune(base, texts, recipe.tuning(base=False), folder / ANSWERER)


def needs_answerer(variant: Variant) -> bool:
    """Whether a variant's agents have the action QA."""
    return WAYS[variant.asked][0] in STRATEGIES and "questions" in variant.domains


def modules(variant: Variant) -> dict[str, tuple[str, ...]]:
    """Names of a variant's models -> the roles that each learns."""
    name = re.sub(r"[^a-z0-9]+", "-", variant.name.lower())
    every = variant.modules or (("planner", "grounder") if WAYS[variant.asked][0] in STRATEGIES else ("policy",))
    return {f"{name}-{role}": (role,) for role in variant.modules} or {name: every}


def models_by_role(variant: Variant, folder: Path) -> dict[str, LoadedModel]:
    """A variant's trained models by role; the action QA of Lumos's agents is answered by one that they share."""
    loaded = {name: load(folder / name) for name in modules(variant)}
    if needs_answerer(variant):
        loaded[ANSWERER] = load(folder / ANSWERER)
    for name, model in loaded.items():
        model.name = name
    roles = {role: loaded[name] for name, served in modules(variant).items() for role in served}
    roles |= {ANSWERER: loaded[ANSWERER]} if ANSWERER in loaded else {}
    return {"policy": next(iter(loaded.values())), **roles}
