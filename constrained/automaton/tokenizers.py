"""Tokenizers opened by name, and their tokens as bytes.

A token's bytes are what its tokenizer's decoder makes of it between two others, added tokens included. Byte-level BPE
writes each byte as a printable character (GPT-2's table); SentencePiece writes a space as U+2581 and bytes without a
piece as ``<0x0A>``; Tekken and tiktoken hold bytes.
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
_FILES = ("tokenizer.json", "tekken.json", "tokenizer.model*")
"""What a tokenizer's folder is searched for, in this order."""

_INSIDE = ("backend_tokenizer", "_tokenizer", "instruct_tokenizer", "tokenizer", "_model", "model")
"""Where wrappers keep the tokenizer that has the tokens: those of transformers, mistral-common, vLLM, and of models'
own code around tiktoken."""

_DEEPEST = 5
"""Wrappers within each other, at most."""

_ONE_BY_ONE = {"Sequence", "Replace", "ByteFallback", "Fuse", "Strip", "Metaspace"}
"""Decoders that make the same of a piece whatever stands beside it, but at a text's ends."""


def read_tokenizer(tokenizer) -> tuple[list[bytes], list[int], set[int]]:
    """The bytes of every token, EOS ids, and special ids: those that the tokenizer itself flags as special.

    Raises
    ------
    VocabularyError
        Not a tokenizer, or one whose pieces don't stand for bytes.
    """
    kind, inner = backend(tokenizer)
    read = {
        "fast": _read_fast,
        "tekken": _read_tekken,
        "sentencepiece": _read_sentencepiece,
        "tiktoken": _read_tiktoken,
    }
    tokens, own_eos, special = read[kind](inner)
    special.update(i for i in getattr(tokenizer, "all_special_ids", None) or () if isinstance(i, int))
    eos = getattr(tokenizer, "eos_token_id", None)
    eos = own_eos if eos is None else eos
    return tokens, [] if eos is None else [eos] if isinstance(eos, int) else list(eos), special


def backend(tokenizer) -> tuple[str, Any]:
    """A tokenizer's kind ("fast", "tekken", "sentencepiece" or "tiktoken") and the object with its tokens.

    Raises VocabularyError: it is none of these.
    """
    inner = tokenizer
    for _ in range(_DEEPEST):
        if hasattr(inner, "id_to_byte_piece"):
            return "tekken", inner
        if hasattr(inner, "to_str") and hasattr(inner, "get_vocab"):
            return "fast", inner
        if hasattr(inner, "IsControl"):
            return "sentencepiece", inner
        if hasattr(inner, "decode_single_token_bytes"):
            return "tiktoken", inner
        inner = next((found for name in _INSIDE if (found := getattr(inner, name, None)) is not None), None)
    raise VocabularyError(
        f"{type(tokenizer).__name__} is not a tokenizer whose tokens can be read as bytes",
        hint="use a fast tokenizer (tokenizer.json), mistral-common's, SentencePiece's or tiktoken's, "
        "or build Vocabulary(tokens, eos_token_ids)",
    )


def encode(tokenizer, text: str) -> list[int]:
    """The ids of `text` without special tokens at its ends, for a tokenizer of any kind."""
    try:
        kind, inner = backend(tokenizer)
    except VocabularyError:  # an object that can only encode, such as llama.cpp's tokenizer
        kind, inner = "", tokenizer
    if kind == "tekken":
        return inner.encode(text, False, False)
    if kind == "sentencepiece":
        return inner.encode(text)
    if kind == "tiktoken":
        return inner.encode_ordinary(text)
    ids = tokenizer.encode(text, add_special_tokens=False)
    return ids if isinstance(ids, list) else ids.ids  # tokenizers.Tokenizer returns an Encoding


def _read_tekken(tekken) -> tuple[list[bytes], int, set[int]]:
    special = set(range(tekken.num_special_tokens))
    pieces = tekken.id_to_piece, tekken.id_to_byte_piece
    tokens = [pieces[0](i).encode() if i in special else pieces[1](i) for i in range(tekken.n_words)]
    return tokens, tekken.eos_id, special


def _read_sentencepiece(model) -> tuple[list[bytes], int | None, set[int]]:
    tokens, special = [], set()
    for i in range(model.vocab_size()):
        piece = model.IdToPiece(i)
        if model.IsControl(i) or model.IsUnknown(i):
            special.add(i)
            tokens.append((piece if model.IsControl(i) else model.Decode([i])).encode())
        else:
            tokens.append(bytes((int(piece[3:5], 16),)) if model.IsByte(i) else piece.replace("\u2581", " ").encode())
    eos = model.eos_id()
    return tokens, None if eos < 0 else eos, special


def _read_tiktoken(encoding) -> tuple[list[bytes], int | None, set[int]]:
    tokens = []
    for i in range(encoding.max_token_value + 1):
        try:
            tokens.append(encoding.decode_single_token_bytes(i))
        except KeyError:  # an unused id
            tokens.append(b"")
    special = {encoding.encode_single_token(text) for text in encoding.special_tokens_set}
    return tokens, encoding.eot_token if "<|endoftext|>" in encoding.special_tokens_set else None, special


