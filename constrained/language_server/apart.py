"""Files read in processes of their own, which are ended when they take too long or nobody waits for them any more."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from pathlib import Path

from constrained.knowledge.lint import NOTE

SECONDS = 10.0
"""After which reading a file is given up."""

AT_ONCE = 2
"""Files that are read at the same time."""

_ROOT = Path(__file__).parents[2]
"""Where a reading runs: Python imports from there first, and must not from the folder that somebody opened."""


class Reader:
    """What reads files, each in a fresh process; the next is started as one ends, since imports take longest."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._next: Process | None = None

    async def read(self, text: str, name: str, path: str | None) -> dict:
        """As `reading.read`; one finding that says so if it takes too long or too much.

        Cancelling it ends the process.
        """
        asked = json.dumps({"text": text, "name": name, "path": path}).encode()
        async with self._turns:
            process = None
            try:
                process, self._next = self._next, None
                if process is None or process.returncode is not None:
                    process = await _start()
                answer, _ = await asyncio.wait_for(process.communicate(asked), SECONDS)
                return json.loads(answer)
            except asyncio.TimeoutError:
                return _not_read(f"reading it took longer than {SECONDS:g} seconds")
            except ValueError:
                return _not_read("reading it failed; it may have taken more memory than there is for it")
            except OSError as error:
                return _not_read(f"no process could be started to read it: {error}")
            finally:
                await _end(process)
                await self._prepare()

    async def _prepare(self) -> None:
        with suppress(OSError):  # the next reading will say so
            if self._next is None:
                self._next = await _start()

    async def close(self) -> None:
        """End the process that waits."""
        process, self._next = self._next, None
        await _end(process)


async def _start() -> Process:
    command = sys.executable, "-m", "constrained.language_server.reading"
    return await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, cwd=_ROOT)


async def _end(process: Process | None) -> None:
    if process is not None:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


def _not_read(message: str) -> dict:
    place = {"line": None, "column": None, "end_column": None}
    words = {"message": message, "why": "there may be more to find", "fix": "constrained check has no such limit"}
    finding = {"code": "not-checked", "severity": NOTE, **words, **place}
    return {"findings": [finding], "names": {}, "tokens": [], "loads": False}
