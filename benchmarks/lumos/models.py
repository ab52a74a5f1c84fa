"""The models: one trained from nothing on the problems, and from it one for each module of each way of training."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from transformers import AutoTokenizer

from benchmarks.lumos.recipe import VARIANTS, Recipe, Variant
from benchmarks.lumos.texts import Texts, make_texts, save, saved, to_cut, to_learn, work_out
from constrained.files import to_json
from constrained.models import LoadedModel, load
from constrained.training.encoding import Span, TrainingText
from constrained.training.tuning import Tuned, tune
from tools.embedded_model.pretraining import Recipe as Sizes
from tools.embedded_model.pretraining import make_model
from tools.embedded_model.tokenizer import train_tokenizer


def folder_of(recipe: Recipe, output: Path) -> Path:
    """Where a run's models and games are kept: another recipe has another folder."""
    return output / hashlib.sha256(to_json(asdict(recipe)).encode()).hexdigest()[:10]


def prepared(recipe: Recipe, folder: Path) -> tuple[LoadedModel, Texts]:
    """The model before any training, and all texts; read where they were made before."""
    kept, path = saved(folder / "texts.json"), folder / "tokenizer"
    if kept is not None:
        return _untrained(recipe, AutoTokenizer.from_pretrained(path)), kept
    short, base, left_out = work_out(recipe)
    tokenizer = train_tokenizer(to_cut(short, base), recipe.entries, digits=True, context=recipe.context)
    model = _untrained(recipe, tokenizer)
    texts = make_texts(short, base, left_out, model)
    tokenizer.save_pretrained(path)
    save(texts, folder / "texts.json")
    return model, texts


def _untrained(recipe: Recipe, tokenizer) -> LoadedModel:
    sizes = Sizes(recipe.hidden, recipe.layers, recipe.heads, recipe.inner, recipe.entries, seed=recipe.seed)
    return load((make_model(sizes, tokenizer, recipe.context), tokenizer))


def trained(recipe: Recipe, folder: Path, model: LoadedModel, texts: Texts) -> Iterator[tuple[str, Tuned]]:
    """Train the base model, then all others from it; yields each one's name as it is done, or was done before."""
    told = [TrainingText((Span(text, True),)) for text in texts.base]
    done = tune(model, told, recipe.tuning(base=True), folder / "base")
    yield "base", done
    base = load(done.folder)
    for variant in VARIANTS:
        for name, roles in modules(variant).items():
            learned = to_learn(texts, variant.asked, roles)
            yield name, tune(base, learned, recipe.tuning(base=False), folder / name)


def modules(variant: Variant) -> dict[str, tuple[str, ...]]:
    """The models of a variant by name, each with the roles that it learns; none named: all."""
    name = variant.name.replace(",", "").replace(" ", "-").lower()
    return {f"{name}-{role}": (role,) for role in variant.modules} or {name: ()}


def of_roles(variant: Variant, folder: Path) -> dict[str, LoadedModel]:
    """A variant's trained models by the role that they play."""
    loaded = {name: load(folder / name) for name in modules(variant)}
    for name, model in loaded.items():
        model.name = name
    roles = {role: loaded[name] for name, served in modules(variant).items() for role in served}
    return {"policy": next(iter(loaded.values())), **roles}
