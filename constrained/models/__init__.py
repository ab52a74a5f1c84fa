"""Language models: load one with its tokenizer and the vocabulary of its masks, or several adapters of one."""

import importlib
from typing import TYPE_CHECKING, Any

from constrained.decoding.choosers import Choice, Chooser
from constrained.decoding.remote import RemoteModel
from constrained.models.load import load, load_adapters, load_roles

if TYPE_CHECKING:
    from constrained.models.loaded import LoadedModel

__all__ = ["Choice", "Chooser", "LoadedModel", "RemoteModel", "load", "load_adapters", "load_roles"]


def __getattr__(name: str) -> Any:
    """`LoadedModel`, whose module imports torch: the others don't, until a model on this machine is loaded."""
    if name != "LoadedModel":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.loaded").LoadedModel
