"""Tables on disk: safetensors, which holds numbers and text and runs no code."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from constrained.automaton import CompiledGrammar, Vocabulary
from constrained.decoding.device.tables import DeviceTables, grammar_digest
from constrained.errors import DataError, VocabularyError

FORMAT = "constrained device tables"

VERSION = 1
"""Raised whenever the meaning of a tensor changes."""


def save(tables: DeviceTables, path: str | Path) -> None:
    """Write `tables`, whole or not at all, also with several processes at it.

    Parameters
    ----------
    tables : DeviceTables
    path : str or Path

    Raises
    ------
    OSError
        The file can't be written.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.cpu().contiguous() for name, tensor in tables.tensors().items()}
    about = {
        "format": FORMAT,
        "version": str(VERSION),
        "vocabulary": tables.fingerprint,
        "size": str(tables.size),
        "eos_token_ids": json.dumps(tables.eos_token_ids),
        "grammars": json.dumps(tables.grammars),
        "truncated": json.dumps(tables.truncated),
        "depth": str(tables.depth),
        "digest": digest(tensors),
    }
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    os.close(handle)
    try:
        save_file(tensors, scratch, metadata=about)
        os.replace(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise


def load(
    path: str | Path,
    vocabulary: Vocabulary,
    compiled: Sequence[CompiledGrammar] | None = None,
    *,
    device: torch.device | str = "cpu",
) -> DeviceTables:
    """Read tables that `save` wrote.

    Parameters
    ----------
    path : str or Path
    vocabulary : Vocabulary
        The one the grammars were compiled for.
    compiled : sequence of CompiledGrammar, optional
        The grammars that the tables must have been built from.
    device : torch.device or str

    Raises
    ------
    DataError
        No such file, another kind or version of file, tables of other grammars, or a damaged file.
    VocabularyError
        The tables were built for another vocabulary.
    """
    try:
        with safe_open(path, framework="pt") as file:
            about = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
    except FileNotFoundError:
        raise DataError(f"no file {path}", "build the tables: DeviceTables.build(compiled)") from None
    except (SafetensorError, OSError) as error:
        raise DataError(
            f"{path} is not a file of device tables, or cut short: {error}", "build and save again"
        ) from None
    if about.get("format") != FORMAT:
        raise DataError(f"{path} holds no device tables", "name a file that DeviceTables.save wrote")
    if about.get("version") != str(VERSION):
        raise DataError(
            f"{path} is of version {about.get('version')}; this release reads {VERSION}",
            "build and save the tables again",
        )
    if about.get("vocabulary") != vocabulary.fingerprint:
        raise VocabularyError(
            f"the tables in {path} were built for another vocabulary",
            hint="load them with that vocabulary (the same EOS ids and size too), or build them again",
        )
    try:
        grammars, depth = tuple(map(str, json.loads(about.get("grammars", "null")))), int(about.get("depth", 0))
    except (ValueError, TypeError):
        raise DataError(f"{path} is damaged", "build and save the tables again") from None
    if compiled is not None and grammars != tuple(grammar_digest(one.grammar) for one in compiled):
        raise DataError(f"the tables in {path} were built from other grammars", "build and save the tables again")
    if not _fits(tensors, vocabulary) or about.get("digest") != digest(tensors):
        raise DataError(f"{path} is damaged", "build and save the tables again")
    return DeviceTables(
        size=vocabulary.size,
        eos_token_ids=tuple(vocabulary.eos_token_ids),
        fingerprint=vocabulary.fingerprint,
        grammars=grammars,
        longest_list=int(tensors["offsets"].diff().max()),
        truncated=about.get("truncated") == "true",
        depth=depth,
        **tensors,
    ).to(device)


def _fits(tensors: dict[str, torch.Tensor], vocabulary: Vocabulary) -> bool:
    """Every number names something that is there: a kernel doesn't look before it follows one."""
    names = {f.name for f in fields(DeviceTables) if f.type == "torch.Tensor"}
    if tensors.keys() != names or any(t.dtype != torch.int32 for t in tensors.values()):
        return False
    flat = [t for name, t in tensors.items() if name not in ("masks", "next")]
    masks, next, offsets = tensors["masks"], tensors["next"], tensors["offsets"]
    if any(t.dim() != 1 for t in flat) or masks.dim() != 2 or next.dim() != 2 or masks.shape[1] != vocabulary.words:
        return False
    states, listed, size = len(tensors["wide"]), len(tensors["ids"]), vocabulary.size
    shapes = {"offsets": states + 1, "after": listed, "fewest": states, "horizon": states, "class_of": size}
    shapes["mask_row"] = len(next)
    below = {"start": states, "ids": size, "after": states, "mask_row": len(masks), "class_of": next.shape[1]}
    return (
        states > 0
        and all(len(tensors[name]) == length for name, length in shapes.items())
        and all(_within(tensors[name], 0, end) for name, end in below.items() if len(next) or name != "class_of")
        and _within(tensors["wide"], -1, len(next))
        and _within(next, -1, states)
        and int(offsets[0]) == 0
        and int(offsets[-1]) == listed
        and bool((offsets.diff() >= 0).all())
    )


def _within(tensor: torch.Tensor, low: int, end: int) -> bool:
    return not tensor.numel() or (int(tensor.min()) >= low and int(tensor.max()) < end)


def digest(tensors: dict[str, torch.Tensor]) -> str:
    """SHA-256 over names, shapes and contents: equal for equal grammars over one vocabulary."""
    found = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        found.update(f"{name}{tuple(tensor.shape)}".encode())
        found.update(np.ascontiguousarray(tensor.numpy()))
    return found.hexdigest()
