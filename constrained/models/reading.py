"""Read language models and tokenizers with transformers, and put them on a device. Imports torch and transformers."""

from __future__ import annotations

import os
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from constrained.automaton.tokenizers import gguf_tokenizer
from constrained.decoding.forward import devices
from constrained.decoding.vocabulary import eos_ids
from constrained.errors import ConstrainedWarning, ModelError
from constrained.gguf_file import GgufFile, gguf_path, read_gguf
from constrained.models.gguf import read_model, read_plain
from constrained.models.llama_cpp import LlamaCppModel
from constrained.models.loaded import LoadedModel, readable_failure
from constrained.models.plain_model import PlainModel
from constrained.models.source import AUTO, EMBEDDED, check_source, is_gguf, tuned_from


def embedded(dtype: torch.dtype | None) -> LoadedModel:
    """The model that ships with the project."""
    loaded = from_source(EMBEDDED, None, dtype)
    loaded.name, loaded.is_embedded = "embedded", True
    return loaded


def from_objects(model: Any, tokenizer: Any) -> LoadedModel:
    """A model object, with its tokenizer or as a pair with it."""
    if isinstance(model, tuple) and len(model) == 2:
        model, paired = model
        tokenizer = tokenizer or paired
    if not hasattr(model, "get_output_embeddings"):
        raise ModelError(
            f"a {type(model).__name__} is not a causal language model",
            "give a name, a path, a Hugging Face model with its tokenizer, or nothing for the embedded model",
        )
    name = getattr(model.config, "_name_or_path", "") or type(model).__name__
    if isinstance(tokenizer, (str, os.PathLike)):
        tokenizer = _tokenizer(str(tokenizer))
    if tokenizer is None:
        raise ModelError(f"{name}: a model object came without its tokenizer", "pass tokenizer=, or (model, tokenizer)")
    return LoadedModel(model.eval(), tokenizer, name, devices(model)[0], _reads_memory(model))


def from_source(
    source: str | os.PathLike[str],
    tokenizer: Any,
    dtype: torch.dtype | None,
    spread: bool = False,
    plain: bool = False,
) -> LoadedModel:
    """Read model and tokenizer from a folder, a ``.gguf`` file or the Hub; `check_source` has looked at it.

    `plain`: transformers' own model may be read later, when it is asked for; until then a `PlainLlama` runs.
    """
    name = os.fspath(source)
    folder, gguf = name, None
    path = Path(name).expanduser()
    if is_gguf(name):
        gguf = read_gguf(gguf_path(name))
        folder = str(gguf.path.parent)
    elif path.is_dir():
        folder = str(path)
        # The Hub knows neither these bases, nor the files of this machine.
        if tokenizer is None and (base := tuned_from(path)):
            from constrained.models.adapters import load_adapter  # peft takes a second to import

            check_source(base)
            own = embedded(dtype) if base == "embedded" else from_source(base, None, dtype)
            return load_adapter(own, path.name, str(path))
    if tokenizer is None:  # loaded before the model: it fails sooner than gigabytes of weights
        tokenizer = _tokenizer(folder, gguf)
    elif isinstance(tokenizer, (str, os.PathLike)):
        tokenizer = _tokenizer(os.fspath(tokenizer))
    options = {"device_map": AUTO} if spread else {}
    hint = "give a causal language model as save_pretrained writes it, or a .gguf file"
    with readable_failure(f"the model {name} can't be loaded", hint):
        if gguf and plain and (llama := read_plain(gguf)):
            ends = eos_ids(llama.config.eos_token_id, tokenizer.eos_token_id)
            known = tuple(sorted(token for token in ends if 0 <= token < llama.config.vocab_size))
            return PlainModel(llama, tokenizer, name, known, lambda: from_source(source, tokenizer, dtype))
        pair: Any = gguf and read_model(gguf, dtype, **options)
        pair = pair or AutoModelForCausalLM.from_pretrained(
            folder,
            trust_remote_code=False,
            dtype=dtype or "auto",
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **options | ({"gguf_file": gguf.path.name} if gguf else {}),
        )
        model, report = pair
    # Transformers only warns, and fills what is missing or of another shape with random numbers.
    for trouble in ("missing", "mismatched"):
        weights = sorted(str(key[0] if isinstance(key, tuple) else key) for key in report[f"{trouble}_keys"])
        if weights:
            raise ModelError(
                f"the model {name} doesn't fit its config.json: {len(weights)} {trouble} weights, e.g. {weights[0]}",
                "download or save it again: configuration and weights must belong together",
            )
    return LoadedModel(model.eval(), tokenizer, name, devices(model)[0], _reads_memory(model))


def in_llama_cpp(name: str, tokenizer: Any, *, asked: bool) -> LlamaCppModel | None:
    """A ``.gguf`` file in llama.cpp; None if llama.cpp can't run it and wasn't `asked` for."""
    if not asked and find_spec("llama_cpp") is None:
        return None
    gguf = read_gguf(gguf_path(name))
    if isinstance(tokenizer, (str, os.PathLike)):
        tokenizer = _tokenizer(os.fspath(tokenizer))
    tokenizer = tokenizer or _tokenizer(name, gguf)
    try:
        return LlamaCppModel(gguf.path, tokenizer, name=name)
    except ModelError as error:
        if asked:
            raise
        warnings.warn(f"transformers runs {name}, as {error.message}; {error.hint}", ConstrainedWarning, stacklevel=3)
        return None


def _reads_memory(model: Any) -> bool:
    """Whether a model was trained to read a memory, as the embedded model is (`tools.embedded_model.train`)."""
    return getattr(model.config, "household_memory", False) is True


def _tokenizer(source: str, gguf: GgufFile | None = None) -> Any:
    """The tokenizer in a folder or on the Hub, or inside a ``.gguf`` file."""
    hint = "it needs tokenizer.json (save_pretrained of the tokenizer writes it), or pass tokenizer="
    with readable_failure(f"the tokenizer of {gguf.path if gguf else source} can't be loaded", hint):
        return gguf_tokenizer(gguf) if gguf else AutoTokenizer.from_pretrained(source, trust_remote_code=False)


def weights_type(dtype: str | torch.dtype | None) -> torch.dtype | None:
    """The type of weights with this name."""
    if dtype is None or isinstance(dtype, torch.dtype):
        return dtype
    found = getattr(torch, dtype, None)
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise ModelError(f"no such type of weights: {dtype!r}", "use float32, float16 or bfloat16")
    return found


def move(loaded: LoadedModel, device: str | torch.device | None, dtype: torch.dtype | None) -> None:
    """Put the weights on a device, in a type; in place."""
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    hint = "use device='cpu', or a device that torch lists and that has room for the weights"
    with readable_failure(f"{loaded.name} can't be put on device {device!r}", hint):
        device = torch.device(device)
        if device.type == "meta":
            raise ValueError("on it are shapes without numbers")
        if device != loaded.device or dtype not in (None, loaded.runs.dtype):
            loaded.model.to(device=device, dtype=dtype)
        loaded.device = devices(loaded.runs)[0]
