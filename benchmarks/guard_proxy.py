"""`constrained bench guard --proxy`: the proxy beside a bare one, before the same server, with 1 to 256 clients.

Three processes share the machine with the clients: a small server of fixed answers, a proxy that only passes requests
on (`bare`, written with the proxy's own libraries), and the proxy. All are asked the same: gold conversations of
tau-bench's retail tasks with all tools, at the point before an action; the answer is the gold call, or a text. Their
rounds take turns.

    python -m benchmarks.guard_proxy server       the server, at a free port
    python -m benchmarks.guard_proxy bare URL     the bare proxy
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import cycle
from typing import Any

import numpy as np

from benchmarks.reporting import markdown
from benchmarks.result_files import RESULTS
from benchmarks.tau_environment import YES
from constrained.cli.bench import CHECKOUT
from constrained.errors import ConstrainedError

RECORD = RESULTS / "guard_proxy.json"

CLIENTS = (1, 32, 256)

SECONDS = 4.0
"""Of a round."""

CONVERSATIONS = 24

DOMAIN = "retail"

Request = tuple[str, bytes]
"""What is asked: "whole" or "streamed", and the bytes of the request."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--proxy", action="store_true", help="only: the proxy's latency and throughput beside a bare one's")
    add("--rounds", type=int, default=3, metavar="N", help="of --proxy: rounds of each proxy (default: 3)")


def measure(tools: list[Any], tasks: list[dict[str, Any]], rounds: int) -> dict[str, Any]:
    """The latency and throughput of both proxies, by the number of clients."""
    began = os.getloadavg()[0]
    requests = {kind: [*asked(tools, tasks, kind == "streamed")] for kind in ("whole", "streamed")}
    sizes = [len(body) for body in requests["whole"]]
    rows = []
    with ExitStack() as stack:
        own = [sys.executable, "-m", "benchmarks.guard_proxy"]
        upstream = stack.enter_context(_started([*own, "server"]))
        serve = [sys.executable, "-m", "constrained", "serve", "--port", "0", "--knowledge", f"tau_{DOMAIN}"]
        ports = {
            "none": upstream,
            "bare": stack.enter_context(_started([*own, "bare", f"http://127.0.0.1:{upstream}/v1"])),
            "guard": stack.enter_context(_started([*serve, "--upstream", f"http://127.0.0.1:{upstream}/v1"])),
        }
        for name in ports:  # what is made at the first use; each answer is the one that is expected
            for kind, bodies in requests.items():
                asyncio.run(_load(ports[name], bodies, 1, 1.0, kind == "streamed"))
        for kind, bodies in requests.items():
            for clients in CLIENTS:
                result: dict[str, list[dict[str, float]]] = {name: [] for name in ports}
                for _ in range(rounds):
                    for name, port in ports.items():
                        result[name].append(asyncio.run(_load(port, bodies, clients, SECONDS, kind == "streamed")))
                for name, several in result.items():
                    figures = {key: float(np.median([one[key] for one in several])) for key in several[0]}
                    rows.append({"form": kind, "clients": clients, "proxy": name, **figures})
                    print(_line(rows[-1]), file=sys.stderr, flush=True)
    load = {"begin": began, "end": os.getloadavg()[0]}
    facts = {"request bytes": int(np.median(sizes)), "rounds": rounds, "seconds": SECONDS, "load": load}
    return {**facts, "rows": rows}


def _line(row: dict[str, Any]) -> str:
    return ", ".join(f"{value:.1f}" if isinstance(value, float) else str(value) for value in row.values())


def table(result: dict[str, Any]) -> str:
    """The table: of each proxy, milliseconds from a request to the end of its answer, and answers a second."""
    rows = {(row["form"], row["clients"], row["proxy"]): row for row in result["rows"]}
    shown = []
    for kind, clients in dict.fromkeys((row["form"], row["clients"]) for row in result["rows"]):
        none, bare, guard = (rows[kind, clients, name] for name in ("none", "bare", "guard"))
        times = [f"{one[p]:,.1f}" for p in ("p50", "p99") for one in (none, bare, guard)]
        rates = [f"{one['a second']:,.0f}" for one in (none, bare, guard)]
        shown.append([kind, clients, *times, *rates])
    names = ("no proxy", "bare", "guard")
    figures = ("ms p50", "p99", "per s")
    head = [f"{what}: {name}" if name == names[0] else name for what in figures for name in names]
    return markdown(["answers", "clients", *head], shown)


# requests


def asked(tools: list[Any], tasks: list[dict[str, Any]], stream: bool) -> Iterator[bytes]:
    """Requests of gold conversations, each before an action; the expected answer is in a field of their own."""
    listed = [tool if "function" in tool else {"type": "function", "function": tool} for tool in tools]
    with_actions = [task for task in tasks if any(step["kind"] != "lookup" for step in task["steps"])]
    for number, task in enumerate(with_actions[:CONVERSATIONS]):
        messages = [{"role": "user", "content": task["instruction"]}]
        for at, step in enumerate(task["steps"]):
            function = {"name": step["tool"], "arguments": json.dumps(step["arguments"])}
            call = {"id": f"call_{at}", "type": "function", "function": function}
            if step["kind"] != "lookup":
                messages += [{"role": "assistant", "content": "Shall I?"}, {"role": "user", "content": YES}]
                break
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": step["result"]})
        # Every other answer is a text.
        answer = {"content": "Your order is on its way. Anything else?"} if number % 2 else {"tool_calls": [call]}
        body = {"model": "m", "messages": messages, "tools": listed, "stream": stream, "metadata": {"answer": answer}}
        yield json.dumps(body).encode()


