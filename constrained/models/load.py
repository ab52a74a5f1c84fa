"""Load a causal language model by name, path or object, or the small one that ships with the project.

Whatever form it comes in, the result is one `LoadedModel`: weights on a device, tokenizer, the ids that end a
text, the width of the logits, and (built on first use) the vocabulary that token masks are made for.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils import logging

from constrained.automaton import Vocabulary
from constrained.errors import ModelError

EMBEDDED = Path(__file__).parent / "embedded"


@dataclass(eq=False)
class LoadedModel:
    """A causal language model ready to generate.

    Attributes
    ----------
    model : torch.nn.Module
        A Hugging Face causal language model in evaluation mode.
    tokenizer : transformers.PreTrainedTokenizerBase
    name : str
        What it was loaded from; ``"embedded"`` for the model of this project.
    device : torch.device
        Where the input ids go.
    is_embedded : bool
        True for the small model that ships with the project, and its kin: it reads a household memory.
    """

    model: Any
    tokenizer: Any
    name: str
    device: torch.device
    is_embedded: bool = False

    @cached_property
    def eos_token_ids(self) -> tuple[int, ...]:
        """Every id that ends a text, ascending: the tokenizer's and the generation configuration's.

        Chat models often list more ids in ``generation_config.json`` (end of turn) than the tokenizer names.
        """
        ids: set[int] = set()
        for source in (getattr(self.model, "generation_config", None), self.model.config, self.tokenizer):
            found = getattr(source, "eos_token_id", None)
            ids.update([found] if isinstance(found, int) else found or [])
        return tuple(sorted(token for token in ids if 0 <= token < self.logits_width))

    @cached_property
    def logits_width(self) -> int:
        """Number of columns of the logits; often more than the tokenizer has tokens (padding for the hardware)."""
        head = self.model.get_output_embeddings()
        weight = getattr(head, "weight", None)
        # A quantised head packs its weight: only a two-dimensional float one tells the width.
        if weight is not None and weight.dim() == 2 and weight.is_floating_point():
            return weight.shape[0]
        return self.model.config.get_text_config().vocab_size

    @cached_property
    def parameters(self) -> int:
        """Number of weights."""
        return sum(weight.numel() for weight in self.model.parameters())

    @cached_property
    def max_context(self) -> int | None:
        """Tokens of prompt and continuation together that the model was made for; None if it sets no limit."""
        return getattr(self.model.config.get_text_config(), "max_position_embeddings", None)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer's tokens as bytes, as wide as the logits; built on first use."""
        width = self.logits_width
        found = Vocabulary.from_tokenizer(self.tokenizer, eos_token_ids=self.eos_token_ids, size=width)
        if found.size == width:
            return found
        # Tokens added to the tokenizer without resizing the model: it can never write them.
        special = [token for token in found.special_ids if token < width]
        return Vocabulary(found.tokens[:width], self.eos_token_ids, special, size=width)


def load(
    model: Any = None,
    *,
    tokenizer: Any = None,
    device: str | torch.device | None = None,
    dtype: str | torch.dtype | None = None,
) -> LoadedModel:
    """Load a causal language model and its tokenizer.

    Parameters
    ----------
    model : optional
        None: the small model that ships with the project. A path: a folder as ``save_pretrained`` writes it, a
        ``.gguf`` file (needs the extra ``gguf``), or the folder of an adapter of the small model. Another string: a name
        on the Hugging Face Hub. A pair ``(model, tokenizer)`` or a model with ``tokenizer=``: used as it is, in
        evaluation mode. A `LoadedModel`: returned, moved if `device` or `dtype` ask for it.
    tokenizer : optional
        A tokenizer object, or the path or name of one that isn't stored with the model.
    device : optional
        Default: ``cuda`` if there is one, else ``cpu``; for a model object, where it is already.
    dtype : optional
        Type of the weights, e.g. ``"float32"``, ``"bfloat16"``; default: the type they are stored in.

    Raises
    ------
    ModelError
        If the model or tokenizer is missing, cut short, incomplete or unknown, the device isn't there, or
        no token ends a text.
    """
    dtype = _dtype(dtype)
    if isinstance(model, LoadedModel):
        loaded = model
    elif isinstance(model, (str, os.PathLike)):
        loaded = _from_source(model, tokenizer, dtype)
    elif model is None:
        loaded = _embedded(dtype)
    else:
        loaded = _from_objects(model, tokenizer)
    if device is None and not isinstance(model, (str, os.PathLike, type(None))):
        device = loaded.device
    _place(loaded, device, dtype)
    if not loaded.eos_token_ids:
        raise ModelError(
            f"{loaded.name}: neither the tokenizer nor the generation configuration names a token that ends a text",
            "set tokenizer.eos_token, or eos_token_id in generation_config.json",
        )
    return loaded


