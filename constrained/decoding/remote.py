"""Models behind OpenAI-compatible servers: vLLM, llama.cpp's, SGLang's, Ollama's and others.

A server's model writes one action at a time. What the server can enforce is sent to it; whatever it answers is judged
here, so that nothing is carried out that the action knowledge doesn't admit.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import logging
import re
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from constrained.automaton import Grammar
from constrained.automaton.refused import not_a_grammar
from constrained.decoding.request import Generation, Message, Request
from constrained.errors import GrammarError, ModelError, needs_extra

log = logging.getLogger(__name__)

T = TypeVar("T")

LISTED = 1000
"""Actions that are sent, shown or compared as a list, at most."""

SHOWN = 20
"""Admitted actions that a rejection names."""

SHORTEST_KEY = 8
"""Characters of a key that is looked for in addresses: shorter ones are placeholders."""

MAX_TOLD = 300
"""Characters of a server's error that are passed on."""

PROBE = ("marmalade 7", "wheelbarrow 12")
"""Two texts that no model writes by itself: a server that writes one of them obeys the constraint."""


RequestBody = dict[str, Any]
Enforce = Callable[[Grammar, "list[str] | None"], "RequestBody | None"]


def _structured_outputs(action: Grammar, listed: list[str] | None) -> RequestBody:
    return {"structured_outputs": {"choice": listed} if listed else {"grammar": action.to_gbnf()}}


def _guided(action: Grammar, listed: list[str] | None) -> RequestBody:
    return {"guided_choice": listed} if listed else {"guided_grammar": action.to_gbnf()}


def _json_schema(action: Grammar, listed: list[str] | None) -> RequestBody | None:
    if not listed:
        return None
    schema = {
        "type": "object",
        "properties": {"action": {"type": "string", "enum": listed}},
        "required": ["action"],
        "additionalProperties": False,
    }
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "action", "schema": schema}}}


ENFORCE: dict[str, Enforce] = {
    "structured_outputs": _structured_outputs,
    "guided": _guided,
    "grammar": lambda action, listed: {"grammar": action.to_gbnf()},
    "lark": lambda action, listed: {"grammar": f"%llguidance {{}}\n{action.to_llguidance()}"},
    "ebnf": lambda action, listed: {"ebnf": action.to_gbnf()},
    "regex": lambda action, listed: {"regex": action.to_regex()},
    "json_schema": _json_schema,
    "nothing": lambda action, listed: {},
}
"""What can be sent to a server, by name: vLLM's `structured_outputs`, and `guided_choice` or `guided_grammar` before
0.12; `grammar` in GBNF (llama.cpp and its Python server), or in Lark where llama.cpp was built with llguidance;
SGLang's `ebnf` and `regex`; a JSON Schema as `response_format` (OpenAI, Ollama, llama.cpp); nothing."""


class _Answer(NamedTuple):
    text: str
    cut_off: bool
    prompt_tokens: int
    completion_tokens: int


class _Refused(ModelError):
    """The server answers, but refuses this request."""


