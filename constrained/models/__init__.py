"""Language models: load one with its tokenizer and the vocabulary of its masks, or several adapters of one."""

from constrained.decoding.choosers import Choice, Chooser
from constrained.decoding.remote import RemoteModel
from constrained.models.load import load, load_adapters, load_roles
from constrained.models.loaded import LoadedModel

__all__ = ["Choice", "Chooser", "LoadedModel", "RemoteModel", "load", "load_adapters", "load_roles"]
