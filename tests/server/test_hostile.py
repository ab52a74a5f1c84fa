"""Whatever one request asks, the others go on; and what it took is given back."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from pathlib import Path

import pytest

from constrained.decoding.generation import start_text
from constrained.decoding.request import Request
from constrained.errors import ModelError
from constrained.server import bounds, connections
from constrained.server.processes import FORKS, Processes, TooLong, limited
from tests.decoding.tiny import tiny
from tests.server.served import ASK, TOOLS, ask, http, openai, post, running, schema_format

pytestmark = pytest.mark.skipif(not FORKS, reason="requests have processes of their own on Linux only")

WORDS = "alpha bravo charlie delta echo foxtrot golf hotel india juliett kilo lima".split()
PATTERNED = {f"p{i}": {"type": "string", "pattern": f"^[a-z]{{2,{i + 3}}}-[0-9]$"} for i in range(40)}
DEAR = {
    "a shortest text of a billion items": {"response_format": schema_format({"type": "array", "minItems": 10**9})},
    "a shortest text of a billion letters": {"response_format": schema_format({"type": "string", "minLength": 10**9})},
    "multiples of a large number": {"response_format": schema_format({"type": "integer", "multipleOf": 99_991})},
    "masks that take long": {
        "response_format": schema_format({"type": "string", "not": {"pattern": "|".join(WORDS)}}),
        "max_tokens": 300,
    },
    "very many patterns": {
        "tools": [{"name": f"t{i}", "parameters": {"type": "object", "properties": PATTERNED}} for i in range(128)]
    },
    "a tool with a very long name": {"tools": [{"name": "a" * 300_000, "parameters": {}}]},
    "a prompt that fills many contexts": {"messages": [{"role": "user", "content": "word " * 200_000}]},
    "a bare list of millions of lists": b"[" + b"[]," * 2_700_000 + b"[]]",
    "a message with millions of lists": b'{"model": "tiny", "messages": [' + b"[]," * 2_000_000 + b"[]]}",
}


@pytest.fixture(scope="module")
def client():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(bounds, "WORK_SECONDS", 0.5)  # for the processes, which are forked from what is there now
        yield from running()


def children() -> set[str]:
    """The processes below the one from which requests' processes are forked."""
    found: set[str] = set()
    for task in Path("/proc/self/task").glob("*/children"):
        for parent in task.read_text().split():
            for below in Path(f"/proc/{parent}/task").glob("*/children"):
                found |= set(below.read_text().split())
    return found


@pytest.mark.parametrize("dear", DEAR)
def test_others_are_answered_while_a_dear_request_is_worked_out(client, dear):
    before = children()
    answered = threading.Event()
    found = []

    def hostile() -> None:
        found.append(post(client, DEAR[dear]))
        answered.set()

    thread = threading.Thread(target=hostile)
    thread.start()
    others = 0
    while not answered.is_set():
        assert ask(client, max_tokens=3).choices[0].finish_reason
        others += not answered.is_set()
    thread.join()
    assert found[0].status_code in (200, 400), found[0].text
    assert others or found[0].elapsed.total_seconds() < 0.5  # else it was refused before anything was worked out
    deadline = time.monotonic() + 60
    while children() - before:  # its process ends, and gives back its memory
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_text_is_left_out_while_its_mask_is_worked_out(client, monkeypatch):
    """Each step takes longer than others wait for it; they and it come to their ends."""
    monkeypatch.setattr(bounds, "GRACE_SECONDS", 0.0)
    long = ask(client, max_tokens=3900, stream=True)
    next(iter(long))
    [choice] = ask(client, tools=TOOLS, tool_choice="required", parallel_tool_calls=False, seed=7).choices
    assert choice.finish_reason == "tool_calls"
    assert next(iter(long)).choices[0].finish_reason is None
    long.close()
    monkeypatch.undo()
    again = ask(client, tools=TOOLS, tool_choice="required", parallel_tool_calls=False, seed=7).choices[0]
    assert again.message.tool_calls[0].function == choice.message.tool_calls[0].function


def test_the_limits_of_a_request_s_process(monkeypatch):
    def spin(connection):
        connection.recv()
        try:
            with limited():
                while True:
                    pass
        except TooLong:
            connection.send("ended")

    def sink(connection):  # deep in C code
        connection.recv()
        with limited():
            sum(range(10**11))

    def grow(connection):
        connection.recv()
        try:
            bytearray(2 * bounds.MEMORY)
        except MemoryError:
            connection.send("ended")

    def told(work):
        with Processes(work).start() as connection:
            connection.send("begin")
            return connection.recv()

    monkeypatch.setattr(bounds, "WORK_SECONDS", 0.3)
    assert told(spin) == told(grow) == "ended"
    with pytest.raises((EOFError, OSError)):
        told(sink)


def test_a_prompt_is_refused_by_its_length_before_it_is_tokenized():
    loaded = tiny()
    loaded.tokenizer.encode = None
    with pytest.raises(ModelError, match=r"the prompt of 1,000,000 characters fills the context of .* \(256 tokens of"):
        start_text(loaded, Request("a" * 1_000_000))