def _embedded(dtype: torch.dtype | None) -> LoadedModel:
    if not (EMBEDDED / "config.json").is_file():
        raise ModelError(
            f"the embedded model is not in this installation: no {EMBEDDED / 'config.json'}",
            "install the project again, or name another model",
        )
    loaded = _from_source(EMBEDDED, None, dtype)
    loaded.name, loaded.is_embedded = "embedded", True
    return loaded


def _from_objects(model: Any, tokenizer: Any) -> LoadedModel:
    if isinstance(model, tuple) and len(model) == 2:
        model, paired = model
        tokenizer = tokenizer or paired
    if not hasattr(model, "get_output_embeddings"):
        raise ModelError(
            f"a {type(model).__name__} is no causal language model",
            "give a name, a path, a Hugging Face model with its tokenizer, or nothing for the embedded model",
        )
    name = getattr(model.config, "_name_or_path", "") or type(model).__name__
    if isinstance(tokenizer, (str, os.PathLike)):
        tokenizer = _tokenizer(str(tokenizer), {})
    if tokenizer is None:
        raise ModelError(f"{name}: a model object came without its tokenizer", "pass tokenizer=, or (model, tokenizer)")
    return LoadedModel(model.eval(), tokenizer, name, next(model.parameters()).device, _reads_memory(model))


def _from_source(source: str | os.PathLike, tokenizer: Any, dtype: torch.dtype | None) -> LoadedModel:
    """Read model and tokenizer from a folder, a ``.gguf`` file or the Hub."""
    name = os.fspath(source)
    if not name.strip():
        raise ModelError(
            "the name of the model is empty", "name a folder, a .gguf file or a model of the Hugging Face Hub"
        )
    folder, options = name, {}
    path = Path(name).expanduser()
    if path.suffix == ".gguf":
        if not path.is_file():
            raise ModelError(f"no such file: {path}", "check the path of the .gguf file")
        folder, options = str(path.parent), {"gguf_file": path.name}
    elif path.is_dir():
        folder = str(path)
        if tokenizer is None and _adapts_embedded(path):
            from constrained.models.adapters import load_adapters  # which is made of `load`

            return load_adapters(_embedded(dtype), {path.name: path})[path.name]
        if not (path / "config.json").is_file() and not (path / "adapter_config.json").is_file():
            raise ModelError(f"no config.json in {path}", "give the folder that save_pretrained wrote")
    elif path.exists():
        raise ModelError(f"{path} is neither a folder nor a .gguf file", "give the folder that holds config.json")
    elif looks_like_path(name):
        raise ModelError(f"no such folder: {path}", "check the path, or give a Hugging Face name such as org/model")
    if tokenizer is None or isinstance(tokenizer, (str, os.PathLike)):
        own = tokenizer is None
        tokenizer = _tokenizer(folder if own else os.fspath(tokenizer), options if own else {})
    options |= {"dtype": dtype or "auto", "output_loading_info": True, "ignore_mismatched_sizes": True}
    hint = "give a causal language model as save_pretrained writes it, or a .gguf file"
    with readable_failure(f"the model {name} can't be loaded", hint):
        model, report = AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=False, **options)
    # Transformers only warns, and fills what is missing or of another shape with random numbers.
    for trouble in ("missing", "mismatched"):
        weights = sorted(str(key[0] if isinstance(key, tuple) else key) for key in report[f"{trouble}_keys"])
        if weights:
            raise ModelError(
                f"the model {name} doesn't fit its config.json: {len(weights)} {trouble} weights, e.g. {weights[0]}",
                "download or save it again: configuration and weights must belong together",
            )
    return LoadedModel(model.eval(), tokenizer, name, model.device, _reads_memory(model))


