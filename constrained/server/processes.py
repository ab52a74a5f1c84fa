"""A process for each request, in which it is prepared and its masks are computed, so that its cost delays no other.

The processes are forked from one that holds the tokenizer, the vocabulary and the policy and does nothing else, so that
one is there within milliseconds. It ends with its request, and gives back what it took. Its processor time and memory
are limited, and the longer it works the less urgent it gets. Where the system can't fork (Windows, and macOS, whose
frameworks don't survive it), a request has a thread, without these limits.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from constrained.server import bounds
from constrained.subprocesses import limit_memory

Work = Callable[[Connection], None]
"""Follows one request, which it gets over the connection; ends when the connection is closed."""

FORKS = sys.platform == "linux"

LEAST_URGENT = 15
"""Niceness up to which work gets less urgent; the rest of the range means idle."""


class TooLong(BaseException):
    """The work takes too much processor time. Not an Exception, since the interrupted code might catch that."""


class Processes:
    """Starts a process for each request. Made before the server has threads: a fork copies only its own.

    Parameters
    ----------
    work : callable
        Runs in each process.
    """

    def __init__(self, work: Work):
        self._work = work
        self._lock = threading.Lock()
        if FORKS:
            self._parent = _fork_parent(work)

    def start(self) -> Connection:
        """A connection to a new process. Raises OSError: no process can be started."""
        ours, theirs = Pipe()
        if not FORKS:
            threading.Thread(target=_in_thread, args=(self._work, theirs), daemon=True).start()
            return ours
        with theirs, self._lock:
            socket.send_fds(self._parent, [b"."], [theirs.fileno()])
        return ours


def _in_thread(work: Work, connection: Connection) -> None:
    with connection, suppress(EOFError, OSError):
        work(connection)


def _fork_parent(work: Work) -> socket.socket:
    """Fork the process from which all others are forked; its end of the returned socket closes when it ends."""
    ours, theirs = socket.socketpair()
    parallel = "TOKENIZERS_PARALLELISM"  # the package tokenizers warns of a fork if this variable isn't set
    decided = os.environ.get(parallel)
    os.environ.setdefault(parallel, "false")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # about a fork while threads run
        pid = os.fork()
    if pid == 0:
        try:
            _close_files_except(theirs.fileno())
            _parent(theirs, work)
        finally:
            os._exit(0)
    theirs.close()
    if decided is None:
        del os.environ[parallel]
    return ours


def _close_files_except(kept: int) -> None:
    """Close the inherited files except `kept`: otherwise connections that the server closes would stay open here."""
    import resource  # not on Windows

    os.closerange(3, kept)
    os.closerange(kept + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _parent(starts: socket.socket, work: Work) -> None:
    """Fork a process for each connection that is sent, until the server has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server handles Ctrl+C
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no exit status is read, so that no zombies stay
    gc.collect()
    gc.freeze()  # garbage collection would write to shared pages
    while True:
        _, files, _, _ = socket.recv_fds(starts, 1, 1)
        if not files:
            return
        with suppress(OSError):  # no process can be forked: the server notices that its connection is closed
            if os.fork() == 0:
                try:
                    starts.close()
                    _run(work, Connection(files[0]))
                finally:
                    os._exit(0)
        os.close(files[0])


def _run(work: Work, connection: Connection) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.nice(5)  # the model has precedence
    limit_memory(bounds.MEMORY)
    with suppress(EOFError, OSError):  # the client has gone
        work(connection)


@contextmanager
def limited() -> Iterator[None]:
    """Limit the processor time of what is done inside; a process that is deep in C code is killed a second later.

    Raises TooLong.
    """
    if not FORKS or threading.current_thread() is not threading.main_thread():
        yield
        return
    import resource

    began = time.process_time()

    def tick(*_: object) -> None:
        if time.process_time() - began > bounds.WORK_SECONDS:
            raise TooLong
        if os.getpriority(os.PRIO_PROCESS, 0) < LEAST_URGENT:
            os.nice(5)

    signal.signal(signal.SIGPROF, tick)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (int(began + bounds.WORK_SECONDS) + 2, hard))
    signal.setitimer(signal.ITIMER_PROF, bounds.YIELD_SECONDS, bounds.YIELD_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
