"""The vocabulary of a host's model: its tokenizer's tokens, as wide as its logits, with every id that ends a text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from constrained.automaton import Vocabulary


def of_tokenizer(tokenizer: Any, width: int | None = None, eos: Iterable[Any] = ()) -> Vocabulary:
    """The vocabulary of a Hugging Face tokenizer under a model.

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerBase
    width : int, optional
        Columns of the model's logits. Tokens beyond were added to the tokenizer without resizing the model, which can
        never write them.
    eos : iterable
        Further ids that end a text, as configurations hold them: a number, several, or None.

    Raises
    ------
    VocabularyError
        Tokens that can't be read as bytes, or no id that ends a text.
    """
    ends: set[int] = set()
    for found in (getattr(tokenizer, "eos_token_id", None), *eos):
        ends.update([found] if isinstance(found, int) else found or [])
    vocabulary = Vocabulary.from_tokenizer(
        tokenizer, eos_token_ids=sorted(i for i in ends if width is None or i < width), size=width
    )
    if width is None or vocabulary.size == width:
        return vocabulary
    special = [i for i in vocabulary.special_ids if i < width]
    return Vocabulary(vocabulary.tokens[:width], vocabulary.eos_token_ids, special, size=width)
