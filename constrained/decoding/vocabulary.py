"""The vocabulary of a model: its tokenizer's tokens as bytes, as wide as its logits."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

from constrained.automaton import Vocabulary
from constrained.errors import VocabularyError

MAX_PIECE = 1 << 16
"""Bytes of the longest token read from llama.cpp."""


def eos_ids(*settings: int | Iterable[int] | None) -> list[int]:
    """The distinct end-of-text ids of some settings (one id, several or None each), in that order."""
    result: list[int] = []
    for value in settings:
        result += [value] if isinstance(value, int) else value or []
    return list(dict.fromkeys(result))


def logits_width(model: Any) -> int:
    """The number of columns of a transformers model's logits; often more than the tokenizer has tokens."""
    weight = getattr(model.get_output_embeddings(), "weight", None)
    # A quantized head packs its weight: only a two-dimensional float matrix tells the width.
    if weight is not None and weight.dim() == 2 and weight.is_floating_point():
        return weight.shape[0]
    return model.config.get_text_config().vocab_size


def model_vocabulary(tokenizer: Any, width: int | None = None, *eos: int | Iterable[int] | None) -> Vocabulary:
    """Vocabulary of a Hugging Face tokenizer under a model.

    Parameters
    ----------
    width : int, optional
        Columns of the model's logits. Tokens beyond were added to the tokenizer without resizing the model, which
        can never write them.
    *eos
        End-of-text ids beside the tokenizer's, as `eos_ids` takes them.

    Raises
    ------
    VocabularyError
        Tokens that can't be read as bytes, or no end-of-text id.
    """
    ends = eos_ids(getattr(tokenizer, "eos_token_id", None), *eos)
    ends = sorted(i for i in ends if width is None or i < width)
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos_token_ids=ends, size=width)
    if width is None or vocabulary.size == width:
        return vocabulary
    special = [i for i in vocabulary.special_ids if i < width]
    return Vocabulary(vocabulary.tokens[:width], vocabulary.eos_token_ids, special, size=width)


def llama_cpp_vocabulary(model: Any) -> Vocabulary:
    """llama.cpp's own pieces, which are bytes; `model` is its ``llama_model_p``."""
    import llama_cpp

    vocabulary = llama_cpp.llama_model_get_vocab(model)
    not_content = (
        llama_cpp.LLAMA_TOKEN_ATTR_CONTROL | llama_cpp.LLAMA_TOKEN_ATTR_UNKNOWN | llama_cpp.LLAMA_TOKEN_ATTR_UNUSED
    )
    eos: list[int] = []
    special: list[int] = []
    tokens = [b""] * llama_cpp.llama_vocab_n_tokens(vocabulary)
    buffer = (ctypes.c_char * MAX_PIECE)()
    for token in range(len(tokens)):
        if llama_cpp.llama_vocab_is_eog(vocabulary, token):
            eos.append(token)
        elif llama_cpp.llama_vocab_get_attr(vocabulary, token) & not_content:
            special.append(token)
        length = llama_cpp.llama_token_to_piece(vocabulary, token, buffer, MAX_PIECE, 0, True)
        if length < 0:
            raise VocabularyError(
                f"token {token} has more than {MAX_PIECE} bytes",
                "check the model file",
            )
        tokens[token] = buffer.raw[:length]
    return Vocabulary(tokens, eos, special)