async def _load(port: int, bodies: list[bytes], clients: int, seconds: float, stream: bool) -> dict[str, float]:
    """So many clients ask one after the other; each answer is checked."""
    took: list[float] = []
    turn = cycle(bodies)
    end = time.perf_counter() + seconds
    wanted = {body: _mark(json.loads(body)["metadata"]["answer"]) for body in bodies}

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        while time.perf_counter() < end:
            body = next(turn)
            began = time.perf_counter()
            writer.write(_HEAD % len(body) + body)
            answer = await _read(reader)
            took.append(time.perf_counter() - began)
            if wanted[body] not in answer or (stream and b"[DONE]" not in answer):
                raise ConstrainedError(f"not the expected answer: {answer[:300]!r}", "the benchmark is at fault")
        writer.close()

    began = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    over = time.perf_counter() - began
    p50, p99 = (1e3 * float(np.percentile(took, q)) for q in (50, 99))
    return {"p50": p50, "p99": p99, "a second": len(took) / over, "answers": float(len(took))}


_HEAD = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Authorization: Bearer none\r\nContent-Length: %d\r\n\r\n"
)


def _mark(answer: dict[str, Any]) -> bytes:
    """A text that occurs only in the expected answer, streamed or not."""
    return b"Your" if "content" in answer else answer["tool_calls"][0]["function"]["name"].encode()


async def _read(reader: asyncio.StreamReader) -> bytes:
    """The body of an answer, with a length or in chunks."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if not head.startswith(b"http/1.1 200"):
        raise ConstrainedError(f"an answer with an error: {head[:60]!r}", "the benchmark is at fault")
    if length := re.search(rb"content-length: (\d+)", head):
        return await reader.readexactly(int(length[1]))
    data = bytearray()
    while size := int(await reader.readuntil(b"\r\n"), 16):
        data += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readexactly(2)
    return bytes(data)


@contextmanager
def _started(command: list[str]) -> Iterator[int]:
    """A process that says at which port it listens."""
    paths = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    with subprocess.Popen(
        command, cwd=CHECKOUT, env=paths, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            assert process.stdout is not None
            ports = re.findall(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
            if not ports:
                raise ConstrainedError(f"{' '.join(command[2:4])} didn't start", "run it by itself to see why")
            yield int(ports[-1])
        finally:
            process.terminate()


# the server of fixed answers


async def _serve_answers() -> None:
    """Answer each request with what its own field says: as little work as can be, so that the proxies are measured."""
    made: dict[bytes, bytes] = {}

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = re.search(rb"content-length: (\d+)", head)
                body = await reader.readexactly(int(length[1])) if length else b""
                # The proxies send the fields in the order in which they came.
                key = body[body.rindex(b'"stream"') :] if body else b""
                if key not in made:
                    made[key] = _answer(json.loads(body)) if body else _whole({"data": []})
                writer.write(made[key])
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, limit=1 << 22, backlog=512)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


def _answer(body: dict[str, Any]) -> bytes:
    message = {"role": "assistant", "content": None, **body["metadata"]["answer"]}
    finish = "tool_calls" if "tool_calls" in message else "stop"
    head = {"id": "chatcmpl-1", "created": 1, "model": "m"}
    if not body["stream"]:
        choice = {"index": 0, "message": message, "finish_reason": finish}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return _whole({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": f"{word} "} for word in (message["content"] or "").split()]
    for call in message.get("tool_calls", ()):
        function = call["function"]
        deltas.append({"tool_calls": [{**call, "index": 0, "function": {**function, "arguments": ""}}]})
        parts = [function["arguments"][at : at + 8] for at in range(0, len(function["arguments"]), 8)]
        deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": part}}]} for part in parts]
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    chunks = [{**head, "object": "chat.completion.chunk", "choices": [choice]} for choice in choices]
    events = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks] + [b"data: [DONE]\n\n"]
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in [*events, b""])
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + pieces


def _whole(answer: dict[str, Any]) -> bytes:
    data = json.dumps(answer).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(data), data)


# the bare proxy


def _serve_bare(upstream: str) -> None:
    """A proxy on the same libraries that passes on requests and answers without reading them."""
    import httpx2 as http
    from starlette.applications import Starlette
    from starlette.responses import Response, StreamingResponse
    from starlette.routing import Route

    from constrained.server.connections import ProxiedConnection, serve

    client: http.AsyncClient | None = None

    async def passed(request: Request) -> Response:
        nonlocal client
        if client is None:
            limits = http.Limits(max_connections=512, max_keepalive_connections=512)
            client = http.AsyncClient(limits=limits, timeout=300, trust_env=False)
        data = await request.body()
        kept = ("authorization", "content-type")
        headers = {name: value for name, value in request.headers.items() if name in kept}
        asked = client.build_request("POST", f"{upstream}/chat/completions", headers=headers, content=data)
        answer = await client.send(asked, stream=True)
        kind = answer.headers["content-type"]
        if not kind.startswith("text/event-stream"):
            return Response(await answer.aread(), answer.status_code, media_type=kind)

        async def pieces() -> Any:
            try:
                async for piece in answer.aiter_raw():
                    yield piece
            finally:
                await answer.aclose()

        return StreamingResponse(pieces(), answer.status_code, media_type=kind)

    app = Starlette(routes=[Route("/v1/chat/completions", passed, methods=["POST"])])
    serve(app, "127.0.0.1", 0, lambda url: print(url, flush=True), ProxiedConnection)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["server"]:
            asyncio.run(_serve_answers())
        case ["bare", url]:
            _serve_bare(url)
