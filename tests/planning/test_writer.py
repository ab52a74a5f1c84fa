"""Tasks written as PDDL and read again are the same tasks, under PDDL's names."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from constrained import ActionKnowledge
from constrained.cli import main
from constrained.planning import GroundAction, PlanningTask, read_domain, read_problem_of
from constrained.planning.writer import PddlText
from tests.planning.domains import ALL
from tests.planning.problems import PLANBENCH, alfworld, planbench


def read(domain: str, problem: str) -> PlanningTask:
    found = read_domain(domain)
    return PlanningTask(found, read_problem_of(found, problem))


def assert_same(task: PlanningTask, steps: int = 12) -> None:
    """The task and its written form have the same applicable actions and goal along random walks."""
    written = PddlText(task)
    other = read(written.domain, written.problem)
    name = {old: new.lower() for old, new in written.names.items()}
    dice = random.Random(0)
    here, there = task.initial, other.initial
    for _ in range(steps):
        actions = task.applicable(here)
        renamed = {GroundAction(name[a.action], tuple(name[x] for x in a.arguments)): a for a in actions}
        assert set(other.applicable(there)) == set(renamed)
        assert task.reached_goal(here) == other.reached_goal(there)
        if not renamed:
            return
        chosen = dice.choice(sorted(renamed))
        here, there = task.apply(here, renamed[chosen]), other.apply(there, chosen)
    assert {tuple(name[word] for word in fact) for fact in here} == set(there)


@pytest.mark.parametrize("name", ALL)
def test_small_domains(name):
    assert_same(read(*ALL[name]))


@pytest.mark.parametrize("name", PLANBENCH)
def test_planbench(name):
    domain, problems = planbench(name)
    assert_same(read(domain, problems[0]), steps=4)


def test_alfworld():
    domain, problems = alfworld(1)
    assert_same(read(domain, problems[0]), steps=3)


WORLD = """
%declare _STEP THING
//: type thing; box, mug: thing
//: object "mug 1", "mug-1", "été 2": mug; "2 boxes": box
//: fact in(thing, one box), clean(mug)
//: init in("mug 1", "2 boxes")
//: goal every m: mug (clean(m)), some b: thing (box(b))
start: | wash{THING}
// wash: wash THING.
//: needs mug(t), not clean(t)
//: makes clean(t)
wash{t}: "wash " t _STEP start
"""


def test_names_of_a_world_become_names_of_pddl():
    world = ActionKnowledge.from_lark(WORLD).world
    task = PlanningTask(world.domain, world.problem)
    written = PddlText(task)
    assert written.names["mug 1"] != written.names["mug-1"] and written.names["2 boxes"] == "n2-boxes"
    assert_same(task)


def test_the_command_writes_both_files_and_no_file_twice(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "den", "--world"]) == 0
    assert main(["export", "pddl", "den.lark", "-o", "out"]) == 0
    domain, problem = (tmp_path / "out" / f"{name}.pddl" for name in ("domain", "problem"))
    assert read(domain.read_text(), problem.read_text()).goal is not None
    assert main(["export", "pddl", "den.lark", "-o", "out"]) == 1
    assert main(["export", "pddl", "den.lark", "-o", "out", "--force"]) == 0
    capsys.readouterr()
    assert main(["plan", "--pddl", str(domain), str(problem), "--format", "pddl"]) == 0
    assert capsys.readouterr().out.startswith("(")
    assert main(["export", "pddl", "hotpotqa"]) == 1
    assert "has no problem of its own" in capsys.readouterr().err


HOTEL = str(Path(__file__).parents[2] / "examples" / "worlds" / "hotel.lark")


def test_a_task_of_a_goal_line_becomes_the_goal(capsys):
    assert main(["export", "pddl", HOTEL, "book room r303 for bob"]) == 0
    assert "(:goal" in capsys.readouterr().out.partition("(:init")[2]


@pytest.mark.parametrize(
    "task, told",
    [([], "has no goal of its own"), (["sing"], "'sing' is no goal of"), (["book room x for bob"], "which is no room")],
)
def test_a_file_is_not_exported_with_a_goal_that_nobody_asked_for(task, told, capsys):
    assert main(["export", "pddl", HOTEL, *task]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and told in captured.err and "hint: " in captured.err


def test_a_new_file_may_be_named_like_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("den").mkdir()
    assert main(["new", "--world", "den"]) == 0 and Path("den.lark").is_file()
