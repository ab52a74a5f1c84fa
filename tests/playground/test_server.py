"""The command: where it listens, how it ends."""

import json
import re
import signal
import socket
import urllib.request
from urllib.parse import urlsplit

from constrained.cli import main
from constrained.playground import guard
from tests.playground.serving import serving
from tests.playground.test_worker import LONG, RUN


def token_of(address: str) -> str:
    with urllib.request.urlopen(address) as answer:
        return re.search(r'"token": "([^"]+)"', answer.read().decode())[1]


def test_ctrl_c_ends_it_at_once_also_during_a_run():
    with serving("--port", "0") as (address, process):
        data = json.dumps({**RUN, "text": LONG, "document": None}).encode()
        headers = {guard.TOKEN: token_of(address), "Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(f"{address}api/run", data, headers)) as answer:
            assert any(json.loads(line).get("step") for line in answer)
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
            assert process.stderr.read() == ""


def test_only_this_machine_can_reach_it():
    with serving("--port", "0") as (address, _):
        port = urlsplit(address).port
        table = [line.split()[1] for line in open("/proc/net/tcp").readlines()[1:] if line.split()[3] == "0A"]
        assert [place for place in table if place.endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]


def test_a_port_that_is_taken_is_told_of(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["playground", "--no-browser", "--port", str(taken.getsockname()[1])]) == 1
    assert "choose another with --port" in capsys.readouterr().err


def test_what_is_wrong_at_the_start_is_told_of(tmp_path, capsys):
    for arguments, words in [
        (["--port", "99999"], "there is no port 99999"),
        ([str(tmp_path)], "is no file"),
        ([str(tmp_path / "none" / "a.lark")], "no folder"),
        (["--tokenizer", str(tmp_path)], "no tokenizer.json"),
    ]:
        assert main(["playground", "--no-browser", *arguments]) == 1
        assert words in capsys.readouterr().err
