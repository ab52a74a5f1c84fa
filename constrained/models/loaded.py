"""A language model with its tokenizer, and the facts about it that generation needs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from constrained.automaton import Vocabulary
from constrained.decoding.forward import TokenSequence, supports_ragged
from constrained.decoding.loop import NextLogits, PrefixForward
from constrained.decoding.prefix_cache import PrefixCache
from constrained.decoding.vocabulary import eos_ids, logits_width, model_vocabulary
from constrained.errors import ConstrainedError, ModelError, install_hint


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
        True for the small model that ships with the project, and models tuned from it: it reads a household memory.
    """

    model: Any
    tokenizer: Any
    name: str
    device: torch.device
    is_embedded: bool = False

    @property
    def runs(self) -> Any:
        """The module that generation calls: `model`, or one that computes the same."""
        return self.model

    @property
    def splits(self) -> Any:
        """What generation splits texts with: `tokenizer`, or one of another library that gives the same ids."""
        return self.tokenizer

    def encode(self, text: str) -> list[int]:
        """The ids of a prompt, with the special tokens that the tokenizer adds."""
        return list(self.tokenizer.encode(text, verbose=False))

    @cached_property
    def eos_token_ids(self) -> tuple[int, ...]:
        """Every id that ends a text, ascending: the tokenizer's and the generation configuration's.

        Chat models often list more ids in ``generation_config.json`` (end of turn) than the tokenizer names.
        """
        sources = (getattr(self.model, "generation_config", None), self.model.config, self.tokenizer)
        ids = eos_ids(*(getattr(source, "eos_token_id", None) for source in sources))
        return tuple(sorted(token for token in ids if 0 <= token < self.logits_width))

    @cached_property
    def logits_width(self) -> int:
        """Number of columns of the logits; often more than the tokenizer has tokens (padding for the hardware)."""
        return logits_width(self.runs)

    @cached_property
    def parameters(self) -> int:
        """Number of weights."""
        return sum(weight.numel() for weight in self.runs.parameters())

    @cached_property
    def max_context(self) -> int | None:
        """Most tokens of prompt and continuation together; None if the model sets no limit."""
        return getattr(self.runs.config.get_text_config(), "max_position_embeddings", None)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer's tokens as bytes, as wide as the logits; built on first use."""
        return model_vocabulary(self.splits, self.logits_width, self.eos_token_ids)

    def weights_digest(self) -> str:
        """A digest of the weights as they are now."""
        hashed, weights = hashlib.sha256(), self.model.state_dict()
        if any(value.is_meta for value in weights.values()):  # offloaded
            from accelerate.utils.modeling import get_state_dict_offloaded_model

            weights = get_state_dict_offloaded_model(self.model)
        for name, value in sorted(weights.items()):
            value = value.full_tensor() if hasattr(value, "full_tensor") else value  # tensor parallel
            hashed.update(name.encode() + value.detach().float().cpu().numpy().tobytes())
        return hashed.hexdigest()[:16]

    def side_by_side(self, tokens: int, most: int) -> int:
        """How many texts of up to `tokens` tokens are read side by side, at most `most`."""
        return most if supports_ragged(self.runs) else 1

    def reader(self, texts: Sequence[TokenSequence], cache: PrefixCache | None) -> NextLogits:
        """A reader of some texts. `cache` is for a single text; without it, others may join if possible."""
        if (len(texts) == 1 and cache is not None) or not supports_ragged(self.runs):
            return PrefixForward(self.runs, cache or PrefixCache())
        from constrained.decoding.ragged_forward import BLOCK, RaggedForward  # imports transformers

        return RaggedForward(self.runs, texts, max(len(text.ids) for text in texts) + BLOCK)


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Hide the progress bars and warnings of transformers, which address its direct callers."""
    from transformers.utils import logging

    bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


@contextmanager
def readable_failure(what: str, hint: str) -> Iterator[None]:
    """Turn whatever a third party's loader raises into one ModelError; hide its progress bars and warnings.

    The formats behind it (safetensors, GGUF, pickles, JSON) raise anything from OSError to struct.error, so every
    exception but our own is caught; the original error is kept as the cause.
    """
    try:
        with quiet_transformers():
            yield
    except ConstrainedError:
        raise
    except Exception as error:
        text = str(error).strip().splitlines()
        raise ModelError(f"{what}: {text[0] if text else type(error).__name__}", _remedy(error) or hint) from error


def _remedy(error: Exception) -> str | None:
    """What to do about a known kind of error."""
    text = str(error)
    if isinstance(error, ImportError):
        return install_hint("gguf") if "gguf" in text.lower() else "install the package it names"
    if type(error).__name__ == "SafetensorError":
        return "the weights file is cut short or damaged: download or save it again"
    if "JSON" in text or isinstance(error, json.JSONDecodeError):
        return "config.json or tokenizer.json is cut short or damaged: download or save it again"
    if "connect" in text or "not a valid model identifier" in text or "offline" in text.lower():
        return "check the name and the network, or give the path of a folder on this machine"
    return None
