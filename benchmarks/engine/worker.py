"""An engine in a process of its own, so that it shares no memory, threads or caches, and can be stopped.

The parent makes one call at a time with a time limit; an engine that takes longer is killed, and restarted with the
next call.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from unittest.mock import patch

from benchmarks.engine import engines
from constrained.errors import ConstrainedError

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1") | {
    "TOKENIZERS_PARALLELISM": "false"
}
START_SECONDS = 120.0
"""Time limit for importing an engine and preparing a vocabulary."""


class OverTime(Exception):
    """A call took too long; the engine was killed."""


class Worker:
    """An object in a process of its own, whose methods can be called.

    Parameters
    ----------
    name : str
        The engine's name.
    make : callable
        Makes the object in that process, from `arguments`; must be importable. The result of the object's `hello` is
        kept as `started`.
    """

    def __init__(self, name: str, make: Callable, *arguments):
        self.name, self._make, self._arguments = name, make, arguments
        self.started: dict = {}
        self._process = None
        self._pipe = None

    def start(self) -> dict:
        """Start the process; returns the result of `hello`. Raises as `ask`, or Refused if it is not installed."""
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._make, self._arguments), daemon=True)
        with patch.dict(os.environ, ONE_THREAD):
            self._process.start()
        theirs.close()
        self.started = self._answer(START_SECONDS)
        return self.started

    def ask(self, question: str, *arguments, seconds: float):
        """The result of the object's method `question`.

        Raises
        ------
        engines.Refused
            The engine can't do it.
        OverTime
            It took longer than `seconds`, and was killed.
        """
        if self._process is None:
            self.start()
        self._pipe.send((question, arguments))
        return self._answer(seconds)

    def _answer(self, seconds: float):
        try:
            if not self._pipe.poll(seconds):
                self.stop()
                raise OverTime(f"over {seconds:.0f} s")
            kind, answer = self._pipe.recv()
        except (EOFError, ConnectionError):
            self._process.join(5)
            code = self._process.exitcode
            self.stop()
            if self.name == "ours":
                raise ConstrainedError(f"our engine's process ended ({code})", "the reason stands above") from None
            raise engines.Refused(f"its process ended ({code}); its messages are on stderr") from None
        if kind == "refused":
            raise engines.Refused(answer)
        return answer

    @property
    def running(self) -> bool:
        """Whether the process runs and has kept its state."""
        return self._process is not None

    def stop(self) -> None:
        """End the process: it exits if it is waiting for a call, else it is killed."""
        if self._process is not None:
            self._pipe.close()
            self._process.join(1)
            self._process.kill()
            self._process.join()
        self._process = self._pipe = None


def _serve(pipe, make: Callable, arguments: tuple) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the parent, which ends its workers
    try:
        answers = make(*arguments)
        pipe.send(("ok", answers.hello()))
    except ImportError as error:
        pipe.send(("refused", f"not installed: {error}"))
        return
    except engines.Refused as error:
        pipe.send(("refused", str(error)))
        return
    while True:
        try:
            question, asked = pipe.recv()
        except EOFError:
            return
        try:
            answer = "ok", getattr(answers, question)(*asked)
        except engines.Refused as error:
            answer = "refused", str(error)
        try:
            pipe.send(answer)
        except BrokenPipeError:  # it took too long, and the parent has given up
            return
