"""The work of a request's own process: read and prepare the request, compute the masks of its answer.

The server sends the request's body, and gets a `Prepared` or a `RequestError`. If the answer has a grammar, it then
sends the id of each token that the model chooses, or `END` where the text ends, and gets a `Continued` or a
`RequestError`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from constrained.decoding import Request
from constrained.decoding.generation import start_text, token_limit
from constrained.decoding.loop import GuidedText
from constrained.decoding.request import Token
from constrained.errors import ConstrainedError
from constrained.knowledge.tool_policy import Policy
from constrained.models import LoadedModel
from constrained.server import bounds
from constrained.server.chat_request import ChatRequest, RequestError, failed, read_request
from constrained.server.conversation import MARKERS, prompt, read_answer, writable
from constrained.server.processes import TooLong, limited

END = -1
"""Sent instead of a token: the text ends here."""


class Continued(NamedTuple):
    """What follows a token: forced tokens, and then a mask or the end.

    Attributes
    ----------
    forced : list of int
    mask : bytes
        The tokens allowed next, int32; empty at the end.
    complete : bool
        Whether the text may end here.
    said : str
        At the end: the text beside the calls.
    calls : tuple of (str, str)
        At the end: the name of a tool and its arguments as JSON.
    """

    forced: list[int]
    mask: bytes
    complete: bool
    said: str = ""
    calls: tuple[tuple[str, str], ...] = ()


class Prepared(NamedTuple):
    """What the writing thread needs to know of a request.

    Attributes
    ----------
    request : ChatRequest
        Without what was needed only to prepare it.
    prompt : list of int
        Tokens.
    limit : int
        Most tokens of the answer.
    holds_calls : bool
        Whether the answer may hold calls.
    first : Continued or None
        None: any text is allowed, and the process has ended.
    """

    request: ChatRequest
    prompt: list[int]
    limit: int
    holds_calls: bool
    first: Continued | None


class Shared(NamedTuple):
    """What all requests share. Of the model, only its tokenizer and vocabulary are used here."""

    loaded: LoadedModel
    policy: Policy | None
    call_format: str

    def warm(self) -> None:
        """Compute what the vocabulary computes at its first use, so that forked processes share it."""
        tool = {"name": "warm", "parameters": {"properties": {"text": {"type": "string"}}, "required": ["text"]}}
        user = {"role": "user", "content": "Hello."}
        body = {"model": self.loaded.name, "messages": [user], "tools": [tool], "tool_choice": "required"}
        with suppress(ConstrainedError):
            Following(self._replace(policy=None)).begin(json.dumps(body).encode())


class Following:
    """One request, from its body to the end of its answer."""

    def __init__(self, shared: Shared):
        self.shared = shared
        self.text: GuidedText | None = None
        self._read: Callable[[str], tuple[str, tuple[tuple[str, str], ...]]]

    def begin(self, body: bytes) -> Prepared:
        """Read the request, and make its prompt and its grammar. Raises ConstrainedError: it can't be answered."""
        loaded, policy, call_format = self.shared
        try:
            fields = json.loads(body.decode())
        except ValueError as error:
            raise RequestError(f"the body is not JSON: {error}", "send a JSON object in UTF-8") from None
        request = read_request(fields, loaded.name)
        grammar, form, knowledge = writable(request, policy, call_format)
        asked = Request(prompt(loaded, request, knowledge, call_format), grammar, request.max_tokens)
        text = start_text(loaded, asked)
        marker, schema = MARKERS[call_format], request.schema is not None
        self._read = (lambda said: (said, ())) if form is None else partial(read_answer, form, marker, schema)
        first = None
        if isinstance(text, GuidedText):
            self.text = text
            first = self._step(0)
        light_request = replace(request, messages=[], tools=[], schema=schema or None)
        limit = token_limit(loaded, text.prompt_tokens, request.max_tokens)
        return Prepared(light_request, text.ids[: text.prompt_tokens], limit, form is not None, first)

    def step(self, token: int) -> Continued:
        """What follows the chosen `token`; `END` ends the text."""
        text = self.text
        assert text is not None
        if token == END:
            text.done = True
        else:
            text.accept(Token(token))
        return self._step(len(text.tokens))

    def _step(self, known: int) -> Continued:
        text = self.text
        assert text is not None
        while not text.done:
            text.prepare()
            if text.done or text.look():
                break
        forced = [token.id for token in text.tokens[known:]]
        if not text.done:
            return Continued(forced, text.mask.tobytes(), text.matcher.is_complete)
        return Continued(forced, b"", True, *self._read(text.data[text.start :].decode("utf-8", "replace")))


def work(shared: Shared, connection: Connection) -> None:
    """Prepare and follow one request, until the connection is closed."""
    following = Following(shared)
    body = connection.recv_bytes()
    connection.send(_within_limits(lambda: following.begin(body)))
    while following.text is not None:
        token = connection.recv()
        connection.send(_within_limits(lambda: following.step(token)))  # noqa: B023


def _within_limits(do: Callable[[], Any]) -> Any:
    """The result of `do`, or a RequestError."""
    hint = "make its schema, its tools or its conversation smaller"
    try:
        with limited():
            return do()
    except TooLong:
        what = f"the request takes more than {bounds.WORK_SECONDS:g} s of processor time to work out"
        return RequestError(what, hint)
    except MemoryError:
        return RequestError("the request takes more memory to work out than it may", hint)
    except RecursionError:
        return RequestError("the request is nested too deeply", "make it simpler")
    except ConstrainedError as error:
        return RequestError.of(error)
    except Exception as error:
        return failed(error)
