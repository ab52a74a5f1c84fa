"""`constrained serve` under hostile requests: gaps in other clients' streams, and many clients at once.

    constrained bench serve --json benchmarks/results/serve.json

Two clients stream answers, one in free text and one in JSON, while one hostile request after the other is sent. A gap
is the time between two pieces of a stream, or from a request to its first piece. `--checkout FOLDER` measures the
server of another checkout with the same requests.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reporting import add_json, describe_machine, markdown, report
from constrained import __version__
from constrained.cli.bench import CHECKOUT
from constrained.cli.options import whole_number
from constrained.errors import ConstrainedError

NAME = "served"
BETWEEN = 1.0
"""Seconds that are watched before a hostile request and after its answer."""
LONGEST = 60.0
"""Seconds after which a hostile request is no longer waited for."""
DESCRIPTORS = 200
"""File descriptors of a server that is sent half requests."""
HALF_HEADERS, HALF_BODIES = 230, 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", default="embedded", help="what is served (default: the embedded model)")
    add("--only", action="append", default=[], metavar="TEXT", help="only hostile requests with this in their name")
    add("--clients", type=whole_number, default=200, help="how many ask at once at the end (default: 200)")
    add("--seconds", type=float, default=60.0, help="for how long these ask (default: 60; 0: leave them out)")
    add("--checkout", type=Path, default=CHECKOUT, help="the checkout whose server is measured (default: this one)")
    add("--before", type=Path, metavar="FILE", help="the JSON of an earlier server's run, kept beside this one's")
    add_json(parser)


def run_command(options: argparse.Namespace) -> int:
    before = {"before": json.loads(options.before.read_text(encoding="utf-8"))} if options.before else {}
    began = os.getloadavg()[0]
    wanted = {name: act for name, act in hostile().items() if _asked(name, options)}
    rows = []
    with running(options) as server:
        for name, act in wanted.items():
            rows.append(watched(server, name, act))
            print(_line(rows[-1]), file=sys.stderr, flush=True)
    for name, act in half_sent().items():
        if _asked(name, options):
            with running(options, descriptors=DESCRIPTORS) as server:
                rows.append(watched(server, name, act))
                print(_line(rows[-1]), file=sys.stderr, flush=True)
    many = None
    if options.seconds:
        with running(options) as server:
            many = crowd(server, options.clients, options.seconds)
    facts = {"version": __version__, "machine": describe_machine(), "model": options.model}
    load = {"begin": began, "end": os.getloadavg()[0]}
    return report(table(rows, many), {**facts, "load": load, "rows": rows, "crowd": many, **before}, options)


def _asked(name: str, options: argparse.Namespace) -> bool:
    return not options.only or any(text in name for text in options.only)


class Server:
    """A server that runs: its port, and the process."""

    def __init__(self, process: subprocess.Popen[str], port: int):
        self.process, self.port = process, port

    def ask(self, body: Any, seconds: float = LONGEST) -> tuple[int, bytes]:
        """The status and the body of an answer; status 0: there was none."""
        data = body if isinstance(body, bytes) else json.dumps({"model": NAME, **body}).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            connection.request("POST", "/v1/chat/completions", data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            connection.close()

    def pieces(self, body: dict[str, Any]) -> Iterator[bytes]:
        """The pieces of a streamed answer, as they come; none if there was no answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2 * LONGEST)
        try:
            data = json.dumps({"model": NAME, "stream": True, **body}).encode()
            connection.request("POST", "/v1/chat/completions", data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            while answer.status == 200 and (line := answer.readline()):
                if b'"content": "' in line and b'"content": ""' not in line:
                    yield line
        except (OSError, http.client.HTTPException):
            return
        finally:
            connection.close()

    def megabytes(self) -> float:
        """Memory of the server and its child processes in megabytes (PSS: shared pages are divided among processes)."""
        total, waiting = 0.0, [self.process.pid]
        while waiting:
            pid = waiting.pop()
            try:
                match = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
                total += int(match[1]) / 1e3 if match else 0.0
                for children in Path(f"/proc/{pid}/task").glob("*/children"):
                    waiting += map(int, children.read_text().split())
            except OSError:
                continue
        return total


@contextmanager
def running(options: argparse.Namespace, descriptors: int | None = None) -> Iterator[Server]:
    """A server on any free port; `descriptors`: the most files and connections that it may open."""

    def limit() -> None:
        if descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    command = [sys.executable, "-m", "constrained", "serve", "--port", "0", "--name", NAME, "--model", options.model]
    paths = {**os.environ, "PYTHONPATH": str(options.checkout.resolve())}
    with subprocess.Popen(  # in that folder, which `-m` looks in first
        command,
        env=paths,
        cwd=options.checkout,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=limit,
    ) as process:
        try:
            assert process.stdout is not None
            at = re.search(r"http://127\.0\.0\.1:(\d+)/", process.stdout.readline())
            if at is None:
                raise ConstrainedError("the server didn't start", f"see what `{' '.join(command[1:])}` says")
            server = Server(process, int(at[1]))
            server.ask(user("Hello.", max_tokens=8))  # a first request, so that what is made once isn't measured
            server.ask(user("Hello.", max_tokens=8, response_format=schema({"type": "boolean"})))
            yield server
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


class Watcher(threading.Thread):
    """A client that streams one answer after the other, and notes when their pieces come."""

    def __init__(self, server: Server, body: dict[str, Any]):
        super().__init__(daemon=True)
        self.server, self.body = server, body
        self.gaps: list[float] = []
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.is_set():
            last = time.perf_counter()
            for _ in self.server.pieces({**self.body, "seed": len(self.gaps)}):
                now = time.perf_counter()
                self.gaps.append(now - last)
                last = now
                if self.over.is_set():
                    return
            if time.perf_counter() - last > LONGEST / 2:
                self.gaps.append(time.perf_counter() - last)  # no piece came

    def stop(self) -> dict[str, float]:
        """The gaps' spread, in seconds."""
        self.over.set()
        self.join(LONGEST)
        gaps = np.array(self.gaps or [LONGEST])
        return {"pieces": len(self.gaps), "p50": float(np.percentile(gaps, 50)), "worst": float(gaps.max())}


def watched(server: Server, name: str, act: Callable[[Server], int]) -> dict[str, Any]:
    """The gaps in other clients' streams during a hostile request."""
    before = server.megabytes()
    watchers = {
        "text": Watcher(server, user("Tell me a long story.", max_tokens=900, temperature=1.0)),
        "json": Watcher(server, user("List numbers.", max_tokens=900, response_format=schema(NUMBERS))),
    }
    for watcher in watchers.values():
        watcher.start()
    time.sleep(BETWEEN)
    began = time.perf_counter()
    status = act(server)
    seconds = time.perf_counter() - began
    time.sleep(BETWEEN)
    gaps = {kind: watcher.stop() for kind, watcher in watchers.items()}
    held = server.megabytes() - before
    return {"request": name, "status": status, "seconds": seconds, "megabytes_held": held, **gaps}


NUMBERS = {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 999}, "minItems": 150}


