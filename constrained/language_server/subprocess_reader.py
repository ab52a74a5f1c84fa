"""Read files in child processes, which are killed when they take too long or nobody waits for them any more."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from constrained.errors import ConstrainedError
from constrained.knowledge.lint import NOTE
from constrained.subprocesses import SubprocessError, Worker

SECONDS = 10.0
"""Time limit for reading one file."""

AT_ONCE = 2
"""Files that are read at the same time."""

MEMORY = 1 << 30
"""Bytes that reading a file may take (Linux)."""


class Reader:
    """Reads files, each in a fresh child process; the next one is started ahead, since its imports take longest."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._next: Worker | None = None

    async def read(self, text: str, name: str, path: str | None) -> dict:
        """Call `reading.read` in a child process; a finding says so if it takes too long or too much.

        Cancelling kills the process.
        """
        async with self._turns:
            process, self._next = self._next or _new(), None
            try:
                return await asyncio.to_thread(process.ask, {"text": text, "name": name, "path": path}, SECONDS)
            except SubprocessError as error:
                return _not_read(f"reading it {error.how}" if error.late else f"reading it failed: {error.message}")
            except ConstrainedError as error:
                return _not_read(f"reading it failed: {error.message}")
            finally:
                process.close()
                if self._next is None:
                    self._next = _new()
                    with suppress(SubprocessError):  # the next reading will say so
                        self._next.start()

    def close(self) -> None:
        """Kill the process that was started ahead."""
        if self._next is not None:
            self._next.close()


def _new() -> Worker:
    return Worker("constrained.language_server.reading", MEMORY)


def _not_read(message: str) -> dict:
    finding = {
        "code": "not-checked",
        "severity": NOTE,
        "message": message,
        "why": "there may be more to find",
        "fix": "constrained check has no such limit",
        **dict.fromkeys(("line", "column", "end_column")),
    }
    return {"findings": [finding], "names": {}, "tokens": [], "loads": False}
