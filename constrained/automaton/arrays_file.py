"""Files of arrays and JSON values: no pickle, nothing trusted, written whole or not at all.

Layout: a magic line, the header's length (8 bytes) and CRC-32 (4 bytes), the header (JSON:
kind, version, facts, and of each array dtype, shape and offset, and the CRC-32 of all that
follows), then the arrays, little-endian, each beginning at a multiple of 64 bytes.
"""

from __future__ import annotations

import json
import os
import struct
import tempfile
import zlib
from pathlib import Path

import numpy as np

from constrained.errors import DataError

MAGIC = b"constrained arrays\n"
MAX_BYTES = 2 << 30
"""Bytes of a file that is read; a larger one is refused before it is."""

_ALIGN = 64
_DTYPES = {"|u1", "<i4", "<i8"}
_HEAD = struct.Struct("<QI")


def write(path: str | os.PathLike, kind: str, version: int, facts: dict, arrays: dict[str, np.ndarray]) -> None:
    """Write `path` in one step: a concurrent reader sees either the old file or the new one.

    Parameters
    ----------
    path : path-like
    kind : str
        What the file is, and the `version` of its format: :func:`read` must be given the same two.
    version : int
    facts : dict
        JSON values.
    arrays : dict of str to ndarray
        Of uint8, int32 or int64.

    Raises
    ------
    OSError
        It can't be written; nothing is left behind.
    """
    listed, parts, at, crc = {}, [], 0, 0
    for name, array in arrays.items():
        array = np.asarray(array, order="C")
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        if array.dtype.str not in _DTYPES:
            raise TypeError(f"array {name} of {array.dtype}")
        listed[name] = [array.dtype.str, list(array.shape), at]
        data = array.tobytes()
        data += bytes(-len(data) % _ALIGN)
        crc = zlib.crc32(data, crc)
        parts.append(data)
        at += len(data)
    header = json.dumps({"kind": kind, "version": version, "facts": facts, "arrays": listed, "crc": crc}).encode()
    header += b" " * (-(len(MAGIC) + _HEAD.size + len(header)) % _ALIGN)
    path = Path(path)
    number, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(MAGIC + _HEAD.pack(len(header), zlib.crc32(header)) + header)
            for data in parts:
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read(path: str | os.PathLike, kind: str, version: int) -> tuple[dict, dict[str, np.ndarray]]:
    """The facts and arrays (read-only) of a file that :func:`write` made.

    Raises
    ------
    DataError
        No such file, of another kind or version, cut short, or damaged.
    """
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size > MAX_BYTES:
                raise DataError(f"{path} is larger than {MAX_BYTES} bytes")
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise DataError(f"can't read {path}: {error}") from None
    try:
        return _parse(memoryview(data), kind, version)
    except (ValueError, KeyError, TypeError, struct.error, RecursionError) as error:
        raise DataError(f"{path} is no {kind} of version {version}: {error}") from None


def _parse(data: memoryview, kind: str, version: int) -> tuple[dict, dict[str, np.ndarray]]:
    start = len(MAGIC) + _HEAD.size
    if data[: len(MAGIC)] != MAGIC:
        raise ValueError("it begins otherwise")
    length, crc = _HEAD.unpack(data[len(MAGIC) : start])
    if start + length > len(data):
        raise ValueError("it is cut short")
    if zlib.crc32(data[start : start + length]) != crc:
        raise ValueError("its header is damaged")
    header = json.loads(bytes(data[start : start + length]))
    if (header["kind"], header["version"]) != (kind, version):
        raise ValueError(f"it is a {header['kind']} of version {header['version']}")
    if not isinstance(header["facts"], dict):
        raise ValueError("it has no facts")
    payload = data[start + length :]
    if zlib.crc32(payload) != header["crc"]:
        raise ValueError("it is damaged or cut short")
    arrays = {}
    for name, (dtype, shape, offset) in header["arrays"].items():
        if dtype not in _DTYPES or not all(type(n) is int and 0 <= n < 1 << 40 for n in (*shape, offset)):
            raise ValueError(f"array {name!r} can't be")
        count = 1
        for size in shape:
            count *= size
        size = count * np.dtype(dtype).itemsize
        if len(shape) > 2 or offset + size > len(payload):
            raise ValueError(f"array {name!r} is outside the file")
        arrays[name] = np.frombuffer(payload, dtype, count, offset).reshape(shape)
    return header["facts"], arrays
