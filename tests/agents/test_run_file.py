"""A run's file replaces only a run; a process that is killed while it plays leaves what it wrote, and is continued."""

import os
import signal
from contextlib import suppress
from itertools import count

import pytest

from constrained.agents import run_file
from constrained.agents.run_file import RunFile, read_run
from constrained.cli import main
from constrained.errors import DataError
from tests.agents.alike import assert_alike
from tests.forked import ended, forked

GAMES = 4
ARGUMENTS = [
    "bench", "agents", "--environment", "household", "--games", str(GAMES), "--max-steps", "12", "--level",
    "state", "--random", "0", "--temperature", "1", "--seed", "2", "--batch", "2",
]  # fmt: skip


def lines(folder):
    [path] = folder.glob("*.jsonl")
    return path, list(read_run(path))[1:]


def by_task(folder):
    found = {}
    for line in lines(folder)[1]:
        found.setdefault(line["task"], []).append(line)
    return found


def stop_after_five_steps(folder):
    """Run the command; the process stands still once it has written its header and five steps."""
    write, number = RunFile.write, count()

    def stop(file, line):
        write(file, line)
        if next(number) == 5:
            os.kill(os.getpid(), signal.SIGSTOP)

    RunFile.write = stop
    main([*ARGUMENTS, "--output", str(folder)])


@pytest.fixture
def stopped(tmp_path):
    """A process that has written its header and five steps, and stands still."""
    folder = tmp_path / "killed"
    process = forked(lambda: stop_after_five_steps(folder))
    try:
        _, status = os.waitpid(process, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        yield process, folder
    finally:
        with suppress(ProcessLookupError):  # the test has ended it
            os.kill(process, signal.SIGKILL)
            ended(process)


def test_a_killed_run_goes_on_where_it_was_and_no_two_write_at_once(stopped, tmp_path, capsys):
    process, folder = stopped
    path, kept = lines(folder)
    ends = sum("end" in line for line in kept)
    assert ends < GAMES
    before = path.read_bytes()
    assert main([*ARGUMENTS, "--output", str(folder)]) != 0
    assert "another run is writing to" in capsys.readouterr().err
    assert path.read_bytes() == before  # the one that came too late has touched nothing

    os.kill(process, signal.SIGKILL)
    assert ended(process) == -signal.SIGKILL
    with path.open("ab") as file:
        file.write(b'{"task": "pick_and_pl')  # as a machine that loses its power leaves it
    assert main([*ARGUMENTS, "--output", str(folder)]) == 0
    assert main([*ARGUMENTS, "--output", str(tmp_path / "whole")]) == 0
    assert lines(folder)[1][: len(kept)] == kept
    assert_alike(by_task(folder), by_task(tmp_path / "whole"))


# --trace FILE: what stands in the file's place

HEADER = {"suite": "plan", "settings": {"seed": 3}}
RUN = '{"run": {"suite": "plan", "settings": {"seed": 1}}}\n'
STEP = '{"task": "look", "step": {}, "answers": []}\n'


@pytest.mark.parametrize(
    "text",
    [
        b"my notes", b"my notes\n", b"\n", b" ", b"[1, 2]", b"{}", b"{}\n", b'{"run": 1}\n', b'{"run": {}}\n',
        b'{"run": {"jobs": [{"steps": []}]}}\n', RUN.encode()[:-1], RUN.encode()[:20], b'{"task": "x"}\n',
        b"\x00\xff\xfe",
        b"\x89PNG\r\n\x1a\n\x00", b"[" * 100_000, f"{RUN}my notes\n".encode(), f"{RUN}my notes".encode(),
        f'{RUN}{{"task": "call mother"}}\n'.encode(), f'{RUN}{STEP}["notes"]'.encode(), f"{RUN}\n{STEP}".encode(),
        f"{RUN}{STEP}\xff".encode("latin-1"), b'{"run": ' + b"9" * 100_000 + b"}\n",
    ],
)  # fmt: skip
def test_what_is_no_run_is_not_replaced(tmp_path, text):
    path = tmp_path / "notes.txt"
    path.write_bytes(text)
    with pytest.raises(DataError, match=r"notes\.txt, line [123]"), RunFile(path, HEADER, replace=True):
        raise AssertionError("it was opened")
    assert path.read_bytes() == text


@pytest.mark.parametrize("text", ["my notes", "[", '{"run": {"suite": "other"', "\x00", RUN + "my notes"])
def test_what_is_no_run_is_not_continued_either(tmp_path, text):
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    with pytest.raises(DataError), RunFile(path, HEADER):
        raise AssertionError("it was opened")
    assert path.read_text() == text


@pytest.mark.parametrize("text", ["", RUN, RUN + STEP, RUN + STEP + '{"task": "look", "st', RUN + '{"ta'])
def test_a_run_is_replaced_and_so_is_an_empty_file(tmp_path, text):
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    with RunFile(path, HEADER, replace=True) as file:
        assert not file.tasks
        file.write({"task": "look", "end": {"success": True}})
    assert list(read_run(path)) == [{"run": HEADER}, {"task": "look", "end": {"success": True}}]


def test_a_line_of_any_length_is_not_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(run_file, "MAX_LINE", 1000)
    path = tmp_path / "movie.mkv"
    path.write_bytes(b"x" * 5000)
    with pytest.raises(DataError, match="movie.mkv, line 1: longer than"), RunFile(path, HEADER, replace=True):
        pass
    assert path.stat().st_size == 5000


def test_a_step_is_written_without_traces_rather_than_too_long_to_be_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(run_file, "MAX_LINE", 1000)
    path = tmp_path / "run.jsonl"
    answer = {"text": "look", "trace": {"prompt": "é" * 600}}
    with RunFile(path, HEADER) as file:
        file.write({"task": "look", "step": {"n": 1}, "answers": [answer]})
        with pytest.raises(DataError, match="a line to record is longer than"):
            file.write({"task": "look", "step": {"n": 1, "observation": "x" * 1000}, "answers": [answer]})
    assert list(read_run(path))[1:] == [{"task": "look", "step": {"n": 1}, "answers": [{"text": "look"}]}]


@pytest.mark.parametrize("name", ["/dev/null", "fifo"])
def test_no_run_is_recorded_in_what_is_no_file(tmp_path, name):
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(DataError, match="is not a regular file"), RunFile(tmp_path / name, HEADER):
        raise AssertionError("it was opened")
    assert [path.name for path in tmp_path.iterdir()] == ["fifo"]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a folder in which nobody can make files")
def test_a_folder_in_which_no_file_can_be_made_is_not_said_to_be_in_use():
    with pytest.raises(OSError, match="/proc/.*run.jsonl"), RunFile("/proc/run.jsonl", HEADER):
        raise AssertionError("it was opened")


def test_a_folder_and_a_file_in_use_are_not_replaced(tmp_path):
    with pytest.raises(DataError, match="can't read"), RunFile(tmp_path, HEADER, replace=True):
        pass
    path = tmp_path / "run.jsonl"
    with RunFile(path, HEADER):
        before = path.read_text()
        with pytest.raises(DataError, match="another run is writing"), RunFile(path, HEADER, replace=True):
            pass
        assert path.read_text() == before
