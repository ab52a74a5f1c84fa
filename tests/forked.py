"""Processes of their own for tests, which need not import torch and transformers anew: copies of the one that tests."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable

import pytest

MAX_SECONDS = 600
"""A copy that still runs then is ended, so that its test fails and doesn't wait for ever."""


def forked(run: Callable[[], object]) -> int:
    """Call `run` in a copy of this process; returns the copy's id. It ends with 0, or with 1 if `run` raised."""
    if not hasattr(os, "fork"):
        pytest.skip("needs os.fork, which this system lacks")
    if copy := os.fork():
        return copy
    status = 1
    try:
        signal.alarm(MAX_SECONDS)
        run()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)  # without pytest's own end of the process


def ended(copy: int) -> int:
    """Wait for the end of a copy; its exit status, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1])
