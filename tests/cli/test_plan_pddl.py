"""`constrained plan --pddl`: a planning problem's plan, as text, as JSON, and as planners print it."""

import json

import pytest

from constrained.cli import main
from tests.planning.domains import FERRY, FERRY_PROBLEM


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "boat.pddl").write_text(FERRY)
    (tmp_path / "cross.pddl").write_text(FERRY_PROBLEM)
    return tmp_path


PLAN = "(board van north)\n(sail north south)\n(debark van south)\n"


@pytest.mark.parametrize("more", [[], ["--ahead"]])
def test_nothing_but_the_plan_is_printed(folder, capsys, more):
    assert main(["plan", "--pddl", "boat.pddl", "cross.pddl", "--format", "pddl", *more]) == 0
    out, err = capsys.readouterr()
    assert out == PLAN and err == ""


def test_a_plan_without_its_goal_is_not_printed(folder, capsys):
    assert main(["plan", "--pddl", "boat.pddl", "cross.pddl", "--format", "pddl", "--max-steps", "1", "--ahead"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(
        "note: no plan is printed: the plan ends without its goal, at the limit of 1 steps: missing is"
    )


def test_a_plan_as_json(folder, capsys):
    assert main(["plan", "--pddl", "boat.pddl", "cross.pddl", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["success"] and len(data["steps"]) == 3


def test_two_files_are_a_problem_without_its_option(folder, capsys):
    assert main(["plan", "boat.pddl", "cross.pddl", "--format", "pddl"]) == 0
    assert capsys.readouterr().out == PLAN


def test_a_search_that_gives_up_prints_no_plan(folder, capsys):
    for form in ("pddl", "text"):
        assert main(["plan", "boat.pddl", "cross.pddl", "--format", form, "--seconds", "0.000001"]) == 1
        out, err = capsys.readouterr()
        assert (
            ">" not in out
            and "(" not in out
            and err.startswith("error: the search gave up: no plan was found within 1e-06 s")
        )


def test_knowledge_of_ones_own_gives_the_words(folder, capsys):
    assert main(["import", "pddl", "boat.pddl", "--text", "sail=cross to {to} from {from}", "-o", "boat.lark"]) == 0
    assert main(["plan", "--pddl", "boat.pddl", "cross.pddl", "--knowledge", "boat.lark"]) == 0
    assert "> cross to south from north" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--pddl", "boat.pddl", "cross.pddl", "put a mug in the cabinet"], "one of them"),
        (["put a mug in the cabinet", "--format", "pddl"], "are for planning problems"),
        (["--pddl", "boat.pddl", "cross.pddl", "--format", "pddl", "--json"], "both say what is printed"),
        (["--pddl", "cross.pddl", "boat.pddl"], "cross.pddl:2:2: this doesn't begin with (define (domain NAME)"),
        (["--pddl", "boat.pddl", "nowhere.pddl"], "can't read nowhere.pddl"),
    ],
)
def test_what_is_wrong_is_said(folder, capsys, arguments, message):
    assert main(["plan", *arguments]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("goal", ["(and)", "()"])
@pytest.mark.parametrize("more", [[], ["--ahead"], ["--model", "random"]])
def test_the_plan_for_the_empty_goal_is_empty(folder, capsys, goal, more):
    (folder / "rest.pddl").write_text(FERRY_PROBLEM.replace("(at van south)", goal))
    assert main(["plan", "boat.pddl", "rest.pddl", "--format", "pddl", *more]) == 0
    assert capsys.readouterr() == ("", "")
    assert main(["plan", "boat.pddl", "rest.pddl", *more]) == 0
    assert "Solved in 0 steps" in capsys.readouterr().out


@pytest.mark.parametrize("goal", ["(or)", "(and (aboard van) (aboard bus))"])
@pytest.mark.parametrize("form", ["text", "pddl"])
def test_a_goal_that_is_proven_out_of_reach_has_its_own_exit_code(folder, capsys, goal, form):
    (folder / "never.pddl").write_text(FERRY_PROBLEM.replace("(at van south)", goal))
    assert main(["plan", "boat.pddl", "never.pddl", "--format", form]) == 3
    out, err = capsys.readouterr()
    assert "error: never.pddl:" in err and "the goal can't be reached" in err
    assert ">" not in out and "(" not in out, "no move is written"


def test_a_plan_that_misses_its_goal_fails_in_words_too(folder, capsys):
    assert main(["plan", "boat.pddl", "cross.pddl", "--max-steps", "1", "--model", "random"]) == 1
    assert "Not solved" in capsys.readouterr().out
