"""One thread that writes all answers, side by side.

A request joins the batch at its next token, and leaves it when its answer is complete. This thread runs the model and
chooses tokens; what a request asks for is worked out in that request's own process.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from queue import Queue
from typing import Any

import torch

from constrained.decoding import Request
from constrained.decoding.generation import Writing, generate_joining
from constrained.decoding.loop import FreeText, Text
from constrained.decoding.sampling import LEAST
from constrained.errors import ConstrainedError
from constrained.grammar.source import Source
from constrained.models import LoadedModel
from constrained.server import bounds
from constrained.server.chat_request import RequestError, failed
from constrained.server.conversation import MARKERS, parts, read_rules
from constrained.server.preparation import Prepared, Shared, work
from constrained.server.processes import Processes
from constrained.server.texts import FollowedText, gone, wait_for


@dataclass(frozen=True)
class Answer:
    """A finished answer.

    Attributes
    ----------
    said : str
        The text beside the calls.
    calls : tuple of (str, str)
        The name of a tool and its arguments as JSON.
    finish : str
        "stop", "length" or "tool_calls".
    prompt_tokens, completion_tokens : int
    """

    said: str
    calls: tuple[tuple[str, str], ...]
    finish: str
    prompt_tokens: int
    completion_tokens: int


@dataclass(eq=False)
class Job:
    """A request that is being answered.

    Attributes
    ----------
    body : bytes
        The request, until it is prepared.
    tell : callable
        Called with each piece of a streamed text, then with the Answer or the error; from other threads.
    over : threading.Event
        Set when the client is gone.
    prepared : Prepared or None
        Set before `tell` is called, unless that is with an error.
    """

    body: bytes
    tell: Callable[[str | Answer | ConstrainedError], object]
    over: threading.Event = field(default_factory=threading.Event)
    deadline: float = field(default_factory=lambda: time.monotonic() + bounds.SECONDS)
    prepared: Prepared | None = None
    text: str = ""
    sent: int = 0

    @property
    def streams(self) -> bool:
        """Whether the text is sent piece by piece."""
        return self.prepared is not None and self.prepared.request.stream

    @property
    def usage(self) -> bool:
        """Whether a stream ends with the token counts."""
        return self.prepared is not None and self.prepared.request.stream_usage

    @property
    def late(self) -> bool:
        return self.over.is_set() or time.monotonic() > self.deadline


class Batches:
    """Answers requests with one model, in a thread of its own; each is prepared in a process of its own.

    Parameters
    ----------
    loaded : LoadedModel
    policy : Source, optional
        The knowledge that calls and texts obey.
    call_format : str
        A name of `constrained.server.conversation.MARKERS`.

    Raises
    ------
    ConstrainedError
        The policy can't be read.
    """

    def __init__(self, loaded: LoadedModel, policy: Source | None, call_format: str):
        self.loaded, self.marker = loaded, MARKERS[call_format]
        shared = Shared(loaded, None if policy is None else read_rules(policy), call_format)
        shared.warm()
        self._processes = Processes(partial(work, shared))
        self._preparing = ThreadPoolExecutor(bounds.PREPARED, "constrained-prepare")
        self._ready: Queue[tuple[Job, Writing]] = Queue()
        self._open: set[Job] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._work, name="constrained-serve", daemon=True).start()

    def submit(self, job: Job) -> None:
        """Queue a request.

        Raises
        ------
        RequestError
            Too many are waiting.
        """
        with self._lock:
            if len(self._open) >= bounds.WAITING:
                raise RequestError(f"{len(self._open)} requests are waiting", "try again later", status=429)
            self._open.add(job)
        self._preparing.submit(self._guarded, job, self._prepare)

    def waiting_bytes(self) -> int:
        """Bytes of the requests that aren't prepared yet."""
        with self._lock:
            return sum(len(job.body) for job in self._open)

    def _prepare(self, job: Job) -> None:
        """Let a process prepare a request, and hand it to the writing thread."""
        connection = self._processes.start()
        try:
            connection.send_bytes(job.body)
            job.body = b""
            found = _answer_of(connection, job)
            if isinstance(found, ConstrainedError):
                raise found
            job.prepared = found
            self._ready.put((job, self._writing(job, found, connection)))
        except BaseException:
            connection.close()
            raise

    def _writing(self, job: Job, prepared: Prepared, connection: Connection) -> Writing:
        request, vocabulary = prepared.request, self.loaded.vocabulary
        stops = request.stop if request.schema is None else []
        text: Text
        if prepared.first is None:
            connection.close()
            text = FreeText(vocabulary, prepared.prompt, prepared.limit, [stop.encode() for stop in stops])
        else:
            call = self.marker if prepared.holds_calls else ""
            text = FollowedText(vocabulary, prepared.prompt, connection, prepared.first, stops, call)
        seed = request.seed if request.seed is not None else int.from_bytes(os.urandom(7), "big")
        asked = Request(
            prepared.prompt,
            max_new_tokens=prepared.limit,
            stop=stops or None,
            generator=torch.Generator().manual_seed(seed % 2**63),
            on_text=lambda piece: self._grown(job, piece),
        )
        top_p = None if request.top_p == 1 else max(request.top_p, LEAST)
        return Writing(self.loaded, asked, request.temperature, top_p=top_p, text=text)

    def _work(self) -> None:
        while True:
            self._write_from([self._ready.get()])

    def _write_from(self, first: list[tuple[Job, Writing]]) -> None:
        """Answer `first` and the requests that join them, until none is left."""
        writing: dict[Writing, Job] = {}

        def arrive(room: int) -> Iterator[Writing]:
            while room > 0 and (first or not self._ready.empty()):
                job, begun = first.pop() if first else self._ready.get()
                if self._guarded(job, lambda _: True) is None:
                    _close(begun)
                    continue
                writing[begun] = job
                room -= 1
                yield begun

        def ended(one: Writing) -> None:
            job = writing.pop(one)
            _close(one)
            if (answer := self._guarded(job, lambda job: self._answer(job, one))) is not None:
                self._end(job, answer)

        # An error in one text ends that one alone (`ended`); an error of the model ends all that are being written.
        try:
            generate_joining(self.loaded, arrive, ended, wait=wait_for, call_seconds=bounds.CALL_SECONDS)
        except Exception as error:
            failure = failed(error)
            for one, job in writing.items():
                _close(one)
                self._end(job, failure)

    def _guarded(self, job: Job, do: Callable[[Job], Any]) -> Any:
        """Return ``do(job)``; report an error to the client and return None."""
        try:
            if job.late:
                raise RequestError(f"the answer took longer than {bounds.SECONDS:.0f} s", status=504)
            return do(job)
        except ConstrainedError as error:
            self._end(job, error)
        except Exception as error:  # the thread must not end: other requests wait for it
            self._end(job, failed(error))
        return None

    def _end(self, job: Job, told: Answer | ConstrainedError) -> None:
        with self._lock:
            self._open.discard(job)
        job.tell(told)

    def _grown(self, job: Job, piece: str) -> bool:
        assert job.prepared is not None
        if job.streams:
            job.text += piece
            text = job.text
            if job.prepared.holds_calls:
                text, _ = parts(job.text, self.marker, job.prepared.request.schema is not None, final=False)
            self._say(job, text)
        return not job.late

    def _say(self, job: Job, said: str) -> None:
        """Send the part of the text that wasn't sent yet."""
        if len(said) > job.sent:
            job.tell(said[job.sent :])
            job.sent = len(said)

    def _answer(self, job: Job, writing: Writing) -> Answer:
        if writing.text.error is not None:
            raise writing.text.error
        assert job.prepared is not None
        request, text, written = job.prepared.request, writing.text, writing.generation()
        answer_text: str = written.text
        calls: tuple[tuple[str, str], ...] = ()
        # The request's process has read the calls, unless a stop text ended the answer before them.
        if isinstance(text, FollowedText) and text.last is not None:
            answer_text, calls = text.last.said, text.last.calls
        if request.stream:
            self._say(job, answer_text)
        # The masks finish a text within its limit: without an end-of-text token, the limit ended it.
        ended = written.complete
        if isinstance(text, FollowedText):
            ended = request.schema is not None or written.end is not None or text.stop_at is not None
        finish = "tool_calls" if calls else "stop" if ended else "length"
        return Answer(answer_text, calls, finish, written.prompt_tokens, written.completion_tokens)


def _close(writing: Writing) -> None:
    """End the process of a request."""
    if isinstance(writing.text, FollowedText):
        writing.text.connection.close()


def _answer_of(connection: Connection, job: Job) -> Any:
    """The next message from a request's process. Raises RequestError: it is too late, or the process ended."""
    while not connection.poll(1.0):
        if job.late:
            raise RequestError(f"the answer took longer than {bounds.SECONDS:.0f} s", status=504)
    try:
        return connection.recv()
    except (EOFError, OSError):
        raise gone() from None
