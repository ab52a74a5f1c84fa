"""A byte-level BPE tokenizer for models that are trained from scratch.

Its embedding is small, and every byte is an entry, so any text can be written.
"""

from __future__ import annotations

from collections.abc import Iterable

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

END = "<|end|>"


def train_tokenizer(
    texts: Iterable[str], entries: int = 1024, *, digits: bool = False, context: int = 1024, split: str = ""
) -> PreTrainedTokenizerFast:
    """Train a byte-pair encoding (Sennrich et al., 2016) over bytes.

    Parameters
    ----------
    texts : iterable of str
        Samples of what the model reads and writes.
    entries : int
        Size of the vocabulary, including the 256 bytes and the end token.
    digits : bool
        Make each digit a token, so that unseen numbers can be copied.
    context : int
        The model's context, in tokens.
    split : str
        Regular expression of the pieces that no token reaches across; default: GPT-2's.

    Returns
    -------
    PreTrainedTokenizerFast
        End-of-sequence and padding are both ``<|end|>``, entry 0.
    """
    tokenizer = Tokenizer(models.BPE())
    # GPT-2's split separates numbers from words, so that "desk 1" and "desk 10" differ in one token.
    steps = [pre_tokenizers.Split(Regex(split), "isolated")] if split else []
    steps += [pre_tokenizers.Digits(True)] if digits else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [*steps, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=not split)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=entries,
        min_frequency=2,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        pad_token=END,
        clean_up_tokenization_spaces=False,
        model_max_length=context,
    )
