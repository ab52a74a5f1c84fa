"""A streamed response of OpenAI's Responses API under a guard: texts may pass as they come, calls once they are judged.

A program may act on an event, or on the whole response at the end, and servers differ in whether the two agree. Only
the whole response is judged; so the events of calls are made anew from it, and of texts, too, where these are judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from constrained.errors import KnowledgeError
from constrained.guard.responses import OUTPUT, kept_items, message_of
from constrained.guard.streams import MAX_BYTES, MAX_CALLS

Event = dict[str, Any]

_CALL = "function_call"
_TEXTS = ("content_part.", "output_text.", "refusal.", "reasoning")
"""How the names of events begin that bring nothing but text."""


class ResponseStream:
    """The events of one response, in answer to one request.

    Parameters
    ----------
    flows : bool
        Texts pass as they come.
    exact : bool
        Texts are judged: all events are made from the whole response.
    before : ResponseStream, optional
        A refused answer to the same request: the program sees one response.

    Attributes
    ----------
    final : dict or None
        The whole response, once it has come.
    """

    def __init__(self, flows: bool, exact: bool, before: ResponseStream | None = None):
        self._flows, self._exact = flows and not exact, exact
        self.final: dict[str, Any] | None = None
        self._kind = "response.completed"
        self._head: dict[str, Any] = before._head if before else {}
        self._again = bool(self._head)
        self._number: int = before._number if before else 0
        self._earlier: list[Any] = before.sent_items() if before else []  # items that the program has
        self._held: list[Event] = [event for event in before._held if "output_index" not in event] if before else []
        self._items: dict[int, str] = {}  # index -> its type
        self._sent: dict[int, Any] = {}  # index -> the item, of those that the program has seen the begin of
        self._size = 0

    def add(self, event: Any) -> list[Event]:
        """Add an event; returns those that are passed on now.

        Raises KnowledgeError: it can't be read, is in a form that isn't judged, or is an error.
        """
        kind = event.get("type") if isinstance(event, Mapping) else None
        index = event.get("output_index", 0) if isinstance(event, Mapping) else None
        if not isinstance(kind, str) or not isinstance(index, int) or not 0 <= index < MAX_CALLS or self.final:
            raise KnowledgeError(f"an event of the answer can't be read: {str(event)[:80]!r}")
        self._size += len(str(event.get("delta") or ""))
        if self._size > MAX_BYTES:
            raise KnowledgeError(f"the answer has more than {MAX_BYTES:,} characters")
        name = kind.removeprefix("response.")
        match name:
            case "completed" | "incomplete":
                self._end(kind, event.get("response"))
                return []
            case "failed" | "error":
                response = event.get("response")
                error = response.get("error") if isinstance(response, Mapping) else event.get("error")
                raise KnowledgeError(f"an error in the stream: {str(error or event.get('message'))[:200]}")
            case "created" | "in_progress" | "queued":
                return self._begin(event)
            case "output_item.added" | "output_item.done":
                item = event.get("item")
                if not isinstance(item, Mapping) or item.get("type") not in OUTPUT:
                    raise KnowledgeError(f"an item of the answer is in a form that isn't judged: {str(item)[:80]!r}")
                self._items[index] = item["type"]
            case "function_call_arguments.delta" | "function_call_arguments.done":
                self._items.setdefault(index, _CALL)
            case _ if not name.startswith(_TEXTS):
                raise KnowledgeError(f"an event of the type {kind!r:.60} isn't judged")
        if self._exact or self._items.get(index) == _CALL:
            return []
        self._held.append(dict(event))
        # Nothing is sent before there is a text, nor an item after a call, which may yet be refused.
        calls = any(kind == _CALL for at, kind in self._items.items() if at < index)
        if not self._flows or calls or not (name.endswith(".delta") or self._sent):
            return []
        return self._release()

    def message(self) -> dict[str, Any]:
        """The answer as one message. Raises KnowledgeError: there is none, or it can't be judged."""
        if self.final is None:
            raise KnowledgeError("the stream broke off")
        return message_of(self.final["output"])

    def rest(self, kept: int | None, **more: Any) -> Iterator[Event]:
        """The events that were held, and the end of the response; of its calls, only the first `kept`."""
        assert self.final is not None
        output = self.final["output"]
        if kept is not None:
            output = output[: kept_items(output, kept)]
        held: dict[int, list[Event]] = {}
        for event in self._held:
            held.setdefault(event.get("output_index", -1), []).append(event)
        self._held = held.pop(-1, [])
        yield from self._release()
        for index, item in enumerate(output):
            # An item that the stream didn't show is made from the whole response.
            whole = item["type"] == _CALL or (index not in held and index not in self._sent)
            self._held = [*item_events(item, index)] if whole else held.get(index, [])
            yield from self._release()
        yield self._passed({"type": self._kind, "response": self._response(output, **more)})

    def instead(self, text: str) -> Iterator[Event]:
        """A text in place of what was held, and the end of the response."""
        self._earlier, self._sent = self.sent_items(), {}
        item = text_item(text, len(self._earlier))
        self._held = [*(event for event in self._held if "output_index" not in event), *item_events(item, 0)]
        yield from self._release()
        ended = self._response([item], status="completed", incomplete_details=None)
        yield self._passed({"type": "response.completed", "response": ended})

    def sent_items(self) -> list[Any]:
        """The items of which the program has seen at least the begin, in this answer and in those before it."""
        output = self.final["output"] if self.final else []
        return [*self._earlier, *(output[at] if at < len(output) else one for at, one in sorted(self._sent.items()))]

    def _begin(self, event: Mapping[str, Any]) -> list[Event]:
        if not self._again:
            if not self._head and isinstance(event.get("response"), Mapping):
                self._head = {"id": event["response"].get("id"), "created_at": event["response"].get("created_at")}
            self._held.append(dict(event))
        return []

    def _end(self, kind: str, response: Any) -> None:
        if not isinstance(response, Mapping) or not isinstance(response.get("output"), list):
            raise KnowledgeError("the whole response is missing at the end of its stream")
        calls = [item for item in response["output"] if isinstance(item, Mapping) and item.get("type") == _CALL]
        if len(calls) < [*self._items.values()].count(_CALL):
            raise KnowledgeError("the stream had calls that the whole response hasn't")
        self.final, self._kind = dict(response), kind

    def _release(self) -> list[Event]:
        passed = [self._passed(event) for event in self._held]
        self._held = []
        return passed

    def _passed(self, event: Event) -> Event:
        """An event as the program gets it: counted, and behind the items of earlier answers."""
        if "output_index" in event:
            index = event["output_index"]
            self._sent.setdefault(index, event.get("item"))
            event = {**event, "output_index": index + len(self._earlier)}
        self._number += 1
        return {**event, "sequence_number": self._number - 1}

    def _response(self, output: list[Any], **more: Any) -> dict[str, Any]:
        assert self.final is not None
        return {**self.final, **self._head, "output": [*self._earlier, *output], **more}


