"""Language models: load one, with its tokenizer and the vocabulary its masks are made for."""

from constrained.models.load import LoadedModel, load

__all__ = ["LoadedModel", "load"]
