"""The forms of requests and answers that are judged: OpenAI's chat completions, and its Responses API."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from constrained.errors import ConstrainedError
from constrained.guard import responses
from constrained.guard.response_streams import ResponseStream, text_item
from constrained.guard.streams import Assembled
from constrained.server import bounds
from constrained.server.chat_request import RequestError
from constrained.server.upstream import nonsense

HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""Half a character, or the half of a whole one, as JSON escapes it."""

_DONE = "data: [DONE]\n\n"
"""The end of a streamed chat completion."""


class Stream(Protocol):
    """A streamed answer. Texts are sent on as they arrive, unless they are judged; calls are held back."""

    @property
    def finished(self) -> bool:
        """Whether the upstream has sent the reason for which the answer ended."""

    def add(self, data: str) -> Iterator[str]:
        """Add the data of one event; yields what may be sent on. Raises RequestError: it can't be read."""

    def message(self) -> dict[str, Any]:
        """The message of the whole answer. Raises RequestError: the answer isn't valid."""

    def rest(self, kept: int | None, **more: Any) -> Iterator[str]:
        """Yield the rest of the stream, which was held back; of its calls, only the first `kept` (None: all)."""

    def with_text(self, text: str) -> Iterator[str]:
        """Yield the rest of a stream in which `text` replaces what was held back."""


