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
from constrained.automaton.persist import GrammarWriter
from constrained.decoding.device.explore import RUN
from constrained.errors import DataError, VocabularyError
from constrained.files import write_whole
from constrained.grammar import ContextFreeGrammar

FORMAT = "constrained device tables"

VERSION = 2
"""Raised whenever the meaning of a tensor changes."""

TENSORS = (
    "start wide offsets ids after mask_row masks class_of next fewest horizon run_ids run_after run_length".split()
)
"""Those of `DeviceTables`."""


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
        known = list(map(str, json.loads(facts.get("grammars", "null"))))
        int(facts.get("depth", "0"))
    except (ValueError, TypeError):
        raise DataError(f"{path} is damaged", "build and save the tables again") from None
    if grammars is not None and known != list(grammars):
        raise DataError(f"the tables in {path} were built from other grammars", "build and save the tables again")
    if not _is_consistent(tensors, vocabulary) or facts.get("digest") != digest(tensors):
        raise DataError(f"{path} is damaged", "build and save the tables again")
    return tensors, facts


def _is_consistent(tensors: dict[str, torch.Tensor], vocabulary: Vocabulary) -> bool:
    """Whether every index is within its table: kernels don't check before they follow one."""
    if any(t.dtype != torch.int32 for t in tensors.values()):
        return False
    try:
        (start, wide, offsets, ids, after, mask_row, masks, class_of, next, fewest, horizon,
         run_ids, run_after, run_length) = (tensors[name] for name in TENSORS)  # fmt: skip
    except KeyError:
        return False
    if len(tensors) != len(TENSORS) or any(
        t.dim() != 1 + (name in ("masks", "next", "run_ids", "run_after")) for name, t in tensors.items()
    ):
        return False
    states, listed, rows = len(wide), len(ids), len(next)
    return (
        states > 0
        and masks.shape[1] == vocabulary.words
        and (len(offsets), len(after), len(fewest), len(horizon)) == (states + 1, listed, states, states)
        and (len(class_of), len(mask_row)) == (vocabulary.size, rows)
        and run_ids.shape == run_after.shape == (states, RUN)
        and run_length.shape == (states,)
        and _within(run_ids, 0, vocabulary.size)
        and _within(run_after, 0, states)
        and _within(run_length, 0, RUN + 1)
        and _within(start, 0, states)
        and _within(ids, 0, vocabulary.size)
        and _within(after, 0, states)
        and _within(mask_row, 0, len(masks))
        and (not rows or _within(class_of, 0, next.shape[1]))
        and _within(wide, -1, rows)
        and _within(next, -1, states)
        and int(offsets[0]) == 0
        and int(offsets[-1]) == listed
        and bool((offsets.diff() >= 0).all())
    )


def _within(tensor: torch.Tensor, low: int, end: int) -> bool:
    return not tensor.numel() or (int(tensor.min()) >= low and int(tensor.max()) < end)


def digest(tensors: Mapping[str, torch.Tensor]) -> str:
    """SHA-256 over names, shapes and contents: equal for equal grammars over one vocabulary."""
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name}{tuple(tensor.shape)}".encode())
        found.update(np.ascontiguousarray(tensor.numpy()).data)
    return found.hexdigest()


def grammar_digest(grammar: ContextFreeGrammar) -> str:
    """SHA-256 over a grammar's rules and bindings: equal for grammars written and bound alike."""
    writer = GrammarWriter()
    root = writer.grammar(grammar)
    return hashlib.sha256(json.dumps([root, writer.facts()], sort_keys=True).encode()).hexdigest()
