"""Check what a model's name stands for before torch is imported, which takes seconds."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from constrained.decoding.choosers import CHOOSERS
from constrained.errors import ModelError, nearest
from constrained.files import looks_like_path
from constrained.gguf_file import PACKAGED, gguf_path

EMBEDDED = Path(__file__).parent / "embedded"

AUTO = "auto"
"""The device that stands for all there are."""

LLAMA_CPP, TRANSFORMERS = "llama.cpp:", "transformers:"
"""Prefixes of a path or name: which of them runs the model."""

CHOOSING = (*CHOOSERS, "chooser", "search", "scienceworld")
"""The names of choosers, which write no text."""

ADAPTER = "give the folder that save_pretrained of a PEFT model wrote, and the base it was tuned from"
"""What to do about a folder that holds no adapter."""

HUB_SECONDS = 10.0
"""Longest wait for the Hub to say whether it has a model."""


def check_source(source: str | os.PathLike[str]) -> None:
    """Raise ModelError if it is clear without reading weights that no model can be loaded from a name or path."""
    engine, name = engine_and_name(source)
    path = Path(name).expanduser()
    if is_gguf(name) or engine == LLAMA_CPP:
        gguf_path(name)
        if engine == LLAMA_CPP and find_spec("llama_cpp") is None:
            raise ModelError("llama.cpp isn't installed", "pip install llama-cpp-python")
    elif name in CHOOSING or path.suffix == ".safetensors":
        raise ModelError(f"{name!r} chooses among actions and writes no text", "name a language model here")
    elif name == "embedded":
        if not (EMBEDDED / "config.json").is_file():
            raise ModelError(
                f"the embedded model is not in this installation: no {EMBEDDED / 'config.json'}",
                "install the project again, or name another model",
            )
    elif not name.strip():
        raise ModelError(
            "the name of the model is empty", "name a folder, a .gguf file or a model of the Hugging Face Hub"
        )
    # What is a path is checked here, because transformers would look for it on the Hub and report a failed download.
    elif path.is_dir():
        if not (path / "config.json").is_file() and not (path / "adapter_config.json").is_file():
            raise ModelError(f"no config.json in {path}", "give the folder that save_pretrained wrote")
    elif path.exists():
        raise ModelError(f"{path} is neither a folder nor a .gguf file", "give the folder that holds config.json")
    elif looks_like_path(name):
        raise ModelError(f"no such folder: {path}", "check the path, or give a Hugging Face name such as org/model")
    else:
        _check_hub(name)


def engine_and_name(source: str | os.PathLike[str]) -> tuple[str, str]:
    """(The engine that a name or path begins with, or ""; the rest of it)."""
    name = os.fspath(source)
    engine = next((one for one in (LLAMA_CPP, TRANSFORMERS) if name.startswith(one)), "")
    return engine, name.removeprefix(engine)


def is_gguf(source: Any) -> bool:
    """Whether it names a ``.gguf`` file, and no engine."""
    named = isinstance(source, (str, os.PathLike))
    return named and (source in PACKAGED or not engine_and_name(source)[0] and Path(source).suffix == ".gguf")


def to_adapt(source: Any) -> Any:
    """The name for training or adapters, which llama.cpp doesn't support: a ``.gguf`` file is read by transformers."""
    return f"{TRANSFORMERS}{os.fspath(source)}" if is_gguf(source) else source


def _check_hub(name: str) -> None:
    """Raise ModelError if the Hub has no model of this name, or can't be asked; transformers tries for a minute."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url, try_to_load_from_cache  # takes a quarter of a second
    from huggingface_hub.errors import EntryNotFoundError

    try:
        if any(isinstance(try_to_load_from_cache(name, file), str) for file in ("config.json", "adapter_config.json")):
            return
        get_hf_file_metadata(hf_hub_url(name, "config.json"), timeout=HUB_SECONDS)
    except EntryNotFoundError:  # the repository exists without this file: it may hold an adapter or another format
        return
    except Exception as error:  # impossible name, missing or private model, no network: exceptions of many types
        lines = [line for line in str(error).strip().splitlines() if line and "Client Error" not in line]
        reason = (lines or [type(error).__name__])[0]
        advice = "check the name and the network, or give the path of a folder"
        raise ModelError(
            f"the model {name} is not on this machine, and the Hub doesn't give it: {reason}",
            advice if "/" in name else nearest(name, ("embedded", *PACKAGED, *CHOOSING), advice),
        ) from None


def check_adapter(source: str | os.PathLike[str], what: str) -> None:
    """Raise ModelError if no adapter can be there; `what` names it."""
    folder = Path(source).expanduser()
    if folder.is_dir() and not (folder / "adapter_config.json").is_file():
        raise ModelError(f"{what} can't be loaded: no adapter_config.json in it", ADAPTER)
    if not folder.is_dir() and looks_like_path(os.fspath(source)):
        raise ModelError(f"{what}: no such folder", "check the path, or give a Hugging Face name such as org/adapter")


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter, and no whole model."""
    return not (folder / "config.json").is_file() and (folder / "adapter_config.json").is_file()


def tuned_from(folder: Path) -> str | None:
    """The embedded model or the ``.gguf`` file that an adapter in a folder was tuned from; None if it is another."""
    if not is_adapter(folder):
        return None
    try:
        adapter = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    base = adapter.get("base_model_name_or_path") if isinstance(adapter, dict) else None
    ours = isinstance(base, str) and (base == "embedded" or base in PACKAGED or base.endswith(".gguf"))
    return base if ours else None
