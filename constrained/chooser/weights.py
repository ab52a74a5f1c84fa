"""Weights of choosers: one safetensors file holds those of several domains, under the key of their signature.

They are read without torch, which takes seconds to import.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from constrained.chooser.graphs import FeatureVocabulary
from constrained.chooser.scorer import Scorer
from constrained.errors import DataError
from constrained.files import write_whole
from constrained.planning import Domain

EMBEDDED = Path(__file__).with_name("weights.safetensors")
"""The weights that come with this package."""

GRAPHS = "constrained chooser 1"
"""The entry of a file's metadata that holds the widths of graph networks by domain."""

TEXTS = "constrained text chooser 2"
"""The entry that holds everything but the weights of a text chooser."""

MAX_BYTES = 100 << 20
"""Most bytes of a file of weights; the embedded one has under 10 MB."""


def holds(path: str | Path, kind: str) -> bool:
    """Whether a file's metadata have this entry."""
    try:
        with safe_open(path, "np") as file:
            return kind in (file.metadata() or {})
    except (SafetensorError, OSError):
        return False


def read_file(path: Path, kind: str, hint: str) -> tuple[Any, dict[str, np.ndarray]]:
    """Read one entry of a file's metadata, as JSON, and the file's tensors.

    Raises
    ------
    DataError
        The file is missing, too large, or holds something else.
    """
    if not path.is_file():
        raise DataError(f"there is no file {path}", hint)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"it is larger than {MAX_BYTES:,} bytes")
        with safe_open(path, "np") as file:
            head = (file.metadata() or {}).get(kind)
            if head is None:
                raise ValueError("it holds something else")
            return json.loads(head), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (not a dict)
    except (SafetensorError, OSError, ValueError) as error:
        raise DataError(f"can't read {path}: {error}", hint) from None


@lru_cache(maxsize=8)
def read_weights(path: Path = EMBEDDED) -> dict[str, tuple[int, dict[str, np.ndarray]]]:
    """Domain's key -> width and tensors; errors as of `read_file`."""
    hint = "give what `constrained train self-learning --pddl` wrote"
    widths, tensors = read_file(path, GRAPHS, hint)
    try:
        result: dict[str, tuple[int, dict[str, np.ndarray]]] = {key: (int(w), {}) for key, w in widths.items()}
        for name, tensor in tensors.items():
            key, _, parameter = name.partition("/")
            result[key][1][parameter] = tensor
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise DataError(f"can't read {path}: {error}", hint) from None
    return result


def load_scorer(domain: Domain, path: Path = EMBEDDED) -> Scorer | None:
    """The network for a domain in a file, by the domain's structure; None if it has none.

    Raises
    ------
    DataError
        As `read_weights`; or the weights don't fit the domain.
    """
    vocabulary = FeatureVocabulary(domain)
    held = read_weights(path).get(vocabulary.signature.key)
    if held is None:
        return None
    try:
        return Scorer(vocabulary, *held)
    except ValueError as error:
        raise DataError(f"{path}: the weights don't fit the domain: {error}", "train them again") from None


def save_scorers(path: Path, scorers: Sequence[Scorer]) -> None:
    """Write the networks of several domains."""
    keys = [scorer.vocabulary.signature.key for scorer in scorers]
    tensors = {f"{key}/{name}": array for key, one in zip(keys, scorers) for name, array in one.weights.items()}
    widths = {key: scorer.width for key, scorer in zip(keys, scorers)}
    write_whole(path, save(tensors, {GRAPHS: json.dumps(widths)}))  # one entry: their order is not fixed
