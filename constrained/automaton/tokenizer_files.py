"""Tokenizers by name, read without loading a model."""

from __future__ import annotations

import json
from pathlib import Path

from constrained.automaton.tokenizers import read_tokenizer
from constrained.automaton.vocabulary import Vocabulary
from constrained.errors import VocabularyError

EMBEDDED = "embedded"
_FOLDER = Path(__file__).parent.parent / "models" / "embedded"


def open_tokenizer(name: str):
    """A tokenizer.json or the folder it is in, a tekken.json, "embedded", or a name of the Hugging Face Hub.

    Raises
    ------
    VocabularyError
        There is none, or it can't be read.
    """
    path = _FOLDER if name == EMBEDDED else Path(name).expanduser()
    path = path / "tokenizer.json" if path.is_dir() else path
    try:
        if path.is_file() and path.name.startswith("tekken"):
            from mistral_common.tokens.tokenizers.tekken import Tekkenizer

            return Tekkenizer.from_file(str(path))
        if path.is_file():
            from tokenizers import Tokenizer

            return Tokenizer.from_file(str(path))
        if path.suffix == ".json" or path.parent.is_dir() and path.parent != Path("."):
            raise FileNotFoundError(f"no file {path}")
        from transformers import AutoTokenizer  # the Hub, or what was fetched from it before

        return AutoTokenizer.from_pretrained(name)
    except Exception as error:  # the libraries below raise whatever they like
        text = (str(error).strip().splitlines() or [type(error).__name__])[0]
        hint = "give a tokenizer.json, the folder it is in, a tekken.json, or a name of the Hugging Face Hub"
        raise VocabularyError(f"can't read the tokenizer {name}: {text}", hint=hint) from None


def open_vocabulary(name: str) -> Vocabulary:
    """The tokens of :func:`open_tokenizer`; where no token is known to end a text, one more id stands for it."""
    tokenizer = open_tokenizer(name)
    tokens, eos, special = read_tokenizer(tokenizer)
    eos = eos or _end_ids(tokenizer, _FOLDER if name == EMBEDDED else Path(name).expanduser())
    return Vocabulary(tokens, eos or [len(tokens)], special)


def _end_ids(tokenizer, path: Path) -> list[int]:
    """The end of text that tokenizer_config.json beside a tokenizer.json names."""
    file = (path if path.is_dir() else path.parent) / "tokenizer_config.json"
    try:
        named = json.loads(file.read_text(encoding="utf-8")).get("eos_token")
        named = named.get("content") if isinstance(named, dict) else named
        found = tokenizer.token_to_id(named) if named else None
    except (OSError, ValueError, AttributeError, TypeError):
        return []
    return [] if found is None else [found]
