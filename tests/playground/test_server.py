"""The command: where it listens, how it ends."""

import asyncio
import json
import re
import signal
import socket
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from constrained.cli import main
from constrained.pages import local_server
from constrained.playground.app import _lines
from tests.playground.serving import LONG, RUN, serving


def token_of(address: str) -> str:
    with urllib.request.urlopen(address) as answer:
        return re.search(r'"token": "([^"]+)"', answer.read().decode())[1]


@contextmanager
def running():
    """A playground whose run is under way: its process, and those of its jobs."""
    with serving("--port", "0") as (address, process):
        data = json.dumps({**RUN, "text": LONG, "document": None}).encode()
        headers = {local_server.TOKEN: token_of(address), "Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(f"{address}api/run", data, headers)) as answer:
            assert any(json.loads(line).get("step") for line in answer)
            lists = Path(f"/proc/{process.pid}/task").glob("*/children")
            yield process, [job for one in lists for job in one.read_text().split()]


def test_ctrl_c_ends_it_at_once_also_during_a_run():
    with running() as (process, _):
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
        assert process.stderr.read() == ""


def test_a_run_is_cancelled_while_it_waits_for_a_message():
    class Slow:
        def messages(self, *_):
            while True:
                yield {}
                time.sleep(0.2)

    async def cancelled():
        lines = _lines(Slow(), {})
        await anext(lines)
        waiting = asyncio.ensure_future(anext(lines))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(cancelled())


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_no_job_outlives_it():
    with running() as (process, jobs):
        process.kill()
        process.wait(120)
        assert jobs
        until = time.monotonic() + 120
        while any(Path("/proc", job).exists() for job in jobs) and time.monotonic() < until:
            time.sleep(0.05)
        assert not [job for job in jobs if Path("/proc", job).exists()]


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_only_this_machine_can_reach_it():
    with serving("--port", "0") as (address, _):
        port = urlsplit(address).port
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        table = [row[1] for row in rows if row[3] == "0A"]
        assert [place for place in table if place.endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]


def test_a_port_that_is_taken_is_told_of(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["playground", "--no-browser", "--port", str(taken.getsockname()[1])]) == 1
    assert "choose another with --port" in capsys.readouterr().err


def test_what_is_wrong_at_the_start_is_told_of(tmp_path, capsys):
    for arguments, words in [
        (["--port", "99999"], "there is no port 99999"),
        ([str(tmp_path)], "is not a file"),
        ([str(tmp_path / "none" / "a.lark")], "no folder"),
        (["--tokenizer", str(tmp_path)], "no tokenizer.json"),
    ]:
        assert main(["playground", "--no-browser", *arguments]) == 1
        assert words in capsys.readouterr().err
