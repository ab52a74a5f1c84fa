"""Paths, files written atomically, and the cache folder."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from pathlib import Path
from typing import Any

from constrained.errors import DataError


def looks_like_path(name: str) -> bool:
    """Whether `name` must be a path: names on the Hub are ``model`` or ``org/model``."""
    return name.startswith((".", "~", os.sep)) or name.count("/") > 1 or "\\" in name


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write `content` (text as UTF-8) to `path` atomically: a failed write leaves the old file as it was.

    An existing file keeps its permissions. Missing parent folders are created.

    Raises DataError: `path` is a folder.
    """
    path = Path(path)
    if path.is_dir():
        raise DataError(f"can't write {path}: it is a folder", "name a file in it")
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    file = scratch.open("xb")
    try:
        with file:
            file.write(content.encode() if isinstance(content, str) else content)
        if path.exists():
            shutil.copymode(path, scratch)
        os.replace(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise


def file_digest(path: str | Path) -> str:
    """Return a file's SHA-256, in hexadecimal digits."""
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            found.update(piece)
    return found.hexdigest()


def check_new(path: str | Path | None, force: bool = False) -> None:
    """Raise DataError if `path` exists and `force` is False."""
    if path is not None and Path(path).exists() and not force:
        raise DataError(f"{path} already exists", "name another file, or overwrite it with --force")


def check_separate(target: str | Path | None, *inputs: str | Path | None) -> None:
    """Raise DataError if the output `target` is the same file as one of `inputs`."""
    for path in inputs:
        if target and path and Path(path).exists() and Path(path).resolve() == Path(target).resolve():
            raise DataError(f"{target} is read here, so it can't be the output", "name another file")


def to_json(data: Any) -> str:
    """Indented JSON with a final line break."""
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def cache_folder() -> Path:
    """``$CONSTRAINED_CACHE``, or ``constrained`` in the user's cache folder."""
    chosen = os.environ.get("CONSTRAINED_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(base) if base else Path.home() / ".cache") / "constrained"
