"""A stand-in for an OpenAI-compatible server that answers, or misbehaves, as a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Server:
    """Answers as `reply(body)` says: a text, (status, message), or bytes to be sent as they are; status 200 with a text
    that was cut off."""

    def __init__(self, reply: Callable[[dict], Any]):
        self.bodies: list[dict] = []
        self.keys: set[str] = set()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.send(200, json.dumps({"object": "list", "data": [{"id": "tiny", "object": "model"}]}).encode())

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.bodies.append(body)
                server.keys.add(self.headers["Authorization"])
                answer = reply(body)
                if isinstance(answer, bytes):
                    return self.send(200, answer)
                cut_off = isinstance(answer, tuple) and answer[0] == 200
                if cut_off:
                    answer = answer[1]
                if isinstance(answer, tuple):
                    return self.send(answer[0], json.dumps({"error": {"message": answer[1]}}).encode())
                message = {"role": "assistant", "content": answer}
                data = {
                    "id": "1", "object": "chat.completion", "created": 0, "model": "tiny",
                    "choices": [{"index": 0, "message": message, "finish_reason": "length" if cut_off else "stop"}],
                    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
                }  # fmt: skip
                return self.send(200, json.dumps(data).encode())

            def send(self, status: int, data: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                with suppress(BrokenPipeError):  # nobody waits any more
                    self.wfile.write(data)

            def log_message(self, *_):
                pass

        class Http(ThreadingHTTPServer):
            request_queue_size = 128  # by default 5 connections wait, further ones are reset on a busy machine

        self.http = Http(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
