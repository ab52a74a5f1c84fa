"""Paths, files written atomically, and the cache folder."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constrained.errors import DataError

if TYPE_CHECKING:
    from filelock import FileLock

MOST_LINKS = 40
"""Links that lead from one to the next; Linux follows as many."""

_STANDARD = ("stdin", "stdout", "stderr")
_OPEN_FILE = re.compile(
    r"/dev/(?P<name>stdin|stdout|stderr)|(/dev/fd|/proc/(?P<process>self|[0-9]+)/fd)/(?P<number>[0-9]{1,9})", re.ASCII
)


def looks_like_path(name: str) -> bool:
    """Whether `name` must be a path: names on the Hub are ``model`` or ``org/model``."""
    return name.startswith((".", "~", os.sep)) or name.count("/") > 1 or "\\" in name


def write_whole(path: str | Path, content: str | bytes) -> None:
    """Write `content` (text as UTF-8) to `path` atomically: a failed write leaves the old file as it was.

    An existing file keeps its permissions. A link stays, and the file that it leads to is written. What isn't a regular
    file (a device, a FIFO, ``/dev/stdout``) is written into. Missing parent folders are created.

    Raises DataError: `path` is a folder, or links that lead in a circle.
    """
    data = content.encode() if isinstance(content, str) else content
    target = _without_links(Path(path))
    if target.is_dir():
        raise DataError(f"can't write {path}: it is a folder", "name a file in it")
    if (number := _descriptor(target)) is not None or (target.exists() and not target.is_file()):
        _write_into(target, number, data)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = target.with_name(f".{target.name[:50]}.{secrets.token_hex(4)}")
    try:
        file = scratch.open("xb")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        with file:
            file.write(data)
        if target.exists():
            shutil.copymode(target, scratch)
        os.replace(scratch, target)
    except BaseException:
        os.unlink(scratch)
        raise


def _without_links(path: Path) -> Path:
    """What `path` leads to, whether or not that exists. The names of open files aren't followed: they lead nowhere."""
    given = path
    for _ in range(MOST_LINKS):
        if _descriptor(path) is not None or not path.is_symlink():
            return path
        path = path.parent / os.readlink(path)
    raise DataError(f"can't write {given}: its links lead in a circle", "name a file, or remove the link")


def _descriptor(path: Path) -> int | None:
    """The open file that a path such as ``/dev/stdout`` or ``/dev/fd/3`` names, if it names one of this process."""
    match = _OPEN_FILE.fullmatch(os.path.normpath(path))
    if match is None or (match["process"] or "self") not in ("self", str(os.getpid())):
        return None
    return int(match["number"] or _STANDARD.index(match["name"]))


def _write_into(path: Path, number: int | None, data: bytes) -> None:
    """Write to what isn't replaced: the open file of this number where there is one, which goes on where it is."""
    try:
        if number is None:
            target = os.open(path, os.O_WRONLY | getattr(os, "O_NOCTTY", 0))
        else:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()  # what was printed before comes before
            target = os.dup(number)
        with open(target, "wb") as file:
            file.write(data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def file_digest(path: str | Path) -> str:
    """Return a file's SHA-256, in hexadecimal digits."""
    sha256 = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            sha256.update(piece)
    return sha256.hexdigest()


def check_new(path: str | Path | None, force: bool = False) -> None:
    """Raise DataError if `path` is a file or folder and `force` is False; a device is written into, not replaced."""
    if path is not None and not force and (Path(path).is_file() or Path(path).is_dir()):
        raise DataError(f"{path} already exists", "name another file, or overwrite it with --force")


def check_separate(target: str | Path | None, *inputs: str | Path | None) -> None:
    """Raise DataError if the output `target` is the same file as one of `inputs`."""
    for path in inputs:
        if target and path and Path(path).exists() and Path(path).resolve() == Path(target).resolve():
            raise DataError(f"{target} is read here, so it can't be the output", "name another file")


def acquire(lock: FileLock, held: str, hint: str) -> None:
    """Acquire a file lock without waiting. Raises DataError `held` with `hint`: another process has it."""
    from filelock import Timeout  # takes 30 ms

    try:
        lock.acquire(timeout=0)
    except Timeout:
        Path(lock.lock_file).touch()  # raises OSError where no lock can be made: filelock says the same then
        raise DataError(held, hint) from None


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