def text_item(text: str, index: int) -> dict[str, Any]:
    """A text as an item of a response."""
    part = {"type": "output_text", "text": text, "annotations": []}
    named = {"id": f"msg_constrained_{index}", "type": "message", "role": "assistant", "status": "completed"}
    return {**named, "content": [part]}


def item_events(item: Mapping[str, Any], index: int) -> Iterator[Event]:
    """The events that bring an item."""
    named = {"item_id": item.get("id") or f"item_{index}", "output_index": index}
    empty: dict[str, Event] = {_CALL: {"arguments": ""}, "message": {"content": []}}
    begun = {**item, "status": "in_progress", **empty.get(item["type"], {})}
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    if item["type"] == _CALL:
        arguments = item.get("arguments") or ""
        yield {"type": "response.function_call_arguments.delta", **named, "delta": arguments}
        yield {"type": "response.function_call_arguments.done", **named, "arguments": arguments, "name": item["name"]}
    for number, part in enumerate(item.get("content") or () if item["type"] == "message" else ()):
        key, kind = ("refusal", "refusal") if part["type"] == "refusal" else ("text", "output_text")
        at = {**named, "content_index": number}
        more: Event = {"logprobs": []} if key == "text" else {}
        yield {"type": "response.content_part.added", **at, "part": {**part, key: ""}}
        yield {"type": f"response.{kind}.delta", **at, "delta": part.get(key) or "", **more}
        yield {"type": f"response.{kind}.done", **at, key: part.get(key) or "", **more}
        yield {"type": "response.content_part.done", **at, "part": part}
    yield {"type": "response.output_item.done", "output_index": index, "item": dict(item)}
