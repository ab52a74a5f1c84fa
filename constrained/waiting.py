"""A line on the terminal about whatever takes more than a second."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

AFTER = 1.0
"""Seconds after which the line appears."""

TICK = 0.25
"""Seconds between two looks at the clock."""


@contextmanager
def waiting(what: str, show: bool = True) -> Iterator[Callable[[str], None]]:
    """Show on standard error what is being waited for, and how long, if that is a terminal.

    Parameters
    ----------
    what : str
    show : bool
        False: show nothing.

    Yields
    ------
    callable
        Takes what comes next: the line is removed, and appears again if that takes long. Call it before you print.
    """
    if not show or sys.stderr is None or not sys.stderr.isatty():
        yield lambda what: None
        return
    line = _Line(what)
    line.start()
    try:
        yield line.say
    finally:  # after an error and Ctrl-C, too: no thread is left, and no half of a line
        line.end()


class _Line(threading.Thread):
    """Writes the line again and again. The cursor is left at its beginning, so that what others print replaces it."""

    def __init__(self, what: str):
        super().__init__(name="constrained-waiting", daemon=True)
        self._file, self._lock, self._over = sys.stderr, threading.Lock(), threading.Event()
        self._what, self._since, self._shown = what, time.monotonic(), 0

    def run(self) -> None:
        while not self._over.wait(TICK):
            with self._lock:
                seconds = time.monotonic() - self._since
                if seconds >= AFTER:
                    self._write(f"{self._what} … {seconds:.0f} s")

    def say(self, what: str) -> None:
        with self._lock:
            self._write("")
            self._what, self._since = what, time.monotonic()

    def end(self) -> None:
        self._over.set()
        self.join()
        self._write("")

    def _write(self, text: str) -> None:
        text = text[: shutil.get_terminal_size().columns - 1]
        if text or self._shown:
            try:
                print(f"\r{text:<{self._shown}}\r", end="", file=self._file, flush=True)
            except (OSError, ValueError):  # the terminal is gone, or its encoding lacks a character
                self._over.set()
            self._shown = len(text)
