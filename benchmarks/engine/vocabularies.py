"""The four vocabularies: GPT-2, Phi-3-mini and Qwen2.5 from the shared data, Tekken from mistral-common."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from constrained.automaton import Vocabulary
from constrained.automaton.tokenizers import read_tokenizer
from constrained.decoding.jump_forward import tokenize_after
from constrained.environments.data import data_file
from constrained.errors import DataError

BY_SIZE = ("phi3-mini", "gpt2", "tekken", "qwen2.5")
"""Names, the smallest vocabulary first."""


@dataclass(frozen=True)
class Tokens:
    """A vocabulary as plain data, the same for every engine.

    Attributes
    ----------
    name : str
    tokens : list of bytes
        Token id -> its bytes; empty for special ids, including EOS.
    eos : list of int
    special : list of int
    """

    name: str
    tokens: list[bytes]
    eos: list[int]
    special: list[int]

    @property
    def size(self) -> int:
        """Ids run from 0 to ``size - 1``."""
        return len(self.tokens)

    @property
    def words(self) -> int:
        """int32 words of one mask."""
        return (self.size + 31) // 32

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary as this library's masks take it."""
        return Vocabulary(self.tokens, self.eos, special_ids=self.special)


@lru_cache
def tokenizer(name: str):
    """The tokenizer; raises DataError if its files, or the package that reads them, are missing."""
    if name != "tekken":
        folder = data_file(f"tokenizers/{name}/tokenizer.json").parent
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(folder)
    try:
        import mistral_common
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer
    except ImportError as error:
        raise DataError(f"tekken needs {error.name}", hint="pip install mistral-common") from None
    files = sorted((Path(mistral_common.__file__).parent / "data").glob("tekken_*.json"))
    if not files:
        raise DataError("mistral-common brings no tekken_*.json", hint="install the version in constraints.txt")
    return Tekkenizer.from_file(str(files[-1]))


@lru_cache
def load(name: str) -> Tokens:
    """A vocabulary by name; special tokens have no bytes."""
    tokens, eos, special = read_tokenizer(tokenizer(name))
    silent = set(special) | set(eos)
    return Tokens(name, [b"" if i in silent else t for i, t in enumerate(tokens)], sorted(eos), sorted(silent))


def spell(tokens: Tokens, text: str) -> list[int]:
    """Token ids that spell exactly `text`, as the tokenizer splits it at the beginning of a line.

    Raises DataError if the tokenizer can't, because it normalises, say.
    """
    ids = tokenize_after(tokenizer(tokens.name), tokens.tokens, text.encode(), ("", "\n"))
    if text and not ids:
        raise DataError(f"{tokens.name} does not spell {text[:40]!r} as it stands")
    return ids
