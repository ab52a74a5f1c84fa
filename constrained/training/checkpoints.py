"""Checkpoints that are either complete or absent, and that detect damage.

A checkpoint is written under a temporary name, with the digests of its files, and renamed when it is complete. If it is
damaged later, the one before it is used.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from pathlib import Path

from constrained.files import file_digest

KEPT = 2
"""Number of checkpoints to keep: the last, and one to fall back on."""

MANIFEST = "files.json"
"""The file in a checkpoint that lists the digests of the others."""

PARTIAL = ".partial"
"""The folder beside the checkpoints in which the next one is written."""

logger = logging.getLogger(__name__)


def seal(written: Path, folder: Path, step: int) -> None:
    """Turn the folder `written` into the checkpoint of a step, and remove all but the newest `KEPT` checkpoints."""
    files = sorted(path for path in written.rglob("*") if path.is_file())
    digests = {file.relative_to(written).as_posix(): file_digest(file) for file in files}
    (written / MANIFEST).write_text(json.dumps(digests, indent=2), encoding="utf-8")
    os.replace(written, folder / f"step-{step}")
    for old in _checkpoints(folder)[:-KEPT]:
        shutil.rmtree(old)


def last_good(folder: Path) -> Path | None:
    """Return the newest undamaged checkpoint, or None; damaged ones are logged and renamed to ``damaged-step-N``."""
    shutil.rmtree(folder / PARTIAL, ignore_errors=True)
    for checkpoint in reversed(_checkpoints(folder)):
        damage = _damage(checkpoint)
        if damage is None:
            return checkpoint
        aside = checkpoint.with_name(f"damaged-{checkpoint.name}")
        shutil.rmtree(aside, ignore_errors=True)
        os.replace(checkpoint, aside)
        rest = _checkpoints(folder)
        resumed = f"resuming from {rest[-1].name}" if rest else "starting over, because there is no other"
        logger.warning("the checkpoint %s is damaged (%s): %s", checkpoint, damage, resumed)
    return None


def _checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, by step."""
    return sorted(folder.glob("step-*"), key=lambda path: int(path.name.removeprefix("step-")))


def _damage(checkpoint: Path) -> str | None:
    """Return what is wrong with a checkpoint; None if it is intact."""
    try:
        listed = json.loads((checkpoint / MANIFEST).read_text(encoding="utf-8"))
        for name, digest in listed.items():
            if file_digest(checkpoint / name) != digest:
                return f"{name} has changed since it was written"
    except OSError as error:
        return f"{Path(error.filename).name}: {error.strerror}"
    except (ValueError, AttributeError):
        return f"{MANIFEST} can't be read"
    return None
