"""The real tokenizers of the shared data, and Tekken as mistral-common brings it; absent ones skip the test."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest

from constrained import Vocabulary
from tests.data import shared

NAMES = ("gpt2", "phi3-mini", "qwen2.5", "tekken")


@lru_cache
def tokenizer(name: str):
    if name == "tekken":
        mistral_common = pytest.importorskip("mistral_common")
        files = sorted((Path(mistral_common.__file__).parent / "data").glob("tekken_*.json"))
        if not files:
            pytest.skip("mistral_common brings no tekken_*.json")
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer

        return Tekkenizer.from_file(str(files[-1]))
    transformers = pytest.importorskip("transformers")
    return transformers.AutoTokenizer.from_pretrained(shared(f"tokenizers/{name}"))


@lru_cache
def vocabulary(name: str) -> Vocabulary:
    return Vocabulary.from_tokenizer(tokenizer(name))
