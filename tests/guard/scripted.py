"""An OpenAI-compatible server whose model is a list of answers; it notes what it is asked."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Script:
    """The answers that are still to be given: messages, or what a misbehaving server does (see `Handler.do_POST`).

    Attributes
    ----------
    requests : list of (dict, dict)
        The headers and the body of each.
    """

    def __init__(self) -> None:
        self.answers: list[Any] = []
        self.requests: list[tuple[dict[str, str], Any]] = []
        self.gone = 0  # clients that left before their answer was whole
        self.url = ""


@contextmanager
def scripted() -> Iterator[Script]:
    """A server on the loopback address, until the block ends."""
    script = Script()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.answer(200, {"object": "list", "data": [{"id": "scripted", "object": "model"}]})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            script.requests.append((dict(self.headers), body))
            answer = script.answers.pop(0) if script.answers else {"role": "assistant", "content": "Hello."}
            match answer:
                case {"status": status, **rest}:
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
                case {"endless": piece}:
                    self.begin("text/event-stream", None)
                    try:
                        for _ in range(100_000):
                            self.wfile.write(event({"content": piece}).encode())
                            self.wfile.flush()
                            time.sleep(0.01)
                    except OSError:
                        script.gone += 1
                    self.close_connection = True
                case _ if body.get("stream"):
                    self.send("".join(events(answer)).encode(), "text/event-stream")
                case _:
                    finish = "tool_calls" if answer.get("tool_calls") else "stop"
                    choice = {"index": 0, "message": answer, "finish_reason": finish, "logprobs": None}
                    self.answer(200, {**HEAD, "object": "chat.completion", "choices": [choice], "usage": USAGE})

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
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
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