class RemoteModel:
    """A model behind an OpenAI-compatible server.

    Parameters
    ----------
    base_url : str
        Such as ``http://localhost:8000/v1``.
    model : str, optional
        Its name there; default: the first that the server lists.
    api_key : str, optional
        Default: the environment variable ``OPENAI_API_KEY``. It is sent to the server and written nowhere.
    enforce : str
        How the server is asked to enforce the grammar, a name of `ENFORCE`; "ask": the first that works.
    attempts : int
        Most answers to ask for until one is admitted. After that, the admitted action most like the last answer is
        taken, and the generation's `replaced` has that answer.
    timeout : float
        Seconds for one answer.
    retries : int
        Times that a request is repeated after a failure of the network or the server, with growing pauses.
    side_by_side : int
        Most requests at the same time.

    Raises
    ------
    ModelError
        The package openai isn't installed; an argument makes no sense.
    """

    def __init__(
        self,
        base_url: str,
        model: str | None = None,
        *,
        api_key: str | None = None,
        enforce: str = "ask",
        attempts: int = 3,
        timeout: float = 60.0,
        retries: int = 3,
        side_by_side: int = 16,
    ):
        _check_address(base_url)
        if model is not None and _holds_key(model):
            raise ModelError("the model's name holds a key", "name the model; pass the key as api_key=")
        if enforce != "ask" and enforce not in ENFORCE:
            raise ModelError(f"nothing to enforce called {enforce!r}", f"use ask, {', '.join(ENFORCE)}")
        if attempts < 1 or side_by_side < 1 or retries < 0 or not timeout > 0:
            raise ModelError("attempts and side_by_side are at least 1, retries 0, and timeout is more than 0")
        with needs_extra("openai", "remote", "a model behind a server"):
            import openai
        import os

        self.base_url, self.attempts = base_url.rstrip("/"), attempts
        self._model, self._enforce, self._side_by_side = model, enforce, side_by_side
        self._key = api_key or os.environ.get("OPENAI_API_KEY") or ""
        if not (self._key.isascii() and self._key.isprintable()):
            raise ModelError("the key has characters that can't be sent", "copy it again, as one line")
        if len(self._key) >= SHORTEST_KEY and self._key in unquote(f"{base_url} {model}"):
            raise ModelError("the address or the model's name holds the key", "leave it out there")
        self._client = openai.AsyncOpenAI(
            base_url=self.base_url,
            api_key=self._key or "none",
            timeout=timeout,
            max_retries=retries,
        )

    def __repr__(self) -> str:
        return f"RemoteModel({self.name!r})"

    @property
    def name(self) -> str:
        """The model and its server."""
        return f"{self.model} at {self.base_url}"

    digest = ""
    """Empty: a server doesn't show its weights."""

    @cached_property
    def model(self) -> str:
        """The model's name on the server."""
        return self._model or _Loop.run(self._first_model())

    @cached_property
    def enforce(self) -> str:
        """The name in `ENFORCE` of the notation that the server enforces; tested once."""
        _ = self.model  # evaluated before: code that runs in the event loop can't wait for the loop
        return self._enforce if self._enforce != "ask" else _Loop.run(self._ask_what_it_obeys())

    def write(
        self, requests: Sequence[Request], *, temperature: float = 0.0, seeds: Sequence[int] = ()
    ) -> list[Generation | ModelError]:
        """Write the texts, side by side.

        Parameters
        ----------
        requests : sequence of Request
            With `messages`, and a `grammar` that is not compiled, as a server's vocabulary isn't known.
        temperature : float
        seeds : sequence of int, optional
            Of sampling, one for each request; not every server takes them.

        Returns
        -------
        list of Generation or ModelError
            In the order of `requests`; the error where the server was away, refused the request, or answered with
            something else than a text.
        """
        try:
            _ = self.model, self.enforce  # first, as in `enforce`
        except ModelError as error:
            return [error] * len(requests)
        return _Loop.run(self._write_all(requests, temperature, seeds))

    async def _write_all(
        self, requests: Sequence[Request], temperature: float, seeds: Sequence[int]
    ) -> list[Generation | ModelError]:
        slots = asyncio.Semaphore(self._side_by_side)

        async def one(number: int, request: Request) -> Generation | ModelError:
            options = {"temperature": temperature} | ({"seed": seeds[number] % 2**31} if seeds else {})
            async with slots:
                try:
                    return await self._write(request, options)
                except ModelError as error:
                    return error

        return list(await asyncio.gather(*(one(number, request) for number, request in enumerate(requests))))

    async def _write(self, request: Request, options: RequestBody) -> Generation:
        began, grammar = time.monotonic(), request.grammar
        if grammar is not None and not isinstance(grammar, Grammar):
            raise not_a_grammar(grammar)
        messages, listed = list(request.messages), None if grammar is None else grammar.texts(LISTED)
        stop = {"stop": list(request.stops)} if grammar is None and request.stop else {}
        options = {"max_tokens": request.max_new_tokens, **stop, **options}
        body = {} if grammar is None else self._body(grammar, listed)
        answer, used = "", (0, 0)
        # Ask until an answer is admitted. A request that is refused is repeated without what the server should enforce;
        # an answer that is not admitted is sent back with the reason.
        for attempt in range(self.attempts):
            try:
                completion = await self._ask(messages, {**options, **body})
            except _Refused as error:
                if not body:
                    raise
                log.warning("%s: what it should enforce is left out, its answers are judged", error.message)
                body = {}
                completion = await self._ask(messages, options)
            used = (used[0] + completion.prompt_tokens, used[1] + completion.completion_tokens)
            exact = grammar is not None and grammar.matches(completion.text)
            answer = completion.text if exact else completion.text.strip()
            if grammar is None or exact or grammar.matches(answer):
                break
            log.info("answer %d of %s is not admitted: %.200r", attempt + 1, self.model, answer)
            reason = _reason(answer, completion.cut_off, listed)
            messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": reason}]
        written = Generation(
            answer,
            role=request.role,
            model=self.name,
            prompt_tokens=used[0],
            completion_tokens=used[1],
            forward_passes=used[1],
            seconds=time.monotonic() - began,
        )
        if grammar is None or grammar.matches(answer):
            return written
        return replace(written, text=most_like(answer, grammar, listed), replaced=answer or "(nothing)")

    def _body(self, action: Grammar, listed: list[str] | None) -> RequestBody:
        try:
            return ENFORCE[self.enforce](action, listed) or {}
        except GrammarError as error:  # the notation can't express the grammar: the answer is checked all the same
            log.info("nothing is sent to enforce: %s", error.message)
            return {}

    async def _ask(self, messages: Sequence[Message], options: RequestBody) -> _Answer:
        create = self._client.chat.completions.create
        response = await self._call(create, model=self.model, messages=messages, extra_body=options)
        try:
            choice = response.choices[0]
            text, cut_off = choice.message.content, choice.finish_reason == "length"
        except (AttributeError, IndexError, TypeError):
            text = None
        if not isinstance(text, str):
            raise _Refused(
                f"{self.base_url} answered without a text", "see that it serves /chat/completions as OpenAI's API does"
            )
        text = text.encode(errors="replace").decode()
        used = [getattr(response.usage, kind, 0) for kind in ("prompt_tokens", "completion_tokens")]
        counts = [count if isinstance(count, int) else 0 for count in used]
        return _Answer(_from_json(text) if "response_format" in options else text, cut_off, *counts)

    async def _call(self, method: Callable[..., Awaitable[Any]], **arguments: Any) -> Any:
        import openai

        try:
            return await method(**arguments)
        except openai.APITimeoutError:
            raise ModelError(f"{self.base_url} took too long", "raise timeout, or see what the server does") from None
        except openai.APIConnectionError as error:
            raise ModelError(
                f"no server answers at {self.base_url}: {error.__cause__ or error}",
                "start it, or check the address: it ends with /v1 for most servers",
            ) from None
        except openai.AuthenticationError:
            raise ModelError(
                f"{self.base_url} refuses the key", "set OPENAI_API_KEY to the server's key, or pass api_key="
            ) from None
        except openai.APIStatusError as error:
            message = self._without_key(_error_text(error))
            hint = "see the address (it ends with /v1 for most servers) and the model's name"
            hint = hint if error.status_code == 404 else ""
            raise _Refused(f"{self.base_url} refuses the request: {error.status_code} {message}", hint) from None
        except Exception as error:  # the client raises many types for an answer that it can't read
            what = self._without_key(f"{type(error).__name__}: {error}")
            raise ModelError(f"{self.base_url} answered something unreadable: {what}") from None

    def _without_key(self, text: str) -> str:
        """Remove the key from a server's message, and only then shorten it, so that no part of the key is left."""
        return text.replace(self._key or "\0", "(the key)")[:MAX_TOLD]

    async def _first_model(self) -> str:
        models = await self._call(self._client.models.list)
        if not getattr(models, "data", None):
            raise ModelError(f"{self.base_url} lists no model", "name one: model=…")
        return models.data[0].id

    async def _ask_what_it_obeys(self) -> str:
        """The first name in `ENFORCE` that the server obeys, tested with two texts that no model writes by itself."""
        action = Grammar.from_choices(PROBE)
        hello: list[Message] = [{"role": "user", "content": "Say hello."}]
        for name, enforce in ENFORCE.items():
            body = enforce(action, list(PROBE))
            if not body:
                continue
            try:
                answer = await self._ask(hello, {"max_tokens": 32, "temperature": 0.0, **body})
            except _Refused:
                continue
            if answer.text.strip() in PROBE:
                return name
        log.warning("%s enforces nothing: its answers are judged, and asked for again", self.base_url)
        return "nothing"


