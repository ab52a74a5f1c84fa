"""Child processes: their answers, their limits, and that none is left behind."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from constrained.errors import ConstrainedError
from constrained.subprocesses import ChildError, Subprocess, SubprocessError, Worker

MODULE = "tests.worker_module"


@pytest.fixture
def worker():
    made = Worker(MODULE)
    yield made
    made.close()


def gone(pid: int) -> bool:
    """Whether a process ends within two minutes."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def test_one_process_answers_one_request_after_the_other(worker):
    assert worker.pid is None and not worker.running
    assert list(worker.messages(["echo", 1, "größe \ud800\u2028", {"a": [None]}], 60)) == [
        1, "größe \ud800\u2028", {"a": [None]},
    ]  # fmt: skip
    assert worker.ask(["pid"], 60) == worker.pid
    assert worker.ask(["echo"], 60) is None


def test_an_exception_is_told_with_its_place_and_costs_nothing(worker):
    with pytest.raises(ChildError, match="it is wrong") as raised:
        worker.ask(["error"], 60)
    error = raised.value
    assert (error.line, error.column, error.hint, error.traceback) == (1, 2, "make it right", "")
    with pytest.raises(ChildError, match="KeyError: 'other'") as raised:
        worker.ask(["other"], 60)
    assert "Traceback" in raised.value.traceback and worker.running


def test_what_takes_too_long_is_killed_and_the_next_request_starts_anew(worker):
    first = worker.ask(["pid"], 60)
    with pytest.raises(SubprocessError, match=r"took longer than 0\.3 seconds and was ended") as raised:
        worker.ask(["sleep", 60], 0.3)
    assert raised.value.late and gone(first)
    assert worker.ask(["pid"], 60) == worker.pid != first


def test_a_stopped_process_that_does_not_read_is_killed(worker):
    worker.ask(["echo"], 60)
    os.kill(worker.pid, signal.SIGSTOP)
    with pytest.raises(SubprocessError, match=r"longer than 0\.5"):
        worker.ask(["echo", "x" * 1_000_000], 0.5)


def test_a_process_that_dies_is_told_of_with_its_last_words(worker):
    with pytest.raises(SubprocessError) as raised:
        worker.ask(["exit"], 60)
    assert str(raised.value) == "the child process died (exit status 3); its last words: the last words"
    assert not raised.value.late and worker.ask(["echo", 1], 60) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux only")
def test_memory_is_limited():
    worker = Worker(MODULE, memory=64 << 20)
    with pytest.raises(ChildError, match="more memory than it may"):
        worker.ask(["fill", 256 << 20], 60)
    assert worker.ask(["fill", 1 << 20], 60) is None
    worker.close()


def test_silence_is_broken_every_second(worker, tmp_path):
    messages = worker.messages(["await", str(tmp_path / "now")], 600)
    assert [next(messages), next(messages)] == [None, None]
    (tmp_path / "now").touch()
    assert [message for message in messages if message] == ["awake"]


def test_who_stops_listening_kills_it(worker):
    messages = worker.messages(["sleep", 60], 60)
    assert next(messages) is None
    messages.close()
    assert gone(worker.pid) and not worker.running


def test_it_can_be_killed_from_another_thread(worker):
    messages = worker.messages(["sleep", 600], 600)
    assert next(messages) is None
    threading.Thread(target=worker.kill).start()
    with pytest.raises(SubprocessError, match="died"):
        list(messages)


def test_a_program_that_cannot_be_started(worker, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(ConstrainedError, match="couldn't be started"):
        worker.ask(["echo"], 60)


def test_a_child_that_is_no_worker_is_an_error(worker, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/echo")
    with pytest.raises(SubprocessError, match="unreadable|died"):
        worker.ask(["echo"], 60)


def test_a_fork_starts_one_of_its_own(worker):
    first = worker.ask(["pid"], 60)
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.write(write, b"%d" % worker.ask(["pid"], 60))
        worker.close()
        os._exit(0)
    os.waitpid(child, 0)
    other = int(os.read(read, 100))
    assert other != first and gone(other) and worker.ask(["pid"], 60) == first


@pytest.mark.parametrize(
    "ending", ["pass", "os.kill(os.getpid(), signal.SIGKILL)", "raise RuntimeError", "worker = None"]
)
@pytest.mark.parametrize("request_", ['["pid"]', '["busy"]'])
def test_nothing_is_left_when_python_ends(ending, request_):
    program = (
        "import os, signal\nfrom constrained.subprocesses import Worker\n"
        f"worker = Worker({MODULE!r})\nmessages = worker.messages({request_}, 8)\n"
        f"print(next(messages), flush=True)\n{ending}\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert gone(int(done.stdout)), done.stderr


def test_any_command_can_be_a_child(tmp_path):
    process = Subprocess(["cat"], str(tmp_path))
    process.send("one line")
    with process.deadline(30):
        assert process.receive() == "one line"
    with pytest.raises(SubprocessError, match=r"longer than 0\.2"), process.deadline(0.2):
        process.receive()
    process.close()
    assert gone(process.pid)
