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
