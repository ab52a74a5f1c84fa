"""The playground as a command of its own, as people start it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

RUN = {
    "text": "", "source": None, "values": {}, "task": "go on", "strategy": "act", "masks": True, "seed": 1,
    "steps": 200, "model": None,
    "trace": None,
}  # fmt: skip

LONG = '%declare _STEP\nstart: go~199 stop\ngo: "go " /[a-z]{200}/ _STEP\nstop: "stop"\n'
"""A plan of two hundred long steps: no machine ends it before a test has looked at it."""


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[str, subprocess.Popen]]:
    """`constrained playground` with these arguments: its address and process. It is interrupted at last."""
    process = subprocess.Popen(
        [sys.executable, "-m", "constrained", "playground", "--no-browser", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        # What a shell runs in the background ignores it, and hands that on.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    try:
        first = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/", first)
        assert found, first + process.stderr.read()
        yield found[0], process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(120)
        finally:
            process.kill()
            process.stdout.close()
            process.stderr.close()
