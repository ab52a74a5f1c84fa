"""Device tables on disk: safetensors files, which hold numbers and text and run no code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes

from constrained.automaton import Vocabulary
from constrained.automaton.persist import grammar_entries
from constrained.decoding.device.explore import RUN
from constrained.errors import DataError, VocabularyError
from constrained.files import write_whole
from constrained.grammar import ContextFreeGrammar

FORMAT = "constrained device tables"

VERSION = 2
"""Raised when the meaning of a tensor changes."""

TENSORS = (
    "start wide offsets ids after mask_row masks class_of next fewest horizon run_ids run_after run_length".split()
)
"""Names of the tensors of `DeviceTables`."""


def save(path: str | Path, tensors: Mapping[str, torch.Tensor], facts: Mapping[str, str]) -> None:
    """Write tensors and facts to a file, whole or not at all, also with several processes at it."""
    on_host = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    about = {"format": FORMAT, "version": str(VERSION), **facts, "digest": digest(on_host)}
    write_whole(path, to_bytes(on_host, about))


def load(
    path: str | Path, vocabulary: Vocabulary, grammars: Sequence[str] | None = None
) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Read what `save` wrote for this vocabulary, and grammars of these digests; see `DeviceTables.load`."""
    try:
        with safe_open(path, framework="pt") as file:
            facts = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except FileNotFoundError:
        raise DataError(f"no file {path}", "build the tables: DeviceTables.build(compiled)") from None
    except (SafetensorError, OSError) as error:
        raise DataError(
            f"{path} is not a file of device tables, or cut short: {error}", "build and save again"
        ) from None
    # From the general to the particular, so that the error names what is wrong: another kind of file, another version,
    # another vocabulary, other grammars, damage.
    if facts.get("format") != FORMAT:
        raise DataError(f"{path} holds no device tables", "name a file that DeviceTables.save wrote")
    if facts.get("version") != str(VERSION):
        raise DataError(
            f"{path} is of version {facts.get('version')}; this release reads {VERSION}",
            "build and save the tables again",
        )
    if facts.get("vocabulary") != vocabulary.fingerprint:
        raise VocabularyError(
            f"the tables in {path} were built for another vocabulary",
            hint="load them with that vocabulary (the same EOS ids and size too), or build them again",
        )
    try:
        built_from = list(map(str, json.loads(facts.get("grammars", "null"))))
        int(facts.get("depth", "0"))
    except (ValueError, TypeError):
        raise DataError(f"{path} is damaged", "build and save the tables again") from None
    if grammars is not None and built_from != list(grammars):
        raise DataError(f"the tables in {path} were built from other grammars", "build and save the tables again")
    if not _is_consistent(tensors, vocabulary) or facts.get("digest") != digest(tensors):
        raise DataError(f"{path} is damaged", "build and save the tables again")
    return tensors, facts


def _is_consistent(tensors: dict[str, torch.Tensor], vocabulary: Vocabulary) -> bool:
    """Whether every index is within its table, as kernels don't check them."""
    dimensions = {name: 1 + (name in ("masks", "next", "run_ids", "run_after")) for name in TENSORS}
    if {name: t.dim() for name, t in tensors.items() if t.dtype == torch.int32} != dimensions:
        return False
    sizes = {name: t.shape[0] for name, t in tensors.items()}
    states, listed, wide, size = sizes["wide"], sizes["ids"], sizes["next"], vocabulary.size
    classes, offsets = tensors["next"].shape[1], tensors["offsets"]
    by_state = "fewest", "horizon", "run_ids", "run_after", "run_length"
    expected = dict.fromkeys(by_state, states) | {"offsets": states + 1, "after": listed, "class_of": size}
    ranges = {
        "start": (0, states), "wide": (-1, wide), "ids": (0, size), "after": (0, states), "next": (-1, states),
        "mask_row": (0, sizes["masks"]), "class_of": (0, classes if wide else size),
        "run_ids": (0, size), "run_after": (0, states), "run_length": (0, RUN + 1),
    }  # fmt: skip
    return (
        states > 0
        and sizes == sizes | expected | {"mask_row": wide}
        and tensors["masks"].shape[1] == vocabulary.words
        and tensors["run_ids"].shape[1] == tensors["run_after"].shape[1] == RUN
        and all(_within(tensors[name], *between) for name, between in ranges.items())
        and int(offsets[0]) == 0
        and int(offsets[-1]) == listed
        and bool((offsets.diff() >= 0).all())
    )


def _within(tensor: torch.Tensor, low: int, end: int) -> bool:
    return not tensor.numel() or (int(tensor.min()) >= low and int(tensor.max()) < end)


def digest(tensors: Mapping[str, torch.Tensor]) -> str:
    """SHA-256 over names, shapes and contents: equal for equal grammars over one vocabulary."""
    sha256 = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        sha256.update(f"{name}{tuple(tensor.shape)}".encode())
        sha256.update(np.ascontiguousarray(tensor.numpy()).data)
    return sha256.hexdigest()


def grammar_digest(grammar: ContextFreeGrammar) -> str:
    """SHA-256 over a grammar's rules and bindings: equal for grammars written and bound alike."""
    return hashlib.sha256(json.dumps(grammar_entries(grammar)).encode()).hexdigest()
