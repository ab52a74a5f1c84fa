"""An engine in a process of its own: its memory, threads and caches touch no other, and it can be stopped.

The parent asks for one thing at a time and waits at most so long; an engine that takes longer is ended, and begins
anew with the next question.
"""

from __future__ import annotations

import multiprocessing
import os
import traceback
from contextlib import contextmanager

from benchmarks.engine import engines, measure
from benchmarks.engine.vocabularies import Tokens, tokenizer
from benchmarks.engine.workloads import Workload

ONE_THREAD = {
    name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
} | {"TOKENIZERS_PARALLELISM": "false"}
START_SECONDS = 120.0
"""Longest that an engine may take to be imported and to prepare a vocabulary."""


class OverTime(Exception):
    """An answer took too long; the engine was ended."""


class Worker:
    """One engine over one vocabulary; started by the first question.

    Parameters
    ----------
    name : str
        Of the engine, or of one that answers as its module does.
    tokens : Tokens
    """

    def __init__(self, name: str, tokens: Tokens):
        self.name, self.tokens = name, tokens
        self.started: dict = {}
        self._process = None
        self._pipe = None

    def start(self) -> dict:
        """What the engine says of itself: version, seconds of preparation; once a process.

        Raises
        ------
        engines.Refused
            It is not installed, or can't take the vocabulary.
        OverTime
        """
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self.name, self.tokens), daemon=True)
        with _one_thread():
            self._process.start()
        theirs.close()
        self.started = self._answer(START_SECONDS)
        return self.started

    def ask(self, question: str, *arguments, seconds: float):
        """The answer of `_Answers`'s method `question`.

        Raises
        ------
        engines.Refused
            The engine says it can't.
        OverTime
            It took longer than `seconds`, and is stopped.
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
            code = self._process.exitcode
            self.stop()
            raise engines.Refused(f"its process ended ({code})") from None
        if kind == "refused":
            raise engines.Refused(answer)
        if kind == "failed":
            self.stop()
            raise RuntimeError(f"{self.name}: {answer}")
        return answer

    def stop(self) -> None:
        """End the process, at once."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
        self._process = self._pipe = None


@contextmanager
def _one_thread():
    before = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update(ONE_THREAD)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class _Answers:
    """What an engine can be asked; runs in its process."""

    def __init__(self, name: str, tokens: Tokens):
        self.adapter = engines.engine(name)
        self.tokens = tokens
        if self.adapter.NEEDS_TOKENIZER:  # not part of the preparation of a vocabulary
            tokenizer(tokens.name)
        self.vocabulary, self.preparation = measure.time_preparation(self.adapter, tokens)
        self.workload: Workload | None = None
        self.ids: list = []

    def take(self, workload: Workload, ids: list) -> None:
        """The workload that the next questions are about."""
        self.workload, self.ids = workload, ids

    def walk(self, seconds: float) -> measure.Walk:
        return measure.walk(self.adapter, self.vocabulary, self.workload, self.ids, keep=True, seconds=seconds)

    def times(self, repeats: int, seconds: float) -> list[measure.Times]:
        return measure.time_walks(self.adapter, self.vocabulary, self.workload, self.ids, repeats, seconds)

    def ahead(self, repeats: int, seconds: float) -> list[float]:
        return measure.time_ahead(self.adapter, self.vocabulary, self.workload, repeats, seconds)

    def probe(self) -> dict[str, bool]:
        return measure.probe(self.adapter, self.vocabulary, self.tokens)


def _serve(pipe, name: str, tokens: Tokens) -> None:
    try:
        answers = _Answers(name, tokens)
        said = {
            "version": answers.adapter.version(),
            "eager": answers.adapter.EAGER,
            "preparation": answers.preparation,
            "cached": [],
        }
        pipe.send(("ok", said))
    except ImportError as error:
        pipe.send(("refused", f"not installed: {error}"))
        return
    except engines.Refused as error:
        pipe.send(("refused", str(error)))
        return
    while True:
        try:
            question, arguments = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(("ok", getattr(answers, question)(*arguments)))
        except engines.Refused as error:
            pipe.send(("refused", str(error)))
        except Exception:  # told to the parent, which ends the run with it
            pipe.send(("failed", traceback.format_exc()))
