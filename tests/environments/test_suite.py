"""Suites and choices of their tasks, as a command line names them."""

import sys
from collections import Counter

import pytest

from constrained.environments.suite import Task, choose_suite, drawn, open_suite
from constrained.errors import DataError
from tests.data import shared


def tasks(**kinds):
    return [Task(f"{kind} {number}", kind, None) for kind, count in kinds.items() for number in range(count)]


def test_tasks_are_drawn_evenly_from_all_kinds_in_their_order():
    given = tasks(a=10, b=10, c=2)
    chosen = drawn(given, 8, seed=1)
    assert Counter(task.kind for task in chosen) == {"a": 3, "b": 3, "c": 2}
    assert chosen == sorted(chosen, key=given.index)
    assert chosen == drawn(given, 8, seed=1) != drawn(given, 8, seed=2)
    assert drawn(given, 22, seed=0) == given and drawn([], 3, seed=0) == []


def test_positions_choose_what_stands_there():
    suite = choose_suite("household:2-5", seed=4)
    assert [task.name for task in suite.tasks] == [task.name for task in choose_suite("household", seed=4).tasks[2:5]]
    assert suite.name == "household/seed 4:2-5"
    assert len(choose_suite("household:0-70").tasks) == 70


@pytest.mark.parametrize(
    "text, words",
    [
        ("household:61", "has 60 tasks, not 61"),
        ("household:5-5", "no tasks"),
        ("household:x", "can't read"),
        ("", "can't read"),
        ("house/hold/er", "can't read"),
        ("nowhere", "no environment"),
    ],
)
def test_what_is_not_there_is_refused(text, words):
    with pytest.raises(DataError, match=words):
        choose_suite(text)


OWN = """from __future__ import annotations
from dataclasses import dataclass
from constrained.environments.suite import Suite, Task

@dataclass
class Room:
    number: int
    task: str = "rest"

def rooms(split, limit, seed):
    tasks = [Task(f"room {n}", "room", lambda n=n: Room(seed + n)) for n in range(limit or 5)]
    return Suite("rooms", "household", tasks)

def nothing(split, limit, seed):
    return 3
"""


def test_a_file_of_ones_own_is_a_suite_like_any_other(tmp_path, monkeypatch):
    (tmp_path / "rooms 1.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    assert [task.name for task in open_suite("rooms 1.py:rooms", limit=2).tasks] == ["room 0", "room 1"]
    chosen = choose_suite(f"{tmp_path}/rooms 1.py:rooms:2-4", seed=7)
    assert [task.make().number for task in chosen.tasks] == [9, 10] and chosen.name == "rooms:2-4"
    assert "rooms 1" not in sys.modules


@pytest.mark.parametrize(
    "text, words",
    [
        ("rooms.py:none", "has no function 'none'"),
        ("rooms.py:nothing", "gives 3, no suite"),
        ("narrow.py:rooms", "narrow.py:rooms can't be called: got an unexpected keyword argument 'split'"),
        ("none.py:rooms", "no file none.py"),
        ("wrong.py:rooms", "can't be run: SyntaxError"),
        ("raising.py:rooms", "can't be run: ZeroDivisionError: division by zero"),
        ("rooms.py", "can't read"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path, monkeypatch, text, words):
    for name, source in {"rooms": OWN, "wrong": "def (", "raising": "1 / 0", "narrow": "def rooms(): pass"}.items():
        (tmp_path / f"{name}.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    with pytest.raises(DataError, match=words):
        choose_suite(text)


def test_alfworlds_held_out_games_are_none_to_practise_on():
    shared("alfworld/games_2.1.1_train.tar.xz")
    practice, held_out = choose_suite("alfworld/practice"), choose_suite("alfworld/held_out")
    names = [{task.name for task in suite.tasks} for suite in (practice, held_out)]
    assert [len(name) for name in names] == [3410, 143] and not names[0] & names[1]
    assert {task.kind for task in held_out.tasks} == {task.kind for task in practice.tasks}
    environment = held_out.tasks[0].make()
    assert "Your task is to" in environment.reset()
