"""Writing results: whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from pathlib import Path

from constrained.errors import DataError


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write `content`, text as UTF-8, to `path` so that no half-written file is ever seen.

    Who may read a file that is there stays as it is.
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


def write_new(path: str | Path, text: str, force: bool = False) -> None:
    """Write `text` to `path`, unless something is there (see `check_new`)."""
    check_new(path, force)
    write_whole(path, text)


def check_new(path: str | Path | None, force: bool = False) -> None:
    """See that nothing is overwritten unawares, such as what somebody has refined.

    Raises
    ------
    DataError
        The file is there already, and `force` is not given.
    """
    if path is not None and Path(path).exists() and not force:
        raise DataError(f"{path} is there already", "name another file, or overwrite it with --force")


def to_json(data) -> str:
    """Indented JSON with a final line break."""
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
