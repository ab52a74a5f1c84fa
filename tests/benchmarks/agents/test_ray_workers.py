"""Played by processes of Ray, a run is what it is in one process, whoever dies on the way."""

import os
import signal
import subprocess
import sys
from collections import deque
from functools import partial

import pytest

from benchmarks.agents.ray_workers import RayWorkers, _next_share
from constrained import ActionKnowledge, ConstrainedError
from constrained.agents.run_file import RunFile, read_run
from constrained.agents.settings import Settings
from constrained.agents.suite_runner import header, play_suite
from constrained.cli import main
from constrained.environments.household import HouseholdEnv, make_game
from constrained.environments.suite import Suite, Task, open_suite
from constrained.models import load, load_roles
from tests.agents.alike import assert_alike
from tests.decoding.tiny import tiny

MODELS = {"policy": load()}
KNOWLEDGE = ActionKnowledge.from_lark("household")
SETTINGS = Settings("act", "act", max_steps=4, temperature=1.0, seed=3)
SUITE = open_suite("household", limit=6)


@pytest.fixture(scope="module")
def ray():
    found = pytest.importorskip("ray", reason="needs Ray: pip install 'constrained-agents[ray]'")
    found.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers needn't find the tests
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")  # no report, and no waiting for others
    found.init(num_cpus=3, include_dashboard=False, log_to_driver=False, object_store_memory=128 << 20)
    yield found
    found.shutdown()


@pytest.fixture(scope="module")
def workers(ray):
    with RayWorkers(2, load_roles, MODELS) as entered:
        yield entered


def run(path, suite=SUITE, workers=None, batch=1):
    """What came of every task."""
    with RunFile(path, header(suite, KNOWLEDGE, MODELS, SETTINGS)) as file:
        ends = play_suite(suite, KNOWLEDGE, MODELS, SETTINGS, file, batch, workers)
        return {task.name: end for task, end in ends}


def by_task(path):
    found = {}
    for line in list(read_run(path))[1:]:
        found.setdefault(line["task"], []).append(line)
    return {name: found[name] for name in sorted(found)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "whole.jsonl"
    run(path)
    return by_task(path)


@pytest.mark.parametrize("batch", [1, 2])
def test_two_workers_leave_the_record_of_one_process(workers, whole, tmp_path, batch):
    run(tmp_path / "run.jsonl", workers=workers, batch=batch)
    assert_alike(by_task(tmp_path / "run.jsonl"), whole)


def test_a_run_begun_by_one_process_is_ended_by_workers(workers, whole, tmp_path):
    path = tmp_path / "run.jsonl"
    run(path, Suite(SUITE.name, SUITE.knowledge, SUITE.tasks[:3]))
    kept = path.read_bytes().splitlines(keepends=True)[:-2]  # the third game's end is lost, and a step of it
    path.write_bytes(b"".join(kept))
    run(path, workers=workers, batch=2)
    assert path.read_bytes().startswith(b"".join(kept))
    assert_alike(by_task(path), whole)


class Deadly(HouseholdEnv):
    """A household whose third step ends the process, as often as there are lives left in a file."""

    def __init__(self, game, lives):
        super().__init__(game)
        self.lives, self.steps = lives, 0

    def step(self, action):
        self.steps += 1
        left = int(self.lives.read_text())
        if self.steps == 3 and left:
            self.lives.write_text(str(left - 1))
            os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)


def deadly(name, lives):
    """The suite, with one game that kills whoever plays it."""
    games = {task.name: i for i, task in enumerate(SUITE.tasks)}
    tasks = [
        Task(task.name, task.kind, partial(Deadly, make_game(games[name]), lives)) if task.name == name else task
        for task in SUITE.tasks
    ]
    return Suite(SUITE.name, SUITE.knowledge, tasks)


@pytest.fixture
def victim(whole):
    """A game of three steps or more, begun neither first nor last."""
    names = [task.name for task in SUITE.tasks[1:-1]]
    return next(name for name in names if len(whole[name]) > 3)