def _adapts_embedded(folder: Path) -> bool:
    """Whether it holds an adapter that was tuned from the embedded model, and no model of its own."""
    try:
        adapter = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    tuned_from = adapter.get("base_model_name_or_path") if isinstance(adapter, dict) else None
    return tuned_from == "embedded" and not (folder / "config.json").is_file()


def _reads_memory(model: Any) -> bool:
    """Whether it was trained as the embedded model is (see `tools.embedded_model.train`)."""
    return getattr(model.config, "household_memory", False) is True


def _tokenizer(source: str, options: dict[str, str]) -> Any:
    name = os.path.join(source, options.get("gguf_file", "")) if options else source
    hint = "it needs tokenizer.json (save_pretrained of the tokenizer writes it), or pass tokenizer="
    with readable_failure(f"the tokenizer of {name} can't be loaded", hint):
        return AutoTokenizer.from_pretrained(source, trust_remote_code=False, **options)


def looks_like_path(name: str) -> bool:
    """Hub names are ``model`` or ``org/model``; anything with more structure can only be a path."""
    return name.startswith((".", "~", os.sep)) or name.count("/") > 1 or "\\" in name


def _dtype(dtype: str | torch.dtype | None) -> torch.dtype | None:
    if dtype is None or isinstance(dtype, torch.dtype):
        return dtype
    found = getattr(torch, dtype, None)
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise ModelError(f"no such type of weights: {dtype!r}", "use float32, float16 or bfloat16")
    return found


def _place(loaded: LoadedModel, device: str | torch.device | None, dtype: torch.dtype | None) -> None:
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    hint = "use device='cpu', or a device that torch lists and that has room for the weights"
    with readable_failure(f"{loaded.name} can't be put on device {device!r}", hint):
        device = torch.device(device)
        if device != loaded.device or dtype not in (None, loaded.model.dtype):
            loaded.model.to(device=device, dtype=dtype)
        loaded.device = next(loaded.model.parameters()).device


@contextmanager
def readable_failure(what: str, hint: str):
    """Turn what a third party's loader raises into one ModelError; keep its bars and reports to itself.

    The formats behind it (safetensors, GGUF, pickles, JSON) raise anything from OSError to struct.error, so the
    net is wide; the original error stays attached as the cause.
    """
    bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    except Exception as error:
        text = str(error).strip().splitlines()
        raise ModelError(f"{what}: {text[0] if text else type(error).__name__}", _remedy(error) or hint) from error
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def _remedy(error: Exception) -> str | None:
    """What to do about an error that says by itself what it is."""
    text = str(error)
    if isinstance(error, ImportError):
        return "pip install 'constrained[gguf]'" if "gguf" in text.lower() else "install the package it names"
    if type(error).__name__ == "SafetensorError":
        return "the weights file is cut short or damaged: download or save it again"
    if "JSON" in text or isinstance(error, json.JSONDecodeError):
        return "config.json or tokenizer.json is cut short or damaged: download or save it again"
    if "connect" in text or "not a valid model identifier" in text or "offline" in text.lower():
        return "check the name and the network, or give the path of a folder on this machine"
    return None
