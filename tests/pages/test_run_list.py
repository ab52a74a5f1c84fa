"""A folder of runs, served: what is listed, and that nothing else can be reached, nor by anybody else."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from constrained.cli import main
from constrained.pages.run_list import make_app
from tests.pages.traced import rewritten


@pytest.fixture
def folder(tmp_path, unmasked):
    """Runs of all sorts, and what is none; beside it, a secret."""
    runs = tmp_path / "runs"
    (runs / "deep").mkdir(parents=True)
    (runs / "deep" / "ü <b>.jsonl").write_bytes(unmasked.read_bytes())
    rewritten(unmasked, runs / "going.jsonl", lambda lines: lines[:-1])
    with (runs / "going.jsonl").open("a") as file:
        file.write('{"task": "half')
    (runs / "empty.jsonl").touch()
    (runs / "broken.jsonl").write_text('{"run": {}}\nnot JSON\n')
    (runs / "other.jsonl").write_text('{"something": "else"}\n')
    (runs / "notes.txt").write_text("secret")
    (tmp_path / "secret.jsonl").write_bytes(unmasked.read_bytes())
    (runs / "out.jsonl").symlink_to(tmp_path / "secret.jsonl")
    (runs / "up").symlink_to(tmp_path)
    (runs / "circle.jsonl").symlink_to(runs / "circle.jsonl")
    return runs


@pytest.fixture
def client(folder):
    return TestClient(make_app(folder, 8765))


def get(client, path, host="127.0.0.1:8765"):
    return client.get(path, headers={"Host": host})


def test_the_list_names_each_run_and_what_came_of_it(client):
    text = get(client, "/").text
    assert text.count("<tr>") == 1 + 4  # its head; other.jsonl is no run, the links lead out
    for words in (
        "ü &lt;b&gt;.jsonl",
        "knowagent",
        "1 under way",
        "empty.jsonl",
        "is empty",
        "broken.jsonl",
        "line 2: damaged",
    ):
        assert words in text
    for words in ("secret", "out.jsonl", "other.jsonl", "notes.txt"):
        assert words not in text


def test_a_run_is_shown_as_it_is_now(client, folder, unmasked):
    answer = get(client, "/run/deep/%C3%BC%20%3Cb%3E.jsonl")
    assert answer.status_code == 200 and answer.headers["Cache-Control"] == "no-store"
    assert get(client, "/run/going.jsonl").status_code == 200
    (folder / "going.jsonl").write_bytes(unmasked.read_bytes())
    assert "1 under way" not in get(client, "/").text
    broken = get(client, "/run/broken.jsonl")
    assert broken.status_code == 422 and "line 2: damaged" in broken.text


@pytest.mark.parametrize(
    "path",
    [
        "/run/../secret.jsonl",
        "/run/%2e%2e/secret.jsonl",
        "/run/..%2fsecret.jsonl",
        "/run/deep/../../secret.jsonl",
        "/run//etc/passwd",
        "/run/%2Fetc%2Fpasswd",
        "/run/out.jsonl",
        "/run/up/secret.jsonl",
        "/run/circle.jsonl",
        "/run/notes.txt",
        "/run/deep",
        "/run/a%00.jsonl",
        "/static/trace/main.js",
    ],
)
def test_nothing_else_can_be_reached(client, path):
    answer = get(client, path)
    assert answer.status_code == 404 and "secret" not in answer.text


@pytest.mark.parametrize(
    "host, code",
    [
        ("localhost:8765", 200),
        ("127.0.0.1:80", 403),
        ("evil.example", 403),
        ("127.0.0.1.evil.example:8765", 403),
        ("", 403),
    ],
)
def test_only_who_asks_for_this_machine_is_answered(client, host, code):
    assert get(client, "/", host).status_code == code


@pytest.fixture
def served(folder):
    """The address of the real command, serving the folder."""
    command = [sys.executable, "-m", "constrained", "view", "--serve", str(folder), "--port", "0"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        try:
            yield process.stdout.readline().split(" at ")[1].split()[0]
        finally:
            process.kill()


def test_the_command_serves_a_browser(tab, served):
    tab.goto(served)
    tab.get_by_role("link", name="going.jsonl").click()
    tab.locator(".step").first.wait_for()
    assert tab.locator("#file").inner_text() == "going.jsonl"
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{served}run/%2e%2e/secret.jsonl")


def test_a_port_that_is_taken_is_an_error(capsys, served, folder):
    port = served.rstrip("/").rsplit(":", 1)[1]
    assert main(["view", "--serve", str(folder), "--port", port]) == 1
    assert f"port {port}" in (said := capsys.readouterr().err) and "--port 0" in said


@pytest.mark.parametrize("port", ["70000", "-1"])
def test_a_port_that_is_none_is_an_error(capsys, folder, port):
    assert main(["view", "--serve", str(folder), "--port", port]) == 1
    assert f"port {port}" in capsys.readouterr().err


def test_a_folder_that_is_none_is_an_error(capsys, tmp_path):
    assert main(["view", "--serve", str(tmp_path / "none")]) == 1
    assert "is not a folder" in capsys.readouterr().err
