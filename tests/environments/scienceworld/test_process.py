"""The Java process: what is missing, what dies, what hangs, and what is left behind."""

import gc
import os
import signal
import subprocess
import sys
import time

import pytest

from constrained.environments.scienceworld import ScienceWorldEnv, process
from constrained.environments.scienceworld.simulator import Simulator, close_idle
from constrained.errors import GameError


def gone(pid: int) -> bool:
    """Whether a process ends within two minutes."""
    for _ in range(1200):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def test_without_java_the_error_says_what_to_install(installed, monkeypatch, tmp_path):
    close_idle()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GameError, match="needs Java, and there is no `java` on the path") as error:
        ScienceWorldEnv("boil")
    assert "openjdk" in error.value.hint
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(GameError, match="JAVA_HOME"):
        ScienceWorldEnv("boil")


def test_without_the_package_the_error_names_the_extra(monkeypatch):
    close_idle()
    monkeypatch.setattr(process.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(GameError, match="no scienceworld, py4j") as error:
        ScienceWorldEnv("boil")
    assert "constrained-agents[scienceworld]" in error.value.hint


def test_java_that_does_not_start_is_quoted(installed, monkeypatch):
    close_idle()
    monkeypatch.delenv("JDK_JAVA_OPTIONS", raising=False)
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmx1")
    with pytest.raises(GameError, match="died .* over 'start'; its last words: .*"):
        ScienceWorldEnv("boil")


def test_options_of_the_user_are_left_as_they_are(installed, monkeypatch):
    for name in process.OPTION_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert "-Xmx512m" in process._command()
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xmx2g")
    assert not any(option.startswith("-Xm") for option in process._command())


def test_a_process_that_dies_in_the_game_is_an_error_and_reset_starts_another(installed, caplog):
    env = ScienceWorldEnv("find-plant")
    first = env.reset()
    java = env._simulator.process
    held = java.gateway.jvm.java.lang.Object()
    pid = java.process.pid
    os.kill(pid, signal.SIGKILL)
    assert java.process.died()
    del held
    gc.collect()  # collected before anyone has noticed that the process is dead
    with pytest.raises(GameError, match=r"died \(exit status -9\) over 'look around'"):
        env.step("look around")
    with pytest.raises(GameError, match="died"):
        env.view()
    assert env.outcome()["score"] == 0.0
    assert env.reset() == first and env._simulator.process.process.pid != pid
    env.close()
    assert not caplog.records


def test_a_process_that_takes_too_long_is_ended(installed, caplog):
    simulator = Simulator()
    simulator.gold("boil")
    os.kill(simulator.process.process.pid, signal.SIGSTOP)
    simulator.process.answer_seconds = 0.3
    with pytest.raises(GameError, match="took longer than 0.3 seconds and was ended over '(count|load) "):
        simulator.gold("mendelian-genetics-unknown-plant")
    assert gone(simulator.process.process.pid) and not caplog.records
    simulator.close()


def test_a_failure_in_java_is_told_without_its_stack(simulator):
    with (
        pytest.raises(GameError, match="failed to trip: .*NumberFormatException") as error,
        simulator.process.answering("trip"),
    ):
        simulator.process.gateway.jvm.java.lang.Integer.parseInt("x")
    assert "\tat " not in str(error.value) and simulator.process.usable


def test_another_process_can_not_use_it(simulator, monkeypatch):
    monkeypatch.setattr(process.os, "getpid", lambda: -1)
    with pytest.raises(GameError, match="belongs to another process"):
        simulator.look()


@pytest.mark.parametrize("ending", ["pass", "os.kill(os.getpid(), signal.SIGKILL)", "raise RuntimeError", "env = None"])
def test_nothing_is_left_when_python_ends(installed, ending):
    program = (
        "import os, signal\n"
        "from constrained.environments.scienceworld import ScienceWorldEnv\n"
        "env = ScienceWorldEnv('boil')\n"
        "print(env._simulator.process.process.pid, flush=True)\n"
        f"{ending}\n"
    )
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert gone(int(done.stdout)), done.stderr
    assert "RuntimeError" in ending or done.stderr == ""