def half(client, text: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", client.base_url.port))
    connection.sendall(text)
    return connection


def closed(connection: socket.socket) -> bytes:
    """What was sent before the other side closed the connection."""
    connection.settimeout(120)
    data = b""
    while True:
        try:
            more = connection.recv(1 << 16)
        except ConnectionResetError:
            return data
        if not more:
            return data
        data += more


HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


def test_half_sent_requests_have_deadlines(client, monkeypatch):
    monkeypatch.setattr(bounds, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(bounds, "BODY_SECONDS", 0.3)
    silent, begun, body = half(client, b""), half(client, HEAD), half(client, HEAD + b"Content-Length: 9\r\n\r\n{")
    second = half(client, b"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    answer = b""
    while b"owned_by" not in answer:
        answer += second.recv(1 << 16)
    second.sendall(HEAD)  # a second request on the same connection
    assert closed(silent) == closed(begun) == closed(second) == b""
    assert b" 408 " in closed(body)
    assert client.models.list().data


def test_a_client_that_never_reads_its_answer_has_a_deadline(client, monkeypatch):
    monkeypatch.setattr(bounds, "SECONDS", 0.5)
    monkeypatch.setattr(bounds, "READING_SECONDS", 0.3)
    body = json.dumps({"model": "tiny", "messages": ASK, "max_tokens": 4000, "stream": True}).encode()
    unread = half(client, HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    deadline = time.monotonic() + 120
    while True:  # it is closed with data unread, so that a write fails
        try:
            unread.sendall(b" ")
        except OSError:
            break
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_new_connection_takes_the_place_of_one_that_does_nothing(client, monkeypatch):
    monkeypatch.setattr(connections, "most_connections", lambda: 20)
    held = [half(client, HEAD) for _ in range(60)]
    # The connection that the client keeps from an earlier test may be the one that gives way; it tries again.
    assert client.with_options(max_retries=2).models.list().data
    assert ask(client, max_tokens=2).choices[0].finish_reason
    assert closed(held[0]) == b""
    for one in held:
        one.close()


def test_bodies_take_a_limited_amount_of_memory_together(client, monkeypatch):
    monkeypatch.setattr(bounds, "HELD", 1 << 20)
    sent = HEAD + b"Content-Length: 400000\r\n\r\n" + b" " * 399_999
    held = [half(client, sent) for _ in range(6)]
    assert b" 408 " in closed(held[0])  # the first gives way
    assert ask(client, max_tokens=2).choices[0].finish_reason
    for one in held:
        one.close()


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"Transfer-Encoding: chunked\r\n", 411),
        (b"Content-Length: 9000000\r\n", 413),
    ],
)
def test_a_body_is_refused_before_it_is_sent(client, head, status):
    assert b" %d " % status in half(client, HEAD + head + b"\r\n").recv(1 << 16)


def test_few_open_files_mean_few_connections(monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (200, 200))
    assert connections.most_connections() == 200 - bounds.SPARE_FILES
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert connections.most_connections() == bounds.CONNECTIONS


def ours(caplog) -> list[str]:
    """What the server has logged, not its client in the same process."""
    logged = [record for record in caplog.records if record.name.startswith(("constrained", "uvicorn", "asyncio"))]
    return [caplog.handler.format(record) for record in logged]


def test_requests_are_logged_without_contents_and_keys(caplog):
    caplog.set_level(logging.DEBUG)
    secret = "sk-secret-0123456789"
    for client in running(key=secret):
        talk = [{"role": "user", "content": "A private matter."}]
        ask(client, talk, max_tokens=3)
        list(ask(client, talk, max_tokens=3, stream=True))
        with pytest.raises(openai.BadRequestError):
            ask(client, [{"role": "king", "content": "A private matter."}])
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve(f"{secret}-of-mine")
        url = f"{client.base_url}private/{secret}?key={secret}"
        assert http.get(url, headers={"Authorization": f"Bearer {secret}"}).status_code == 404
        assert post(client, {}).status_code == 401
    lines = [record.getMessage() for record in caplog.records if record.name == "constrained.server"]
    assert [line.split(", ")[0].split()[1:] for line in lines] == [
        ["POST", "/v1/chat/completions", "200"],
        ["POST", "/v1/chat/completions", "200"],
        ["POST", "/v1/chat/completions", "400"],
        ["GET", "/v1/models/…", "404"],
        ["GET", "(no", "path)", "404"],
        ["POST", "/v1/chat/completions", "401"],
    ]
    assert "3 tokens" in lines[0] and "3 tokens" in lines[1]
    assert not any(word in "".join(ours(caplog)) for word in (secret, "private", "matter"))


def test_a_mistake_of_ours_is_logged_without_what_it_says(client, monkeypatch, caplog):
    def fails(*_):
        raise KeyError("A private matter.")

    monkeypatch.setattr("constrained.server.app._completion", fails)
    with pytest.raises(openai.InternalServerError, match="the server failed: KeyError"):
        ask(client, max_tokens=2)
    assert "KeyError at" in "".join(ours(caplog)) and "private" not in "".join(ours(caplog))
