"""The C kernel, loaded where it is built and wanted.

`kernel` is the extension module, or None: then Python does the same work, with the same results,
but many times slower. ``CONSTRAINED_KERNEL=python`` asks for that.
"""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from importlib import import_module
from pathlib import Path
from types import ModuleType

SOURCES = Path(__file__).parent / "kernel"
BUILD = "python setup.py build_ext --inplace --force"


def _load() -> ModuleType | None:
    if os.environ.get("CONSTRAINED_KERNEL", "") == "python":
        return None
    try:
        if sys.byteorder != "little":
            raise ImportError("it needs a little-endian machine")
        kernel = import_module("constrained.automaton._kernel")
        if sources_digest(SOURCES) not in (None, getattr(kernel, "SOURCES", "")):
            raise ImportError(f"it was built from other C files than those in {SOURCES}")
    except ImportError as error:
        warnings.warn(
            f"the C kernel is not used ({error}): masks are computed in Python, the same ones, but about forty times "
            f"slower. With a C compiler, in the checkout: {BUILD}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return kernel


def sources_digest(folder: Path) -> str | None:
    """A digest of the kernel's C files, as setup.py compiles it in; None where there are none."""
    files = sorted(folder.glob("*.[ch]"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16] if files else None


kernel = _load()
