"""Ctrl-C while the command starts: one line and exit code 130, not a traceback out of some import.

The package imports this module before all others, which take a second. It changes nothing unless the process is the
command, `constrained` or `python -m constrained`.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended: 128 and the number of the signal, as of shells."""


def _is_command() -> bool:
    name = os.path.basename(sys.argv[0]) if sys.argv else ""
    if name != "-m":  # which stands there while `python -m` looks for the package
        return name in ("constrained", "constrained.exe")
    words = sys.orig_argv
    return words[words.index("-m") + 1 :][:1] == ["constrained"] if "-m" in words else "-mconstrained" in words


def _end(*_: object) -> None:
    os.write(2, b"interrupted\n")
    os._exit(INTERRUPTED)


def _begin() -> None:
    # Where the signal is ignored, as in the background of a script, it stays so.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


@contextmanager
def raised() -> Iterator[None]:
    """Within, Ctrl-C raises KeyboardInterrupt as usual; before and after it ends the command at once."""
    if signal.getsignal(signal.SIGINT) is not _end:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, _end)


if _is_command():
    _begin()
