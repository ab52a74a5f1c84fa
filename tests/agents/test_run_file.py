"""A real process that is killed while it plays: what it wrote stays, and the run goes on to the same end."""

import signal
import subprocess
import sys
import time

import pytest

from constrained.agents.run_file import read_run
from constrained.cli import main
from tests.agents.alike import assert_alike

GAMES = 4
ARGUMENTS = [
    "bench", "agents", "--environment", "household", "--games", str(GAMES), "--max-steps", "12", "--masks", "on",
    "--temperature", "1", "--seed", "2", "--batch", "2",
]  # fmt: skip


def lines(folder):
    [path] = folder.glob("*.jsonl")
    return path, list(read_run(path))[1:]


def by_task(folder):
    found = {}
    for line in lines(folder)[1]:
        found.setdefault(line["task"], []).append(line)
    return found


@pytest.fixture
def stopped(tmp_path):
    """A process that has played some steps, and stands still."""
    folder = tmp_path / "killed"
    process = subprocess.Popen([sys.executable, "-m", "constrained", *ARGUMENTS, "--output", str(folder)])
    try:
        while not any(folder.glob("*.jsonl")) or len(lines(folder)[1]) < 5:
            assert process.poll() is None, "it ended before it could be stopped"
            time.sleep(0.01)
        process.send_signal(signal.SIGSTOP)
        yield process, folder
    finally:
        process.kill()
        process.wait()


def test_a_killed_run_goes_on_where_it_was_and_no_two_write_at_once(stopped, tmp_path, capsys):
    process, folder = stopped
    path, kept = lines(folder)
    ends = sum("end" in line for line in kept)
    assert ends < GAMES
    before = path.read_bytes()
    assert main([*ARGUMENTS, "--output", str(folder)]) != 0
    assert "another run is writing to" in capsys.readouterr().err
    assert path.read_bytes() == before  # the one that came too late has touched nothing

    process.send_signal(signal.SIGKILL)
    process.wait()
    with path.open("ab") as file:
        file.write(b'{"task": "pick_and_pl')  # as a machine that loses its power leaves it
    assert main([*ARGUMENTS, "--output", str(folder)]) == 0
    assert main([*ARGUMENTS, "--output", str(tmp_path / "whole")]) == 0
    assert lines(folder)[1][: len(kept)] == kept
    assert_alike(by_task(folder), by_task(tmp_path / "whole"))
