"""A process that works on what was typed, so that what takes too long, or is not wanted any more, can be ended."""

from __future__ import annotations

import multiprocessing
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection

from constrained.errors import ConstrainedError
from constrained.playground import bounds
from constrained.playground.jobs import serve

BEAT = 1.0
"""Seconds of silence after which a listener is told that the job goes on."""


class WorkerError(ConstrainedError):
    """A job that took too long or too much, or was stopped."""


class Busy(ConstrainedError):
    """There is a job already, and it is not to be waited for."""


class Worker:
    """One such process: started by its first job, it does one job after the other.

    Parameters
    ----------
    memory : int, optional
        Bytes that it may take for its jobs.
    """

    def __init__(self, memory: int | None = None):
        self._memory = memory
        self._turn = threading.Lock()
        self._process: multiprocessing.process.BaseProcess | None = None
        self._pipe: Connection | None = None

    def answer(self, *jobs: tuple[str, dict, float]) -> dict:
        """Do jobs, one after the other, each with a time limit in seconds; what the last one says, or one's "error".

        Raises
        ------
        WorkerError
            A job took too long or too much, or was stopped.
        """
        said: dict = {}
        with self._turn:
            for job, request, seconds in jobs:
                said = [message for message in self._said(job, request, seconds) if message][-1]
                if "error" in said:
                    break
        return said

    def messages(self, job: str, request: dict, seconds: float) -> Iterator[dict]:
        """What a job says, as it says it; an empty dict for every second in which it says nothing.

        Whoever stops listening ends the job.

        Raises
        ------
        Busy
            Another job is under way.
        WorkerError
            The job took too long or too much, or was stopped.
        """
        if not self._turn.acquire(timeout=2 * BEAT):  # one that was just stopped, or left, is over by then
            raise Busy("a run is under way", "stop it, or wait for its end")
        try:
            yield from self._said(job, request, seconds)
        finally:
            self._turn.release()

    def stop(self) -> None:
        """End the job that is under way, at once; nothing where there is none."""
        process = self._process
        if self._turn.locked() and process is not None:
            process.kill()  # whoever listens finds the pipe at its end

    def close(self) -> None:
        """End the process; the next job starts another."""
        self._kill()

    def _said(self, job: str, request: dict, seconds: float) -> Iterator[dict]:
        done = False
        try:
            if self._process is None or not self._process.is_alive():
                yield from self._start()
            self._pipe.send((job, request))
            for message in self._received(seconds):
                done = message is None
                if done:
                    return
                yield message
        except (EOFError, OSError):
            raise WorkerError("it was stopped, or took more memory than there is for it") from None
        finally:
            if not done:
                self._kill()

    def _start(self) -> Iterator[dict]:
        context = multiprocessing.get_context("spawn")  # threads and forks don't go together
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=serve, args=(other, self._memory), daemon=True)
        self._process.start()
        other.close()
        for message in self._received(bounds.START_SECONDS):
            if message is None:
                return
            yield message

    def _received(self, seconds: float) -> Iterator[dict | None]:
        """Messages, up to the None that ends a job."""
        until = time.monotonic() + seconds
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise WorkerError(f"it took longer than {seconds:g} seconds and was ended", "make it simpler")
            if not self._pipe.poll(min(left, BEAT)):
                yield {}
                continue
            message = self._pipe.recv()
            yield message
            if message is None:
                return

    def _kill(self) -> None:
        process = self._process
        if process is not None and process.is_alive():
            process.kill()
            process.join()
