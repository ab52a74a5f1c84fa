"""Read a request for a chat completion in the form of OpenAI's API; refuse what isn't served, with the reason."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from constrained.errors import ConstrainedError
from constrained.server import bounds

log = logging.getLogger("constrained.server")

ROLES = ("system", "developer", "user", "assistant", "tool")

REFUSED: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "functions": (),
    "function_call": (),
    "modalities": (["text"],),
}
"""Fields that aren't supported, with the values that have no effect."""


class RequestError(ConstrainedError):
    """A request that can't be answered.

    Attributes
    ----------
    status : int
        The HTTP status.
    param : str or None
        The field that is wrong.
    """

    def __init__(self, message: str, hint: str | None = None, *, status: int = 400, param: str | None = None):
        self.status, self.param = status, param
        super().__init__(message, hint)

    @classmethod
    def of(cls, error: ConstrainedError, status: int = 400) -> RequestError:
        """The library's error as an error of the request, with the names of the request's fields."""
        if isinstance(error, RequestError):
            return error
        return cls(error.message, error.hint and error.hint.replace("max_new_tokens", "max_tokens"), status=status)

    def body(self) -> dict[str, Any]:
        """The body of the answer, in the form of OpenAI's API."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": None}}


def failed(error: Exception) -> RequestError:
    """The error for a request that raised an unexpected exception; its type and place are logged, its text is not."""
    at = traceback.extract_tb(error.__traceback__)[-1:]
    log.error("a request failed: %s%s", type(error).__name__, "".join(f" at {f.filename}:{f.lineno}" for f in at))
    return RequestError(f"the server failed: {type(error).__name__}", status=500)


@dataclass(frozen=True)
class ChatRequest:
    """A request for a chat completion.

    Attributes
    ----------
    messages : list of dict
        Each content is one text.
    tools : list of dict
        Also with the choice "none".
    choice : str
        "none", "auto" or "required".
    named : str
        The tool that must be called; "" for any.
    schema : object
        Of `response_format`; None: any text.
    max_tokens : int
    temperature, top_p : float
    seed : int or None
    stop : list of str
        A text ends before the first of these; an answer that has one of them in a call ends with that call. JSON of
        `response_format` isn't cut.
    parallel : bool
        Several calls may be written in one answer.
    stream, stream_usage : bool
    """

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    choice: str
    named: str
    schema: Any
    max_tokens: int
    temperature: float
    top_p: float
    seed: int | None
    stop: list[str]
    parallel: bool
    stream: bool
    stream_usage: bool

    @property
    def offered(self) -> bool:
        """Whether a tool may be called."""
        return bool(self.tools) and self.choice != "none"


def read_request(body: Any, model: str) -> ChatRequest:
    """Read a request's JSON.

    Parameters
    ----------
    body : object
    model : str
        The name of the model that is served.

    Raises
    ------
    RequestError
        A field is missing, wrong, or not supported.
    """
    if not isinstance(body, dict):
        raise RequestError(f"a request is a JSON object, not {_kind(body)}")
    _check_text(body)
    body = {field: value for field, value in body.items() if value is not None}  # null is read as a missing field
    if body.get("model") != model:
        raise RequestError(f"there is no model {body.get('model')!r}", f"use {model!r}", status=404, param="model")
    for field, nothing in REFUSED.items():
        if field in body and body[field] not in nothing:
            raise RequestError(f"{field} is not served", "leave it out", param=field)
    tools = _list(body, "tools", bounds.TOOLS) if "tools" in body else []
    choice, named = _choice(body.get("tool_choice"), tools)
    limit = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
    options = body.get("stream_options")
    return ChatRequest(
        _messages(body),
        tools,
        choice,
        named,
        _schema(body.get("response_format")),
        _number(body.get(limit, bounds.TOKENS), limit, 1, bounds.TOKENS, whole=True),
        _number(body.get("temperature", 1.0), "temperature", 0, 10),
        _number(body.get("top_p", 1.0), "top_p", 0, 1),
        _typed(body, "seed", int, None),
        _stop(body.get("stop")),
        _typed(body, "parallel_tool_calls", bool, True) and not named,
        _typed(body, "stream", bool, False),
        isinstance(options, Mapping) and options.get("include_usage") is True,
    )


def _check_text(body: Any) -> None:
    """Raise RequestError if a text can't be encoded as UTF-8: prompts and errors may quote it."""
    try:
        json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise RequestError("the request has half a character, which is not text", "escape both surrogates") from None
    except RecursionError:
        raise RequestError("the request is nested too deeply", "make it simpler") from None


def _messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    messages = _list(body, "messages", bounds.MESSAGES)
    if not messages:
        raise RequestError("there are no messages", "give one at least", param="messages")
    return [_message(one, f"messages[{i}]") for i, one in enumerate(messages)]


