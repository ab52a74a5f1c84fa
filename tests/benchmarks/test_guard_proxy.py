"""The proxy beside a bare one: both give the clients the expected answers, and wrong ones are noticed."""

from __future__ import annotations

import asyncio
import json

import pytest

from benchmarks import guard_proxy
from benchmarks.guard import read_transcripts
from constrained.errors import ConstrainedError
from tests.data import shared

pytest.importorskip("httpx2", reason="needs the extra proxy")


@pytest.fixture(scope="module")
def retail():
    path = shared("tau_bench/gold_transcripts.jsonl.xz")
    tools, tasks = read_transcripts(path, 4)
    return tools["retail"], tasks["retail"]


def test_both_proxies_give_the_expected_answers(retail, monkeypatch):
    monkeypatch.setattr(guard_proxy, "SECONDS", 0.2)
    monkeypatch.setattr(guard_proxy, "CLIENTS", (1, 3))
    result = guard_proxy.measure(*retail, 1)
    rows = {(row["form"], row["clients"], row["proxy"]): row["answers"] for row in result["rows"]}
    assert {*rows} == {(f, c, p) for f in ("whole", "streamed") for c in (1, 3) for p in ("none", "bare", "guard")}
    assert min(rows.values()) >= 1
    assert guard_proxy.table(result).count("\n") == 5


def test_another_answer_than_the_expected_one_is_noticed(retail):
    bodies = [json.loads(body) for body in guard_proxy.asked(*retail, False)]

    async def load():
        async def talk(reader, writer):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        await guard_proxy._load(port, [json.dumps(body).encode() for body in bodies], 1, 5.0, False)

    with pytest.raises(ConstrainedError, match="not the expected answer"):
        asyncio.run(load())
