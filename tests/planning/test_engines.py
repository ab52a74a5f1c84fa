"""Planners of the package unified-planning are asked for plans, and what they answer is checked."""

import sys

import pytest

from constrained.cli import main
from constrained.errors import ConstrainedError, ModelError
from constrained.planning import PlanningTask, read_domain, read_problem_of
from constrained.planning.engines import check_plan, plan_with
from constrained.planning.plans import read_action
from tests.planning.domains import BLOCKS, BLOCKS_PROBLEM, FERRY, FERRY_PROBLEM

PLAN = ["(unstack c a)", "(put-down c)", "(pick-up b)", "(stack b c)", "(pick-up a)", "(stack a b)"]


def blocks() -> PlanningTask:
    domain = read_domain(BLOCKS)
    return PlanningTask(domain, read_problem_of(domain, BLOCKS_PROBLEM))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in {"d": BLOCKS, "p": BLOCKS_PROBLEM, "boat": FERRY, "cross": FERRY_PROBLEM}.items():
        (tmp_path / f"{name}.pddl").write_text(text)
    return tmp_path


def test_the_missing_package_is_named_with_its_extra(folder, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "unified_planning", None)
    monkeypatch.setitem(sys.modules, "unified_planning.exceptions", None)
    assert main(["plan", "d.pddl", "p.pddl", "--planner", "pyperplan"]) == 1
    assert "--planner needs unified_planning" in capsys.readouterr().err


@pytest.mark.parametrize(
    "lines, message",
    [
        (PLAN[1:], r"x's plan is wrong: action 1, \(put-down c\), is not possible there"),
        (["(fly a)"], r"action 1, \(fly a\), is not possible there"),
        (PLAN[:-1], "x's plan is wrong: the goal doesn't hold at its end"),
    ],
)
def test_a_wrong_plan_is_refused(lines, message):
    task = blocks()
    with pytest.raises(ModelError, match=message):
        check_plan("x", task, task.initial, list(map(read_action, lines)))


def test_a_planner_that_is_not_there_is_said():
    pytest.importorskip("unified_planning")
    task = blocks()
    with pytest.raises(ModelError, match="unified-planning finds no planner 'nobody'"):
        plan_with("nobody", task, task.initial)


def test_pyperplan_plans_from_where_the_world_is():
    pytest.importorskip("up_pyperplan")
    task = blocks()
    state = task.apply(task.initial, read_action(PLAN[0]))
    plan = plan_with("pyperplan", task, state).plan
    assert plan is not None
    check_plan("pyperplan", task, state, plan)


def test_a_plan_of_pyperplan_is_printed(folder, capsys):
    pytest.importorskip("up_pyperplan")
    assert main(["plan", "d.pddl", "p.pddl", "--planner", "pyperplan", "--format", "pddl"]) == 0
    assert len(capsys.readouterr().out.splitlines()) >= 4


def test_what_a_planner_does_not_support_is_named(folder, capsys):
    pytest.importorskip("up_pyperplan")
    assert main(["plan", "boat.pddl", "cross.pddl", "--planner", "pyperplan"]) == 1
    assert "pyperplan doesn't support this problem: equalities, negative_conditions" in capsys.readouterr().err
    with pytest.raises(ConstrainedError):
        domain = read_domain(FERRY)
        task = PlanningTask(domain, read_problem_of(domain, FERRY_PROBLEM))
        plan_with("pyperplan", task, task.initial)