@pytest.mark.parametrize("batch", [1, 3])
def test_what_a_dead_worker_was_playing_goes_on_where_it_was(workers, whole, tmp_path, victim, batch):
    lives = tmp_path / "lives"
    lives.write_text("1")
    run(tmp_path / "run.jsonl", deadly(victim, lives), workers, batch)
    assert lives.read_text() == "0"
    assert_alike(by_task(tmp_path / "run.jsonl"), whole)


def test_a_game_that_kills_twice_has_failed_and_no_other(workers, whole, tmp_path, victim):
    lives, path = tmp_path / "lives", tmp_path / "run.jsonl"
    lives.write_text("99")
    ends = run(path, deadly(victim, lives), workers, batch=3)
    assert lives.read_text() == "97"
    assert "worker died 2 times" in ends[victim]["failure"]
    assert ends[victim]["actions"] == 2 and not ends[victim]["success"]
    lines = by_task(path)
    others = {name: lines[name] for name in lines if name != victim}
    assert_alike(others, {name: whole[name] for name in others})
    lives.write_text("0")
    run(path, deadly(victim, lives))  # and is taken up again by the next run, here without workers
    again = [line for line in by_task(path)[victim] if "failure" not in line.get("end", {})]
    assert_alike(again, whole[victim])


def other_models():
    return {"policy": tiny(seed=1)}


def test_workers_with_other_models_are_refused(ray):
    with pytest.raises(ConstrainedError, match=r"would play something else: policy is .*not .*embedded") as kept:
        RayWorkers(1, other_models, MODELS).__enter__()
    with RayWorkers(1, load_roles, MODELS):  # those refused left their processor, though the error is kept
        assert kept.value


def test_more_workers_than_processors_are_refused(ray):
    with pytest.raises(ConstrainedError, match=r"4 workers take a processor each, Ray has \d free"):
        RayWorkers(4, load_roles, MODELS).__enter__()
    with pytest.raises(ConstrainedError, match="0 workers"):
        RayWorkers(0, load_roles, MODELS)


def test_the_benchmark_plays_with_workers(ray, tmp_path, capsys):
    arguments = [
        "--environment",
        "household",
        "--games",
        "2",
        "--max-steps",
        "2",
        "--level",
        "state",
        "--random",
        "0",
        "--workers",
        "1",
    ]
    assert main(["bench", "agents", *arguments, "--output", str(tmp_path)]) == 0
    [path] = tmp_path.glob("*.jsonl")
    assert sum("end" in line for lines in by_task(path).values() for line in lines) == 2
    assert "| knowagent | embedded | state | 2 |" in capsys.readouterr().out


def test_a_cluster_that_cannot_be_reached(monkeypatch):
    """In a process of its own: this one is connected already."""
    pytest.importorskip("ray", reason="needs Ray: pip install 'constrained-agents[ray]'")
    arguments = ["-m", "constrained", "bench", "agents", "--environment", "household", "--games", "1", "--workers", "1"]
    environment = {**os.environ, "RAY_ADDRESS": "not an address"}
    ended = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment)
    assert ended.returncode == 1 and "Ray can't be reached: " in ended.stderr and "RAY_ADDRESS" in ended.stderr


def test_shares_get_smaller_towards_the_end():
    def shares(tasks, workers, batch):
        waiting, sizes = deque(range(tasks)), []
        while waiting:
            sizes.append(len(_next_share(waiting, workers, batch)))
        return sizes

    assert shares(140, 2, 8) == [35, 26, 19, 15, 11, 8, 8, 8, 8, 2]
    assert shares(3, 4, 1) == [1, 1, 1]


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConstrainedError, match=r"pip install 'constrained-agents\[ray\]'"):
        RayWorkers(2, load_roles, MODELS)


def test_ray_is_not_imported_unless_asked_for():
    code = "import sys, benchmarks.agents.command, benchmarks.agents.ray_workers; print('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
