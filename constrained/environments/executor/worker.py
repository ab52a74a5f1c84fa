"""A process that does the mathematics, so that what takes too long or too much can be ended.

It is started by its first task, serves one task after the other, and ends with its parent. A task that passes
the time limit costs the process, and the next one starts another. Needs POSIX, for waiting at a pipe.
"""

from __future__ import annotations

import atexit
import math
import os
import subprocess
import sys
from multiprocessing.connection import Connection

from constrained.errors import ActionError
from constrained.process_limits import limit_memory

SECONDS = 5.0
"""Time limit of one action."""
MEMORY = 1 << 30
"""Bytes that the process may take for its tasks, beyond what its libraries take (Linux)."""
_START_SECONDS = 120.0


class Worker:
    """One such process.

    Parameters
    ----------
    seconds : float
        Time limit of a task.
    """

    def __init__(self, seconds: float = SECONDS):
        self.seconds = seconds
        self._process: subprocess.Popen | None = None

    def perform(self, *task):
        """`constrained.environments.executor.mathematics.perform(*task)`, over there.

        Raises
        ------
        ActionError
            The task's own, or the time or memory limit's.
        """
        if self._process is None or self._process.poll() is not None:
            self._start()
        try:
            self._send.send((self.seconds, task))
            if not self._receive.poll(self.seconds):
                self.close()
                hint = "use smaller numbers or simpler steps"
                raise ActionError(f"it took longer than {self.seconds:g} seconds", hint)
            done, answer, hint = self._receive.recv()
        except (EOFError, OSError):
            self.close()
            raise ActionError("it took more memory than there is for it", "use smaller numbers") from None
        if not done:
            raise ActionError(answer, hint)
        return answer

    def _start(self) -> None:
        if os.name != "posix":
            raise ActionError("the mathematics need a POSIX system (Linux, macOS)")
        self.close()
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._send = Connection(os.dup(self._process.stdin.fileno()), readable=False)
        self._receive = Connection(os.dup(self._process.stdout.fileno()), writable=False)
        try:
            ready = self._receive.poll(_START_SECONDS) and self._receive.recv()
        except EOFError:
            ready = False
        if not ready:
            self.close()
            hint = f"see what `{sys.executable} -m {__name__}` says"
            raise ActionError("the process for mathematics doesn't start", hint)

    def close(self) -> None:
        """End the process; the next task starts another."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for end in (process.stdin, process.stdout, self._send, self._receive):
                end.close()


_shared: dict[int, Worker] = {}


def shared_worker() -> Worker:
    """The worker of this process, which all executors use that are given none."""
    if os.getpid() not in _shared:
        _shared.clear()  # a fork's copies belong to its parent
        _shared[os.getpid()] = Worker()
        atexit.register(_shared[os.getpid()].close)
    return _shared[os.getpid()]


def _serve() -> None:
    """Answer tasks from standard input until it ends."""
    import signal

    from constrained.environments.executor.mathematics import perform

    receive, send = Connection(os.dup(0), writable=False), Connection(os.dup(1), readable=False)
    os.dup2(2, 1)  # what is printed here is no answer
    limit_memory(MEMORY)
    send.send(True)
    while True:
        try:
            seconds, task = receive.recv()
        except EOFError:
            return
        signal.alarm(math.ceil(seconds) + 1)  # should the parent be gone
        send.send(_answer(perform, task))
        signal.alarm(0)


def _answer(perform, task) -> tuple[bool, object, str | None]:
    try:
        return True, perform(*task), None
    except ActionError as error:
        return False, error.message, error.hint
    except (MemoryError, OverflowError):
        return False, "it takes more memory than there is for it", "use smaller numbers"
    except RecursionError:
        return False, "it is nested too deeply", "use simpler steps"
    except Exception as error:  # sympy's own, of many kinds, on input that it has no method for
        return False, f"it can't be done: {str(error)[:200] or type(error).__name__}", "use simpler steps"


if __name__ == "__main__":
    _serve()