def _message(given: Any, where: str) -> dict[str, Any]:
    if not isinstance(given, dict) or given.get("role") not in ROLES:
        role = given.get("role") if isinstance(given, dict) else None
        what = f"{where} has the role {role!r:.80}" if role is not None else f"{where} has no role"
        raise RequestError(what, f"roles are: {', '.join(ROLES)}", param=where)
    message = {"role": given["role"], "content": _content(given.get("content"), where)}
    if given["role"] == "assistant" and given.get("tool_calls"):
        calls = given["tool_calls"]
        message["tool_calls"] = [_call(call, where) for call in (calls if isinstance(calls, list) else [calls])]
    if given["role"] == "tool":
        if not isinstance(given.get("tool_call_id"), str):
            raise RequestError(f"{where} has no tool_call_id", "name the call whose result it is", param=where)
        message["tool_call_id"] = given["tool_call_id"]
    return message


def _content(content: Any, where: str) -> str:
    """A message's text, with parts joined."""
    if isinstance(content, list):
        parts = [
            part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in content
        ]
        if not all(isinstance(part, str) for part in parts):
            raise RequestError(f"{where}: the content has parts that are not text", "only text is read", param=where)
        content = "".join(map(str, parts))
    if content is None:
        return ""
    if not isinstance(content, str):
        raise RequestError(f"{where}: the content is not text", param=where)
    return content


def _call(given: Any, where: str) -> dict[str, Any]:
    """A tool call with its arguments as an object, as chat templates read it."""
    function = given.get("function") if isinstance(given, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise RequestError(f"{where}: a tool call has no function with a name", param=where)
    arguments = function.get("arguments") or "{}"
    try:
        arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        raise RequestError(f"{where}: the arguments of {function['name']} are not a JSON object", param=where)
    _check_text(arguments)
    return {
        "id": str(given.get("id") or ""),
        "type": "function",
        "function": {"name": function["name"], "arguments": arguments},
    }


def _choice(given: Any, tools: list[Any]) -> tuple[str, str]:
    if given is None:
        return ("auto" if tools else "none"), ""
    function = given.get("function") if isinstance(given, dict) else None
    if isinstance(function, dict) and isinstance(function.get("name"), str):
        choice, named = "required", function["name"]
    elif given in ("none", "auto", "required"):
        choice, named = given, ""
    else:
        hint = 'none, auto, required, or {"type": "function", "function": {"name": ...}}'
        raise RequestError(f"tool_choice is {given!r:.80}", hint, param="tool_choice")
    if choice != "none" and not tools:
        if choice == "auto":
            return "none", ""
        hint = "give tools, or leave tool_choice out"
        raise RequestError("tool_choice asks for a call, but there are no tools", hint, param="tool_choice")
    return choice, named


def _schema(given: Any) -> Any:
    kind = given.get("type") if isinstance(given, dict) else given
    if kind in (None, "text"):
        return None
    if kind == "json_object":
        return {"type": "object"}
    described = given.get("json_schema") if kind == "json_schema" else None
    if not isinstance(described, dict) or not isinstance(described.get("schema"), (dict, bool)):
        hint = '{"type": "json_schema", "json_schema": {"name": ..., "schema": {...}}}, json_object or text'
        raise RequestError("response_format can't be read", hint, param="response_format")
    return described["schema"]


def _stop(given: Any) -> list[str]:
    stops = [given] if isinstance(given, str) else [] if given is None else given
    if not isinstance(stops, list) or not all(isinstance(stop, str) and stop for stop in stops):
        raise RequestError("stop holds what is no text, or an empty one", "give texts, or leave it out", param="stop")
    if len(stops) > bounds.CALLS:
        raise RequestError(f"stop has {len(stops)} texts", f"give at most {bounds.CALLS}", param="stop")
    return stops


def _list(body: Mapping[str, Any], field: str, most: int) -> list[Any]:
    items = body.get(field)
    if not isinstance(items, list):
        raise RequestError(f"{field} is a list, not {_kind(items)}", param=field)
    if len(items) > most:
        raise RequestError(f"{field} has {len(items)} entries, at most {most} are read", param=field)
    return items


def _number(given: Any, field: str, low: float, high: float, whole: bool = False) -> Any:
    right = isinstance(given, (int,) if whole else (int, float)) and not isinstance(given, bool)
    if not right or not low <= given <= high:
        raise RequestError(f"{field} is {given!r:.80}", f"use a number from {low} to {high}", param=field)
    return given


def _typed(body: Mapping[str, Any], field: str, kind: type, default: Any) -> Any:
    value = body.get(field, default)
    if field in body and type(value) is not kind:
        raise RequestError(f"{field} is {value!r:.80}", f"use a value of type {kind.__name__}", param=field)
    return value


def _kind(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__
