"""The real tokenizers of the shared data, and Tekken as mistral-common brings it; absent ones skip the test."""

from __future__ import annotations

from functools import lru_cache

import pytest

from benchmarks.engine import vocabularies
from constrained import Vocabulary
from tests.data import shared

NAMES = ("gpt2", "phi3-mini", "qwen2.5", "tekken")


def tokenizer(name: str):
    if name == "tekken":
        pytest.importorskip("mistral_common")
    else:
        pytest.importorskip("transformers")
        shared(f"tokenizers/{name}")
    return vocabularies.tokenizer(name)


@lru_cache
def vocabulary(name: str) -> Vocabulary:
    return Vocabulary.from_tokenizer(tokenizer(name))


def make(words=("hello", " world"), decoder=True):
    """A byte-level tokenizer of all single bytes and `words`."""
    tokenizers = pytest.importorskip("tokenizers")
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    spelled = [w.replace(" ", "\u0120") for w in words]
    found = tokenizers.Tokenizer(tokenizers.models.BPE({p: i for i, p in enumerate([*alphabet, *spelled])}, []))
    found.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = tokenizers.decoders.ByteLevel()
    found.add_special_tokens(["<eos>"])
    return found


EOS = 258