def user(text: str, **options: Any) -> dict[str, Any]:
    """The body of a request."""
    return {"messages": [{"role": "user", "content": text}], **options}


def schema(given: Any) -> dict[str, Any]:
    """A `response_format`."""
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": given}}


def tool(name: str, **properties: Any) -> dict[str, Any]:
    """A tool with some arguments."""
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


WORDS = "alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima".split()


def hostile() -> dict[str, Callable[[Server], int]]:
    """Name -> a function that sends an expensive request and returns the status of its answer."""
    bodies: dict[str, Any] = {"an ordinary request": user("Hello.", max_tokens=20)}
    for words, given in {
        "minItems of 1,000,000,000": {"type": "array", "items": {}, "minItems": 10**9},
        "multipleOf 99,991": {"type": "integer", "multipleOf": 99991},
        "minLength of 1,000,000,000": {"type": "string", "minLength": 10**9},
        "a `not` of 12 words": {"type": "string", "not": {"pattern": "|".join(WORDS)}},
        "an enum of 200,000 texts": {"enum": [f"value {i}" for i in range(200_000)]},
    }.items():
        bodies[words] = user("Answer.", max_tokens=400, response_format=schema(given))
    letters = {f"p{i}": {"type": "string", "pattern": f"^[a-z]{{2,{i + 3}}}-[0-9]$"} for i in range(40)}
    many = [tool(f"tool_{i}", **letters) for i in range(128)]
    bodies["128 tools of 40 arguments with patterns"] = user("Call.", max_tokens=400, tools=many)
    bodies["a tool's name of 300 kB"] = user("Call.", max_tokens=400, tools=[tool("a" * 300_000)])
    bodies["a prompt of 3,000 words"] = user("Count. " + "word " * 3_000, max_tokens=20)
    bodies["a message of 1 MB"] = user("word " * 200_000)
    bodies["8 MB of []"] = b"[" + b"[]," * 2_700_000 + b"[]]"
    return {name: lambda server, body=body: server.ask(body)[0] for name, body in bodies.items()}


