"""Tokenizers opened by name, and their tokens as bytes.

Byte-level BPE writes each byte as a printable character (GPT-2's table); SentencePiece
writes a space as U+2581 and bytes without a piece as ``<0x0A>``; Tekken holds bytes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from constrained.errors import ConstrainedError, VocabularyError
from constrained.files import looks_like_path
from constrained.gguf_file import PACKAGED, SPECIAL_TOKENS, GgufFile, gguf_path, read_gguf

EMBEDDED = "embedded"
_FOLDER = Path(__file__).parent.parent / "models" / "embedded"
_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_CONTROL = re.compile(r"<\|[^|]*\|>|</?s>|<unk>|<pad>|\[(?:PAD|UNK|CLS|SEP|MASK)\]")
"""Spellings of control tokens that some tokenizers forget to flag as special."""


def read_tokenizer(tokenizer) -> tuple[list[bytes], list[int], set[int]]:
    """The bytes of every token, EOS ids, and special ids.

    Raises
    ------
    VocabularyError
        Not a tokenizer, or one whose pieces don't stand for bytes.
    """
    kind, inner = backend(tokenizer)
    return _read_tekken(inner) if kind == "tekken" else _read_fast(tokenizer, inner)


def backend(tokenizer) -> tuple[str, Any]:
    """A tokenizer's kind ("tekken" or "fast") and the object with its tokens; VocabularyError if it has none."""
    if hasattr(tokenizer, "id_to_byte_piece"):
        return "tekken", tokenizer
    inner = getattr(getattr(tokenizer, "instruct_tokenizer", None), "tokenizer", None)
    if inner is not None and hasattr(inner, "id_to_byte_piece"):
        return "tekken", inner
    fast = getattr(tokenizer, "backend_tokenizer", None) or getattr(tokenizer, "_tokenizer", None)
    if fast is None and hasattr(tokenizer, "to_str") and hasattr(tokenizer, "get_vocab"):
        fast = tokenizer
    if fast is None or not hasattr(fast, "to_str"):
        raise VocabularyError(
            f"{type(tokenizer).__name__} is not a tokenizer whose tokens can be read as bytes",
            hint="use a fast tokenizer (tokenizer.json), or build Vocabulary(tokens, eos_token_ids)",
        )
    return "fast", fast


def _read_tekken(tokenizer) -> tuple[list[bytes], list[int], set[int]]:
    special = set(range(tokenizer.num_special_tokens))
    tokens = [b"" if i in special else tokenizer.id_to_byte_piece(i) for i in range(tokenizer.n_words)]
    return tokens, [tokenizer.eos_id], special


def _read_fast(tokenizer, fast) -> tuple[list[bytes], list[int], set[int]]:
    vocabulary = fast.get_vocab(with_added_tokens=True)
    if not vocabulary:
        raise VocabularyError("the tokenizer has no tokens")
    added = fast.get_added_tokens_decoder()
    special = {i for i, t in added.items() if t.special or _CONTROL.fullmatch(t.content)}
    special |= set(getattr(tokenizer, "all_special_ids", None) or ())
    eos = getattr(tokenizer, "eos_token_id", None)
    to_bytes = _speller(fast, vocabulary)
    tokens = [b""] * (max(vocabulary.values()) + 1)
    for piece, i in vocabulary.items():
        tokens[i] = added[i].content.encode() if i in added else to_bytes(piece)
    return tokens, [] if eos is None else [eos] if isinstance(eos, int) else list(eos), special


def _speller(fast, vocabulary: dict):
    """The function from a piece to its bytes, by what the tokenizer's decoder does."""
    kinds = {kind for part in (fast.decoder, fast.pre_tokenizer) for kind in _kinds(_description(part))}
    if "ByteLevel" in kinds:
        table = _byte_level_table()

        def from_byte_level(piece: str) -> bytes:
            try:
                return piece.translate(table).encode("latin-1")
            except UnicodeEncodeError:
                raise VocabularyError(f"token {piece!r} is not spelled in byte-level characters") from None

        return from_byte_level
    if "ByteFallback" in kinds or "Metaspace" in kinds or "<0x0A>" in vocabulary:

        def from_sentencepiece(piece: str) -> bytes:
            byte = _BYTE_PIECE.fullmatch(piece)
            return bytes((int(byte[1], 16),)) if byte else piece.replace("\u2581", " ").encode()

        return from_sentencepiece
    raise VocabularyError(
        "the tokenizer is neither byte-level BPE nor SentencePiece with byte fallback",
        hint="such tokenizers (WordPiece, say) can't write every text; choose another model",
    )


