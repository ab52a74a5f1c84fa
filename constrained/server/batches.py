"""One thread that writes all answers: requests that wait are written side by side.

Requests that arrive while answers are being written wait for the end of the longest. Whatever needs the knowledge is
done in this thread, too.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import Queue
from typing import Any

import torch

from constrained.decoding import Generation, Request, generate_batch
from constrained.decoding.generation import MAX_ROWS
from constrained.errors import ConstrainedError
from constrained.grammar.source import Source
from constrained.knowledge.tool_calls import CallForm
from constrained.models import LoadedModel
from constrained.server import bounds
from constrained.server.chat_request import ChatRequest, RequestError
from constrained.server.conversation import Conversations, Writable, prompt

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Answer:
    """An answer that is finished.

    Attributes
    ----------
    said : str
    call : tuple of (str, str) or None
        A tool, and its arguments as JSON.
    finish : str
        "stop", "length" or "tool_calls".
    prompt_tokens, completion_tokens : int
    """

    said: str
    call: tuple[str, str] | None
    finish: str
    prompt_tokens: int
    completion_tokens: int


@dataclass(eq=False)
class Job:
    """A request on its way.

    Attributes
    ----------
    request : ChatRequest
    tell : callable
        Gets each piece of what is said, then the Answer or the error; in the writing thread.
    over : threading.Event
        Set when nobody waits for the answer any more.
    """

    request: ChatRequest
    tell: Callable[[str | Answer | ConstrainedError], object]
    over: threading.Event = field(default_factory=threading.Event)
    deadline: float = field(default_factory=lambda: time.monotonic() + bounds.SECONDS)
    writable: Writable | None = None
    text: str = ""
    sent: int = 0

    @property
    def late(self) -> bool:
        return self.over.is_set() or time.monotonic() > self.deadline


class Batches:
    """Answers requests with one model, in a thread of its own.

    Parameters
    ----------
    loaded : LoadedModel
    policy : Source, optional
        The knowledge (see `Conversations`).
    call_format : str
    """

    def __init__(self, loaded: LoadedModel, policy: Source | None, call_format: str):
        self.loaded, self.conversations = loaded, Conversations(policy, call_format)
        self._jobs: Queue[Job] = Queue()
        self._open = 0
        self._lock = threading.Lock()
        threading.Thread(target=self._work, name="constrained-serve", daemon=True).start()

    def submit(self, job: Job) -> None:
        """Let a request be answered.

        Raises
        ------
        RequestError
            Too many are waiting.
        """
        with self._lock:
            if self._open >= bounds.WAITING:
                raise RequestError(f"{self._open} requests are waiting", "come again later", status=429)
            self._open += 1
        self._jobs.put(job)

    def _work(self) -> None:
        while True:
            jobs = [self._jobs.get()]
            while len(jobs) < MAX_ROWS and not self._jobs.empty():
                jobs.append(self._jobs.get())
            groups: dict[tuple[float, float], list[tuple[Job, Request]]] = {}  # those that are sampled alike
            for job in jobs:
                if (prepared := self._guarded(job, self._prepared)) is not None:
                    key = job.request.temperature, job.request.top_p
                    groups.setdefault(key, []).append((job, prepared))
            for group in groups.values():
                self._write(group)

    def _guarded(self, job: Job, do: Callable[[Job], Any]) -> Any:
        """What `do` returns; None after an error, which is told."""
        try:
            if job.late:
                raise RequestError(f"it took longer than {bounds.SECONDS:.0f} s", status=504)
            return do(job)
        except ConstrainedError as error:
            self._end(job, error)
        except Exception as error:  # the thread must go on: others wait
            log.exception("a request could not be answered")
            self._end(job, RequestError(f"the server failed: {type(error).__name__}", status=500))
        return None

    def _end(self, job: Job, told: Answer | ConstrainedError) -> None:
        with self._lock:
            self._open -= 1
        job.tell(told)

    def _prepared(self, job: Job) -> Request:
        request = job.request
        job.writable = self.conversations.writable(request)
        knowledge = self.conversations.knowledge(request.tools) if request.tools else None
        explain = self.conversations.policy is not None
        seed = request.seed if request.seed is not None else int.from_bytes(os.urandom(7), "big")
        return Request(
            prompt(self.loaded, request, knowledge, explain),
            job.writable.grammar,
            request.max_tokens,
            request.stop if job.writable.grammar is None else None,
            generator=torch.Generator().manual_seed(seed % 2**63),
            on_text=lambda piece: self._grown(job, piece),
        )

    def _write(self, group: Sequence[tuple[Job, Request]]) -> None:
        sampling = group[0][0].request

        def write(pairs: Sequence[tuple[Job, Request]]) -> list[Generation]:
            requests = [request for _, request in pairs]
            return generate_batch(self.loaded, requests, temperature=sampling.temperature, top_p=sampling.top_p or None)

        def alone(job: Job, request: Request) -> Generation:
            if job.text:
                raise RequestError("the server failed while it wrote", status=500)
            return write([(job, request)])[0]

        try:
            written: list[Generation | None] = list(write(group))
        except Exception:  # one by one, as the error doesn't say whose request it was
            written = [self._guarded(job, partial(alone, request=request)) for job, request in group]
        for (job, _), generation in zip(group, written, strict=True):
            if generation is not None:
                answer = self._guarded(job, partial(self._answer, written=generation))
                if answer is not None:
                    self._end(job, answer)

    def _grown(self, job: Job, piece: str) -> bool:
        job.text += piece
        said, _ = self._parts(job, final=False)
        if len(said) > job.sent:
            job.tell(said[job.sent :])
            job.sent = len(said)
        return not job.late

    def _parts(self, job: Job, final: bool) -> tuple[str, str]:
        """(what is said, a call) of the text so far; what may be the beginning of a call is held back."""
        assert job.writable is not None
        text, marker, form = job.text, self.conversations.marker, job.writable.form
        if form is None:
            return text, ""
        if job.request.schema is not None:  # JSON, too: only the whole tells
            return ("", "") if not final else ("", text) if form.read(text) else (text, "")
        if marker == "{":
            return ("", text) if text.lstrip().startswith(marker) else (text if text.strip() else "", "")
        said, found, call = text.partition(marker)
        if not found and not final:
            held = next((n for n in range(len(marker) - 1, 0, -1) if text.endswith(marker[:n])), 0)
            said = text[: len(text) - held]
        return said, found + call

    def _answer(self, job: Job, written: Generation) -> Answer:
        assert job.writable is not None
        if job.late:
            raise RequestError(f"it took longer than {bounds.SECONDS:.0f} s", status=504)
        job.text = written.text
        said, text = self._parts(job, final=True)
        if len(said) > job.sent:
            job.tell(said[job.sent :])
        grammar, form = job.writable.grammar, job.writable.form
        call = _call(form, text) if text and form is not None else None
        # the masks end a text within its limit: what did not end by itself ended there
        ended = written.complete if grammar is None else job.request.schema is not None or written.end is not None
        finish = "tool_calls" if call else "stop" if ended else "length"
        return Answer(said, call, finish, written.prompt_tokens, written.completion_tokens)


def _call(form: CallForm, text: str) -> tuple[str, str]:
    """The tool, and its arguments as they are written."""
    call = form.read(text)
    assert call is not None, "the masks wrote it"
    before, _, after = form.template.partition("ARGUMENTS")
    head = before.replace("NAME", json.dumps(call[0], ensure_ascii=False)[1:-1])
    if text.startswith(head) and text.endswith(after):
        return call[0], text[len(head) : len(text) - len(after)]
    return call[0], json.dumps(call[1], ensure_ascii=False)
