"""Find and read data files, without unpacking them.

``CONSTRAINED_DATA`` names their folder; without it, ``shared/data`` beside the checkout is tried.
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO, TypeGuard

from constrained.errors import DataError

MAX_CHARACTERS = 1 << 30
"""Most characters of an unpacked JSON file that is read whole; larger files must be JSON Lines."""

_BESIDE_CHECKOUT = Path(__file__).resolve().parents[3] / "shared" / "data"
_READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, UnicodeError)
_TYPE_NAMES = {
    str: "text", bool: "truth value", int: "whole number", list: "list", dict: "object", list[str]: "list of texts",
}  # fmt: skip


def data_folder() -> Path:
    """The folder of the data files; it may not exist."""
    return Path(os.environ.get("CONSTRAINED_DATA") or _BESIDE_CHECKOUT)


def data_file(name: str) -> Path:
    """The path of a data file, such as ``alfworld/index.jsonl``. Raises DataError: there is no such file."""
    path = data_folder() / name
    if not path.is_file():
        raise DataError(
            f"no data file {name} in {data_folder()}",
            hint="set CONSTRAINED_DATA to the folder that holds the data",
        )
    return path


def archive_files(archive: Path, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of each file in a .tar.xz whose name is `wanted`, one at a time.

    Raises DataError: the archive is cut short, or not an archive.
    """
    try:
        with tarfile.open(archive, "r|xz") as tar:
            for member in tar:
                if member.isfile() and wanted(member.name):
                    content = tar.extractfile(member)
                    if content is not None:
                        yield member.name, content.read()
    except (tarfile.TarError, lzma.LZMAError, EOFError) as error:
        raise DataError(f"{archive} can't be read to its end: {error}", hint="fetch it again") from error


def folder_files(folder: Path, *patterns: str) -> Iterator[tuple[str, bytes]]:
    """Yield (path in the folder, content) of each file that matches one of the glob patterns, sorted.

    Raises DataError: no file matches, or one can't be read.
    """
    paths = {path.relative_to(folder).as_posix(): path for pattern in patterns for path in folder.glob(pattern)}
    if not paths:
        raise DataError(f"no {' or '.join(patterns)} in {folder}", "the download may be incomplete: fetch it again")
    for name, path in sorted(paths.items()):
        try:
            yield name, path.read_bytes()
        except OSError as error:
            raise DataError(f"can't read {path}: {error.strerror}", hint="fetch it again") from error


def read_rows(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (where, row) for each JSON object in a file; `where` names file and row, for error messages.

    `path`: a ``.jsonl`` with one object a line, which is read line by line, or a ``.json`` with a list of objects; both
    may be compressed (``.gz``, ``.xz``). Raises DataError: the file is missing, cut short, of another form, or larger
    than `MAX_CHARACTERS`.
    """
    for where, row in read_values(path):
        yield where, check_object(where, row)


def read_values(path: str | Path) -> Iterator[tuple[str, Any]]:
    """Yield (where, value) for each JSON value in a file: as `read_rows`, but they may be lists, too.

    Raises DataError as `read_rows`.
    """
    path = Path(path)
    if ".jsonl" in path.suffixes:
        yield from _read_lines(path)
        return
    rows = read_json(path)
    if not isinstance(rows, list):
        raise DataError(f"{path} is not a list of objects", hint="a file with one object a line is named .jsonl")
    for number, row in enumerate(rows, 1):
        yield _place(path, number), row


def read_json(path: str | Path) -> Any:
    """The content of a JSON file, compressed (``.gz``, ``.xz``) or not.

    Raises DataError: the file is missing, cut short, not JSON, or larger than `MAX_CHARACTERS`.
    """
    path = Path(path)
    try:
        with _open(path) as file:
            text = file.read(MAX_CHARACTERS + 1)
        if len(text) > MAX_CHARACTERS:
            raise DataError(
                f"{path} is larger than {MAX_CHARACTERS:,} characters", hint="make it one object a line, .jsonl"
            )
        return _loads(text)
    except _READ_ERRORS as error:
        raise DataError(f"can't read {path}: {error}", hint="fetch it again") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not JSON: {error}", hint="the file may be cut short: fetch it again") from error


def _read_lines(path: Path) -> Iterator[tuple[str, Any]]:
    number = 0
    try:
        with _open(path) as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _place(path, number), _loads(line)
    except _READ_ERRORS as error:
        raise DataError(f"can't read {path} after row {number}: {error}", hint="fetch it again") from error
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{path}, row {number}: not JSON: {error}", hint="the file may be cut short: fetch it again"
        ) from error


def _open(path: Path) -> TextIO:
    openers: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
    return openers.get(path.suffix, open)(path, "rt", encoding="utf-8")


def _loads(text: str) -> Any:
    value = json.loads(text)
    if "\\ud" in text or "\\uD" in text:  # may be a lone surrogate, which encoding the value detects
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _place(path: Path, number: int) -> str:
    return f"{path}, row {number}"


def check_object(where: str, value: object) -> dict[str, Any]:
    """A JSON object. Raises DataError: the value is something else."""
    if not isinstance(value, dict):
        raise DataError(f"{where}: not an object but a {type(value).__name__}")
    return value


def is_text_list(value: object) -> TypeGuard[list[str]]:
    """Whether a JSON value is a list of texts."""
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def fields(where: str, row: Mapping[str, Any], /, **kinds: Any) -> tuple[Any, ...]:
    """A row's values under the given names, checked to be of the given types; ``list[str]``: a list of texts.

    Raises DataError: a value is missing or of another type; the message says which, and where.
    """
    for name, kind in kinds.items():
        value = row.get(name)
        fits = is_text_list(value) if kind == list[str] else isinstance(value, kind)
        if not fits or (kind is int and isinstance(value, bool)):
            raise DataError(f"{where}: no {_TYPE_NAMES.get(kind, kind.__name__)} under {name!r}")
    return tuple(row[name] for name in kinds)
