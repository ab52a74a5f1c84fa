"""A whole language model in a few milliseconds: random weights, a byte-level BPE trained on a line of text."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from constrained.models import LoadedModel, load

CORPUS = [
    "go to drawer 1",
    "go to desk 10",
    "take mug 1 from drawer 1",
    "put mug 1 in/on desk 10",
    "Thought: é ü 中",
] * 3


def tiny_tokenizer(tokens: int = 300, corpus: Sequence[str] = CORPUS) -> PreTrainedTokenizerFast:
    """Byte-level BPE: every single byte, a few merges learned from `corpus`, and the specials ``<s>`` and ``</s>``."""
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=tokens,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bpe.train_from_iterator(corpus, trainer)
    return PreTrainedTokenizerFast(
        model_input_names=["input_ids", "attention_mask"], tokenizer_object=bpe, bos_token="<s>", eos_token="</s>"
    )


def tiny_llama(
    width: int, *, seed: int = 0, context: int = 256, eos: int | list[int] = 1, layers: int = 2
) -> LlamaForCausalLM:
    """A few layers of random weights, spread wide enough that its choices are its own and not ties."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=width,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=eos,
        tie_word_embeddings=False,
    )
    return LlamaForCausalLM(config).eval()


def tiny(*, seed: int = 0, context: int = 256, padding: int = 0) -> LoadedModel:
    """Model and tokenizer together; `padding` widens the logits beyond the tokenizer."""
    tokenizer = tiny_tokenizer()
    return load((tiny_llama(len(tokenizer) + padding, seed=seed, context=context), tokenizer))
