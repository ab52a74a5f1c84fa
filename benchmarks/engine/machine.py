"""What the figures were taken on: the processor and the versions, nothing that names the machine."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def describe() -> dict[str, str | int]:
    """Processor, cores, Python and system."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    except OSError:
        pass
    return platform.processor() or "unknown"
