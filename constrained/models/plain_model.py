"""Models that run without transformers, whose own objects are made when something else asks for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from tokenizers import Tokenizer

from constrained.decoding.plain_llama import PlainLlama
from constrained.models.loaded import LoadedModel


class PlainModel(LoadedModel):
    """A Llama on the CPU that generates without transformers, which takes two seconds to import.

    Once `model` or `tokenizer` was asked for (to train it, to adapt it, on a GPU, in other hosts), it is an ordinary
    `LoadedModel`: what is changed in them then holds for all that is generated.

    Parameters
    ----------
    llama : PlainLlama
    splits : tokenizers.Tokenizer
        Or, where transformers' own was read anyway, that.
    name : str
    eos_token_ids : tuple of int
    read : callable
        Reads the model with transformers.
    is_embedded : bool
    """

    def __init__(
        self,
        llama: PlainLlama,
        splits: Any,
        name: str,
        eos_token_ids: tuple[int, ...],
        read: Callable[[], LoadedModel],
        is_embedded: bool = False,
    ):
        self.name, self.device, self.is_embedded = name, torch.device("cpu"), is_embedded
        self._llama, self._splits, self._read = llama, splits, read
        self.eos_token_ids = eos_token_ids
        if not isinstance(splits, Tokenizer):
            self.tokenizer = splits

    def __repr__(self) -> str:
        return f"PlainModel({self.name!r})"

    @cached_property
    def _whole(self) -> LoadedModel:
        return self._read()

    @cached_property
    def model(self) -> Any:
        """Transformers' own model, in float32 on the CPU."""
        return self._whole.model

    @cached_property
    def tokenizer(self) -> Any:
        """Transformers' own tokenizer."""
        return self._whole.tokenizer

    @property
    def runs(self) -> Any:
        return self.__dict__.get("model", self._llama)

    @property
    def splits(self) -> Any:
        return self.__dict__.get("tokenizer", self._splits)

    def encode(self, text: str) -> list[int]:
        return super().encode(text) if "tokenizer" in self.__dict__ else self._splits.encode(text).ids
