"""The C kernel, where it is built and wanted.

`kernel` is the extension module, or None: then the same is done in Python, with the same
results. ``CONSTRAINED_KERNEL=python`` asks for that.
"""

from __future__ import annotations

import os
import sys

kernel = None
if os.environ.get("CONSTRAINED_KERNEL", "") != "python" and sys.byteorder == "little":
    try:
        from constrained.automaton import _kernel as kernel  # noqa: F401
    except ImportError:  # not built: no C compiler at hand
        pass
