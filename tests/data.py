"""Where real data lies: tests that need it skip, and say why, where it is absent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(os.environ.get("CONSTRAINED_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")


def shared(relative: str) -> Path:
    """Path of a shared data file or folder, e.g. ``shared("alfworld/index.jsonl")``.

    Looks under ``CONSTRAINED_DATA``, or ``../shared/data`` beside the checkout when that is not set; skips the
    calling test if nothing is there.
    """
    path = ROOT / relative
    if not path.exists():
        pytest.skip(f"needs {relative} of the shared data: not found under {ROOT} (set CONSTRAINED_DATA)")
    return path