def _description(part):
    """One part of a tokenizer as JSON, without its tokens and merges."""
    return None if part is None else json.loads(part.__getstate__())


def _kinds(part) -> list[str]:
    if isinstance(part, dict):
        out = [part.get("type", "")]
        for value in part.values():
            out.extend(_kinds(value))
        return out
    return [k for p in part for k in _kinds(p)] if isinstance(part, list) else []


def _byte_level_table() -> dict[int, int | str]:
    """Code point -> byte: printable Latin-1 stands for itself, the rest from U+0100 on; for `str.translate`."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [b for b in range(256) if b not in printable]
    # other characters stand for no byte
    table: dict[int, int | str] = dict.fromkeys(others, "\uffff")
    table.update({0x100 + i: b for i, b in enumerate(others)})
    return table


def open_tokenizer(name: str):
    """Open a tokenizer: a tokenizer.json or its folder, a tekken.json, a ``.gguf`` file or the name of a packaged one,
    "embedded", or a name on the Hugging Face Hub.

    Raises
    ------
    VocabularyError
        There is none, or it can't be read.
    ModelError
        The package of the named one isn't installed, or the ``.gguf`` file is damaged.
    """
    path = _FOLDER if name == EMBEDDED else Path(name).expanduser()
    path = path / "tokenizer.json" if path.is_dir() else path
    try:
        if name in PACKAGED or path.suffix == ".gguf":
            return gguf_tokenizer(read_gguf(gguf_path(name)))
        if path.is_file() and path.name.startswith("tekken"):
            from mistral_common.tokens.tokenizers.tekken import Tekkenizer

            return Tekkenizer.from_file(str(path))
        if path.is_file():
            from tokenizers import Tokenizer

            return Tokenizer.from_file(str(path))
        if looks_like_path(name) or path.suffix == ".json" or path.parent.is_dir() and path.parent != Path("."):
            raise FileNotFoundError(f"there is no file or folder {path}")
        from transformers import AutoTokenizer  # the Hub, or its local cache

        return AutoTokenizer.from_pretrained(name)
    except ConstrainedError:
        raise
    except Exception as error:  # the tokenizer libraries raise many types of errors
        text = (str(error).strip().splitlines() or [type(error).__name__])[0]
        hint = (
            "give a tokenizer.json, the folder it is in, a tekken.json, a .gguf file, or a name of the Hugging Face Hub"
        )
        raise VocabularyError(f"can't read the tokenizer {name}: {text}", hint=hint) from None


def gguf_tokenizer(file: GgufFile) -> Any:
    """The tokenizer in a ``.gguf`` file, as transformers converts it."""
    from transformers import PreTrainedTokenizerFast

    # Its AutoTokenizer would first read the configuration, in many seconds, to choose this class.
    tokenizer = PreTrainedTokenizerFast.from_pretrained(str(file.path.parent), gguf_file=file.path.name)
    tokens = file.metadata["tokenizer.ggml.tokens"]
    for key, name in SPECIAL_TOKENS.items():  # transformers 4.57 takes the first token of a text for the last
        number = file.metadata.get(f"tokenizer.ggml.{key}_token_id", len(tokens))
        if number < len(tokens) and getattr(tokenizer, f"{name}_token") != tokens[number]:
            setattr(tokenizer, f"{name}_token", tokens[number])
    return tokenizer


def end_ids(tokenizer, name: str) -> list[int]:
    """The end-of-text token that tokenizer_config.json beside a tokenizer.json names."""
    path = _FOLDER if name == EMBEDDED else Path(name).expanduser()
    file = (path if path.is_dir() else path.parent) / "tokenizer_config.json"
    try:
        named = json.loads(file.read_text(encoding="utf-8")).get("eos_token")
        named = named.get("content") if isinstance(named, dict) else named
        found = tokenizer.token_to_id(named) if named else None
    except (OSError, ValueError, AttributeError, TypeError):
        return []
    return [] if found is None else [found]