def _check_address(address: str) -> None:
    """Raise ModelError if `address` is not a URL, or contains a key, which plans and logs would then show."""
    try:
        parts = urlsplit(address)
        right = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and " " not in address
    except (ValueError, AttributeError, TypeError):
        right = False
    if not right:
        shown = "that" if not isinstance(address, str) or "@" in address or _holds_key(address) else f"{address!r:.80}"
        raise ModelError(f"{shown} is not a server's address", "it looks like http://localhost:8000/v1")
    # A key may be written anywhere: as a user, a query, a parameter of a path (;key=…), a fragment, a part of the path.
    if "@" in parts.netloc or parts.query or ";" in parts.path or _holds_key(f"{parts.path}#{parts.fragment}"):
        raise ModelError("the address holds a name, a key or a query", "pass api_key=, or set OPENAI_API_KEY")
    if parts.fragment:
        raise ModelError("the address holds a fragment (#…)", "name the model: model=…")


def _holds_key(text: str) -> bool:
    """Whether a part of an address, or of a model's name, looks like a key: by its prefix, or by its length."""
    return any(_KEY.search(text) for text in (text, unquote(text)))


_KEY = re.compile(
    r"""(?<![a-z\d])(?:(?:sk|csk)-[\w-]{8} | (?:hf|gsk|r8|fw|ghp|tgp)_\w{8})  # prefixes of providers
    | (?:(?:xai|nvapi|pplx)- | AIza | (?:key|token)[=:])[\w-]{20}
    | (?=[a-z]*\d)(?=\d*[a-z])[a-z\d]{24}  # longer than any word of a model's name
    | [\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}  # a UUID
    """,
    re.VERBOSE | re.IGNORECASE,
)


