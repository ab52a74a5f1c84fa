"""One thread that writes all answers, side by side.

A request joins the batch at its next token, and leaves it when its answer is complete. The knowledge is also read and
followed in this thread.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from queue import Queue
from typing import Any

import torch

from constrained.decoding import Request
from constrained.decoding.generation import Writing, generate_joining
from constrained.decoding.sampling import LEAST
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
    request : ChatRequest
    tell : callable
        Called in the writing thread with each piece of text, then with the Answer or the error.
    over : threading.Event
        Set when the client is gone.
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
    """Answers requests with one model, in its own thread.

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
        """Queue a request.

        Raises
        ------
        RequestError
            Too many are waiting.
        """
        with self._lock:
            if self._open >= bounds.WAITING:
                raise RequestError(f"{self._open} requests are waiting", "try again later", status=429)
            self._open += 1
        self._jobs.put(job)

    def _work(self) -> None:
        while True:
            self._write_from([self._jobs.get()])

    def _write_from(self, first: list[Job]) -> None:
        """Answer `first` and the requests that join them, until none is left."""
        writing: dict[Writing, Job] = {}

        def arrive(room: int) -> Iterator[Writing]:
            while room > 0 and (first or not self._jobs.empty()):
                job = first.pop() if first else self._jobs.get()
                if (begun := self._guarded(job, self._begun)) is not None:
                    writing[begun] = job
                    room -= 1
                    yield begun

        def ended(one: Writing) -> None:
            job = writing.pop(one)
            if (answer := self._guarded(job, lambda job: self._answer(job, one))) is not None:
                self._end(job, answer)

        # An error in one text ends that one alone (`ended`); an error of the model ends all that are being written.
        try:
            generate_joining(self.loaded, arrive, ended)
        except Exception as error:
            log.exception("the model failed")
            for job in writing.values():
                self._end(job, _failed(error))

    def _guarded(self, job: Job, do: Callable[[Job], Any]) -> Any:
        """Return ``do(job)``; report an error to the client and return None."""
        try:
            if job.late:
                raise RequestError(f"the answer took longer than {bounds.SECONDS:.0f} s", status=504)
            return do(job)
        except ConstrainedError as error:
            self._end(job, error)
        except Exception as error:  # the thread must go on: others wait
            log.exception("a request could not be answered")
            self._end(job, _failed(error))
        return None

    def _end(self, job: Job, told: Answer | ConstrainedError) -> None:
        with self._lock:
            self._open -= 1
        job.tell(told)

    def _begun(self, job: Job) -> Writing:
        request = job.request
        job.writable = self.conversations.writable(request)
        knowledge = self.conversations.knowledge(request.tools) if request.tools else None
        explain = self.conversations.policy is not None
        seed = request.seed if request.seed is not None else int.from_bytes(os.urandom(7), "big")
        asked = Request(
            prompt(self.loaded, request, knowledge, explain),
            job.writable.grammar,
            request.max_tokens,
            request.stop or None,
            generator=torch.Generator().manual_seed(seed % 2**63),
            on_text=lambda piece: self._grown(job, piece),
        )
        top_p = None if request.top_p == 1 else max(request.top_p, LEAST)
        return Writing(self.loaded, asked, request.temperature, top_p=top_p)

    def _grown(self, job: Job, piece: str) -> bool:
        job.text += piece
        said, _ = self._parts(job, final=False)
        if len(said) > job.sent:
            job.tell(said[job.sent :])
            job.sent = len(said)
        return not job.late

    def _parts(self, job: Job, final: bool) -> tuple[str, str]:
        """Split the text so far into (what is said, calls); the possible beginning of a call is held back."""
        assert job.writable is not None
        text, marker, form = job.text, self.conversations.marker, job.writable.form
        if form is None:
            return text, ""
        if job.request.schema is not None:  # both are JSON: only the whole text decides which
            called = text.startswith(marker) and (marker != "{" or form.read(text))
            return ("", "") if not final else ("", text) if called else (text, "")
        # Calls that are bare JSON: the whole answer is a call if it begins as one.
        if marker == "{":
            return ("", text) if text.lstrip().startswith(marker) else (text if text.strip() else "", "")
        # Text, then calls from the first marker on; the end of the text may be the beginning of a marker.
        said, found, call = text.partition(marker)
        if not found and not final:
            held = next((n for n in range(len(marker) - 1, 0, -1) if text.endswith(marker[:n])), 0)
            said = text[: len(text) - held]
        return said, found + call

    def _answer(self, job: Job, writing: Writing) -> Answer:
        assert job.writable is not None
        if writing.text.error is not None:
            raise writing.text.error
        written = writing.generation()
        job.text = written.text
        said, text = self._parts(job, final=True)
        if len(said) > job.sent:
            job.tell(said[job.sent :])
        grammar, form = job.writable.grammar, job.writable.form
        calls = () if form is None else tuple(_calls(form, text, self.conversations.marker))
        # the masks finish a text within its limit: without an end-of-text token, the limit ended it
        ended = written.complete if grammar is None else job.request.schema is not None or written.end is not None
        finish = "tool_calls" if calls else "stop" if ended else "length"
        return Answer(said, calls, finish, written.prompt_tokens, written.completion_tokens)


def _calls(form: CallForm, text: str, marker: str) -> Iterator[tuple[str, str]]:
    """Yield the tool of each call in a text, and its arguments as they are written."""
    for written in re.split(rf"\n(?={re.escape(marker)})", text) if text else ():
        call = form.read(written)
        assert call is not None, "the masks wrote it"
        before, _, after = form.template.partition("ARGUMENTS")
        head = before.replace("NAME", json.dumps(call[0], ensure_ascii=False)[1:-1])
        inside = written.startswith(head) and written.endswith(after)
        yield (
            call[0],
            written[len(head) : len(written) - len(after)] if inside else json.dumps(call[1], ensure_ascii=False),
        )


def _failed(error: Exception) -> RequestError:
    return RequestError(f"the server failed: {type(error).__name__}", status=500)