def half_sent() -> dict[str, Callable[[Server], int]]:
    """Name -> a function that sends unfinished requests, then an ordinary one, and returns its status."""
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    length = 8_000_000

    def left(server: Server, number: int, sent: bytes) -> int:
        held = []
        try:
            for _ in range(number):
                try:
                    one = socket.create_connection(("127.0.0.1", server.port), timeout=2)
                    held.append(one)
                    one.sendall(sent)
                except OSError:
                    continue
            return server.ask(user("Hello.", max_tokens=5), 10)[0]
        finally:
            for one in held:
                one.close()

    body = head + b"Content-Length: %d\r\n\r\n" % length + b" " * (length - 1)
    return {
        f"{HALF_HEADERS} half-sent headers": lambda server: left(server, HALF_HEADERS, head),
        f"{HALF_BODIES} bodies of 8 MB, half-sent": lambda server: left(server, HALF_BODIES, body),
    }


def crowd(server: Server, clients: int, seconds: float) -> dict[str, Any]:
    """Many clients that each ask again and again; an answer that isn't 200, or breaks off, is lost."""
    took: list[float] = []
    lost: dict[str, int] = {}
    end = time.monotonic() + seconds
    city = {"type": "object", "properties": {"city": {"enum": ["Oslo", "Rome"]}}, "required": ["city"]}
    kinds = [
        {"max_tokens": 16},
        {"max_tokens": 40, "response_format": schema(city)},
        {"max_tokens": 60, "tools": [tool("go_to", city={"enum": ["Oslo", "Rome"]})], "tool_choice": "required"},
    ]

    def client(number: int) -> None:
        while time.monotonic() < end:
            began = time.perf_counter()
            status, _ = server.ask(user("Hello.", seed=number, **kinds[number % 3]), 300)
            took.append(time.perf_counter() - began)
            if status != 200:
                lost[str(status)] = lost.get(str(status), 0) + 1

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spread = {"p50": float(np.percentile(took, 50)), "worst": float(max(took))}
    return {"clients": clients, "seconds": seconds, "answers": len(took), "lost": lost, **spread}


def compared(record: dict[str, Any]) -> str:
    """The gaps in other clients' streams of text beside those of an earlier server, as Markdown."""
    earlier = {row["request"]: row["text"] for row in record["before"]["rows"]}
    head = ["while another client sends", "p50", "worst", "before: p50", "worst"]
    cells = [
        [row["request"],
         *(f"{one[key] * 1000:,.0f} ms" if one else "–" for one in (row["text"], earlier.get(row["request"]))
           for key in ("p50", "worst"))]
        for row in record["rows"]
    ]  # fmt: skip
    return markdown(head, cells)


def _line(row: dict[str, Any]) -> str:
    return f"{row['request']}: {row['status']} after {row['seconds']:.1f} s, worst gap {row['text']['worst']:.3f} s"


def table(rows: list[dict[str, Any]], many: dict[str, Any] | None) -> str:
    """The figures as Markdown."""
    head = ["while another client sends", "status", "after", "text p50", "worst", "JSON p50", "worst", "held"]
    cells = [
        [
            row["request"], row["status"] or "none", f"{row['seconds']:.1f} s",
            *(f"{row[kind][key]:.3f} s" for kind in ("text", "json") for key in ("p50", "worst")),
            f"{max(0.0, row['megabytes_held']):.0f} MB",
        ]
        for row in rows
    ]  # fmt: skip
    lines = [markdown(head, cells)]
    if many:
        lost = ", ".join(f"{n} with {status}" for status, n in many["lost"].items()) or "none"
        lines.append(
            f"\n{many['clients']} clients for {many['seconds']:.0f} s: {many['answers']:,} answers, lost: {lost}; "
            f"p50 {many['p50']:.1f} s, worst {many['worst']:.1f} s"
        )
    return "\n".join(lines)
