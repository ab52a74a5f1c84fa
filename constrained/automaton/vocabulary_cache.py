"""Prepared vocabularies on disk, by the content of their tokenizer.

One file for each vocabulary. Several processes may use one folder: a file is written whole or not
at all, and all write the same. If anything is wrong with a file or the folder, the vocabulary is
prepared again: the cache is never a reason to fail, nor to use another vocabulary.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from constrained.automaton.tokenizers import backend
from constrained.errors import ConstrainedError, DataError
from constrained.files import cache_folder, write_whole

VERSION = 3
"""Raised when the format of the file or the reading of tokenizers changes."""

SAMPLES = 512
"""Tokens looked at to tell a tokenizer changed in memory from the file it names."""


Arrays = dict[str, np.ndarray]


def locate(
    tokenizer,
    cache: bool | str | os.PathLike[str],
    eos_token_ids: list[int] | None,
    size: int | None,
    special_ids: list[int],
) -> tuple[str, Path] | None:
    """The key and folder of a tokenizer's vocabulary; None, with a warning, where it can't be cached.

    Parameters
    ----------
    tokenizer, eos_token_ids, size, special_ids
        As for `Vocabulary.from_tokenizer`.
    cache : True or path-like
        The folder; True: :func:`constrained.files.cache_folder`.
    """
    try:
        folder = cache_folder() if isinstance(cache, bool) else Path(cache)
        return key_of(tokenizer, eos_token_ids, size, special_ids), folder
    except (OSError, RuntimeError, ValueError, TypeError, AttributeError) as error:
        _warn(f"no vocabulary cache: {error}")
        return None


def key_of(
    tokenizer,
    eos_token_ids: Iterable[int] | None = None,
    size: int | None = None,
    special_ids: Iterable[int] = (),
) -> str:
    """SHA-256 over all that decides the vocabulary: the tokenizer's content and the arguments.

    The tokenizer's own file stands for its tokens where it names one; what may have been
    changed since it was read (added tokens, special ones, and a sample of all) goes in, too.
    """
    digest = hashlib.sha256()

    def add(*facts) -> None:
        digest.update(json.dumps(facts, default=repr).encode() + b"\0")

    ends = None if eos_token_ids is None else sorted({int(i) for i in eos_token_ids})
    add(VERSION, ends, sorted({int(i) for i in special_ids}), size)
    kind, inner = backend(tokenizer)
    if kind == "tekken":
        add(kind, inner.n_words, inner.num_special_tokens, inner.eos_id)
        pieces = range(inner.num_special_tokens, inner.n_words)
        file = _read(getattr(inner, "_file_path", None))
        add([inner.id_to_piece(i) for i in range(inner.num_special_tokens)])
        for i in pieces if file is None else pieces[:: max(1, len(pieces) // SAMPLES)]:
            digest.update(inner.id_to_byte_piece(i) + b"\0")
    elif kind == "sentencepiece":
        add(kind)
        file = inner.serialized_model_proto()
    elif kind == "tiktoken":
        pieces = inner.token_byte_values()
        add(kind, sorted(inner.special_tokens_set), list(map(inner.encode_single_token, pieces)))
        file = b"\0".join(pieces)
    else:
        count = inner.get_vocab_size(with_added_tokens=True)
        added = sorted((i, t.content, t.special) for i, t in inner.get_added_tokens_decoder().items())
        add(kind, count, added, getattr(tokenizer, "all_special_ids", None), getattr(tokenizer, "eos_token_id", None))
        add(*(part and repr(part.__getstate__()) for part in (inner.decoder, inner.pre_tokenizer)))
        add([inner.id_to_token(i) for i in range(0, count, max(1, count // SAMPLES))])
        file = _read(getattr(tokenizer, "vocab_file", None), ".json")
        if file is None:
            file = _read(Path(str(getattr(tokenizer, "name_or_path", ""))) / "tokenizer.json")
        if file is None:
            file = inner.to_str().encode()
    if file is not None:
        digest.update(file)
    return digest.hexdigest()


def load(key: str, folder: str | os.PathLike[str]) -> Arrays | None:
    """The arrays of the vocabulary with that key; None if there are none, or (with a warning) damaged ones."""
    from safetensors import SafetensorError, safe_open  # only where a cache is used: start-up time

    path = _path(key, folder)
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            facts, arrays = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if facts != _facts(key, arrays):
            raise DataError(f"{path} has another key or version, or is damaged")
        _check(arrays)
    except (SafetensorError, OSError, ConstrainedError, LookupError, TypeError, ValueError, OverflowError) as error:
        _warn(f"a cached vocabulary is not used: {error}")
        return None
    return arrays


def store(arrays: Arrays, key: str, folder: str | os.PathLike[str]) -> bool:
    """Store a vocabulary's arrays under `key`; False, with a warning, if the folder can't be written."""
    from safetensors.numpy import save

    try:
        write_whole(_path(key, folder), save(arrays, _facts(key, arrays)))
    except OSError as error:
        _warn(f"the vocabulary is not cached: {error}")
        return False
    return True


def _facts(key: str, arrays: Arrays) -> dict[str, str]:
    """The metadata of a cache file: version, key and checksum."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return {"version": str(VERSION), "key": key, "sha256": digest.hexdigest()}


def _path(key: str, folder) -> Path:
    if not re.fullmatch(r"[0-9a-f]{64}", key):
        raise ValueError(f"{key!r} is no key")
    return Path(folder) / f"vocabulary-{key}.safetensors"


def _read(path, ending: str = "") -> bytes | None:
    """A file's bytes; None if it can't be read, or doesn't end with `ending`."""
    try:
        return Path(path).read_bytes() if path and str(path).endswith(ending) else None
    except (OSError, ValueError, TypeError):
        return None


def _check(arrays: Arrays) -> None:
    """Raise DataError unless the arrays have consistent types, shapes and values."""
    if any(array.ndim != (name != "size") for name, array in arrays.items()):
        raise DataError("its arrays have other shapes")
    lengths, flat, ids = arrays["lengths"], arrays["flat"], arrays["sorted_ids"]
    every, size = arrays["all_lengths"], int(arrays["size"])
    special = np.concatenate((arrays["eos_token_ids"], arrays["special_ids"]))
    fine = (
        all(arrays[name].dtype == np.int32 for name in ("lengths", "sorted_ids", "all_lengths"))
        and flat.dtype == arrays["all_flat"].dtype == np.uint8
        and len(lengths) == len(ids) > 0
        and lengths.min() > 0
        and every.min() >= 0
        and int(lengths.sum(dtype=np.int64)) == len(flat)
        and int(every.sum(dtype=np.int64)) == len(arrays["all_flat"])
        and 0 <= ids.min() <= ids.max() < len(every) <= size < 2**31
        and len(arrays["eos_token_ids"]) > 0
        and 0 <= special.min() <= special.max() < size
        and np.array_equal(every[ids], lengths)
        and np.bincount(ids).max() == 1
    )
    if not fine:
        raise DataError("its arrays don't fit together")


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=4)
