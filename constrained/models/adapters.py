"""Adapters of one base model, which share its weights.

Lumos's planner and grounder may be two LoRA adapters of one base (section 3.3: each is fine-tuned by itself).
Each adapter gets modules of its own around the same weight tensors, so nothing is switched between calls: the models
can be used in turn, from several threads, each with its own cache.
"""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from peft import PeftConfig, PeftModel, get_peft_model, set_peft_model_state_dict
from peft.tuners.tuners_utils import BaseTunerLayer
from peft.utils import load_peft_weights

from constrained.errors import ModelError
from constrained.models.llama_cpp import LlamaCppModel
from constrained.models.loaded import LoadedModel, readable_failure
from constrained.models.source import ADAPTER, check_adapter


def require_bare(loaded: LoadedModel) -> LoadedModel:
    """The model itself; raises ModelError if it has an adapter already, or llama.cpp runs it."""
    if isinstance(loaded, LlamaCppModel):
        raise ModelError(
            f"{loaded.name} runs in llama.cpp, which can't train or adapt it", f"load transformers:{loaded.name}"
        )
    if any(isinstance(module, BaseTunerLayer) for module in loaded.model.modules()):
        raise ModelError(
            f"{loaded.name} has an adapter already", "give the bare model, or merge its adapter: merge_and_unload()"
        )
    return loaded


def read_adapter(source: str | os.PathLike, what: str) -> tuple[PeftConfig, dict[str, Any]]:
    """Read an adapter's configuration and weights from a folder or the Hugging Face Hub.

    Raises ModelError: it is missing, damaged, or not of a kind that is put into a model's layers.
    """
    check_adapter(source, what)
    folder = Path(source).expanduser()
    source = str(folder) if folder.is_dir() else os.fspath(source)
    with readable_failure(f"{what} can't be loaded", ADAPTER):
        config = PeftConfig.from_pretrained(source)
        weights = load_peft_weights(source, device="cpu")
    if config.is_prompt_learning:
        raise ModelError(
            f"{what} is {config.peft_type.value}: it isn't put into layers", "use LoRA or a relative of it"
        )
    return config, weights


def add_adapter(
    base: LoadedModel, config: PeftConfig, weights: dict[str, Any] | None, what: str, *, to_tune: bool = False
) -> PeftModel:
    """Put an adapter into the base's layers: new modules around the same weight tensors.

    PEFT marks the base's weights as frozen; they are shared with the given model (see `keep_requires_grad`).

    Parameters
    ----------
    weights : dict or None
        As `read_adapter` returns them; None: initialized as the configuration says.
    what : str
        Names the adapter in errors.
    to_tune : bool
        Keep the adapter's weights in float32, whatever the base's type.

    Raises
    ------
    ModelError
        The adapter doesn't fit.
    """
    # With the weights in deepcopy's memo, modules are copied and tensors are shared.
    shared = [*base.model.parameters(), *base.model.buffers()]
    model = copy.deepcopy(base.model, {id(weight): weight for weight in shared})
    # PEFT warns where this differs from the model's name; whether the weights fit is checked below.
    config.base_model_name_or_path, tuned_from = None, config.base_model_name_or_path
    hint = f"it was tuned from {tuned_from or 'another model'}"
    with readable_failure(f"{what} doesn't fit {base.name}", hint), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of names that PEFT still uses, and transformers won't
        wrapped = get_peft_model(model, config, autocast_adapter_dtype=to_tune)
        config.base_model_name_or_path = (
            None  # else PEFT writes the model's name, and looks it up on the Hub when saving
        )
        if weights is None:
            return wrapped
        fitted: Any = set_peft_model_state_dict(wrapped, weights)
    strange = sorted(fitted.unexpected_keys) or sorted(key for key in fitted.missing_keys if ".default" in key)
    if strange:
        trouble = "holds weights that the model has no place for" if fitted.unexpected_keys else "lacks weights"
        raise ModelError(f"{what} doesn't fit {base.name}: it {trouble}, e.g. {strange[0]}", hint)
    return wrapped


@contextmanager
def keep_requires_grad(base: LoadedModel) -> Iterator[None]:
    """Restore each weight's ``requires_grad`` at the end."""
    flags = [(weight, weight.requires_grad) for weight in base.model.parameters()]
    try:
        yield
    finally:
        for weight, flag in flags:
            weight.requires_grad_(flag)


def load_adapter(base: LoadedModel, name: str, source: str) -> LoadedModel:
    """One adapter of `base` as a model of its own; see `constrained.models.load_adapters`."""
    what = f"adapter {name!r} ({source})"
    config, weights = read_adapter(source, what)
    with keep_requires_grad(base):
        wrapped = add_adapter(base, config, weights, what)
    # The model below PEFT's wrapper, its layers adapted: its class and attributes are the usual ones.
    adapted = LoadedModel(wrapped.get_base_model().eval(), base.tokenizer, f"{base.name}+{name}", base.device)
    adapted.is_embedded = base.is_embedded
    adapted.vocabulary = base.vocabulary
    return adapted
