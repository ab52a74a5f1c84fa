"""A streamed answer put together: the chunks of OpenAI's chat completions as messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constrained.errors import KnowledgeError

MAX_CALLS = 128
"""Calls of one answer."""

MAX_BYTES = 8 << 20
"""Characters of one answer."""


class Assembled:
    """Chunks as the messages that they make up.

    Attributes
    ----------
    choices : dict of int to dict
        Index -> the message so far.
    finish : dict of int to str
        Index -> why the answer ended, once it has.
    """

    def __init__(self) -> None:
        self.choices: dict[int, dict[str, Any]] = {}
        self.finish: dict[int, str] = {}
        self._size = 0

    def add(self, chunk: Any) -> list[int]:
        """Add one chunk; returns the numbers of the calls that it has parts of.

        Raises KnowledgeError: it is none, or the answer is too long.
        """
        numbers = []
        if not isinstance(chunk, Mapping) or not isinstance(chunk.get("choices", []), list):
            raise KnowledgeError(f"a chunk of the answer can't be read: {str(chunk)[:80]!r}")
        for choice in chunk.get("choices") or ():
            index, delta = (choice.get("index", 0), choice.get("delta")) if isinstance(choice, Mapping) else (0, 0)
            delta = {} if delta is None else delta
            if not isinstance(index, int) or not isinstance(delta, Mapping):
                raise KnowledgeError(f"a chunk of the answer can't be read: {str(choice)[:80]!r}")
            if delta.get("function_call") or not isinstance(delta.get("content"), str | None):
                raise KnowledgeError("the answer has calls or a content in a form that isn't judged")
            message = self.choices.setdefault(index, {"role": "assistant", "content": None, "tool_calls": []})
            if isinstance(delta.get("content"), str):
                message["content"] = (message["content"] or "") + delta["content"]
                self._count(delta["content"])
            calls = delta.get("tool_calls") or []
            if not isinstance(calls, list):
                raise KnowledgeError(f"calls in a chunk of the answer can't be read: {str(calls)[:80]!r}")
            for call in calls:
                numbers.append(self._add_call(message["tool_calls"], call))
            if choice.get("finish_reason"):
                self.finish[index] = choice["finish_reason"]
        return numbers

    def messages(self) -> list[dict[str, Any]]:
        """The messages, by index."""
        return [
            {key: value for key, value in message.items() if key != "tool_calls" or value}
            for _, message in sorted(self.choices.items())
        ]

    def _count(self, text: str) -> None:
        self._size += len(text)
        if self._size > MAX_BYTES:
            raise KnowledgeError(f"the answer has more than {MAX_BYTES:,} characters")

    def _add_call(self, calls: list[dict[str, Any]], given: Any) -> int:
        number = given.get("index") if isinstance(given, Mapping) else -1
        if number is None:  # some servers send whole calls without numbers
            number = len(calls)
        if not isinstance(number, int) or not 0 <= number <= len(calls) or number >= MAX_CALLS:
            raise KnowledgeError(f"a call in a chunk of the answer can't be read: {str(given)[:80]!r}")
        if number == len(calls):
            calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        call, function = calls[number], given.get("function") or {}
        if not isinstance(function, Mapping):
            raise KnowledgeError(f"a call in a chunk of the answer can't be read: {str(given)[:80]!r}")
        call["id"] = call["id"] or str(given.get("id") or "")
        for key in ("name", "arguments"):
            if function.get(key) is not None and not isinstance(function[key], str):
                raise KnowledgeError(f"a call in a chunk of the answer can't be read: {str(given)[:80]!r}")
            call["function"][key] += function.get(key) or ""
            self._count(function.get(key) or "")
        return number