def _read_fast(fast) -> tuple[list[bytes], None, set[int]]:
    added = fast.get_added_tokens_decoder()
    pieces = {i: piece for piece, i in fast.get_vocab(with_added_tokens=False).items()}
    pieces |= {i: token.content for i, token in added.items()}
    if not pieces:
        raise VocabularyError("the tokenizer has no tokens")
    tokens = [b""] * (max(pieces) + 1)
    for i, data in zip(pieces, _decoded(fast, list(pieces.values()))):
        tokens[i] = data
    return tokens, None, {i for i, token in added.items() if token.special}


def _decoded(fast, pieces: list[str]) -> list[bytes]:
    """The text of each piece inside a longer text, by the tokenizer's decoder."""
    before = _kinds(_description(fast.pre_tokenizer))
    decoder = fast.decoder
    if decoder is None and ("ByteLevel" in before or "Metaspace" in before):  # no decoder: invert the pre-tokenizer
        from tokenizers import decoders

        decoder = decoders.ByteLevel() if "ByteLevel" in before else decoders.Metaspace()
    kinds = set(_kinds(_description(decoder)))
    if "ByteLevel" in kinds:
        table = _byte_level_table()
        return [_from_byte_level(piece, table) for piece in pieces]
    if decoder is None or not {"ByteFallback", "Metaspace"} & kinds or not kinds <= _ONE_BY_ONE:
        raise VocabularyError(
            "the tokenizer is neither byte-level BPE nor SentencePiece with byte fallback",
            hint="such tokenizers (WordPiece, say) can't write every text; choose another model",
        )
    # One call decodes all pieces, separated by a character that occurs in none of them.
    used = set("".join(pieces))
    apart = next(c for c in map(chr, range(0x10FFFD, 0, -1)) if c not in used)
    texts = decoder.decode([apart, *(part for piece in pieces for part in (piece, apart))]).split(apart)[1:-1]
    if len(texts) != len(pieces):
        raise VocabularyError("the tokenizer's decoder joins its pieces, so none of them stands for a text by itself")
    bytewise = _BYTE_PIECE.fullmatch if "ByteFallback" in kinds else lambda piece: None
    return [bytes((int(byte[1], 16),)) if (byte := bytewise(p)) else t.encode() for p, t in zip(pieces, texts)]


def _from_byte_level(piece: str, table: dict[int, int | str]) -> bytes:
    try:
        return piece.translate(table).encode("latin-1")
    except UnicodeEncodeError:  # the piece has a character outside the table: the decoder leaves such a piece unchanged
        return piece.encode()


def _description(part):
    """One part of a tokenizer as JSON, without its tokens and merges."""
    return None if part is None else json.loads(part.__getstate__())


def _kinds(part) -> list[str]:
    if isinstance(part, dict):
        out = [part["type"]] if isinstance(part.get("type"), str) else []
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
    """Open a tokenizer: a file (`_FILES`) or its folder, a ``.gguf`` file or the name of a packaged one, "embedded", or
    a name on the Hugging Face Hub.

    Raises
    ------
    VocabularyError
        There is none, or it can't be read.
    ModelError
        The package of the named one isn't installed, or the ``.gguf`` file is damaged.
    """
    path = _FOLDER if name == EMBEDDED else Path(name).expanduser()
    if path.is_dir():
        path = next((found for file in _FILES for found in sorted(path.glob(file))), path / "tokenizer.json")
    try:
        if name in PACKAGED or path.suffix == ".gguf":
            return gguf_tokenizer(read_gguf(gguf_path(name)))
        if path.is_file() and path.name.startswith("tekken"):
            from mistral_common.tokens.tokenizers.tekken import Tekkenizer

            return Tekkenizer.from_file(str(path))
        if path.is_file() and ".model" in path.suffixes:
            from sentencepiece import SentencePieceProcessor

            return SentencePieceProcessor(model_file=str(path))
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
            "give a tokenizer.json, tekken.json or tokenizer.model, its folder, a .gguf file, or a name of the Hugging "
            "Face Hub"
        )
        raise VocabularyError(f"can't read the tokenizer {name}: {text}", hint=hint) from None


def gguf_tokenizer(file: GgufFile) -> Any:
    """The tokenizer in a ``.gguf`` file, as transformers converts it."""
    from transformers import PreTrainedTokenizerFast

    # Its AutoTokenizer would first read the configuration, in many seconds, to choose this class.
    tokenizer = PreTrainedTokenizerFast.from_pretrained(str(file.path.parent), gguf_file=file.path.name)
    tokens = file.metadata["tokenizer.ggml.tokens"]
    for key, name in SPECIAL_TOKENS.items():  # transformers 4.57 confuses the tokens that begin and end a text
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
        token_id = tokenizer.token_to_id(named) if named else None
    except (OSError, ValueError, AttributeError, TypeError):
        return []
    return [] if token_id is None else [token_id]
