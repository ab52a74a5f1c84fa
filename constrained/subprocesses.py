"""Child processes for work that may hang, crash or eat memory: limited, killed when late, never left behind.

`Subprocess` is any command. `Worker` is a Python process that answers requests: a module of ours whose `main` calls
:func:`serve`. Requests and answers are lines of JSON on the child's standard input and output:

    parent  [SECONDS, REQUEST]     a request and its time limit
    child   ["ready", null]        once, after its imports
            ["message", DATA]      part of an answer
            ["beat", null]         every second, while it works and sends nothing
            ["error", {...}]       what it raised
            ["done", null]         the answer is complete

A child ends when its parent does: its standard input is then at its end, and an alarm is set where the system has one.
"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from constrained.errors import ConstrainedError

START_SECONDS = 120.0
"""Time limit for a child's imports."""

BEAT = 1.0
"""Seconds between the signs of life of a child that works silently."""

Send = Callable[[Any], None]
"""Sends one message (plain data) to the parent."""


class SubprocessError(ConstrainedError):
    """A child process took too long, died, or didn't start.

    Attributes
    ----------
    how : str
        What happened, for a sentence: "died (exit status -9)".
    last_words : str
        The last line of its error output, for the end of that sentence; may be empty.
    late : bool
        Whether it was killed at its time limit.
    """

    def __init__(self, how: str, last_line: str = "", *, late: bool = False):
        self.how, self.late = how, late
        self.last_words = f"; its last words: {last_line}" if last_line else ""
        super().__init__(f"the child process {how}{self.last_words}")


class ChildError(ConstrainedError):
    """An exception that a child raised while it worked on a request, made from `error_data`.

    `line`, `column`: of an error in a file. `traceback`: of an unexpected exception; empty for a ConstrainedError, and
    for exhausted memory or recursion.
    """

    def __init__(self, data: Mapping[str, Any]):
        self.line, self.column = data.get("line"), data.get("column")
        self.traceback: str = data.get("traceback") or ""
        super().__init__(data["message"], data.get("hint"))


class Subprocess:
    """A running child process with pipes to its input and output; its standard error is kept in a file.

    It is killed when this object is closed or collected, and when this process exits.

    `folder`: where it runs.
    """

    def __init__(self, command: Sequence[str], folder: str | None = None):
        self._owner = os.getpid()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  open as long as this object
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=folder,
            text=True,
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the parent to act on
        )
        self._late_after: float | None = None
        self.close = weakref.finalize(self, _end, self._process, self._owner)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def owned(self) -> bool:
        """Whether this process started it, rather than the one that this was forked from."""
        return self._owner == os.getpid()

    @property
    def running(self) -> bool:
        """Whether it is alive and may be used by this process."""
        return self.owned and self._process.poll() is None

    @contextmanager
    def deadline(self, seconds: float) -> Iterator[None]:
        """Kill the process if the block takes longer; see :meth:`death` for what to raise then."""

        def kill() -> None:
            self._late_after = seconds
            self._process.kill()

        self._late_after = None
        timer = threading.Timer(seconds, kill)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def send(self, line: str) -> None:
        """Write one line to its input; a dead process is noticed by :meth:`receive`."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        except OSError:
            pass

    def receive(self) -> str:
        """Read one line of its output. Raises SubprocessError: it died, or was killed at the deadline."""
        assert self._process.stdout is not None
        try:
            line = self._process.stdout.readline()
        except (OSError, ValueError):  # closed by another thread
            line = ""
        if not line.endswith("\n"):
            raise self.death()
        return line[:-1]

    def died(self, seconds: float = 1.0) -> bool:
        """Wait up to `seconds` for its end; return whether it has ended."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def death(self) -> SubprocessError:
        """Kill the process and return what happened to it, with the last line of its error output."""
        self._process.kill()
        code = self._process.wait()
        self.close()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        late = self._late_after
        how = f"died (exit status {code})" if late is None else f"took longer than {late:g} seconds and was ended"
        return SubprocessError(
            how, next((line.strip() for line in reversed(lines) if line.strip()), ""), late=late is not None
        )


def _end(process: subprocess.Popen, owner: int) -> None:
    if os.getpid() != owner:
        return
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        try:
            if pipe is not None:
                pipe.close()
        except OSError:  # a request that was never read
            pass