def most_like(answer: str, action: Grammar, listed: list[str] | None = None) -> str:
    """The admitted action that is most like `answer`.

    Of a list: the most similar text (`difflib`). Else: the longest beginning of `answer` that is admitted, and the
    shortest way to finish it.
    """
    if listed:
        return max(listed, key=lambda text: difflib.SequenceMatcher(None, answer, text).ratio())
    data, prefix = answer.encode(), action.begin
    for end in range(len(data)):
        after = prefix.step(data[end])
        if after is None:
            data = data[:end]
            break
        prefix = after
    return (data + prefix.completion()).decode()


def _reason(answer: str, cut_off: bool, listed: list[str] | None) -> str:
    """The message to a model about an answer that is not admitted."""
    shown = repr(answer if len(answer) <= 200 else f"{answer[:200]}...")
    wrong = f"{shown} was cut off, as it got too long." if cut_off else f"{shown} is not possible now."
    if listed is None:
        return f"{wrong} Answer with one allowed action and nothing else."
    close = difflib.get_close_matches(answer, listed, SHOWN, cutoff=0.0)
    return f"{wrong} Answer with exactly one of these and nothing else:\n" + "\n".join(close)


def _from_json(text: str) -> str:
    try:
        action = json.loads(text)["action"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return text
    return action if isinstance(action, str) else text


def _error_text(error: Any) -> str:
    body = getattr(error, "body", None)
    message = body.get("message") if isinstance(body, dict) else None
    return str(message or error)


class _Loop:
    """One event loop in its own thread, for all servers, so that callers may be synchronous or asynchronous."""

    _lock = threading.Lock()
    _loop: asyncio.AbstractEventLoop | None = None

    @classmethod
    def run(cls, work: Coroutine[Any, Any, T]) -> T:
        with cls._lock:
            if cls._loop is None:
                cls._loop = asyncio.new_event_loop()
                threading.Thread(target=cls._loop.run_forever, name="constrained-remote", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(work, cls._loop).result()