class WireFormat(Protocol):
    """How requests and answers of one endpoint are written.

    Attributes
    ----------
    path : str
        Of the endpoint, behind the version.
    conversation : str
        The request's field that holds it.
    """

    path: str
    conversation: str

    def messages(self, body: Mapping[str, Any]) -> list[Any]:
        """The conversation of a request. Raises RequestError: it can't be judged."""

    def with_corrections(self, body: dict[str, Any], corrections: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The request with the `corrections` appended to its conversation."""

    def read(self, data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
        """(The answer, its message). Raises RequestError: the data isn't an answer."""

    def with_first_calls(self, answer: dict[str, Any], calls: int) -> dict[str, Any]:
        """The answer without the calls after the first `calls`."""

    def with_text(self, answer: dict[str, Any], text: str) -> dict[str, Any]:
        """The answer in which `text` replaces the message's text and calls."""

    def stream(self, flows: bool, exact: bool, before: Any) -> Stream:
        """A new streamed answer.

        `flows`: texts are sent on as they arrive; `exact`: texts are judged; `before`: the refused stream before it.
        """

    def error(self, said: Mapping[str, Any]) -> str:
        """An error's body as an event of a stream."""


class Chat:
    """Chat completions."""

    path, conversation = "/chat/completions", "messages"

    def messages(self, body: Mapping[str, Any]) -> list[Any]:
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages:
            raise RequestError("there are no messages", "give one at least", param="messages")
        if len(messages) > bounds.PASSED_MESSAGES:
            raise RequestError(f"there are more than {bounds.PASSED_MESSAGES:,} messages", param="messages")
        if body.get("n") not in (None, 1):
            raise RequestError("several answers can't be judged", "leave n out", param="n")
        for field in ("functions", "function_call"):
            if body.get(field):
                raise RequestError(f"{field} can't be judged", "give tools", param=field)
        return messages

    def with_corrections(self, body: dict[str, Any], corrections: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return {**body, "messages": [*body["messages"], *corrections]}

    def read(self, data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
        answer = _json(data)
        choices = answer.get("choices") if isinstance(answer, dict) else None
        if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
            raise nonsense("it has not one choice")
        if not isinstance(choices[0].get("message"), dict):
            raise nonsense("its choice has no message")
        return answer, choices[0]["message"]

    def with_first_calls(self, answer: dict[str, Any], calls: int) -> dict[str, Any]:
        message = answer["choices"][0]["message"]
        message["tool_calls"] = message["tool_calls"][:calls]
        return answer

    def with_text(self, answer: dict[str, Any], text: str) -> dict[str, Any]:
        answer["choices"][0] |= {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return answer

    def stream(self, flows: bool, exact: bool, before: Any) -> ChatStream:
        return ChatStream(flows, None if before is None else before.head)

    def error(self, said: Mapping[str, Any]) -> str:
        return f"data: {json.dumps(said)}\n\n"


class Responses:
    """The Responses API, without conversations that the upstream keeps."""

    path, conversation = "/responses", "input"

    def messages(self, body: Mapping[str, Any]) -> list[Any]:
        conversation = body.get("input")
        if not conversation or not isinstance(conversation, (str, list)):
            raise RequestError("there is no input", "give a text, or a list of items", param="input")
        if len(conversation) > bounds.PASSED_MESSAGES and not isinstance(conversation, str):
            raise RequestError(f"there are more than {bounds.PASSED_MESSAGES:,} items", param="input")
        responses.check_request(body)
        return responses.messages_of(conversation)

    def with_corrections(self, body: dict[str, Any], corrections: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        return responses.with_messages(body, corrections)

    def read(self, data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
        answer = _json(data)
        if not isinstance(answer, dict) or not isinstance(answer.get("output"), list):
            raise nonsense("it has no output")
        try:
            return answer, responses.message_of(answer["output"])
        except ConstrainedError as error:
            raise nonsense(error.message) from None

    def with_first_calls(self, answer: dict[str, Any], calls: int) -> dict[str, Any]:
        return {**answer, "output": answer["output"][: responses.kept_items(answer["output"], calls)]}

    def with_text(self, answer: dict[str, Any], text: str) -> dict[str, Any]:
        return {**answer, "status": "completed", "incomplete_details": None, "output": [text_item(text, 0)]}

    def stream(self, flows: bool, exact: bool, before: Any) -> ResponsesStream:
        return ResponsesStream(ResponseStream(flows, exact, None if before is None else before.inner))

    def error(self, said: Mapping[str, Any]) -> str:
        # Programs look for the API's own event, or for a field `error`.
        given = said.get("error")
        error = dict(given) if isinstance(given, Mapping) else {}
        event = {"type": "error", "code": None, "message": "", "param": None, "sequence_number": 0, **error}
        return _named({**event, "type": "error", "error": error})


class ResponsesStream:
    """A streamed answer of the Responses API, in the lines of its events."""

    def __init__(self, inner: ResponseStream):
        self.inner = inner

    @property
    def finished(self) -> bool:
        return self.inner.final is not None

    def add(self, data: str) -> Iterator[str]:
        try:
            passed = self.inner.add(_json(data.encode()))
        except RequestError:
            raise
        except ConstrainedError as error:
            raise nonsense(error.message) from None
        yield from map(_named, passed)

    def message(self) -> dict[str, Any]:
        try:
            return self.inner.message()
        except ConstrainedError as error:
            raise nonsense(error.message) from None

    def rest(self, kept: int | None, **more: Any) -> Iterator[str]:
        return map(_named, self.inner.rest(kept, **more))

    def with_text(self, text: str) -> Iterator[str]:
        return map(_named, self.inner.instead(text))


def _named(event: Mapping[str, Any]) -> str:
    return f"event: {event['type']}\n{_line(event)}"


def _line(data: Mapping[str, Any]) -> str:
    """Data as an event of a stream; a lone surrogate becomes a question mark."""
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode(errors="replace").decode()


def _json(data: bytes) -> Any:
    """The JSON value that an upstream sent; a lone surrogate becomes a question mark."""
    try:
        value = json.loads(data)
        if HALF.search(data):
            value = json.loads(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
        return value
    except (ValueError, RecursionError):
        raise nonsense("it is no JSON") from None


class ChatStream:
    """A streamed chat completion.

    Attributes
    ----------
    head : dict or None
        What all events begin with: identity, time, model.
    finished : bool
        The upstream has said why the answer ended.
    """

    def __init__(self, flows: bool, head: Mapping[str, Any] | None):
        self._flows, self._again = flows, head is not None
        self.head = head
        self._assembled = Assembled()
        self._held: list[dict[str, Any]] = []
        self.finished = False

    def add(self, data: str) -> Iterator[str]:
        try:
            chunk = _json(data.encode())
            if isinstance(chunk, dict) and "error" in chunk and not chunk.get("choices"):
                raise nonsense(f"an error in the stream: {str(chunk['error'])[:200]}")
            numbers = self._assembled.add(chunk)
        except RequestError:
            raise
        except ConstrainedError as error:
            raise nonsense(error.message) from None
        if len(self._assembled.choices) > 1:
            raise nonsense("it has several choices")
        if self.head is None:
            self.head = {key: value for key, value in chunk.items() if key not in ("choices", "usage")}
        if self._again:  # the client sees one answer
            chunk = {**chunk, **self.head}
        self.finished = self.finished or bool(self._assembled.finish)
        choices = chunk.get("choices") or []
        delta = choices[0].get("delta") or {} if choices else {}
        says = any(isinstance(value, str) and value for key, value in delta.items() if key != "role")
        ends = not choices or choices[0].get("finish_reason") or self.finished
        if self._again and not (says or ends or delta.get("tool_calls")):
            return  # the role was said already
        # Some servers send whole calls without numbers.
        for number, call in zip(numbers, delta.get("tool_calls") or ()):
            call["index"] = number
        self._held.append(chunk)
        self._flows = self._flows and not ends and not delta.get("tool_calls")
        if self._flows and says:  # nothing is sent before there is a text
            yield from map(_line, self._held)
            self._held = []

    def message(self) -> dict[str, Any]:
        messages = self._assembled.messages()
        if not messages:
            raise nonsense("it has no message")
        return messages[0]

    def rest(self, kept: int | None, **more: Any) -> Iterator[str]:
        for chunk in self._held:
            for choice in chunk.get("choices") or ():
                delta = choice.get("delta") or {}
                if kept is not None and delta.get("tool_calls"):
                    delta["tool_calls"] = [call for call in delta["tool_calls"] if call["index"] < kept]
                    if not delta["tool_calls"]:
                        del delta["tool_calls"]
            yield _line({**chunk, **more})
        yield _DONE

    def with_text(self, text: str) -> Iterator[str]:
        head = {"object": "chat.completion.chunk", **(self.head or {})}
        delta = {"role": "assistant", "content": text}
        yield _line({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        yield _line({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        for chunk in self._held:
            if not chunk.get("choices") and chunk.get("usage"):
                yield _line(chunk)
        yield _DONE
