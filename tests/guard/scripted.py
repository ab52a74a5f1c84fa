"""An OpenAI-compatible server whose model is a list of answers; it notes what it is asked."""

from __future__ import annotations

import itertools
import json
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar


class Script:
    """The answers that are still to be given: messages, or what a misbehaving server does (see `Handler.do_POST`).
    After them, what `otherwise` makes of a request's body.

    Attributes
    ----------
    requests : list of (dict, dict)
        The headers and the body of each.
    """

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.otherwise: Callable[[Any], Any] = lambda body: {"role": "assistant", "content": "Hello."}
        self.requests: list[tuple[dict[str, str], Any]] = []
        self.gone = 0  # clients that left before their answer was whole
        self.url = ""


@contextmanager
def scripted() -> Iterator[Script]:
    """A server on the loopback address, until the block ends."""
    script = Script()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        more: ClassVar[dict[str, str]] = {}  # headers of the next answer

        def do_GET(self):
            self.answer(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            script.requests.append((dict(self.headers), body))
            answer = script.answers.pop(0) if script.answers else script.otherwise(body)
            if "paced" in answer:  # seconds, in all or between two events
                seconds, answer = answer["paced"], answer["message"]
                if not body.get("stream"):
                    self.wait(seconds)
                elif seconds:
                    answer = {"pieces": events(answer), "between": seconds}
            match answer:
                case {"pieces": pieces, "between": seconds}:
                    self.paced(pieces, seconds)
                case {"status": status, **rest}:
                    self.more = rest.get("headers", {})
                    self.answer(status, rest.get("body", {"error": {"message": "no", "type": "x"}}), rest.get("type"))
                case {"sleep": seconds, **rest}:
                    time.sleep(seconds)
                    self.close_connection = True
                case {"raw": text}:
                    self.send(text.encode(), "text/event-stream" if body.get("stream") else "application/json")
                case {"cut": pieces}:
                    self.begin("text/event-stream", None)
                    for piece in pieces:
                        self.wfile.write(piece.encode())
                    self.wfile.flush()
                    self.close_connection = True
                case {"endless": piece, **rest}:
                    self.begin("text/event-stream", None)
                    self.wfile.write(rest.get("begin", "").encode())
                    try:
                        for _ in range(100_000):
                            self.wfile.write((piece if rest.get("events") else event({"content": piece})).encode())
                            self.wfile.flush()
                            time.sleep(0.01)
                    except OSError:
                        script.gone += 1
                    self.close_connection = True
                case _ if self.path.endswith("/responses") and body.get("stream"):
                    self.send("".join(response_events(answer)).encode(), "text/event-stream")
                case _ if self.path.endswith("/responses"):
                    self.answer(200, response(answer))
                case _ if body.get("stream"):
                    self.send("".join(events(answer)).encode(), "text/event-stream")
                case _:
                    finish = "tool_calls" if answer.get("tool_calls") else "stop"
                    choice = {"index": 0, "message": answer, "finish_reason": finish, "logprobs": None}
                    self.answer(200, {**HEAD, "object": "chat.completion", "choices": [choice], "usage": USAGE})

        def wait(self, seconds: float) -> None:
            """Wait; a client that leaves meanwhile is counted."""
            if select.select([self.connection], [], [], seconds)[0]:
                script.gone += 1

        def paced(self, pieces: Iterator[str], seconds: float) -> None:
            self.begin("text/event-stream", None)
            self.close_connection = True
            try:
                for piece in pieces:
                    self.wfile.write(piece.encode())
                    self.wfile.flush()
                    time.sleep(seconds)
            except OSError:
                script.gone += 1

        def answer(self, status: int, body: Any, kind: str | None = None) -> None:
            self.send(json.dumps(body).encode(), kind or "application/json", status)

        def send(self, data: bytes, kind: str, status: int = 200) -> None:
            self.begin(kind, len(data), status)
            self.wfile.write(data)

        def begin(self, kind: str, length: int | None, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if length is None:
                self.send_header("Connection", "close")
            else:
                self.send_header("Content-Length", str(length))
            for name, value in self.more.items():
                self.send_header(name, value)
            self.more = {}
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    script.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


HEAD = {"id": "chatcmpl-1", "created": 1, "model": "scripted"}
USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def event(delta: dict[str, Any], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({**HEAD, 'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n"


def events(message: dict[str, Any]) -> Iterator[str]:
    """A message as the events of a stream: texts word by word, arguments in pieces of three characters."""
    yield event({"role": "assistant", "content": ""})
    for word in (message.get("content") or "").split(" "):
        yield event({"content": f"{word} "}) if word else ""
    for i, call in enumerate(message.get("tool_calls") or ()):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        first = {"index": i, "id": call["id"], "type": "function", "function": {"name": name, "arguments": ""}}
        yield event({"tool_calls": [first]})
        for at in range(0, len(arguments), 3):
            yield event({"tool_calls": [{"index": i, "function": {"arguments": arguments[at : at + 3]}}]})
    yield event({}, "tool_calls" if message.get("tool_calls") else "stop")
    yield "data: [DONE]\n\n"


_NUMBERS = itertools.count()


def response(message: dict[str, Any]) -> dict[str, Any]:
    """A message as a response of the Responses API; each is thought about first."""
    number = next(_NUMBERS)  # items have identities of their own
    output: list[dict[str, Any]] = [{"id": f"rs_{number}", "type": "reasoning", "summary": []}]
    if message.get("content"):
        part = {"type": "output_text", "text": message["content"], "annotations": []}
        output.append({
            "id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed", "content": [part]
        })  # fmt: skip
    for n, call in enumerate(message.get("tool_calls") or ()):
        named = {"id": f"fc_{number}_{n}", "type": "function_call", "call_id": call["id"], "status": "completed"}
        output.append({**named, **call["function"]})
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "input_tokens_details": {"cached_tokens": 1}}
    return {**RESPONSE, "status": "completed", "output": output, "usage": usage}


RESPONSE = {"id": "resp_1", "object": "response", "created_at": 1, "model": "scripted"}


def response_event(kind: str, **fields: Any) -> str:
    data = {"type": f"response.{kind}", "sequence_number": 99, **fields}
    return f"event: response.{kind}\ndata: {json.dumps(data)}\n\n"


def response_events(message: dict[str, Any]) -> Iterator[str]:
    """A response as the events of a stream: texts word by word, arguments in pieces of three characters."""
    whole = response(message)
    yield response_event("created", response={**RESPONSE, "status": "in_progress", "output": []})
    yield response_event("in_progress", response={**RESPONSE, "status": "in_progress", "output": []})
    for index, item in enumerate(whole["output"]):
        at = {"output_index": index, "item_id": item["id"]}
        empty = {"message": {"content": []}, "function_call": {"arguments": ""}}.get(item["type"], {})
        yield response_event("output_item.added", output_index=index, item={**item, **empty, "status": "in_progress"})
        if item["type"] == "message":
            [part] = item["content"]
            yield response_event("content_part.added", **at, content_index=0, part={**part, "text": ""})
            words = part["text"].split(" ")
            for n, word in enumerate(words):
                delta = word if n == len(words) - 1 else f"{word} "
                yield response_event("output_text.delta", **at, content_index=0, delta=delta, logprobs=[])
            yield response_event("output_text.done", **at, content_index=0, text=part["text"], logprobs=[])
            yield response_event("content_part.done", **at, content_index=0, part=part)
        if item["type"] == "function_call":
            for n in range(0, len(item["arguments"]), 3):
                yield response_event("function_call_arguments.delta", **at, delta=item["arguments"][n : n + 3])
            yield response_event("function_call_arguments.done", **at, arguments=item["arguments"], name=item["name"])
        yield response_event("output_item.done", output_index=index, item=item)
    yield response_event("completed", response=whole)


def as_input(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages of chat completions as items of a request of the Responses API."""
    items: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            output = {"call_id": message["tool_call_id"], "output": message["content"]}
            items.append({"type": "function_call_output", **output})
            continue
        if message["content"] is not None:
            items.append({"role": message["role"], "content": message["content"]})
        for call in message.get("tool_calls", ()):
            items.append({"type": "function_call", "call_id": call["id"], **call["function"]})
    return items