class Worker:
    """A Python process that answers requests one at a time; started by the first, and again after it died.

    `module`: its `main` calls :func:`serve`. `memory`: bytes that the process may take beyond what it has after its
    imports (Linux).
    """

    def __init__(self, module: str, memory: int | None = None):
        self._module, self._memory = module, memory
        self._process: Subprocess | None = None
        self._ready = False

    @property
    def running(self) -> bool:
        """Whether the process is alive."""
        return self._process is not None and self._process.running

    @property
    def pid(self) -> int | None:
        """The process id; None before the first request."""
        return self._process.pid if self._process else None

    def start(self) -> None:
        """Start the process, if it isn't running, without waiting for its imports."""
        if self.running:
            return
        # The child finds the modules that we find, and none in the folder that it happens to run in.
        paths = [path or os.getcwd() for path in sys.path]
        code = f"import sys; sys.path[:] = {paths!r}; import {self._module} as module; module.main()"
        limit = [] if self._memory is None else [str(self._memory)]
        try:
            self._process, self._ready = Subprocess([sys.executable, "-c", code, *limit]), False
        except OSError as error:
            raise SubprocessError(f"couldn't be started: {error}") from None

    def ask(self, request: Any, seconds: float) -> Any:
        """Send a request (plain data) and return the last message of the answer.

        Raises SubprocessError: the process took too long, died or didn't start; the next request starts another. Raises
        ChildError: it raised an exception.
        """
        last = None
        for message in self.messages(request, seconds):
            last = message if message is not None else last
        return last

    def messages(self, request: Any, seconds: float) -> Iterator[Any]:
        """Send a request and yield the messages of the answer as they come, None for every second of silence.

        Closing the iterator before its end kills the process. Raises as :meth:`ask` does.
        """
        self.start()
        process, complete = self._process, False
        assert process is not None
        try:
            # The imports have a time limit of their own; the request's begins after them.
            if not self._ready:
                with process.deadline(START_SECONDS):
                    process.receive()
                self._ready = True
            with process.deadline(seconds):
                process.send(json.dumps([seconds, request]))
                while True:
                    kind, data = json.loads(process.receive())
                    if kind == "done":
                        complete = True
                        return
                    if kind == "error":
                        complete = True
                        raise ChildError(data)
                    yield data
        except ValueError:
            raise SubprocessError("answered something unreadable") from None
        finally:
            if not complete:
                process.close()

    def kill(self) -> None:
        """Kill the process at once; a request under way raises SubprocessError in its own thread."""
        if self._process is not None:
            self._process.close()

    close = kill


def serve(handle: Callable[[Any, Send], None]) -> None:
    """Answer requests until standard input ends; the first command line argument is the memory limit in bytes.

    `handle`: sends the messages of the answer. What it raises is sent to the parent.
    """
    # Three threads share the output: this one, one that reads requests (so that the parent's end is noticed while a
    # request is worked on), and one that sends signs of life.
    output, lock = os.fdopen(os.dup(1), "w", encoding="utf-8"), threading.Lock()
    os.dup2(2, 1)  # output of libraries must not mix with answers

    def send(kind: str, data: Any = None) -> None:
        with lock:
            output.write(json.dumps([kind, data]) + "\n")
            output.flush()

    def beat() -> None:
        while working.wait():
            time.sleep(BEAT)
            if working.is_set():
                send("beat")

    if len(sys.argv) > 1:
        limit_memory(int(sys.argv[1]))
    lines: SimpleQueue[str] = SimpleQueue()
    working = threading.Event()
    threading.Thread(target=_read_requests, args=(lines,), daemon=True).start()
    threading.Thread(target=beat, daemon=True).start()
    send("ready")
    while True:
        seconds, request = json.loads(lines.get())
        if hasattr(signal, "alarm"):  # ends the process even in the middle of a long call into C
            signal.alarm(math.ceil(seconds) + 1)
        working.set()
        last: tuple[str, Any]
        try:
            handle(request, lambda data: send("message", data))
            last = "done", None
        except (Exception, SystemExit) as error:
            last = "error", error_data(error)
        working.clear()
        send(*last)
        if hasattr(signal, "alarm"):
            signal.alarm(0)


def _read_requests(lines: SimpleQueue[str]) -> None:
    for line in sys.stdin:
        lines.put(line)
    os._exit(1)  # the parent is gone


def error_data(error: BaseException) -> dict[str, Any]:
    """Return an exception as plain data: message, hint, line and column, and a traceback where it was unexpected."""
    data: dict[str, Any] = dict.fromkeys(("hint", "line", "column"))
    if isinstance(error, ConstrainedError):
        place = {key: getattr(error, key, None) for key in ("line", "column")}
        return {"message": error.message, "hint": error.hint, **place}
    if isinstance(error, MemoryError):
        return {**data, "message": "it takes more memory than it may", "hint": "make it smaller"}
    if isinstance(error, RecursionError):
        return {**data, "message": "it is nested too deeply", "hint": "make it simpler"}
    trace = "".join(traceback.format_exception(error))
    return {**data, "message": f"{type(error).__name__}: {error}", "traceback": trace}


def limit_memory(size: int) -> None:
    """Let this process take `size` bytes more than it has now (Linux; elsewhere there is no limit)."""
    try:
        import resource

        with open("/proc/self/statm", encoding="ascii") as file:
            taken = int(file.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        return
    resource.setrlimit(resource.RLIMIT_AS, (taken + size, taken + size))
