"""A proxy for tests on the loopback address, and its clients."""

from __future__ import annotations

import json
import socket
import threading

import pytest

openai = pytest.importorskip("openai", reason="needs the extra remote")
pytest.importorskip("starlette", reason="needs the extra proxy")
uvicorn = pytest.importorskip("uvicorn", reason="needs the extra proxy")
http = pytest.importorskip("httpx2", reason="needs the extra proxy")

from constrained.grammar import read_source  # noqa: E402
from constrained.server.connections import ProxiedConnection, config  # noqa: E402
from constrained.server.proxy import make_proxy  # noqa: E402
from tests.guard.scripted import as_input  # noqa: E402
from tests.guard.shop import CANCEL, FLAT, POLICY, TOOLS, asked  # noqa: E402

both = pytest.mark.parametrize("stream", [False, True])
CANCELS = asked(("cancel_order", CANCEL))


class Running:
    """A proxy on the loopback address, and a client of it."""

    def __init__(self, upstream, policy=POLICY, **options):
        app = make_proxy(upstream, read_source(policy), hosts=["127.0.0.1"], **options)
        listening = socket.create_server(("127.0.0.1", 0))
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)  # soon full if nobody reads
        self.server = uvicorn.Server(config(app, ProxiedConnection))
        self.thread = threading.Thread(target=self.server.run, args=([listening],), daemon=True)
        self.thread.start()
        self.address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self.client = openai.OpenAI(base_url=f"{self.address}/v1", api_key="sk-secret", max_retries=0, timeout=120)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.close()
        self.server.should_exit = True
        self.thread.join()

    def ask(self, messages, stream=False, **options):
        """(text, names of the calls, why it ended, the answer)."""
        request = {"model": "scripted", "messages": messages, "tools": TOOLS, **options}
        answer = self.client.chat.completions.create(stream=stream, **request)
        if not stream:
            choice = answer.choices[0]
            calls = [call.function.name for call in choice.message.tool_calls or []]
            return choice.message.content or "", calls, choice.finish_reason, answer
        chunks = [*answer]
        choices = [chunk.choices[0] for chunk in chunks if chunk.choices]
        calls = [call for choice in choices for call in choice.delta.tool_calls or []]
        text = "".join(choice.delta.content or "" for choice in choices)
        names = [call.function.name for call in calls if call.function.name]
        return text.strip(), names, choices[-1].finish_reason, chunks

    def post(self, body):
        data = body if isinstance(body, (str, bytes)) else json.dumps({"model": "scripted", "tools": TOOLS, **body})
        headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-secret"}
        return http.post(f"{self.address}/v1/chat/completions", content=data, headers=headers, timeout=120)

    def respond(self, messages, stream=False, **options):
        """As `ask`, by the Responses API: (text, names of the calls, the whole response, the events)."""
        request = {"model": "scripted", "input": as_input(messages), "tools": FLAT, **options}
        answer = self.client.responses.create(stream=stream, **request)
        events = [*answer] if stream else []
        whole = events[-1].response if stream else answer
        calls = [item.name for item in whole.output if item.type == "function_call"]
        if stream:  # the events say what the whole response says
            assert [event.sequence_number for event in events] == [*range(len(events))]
            assert [event.type for event in events].count("response.created") == 1
            done = [event for event in events if event.type == "response.output_item.done"]
            assert [event.output_index for event in done] == [*range(len(whole.output))]
            assert [event.item.model_dump() for event in done] == [item.model_dump() for item in whole.output]
            text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
            assert text == whole.output_text
        return whole.output_text, calls, whole, events
