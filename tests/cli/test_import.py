"""`constrained import`: a file to refine, and what to know of it."""

import json

import pytest

from constrained import ActionKnowledge
from constrained.cli import main
from tests.knowledge.pddl.domains import GRIPPER, GRIPPER_PROBLEM


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hands.pddl").write_text(GRIPPER)
    (tmp_path / "two.pddl").write_text(GRIPPER_PROBLEM)
    return tmp_path


def test_a_domain_becomes_a_file_that_loads(folder, capsys):
    assert main(["import", "pddl", "hands.pddl", "-o", "hands.lark"]) == 0
    out, err = capsys.readouterr()
    assert out == "wrote hands.lark: 3 actions, 8 slots\n"
    assert err == "note: can be tracked too, if it is true of one object at a time: --one at-robot\n"
    assert list(ActionKnowledge.from_lark(folder / "hands.lark").actions) == ["move", "pick", "drop"]


def test_a_problem_tells_what_can_be_followed(folder, capsys):
    assert main(["import", "pddl", "hands.pddl", "--problem", "two.pddl"]) == 0
    out, err = capsys.readouterr()
    assert "at_robot{r}:\n" in out and err == ""


def test_a_refined_file_is_not_overwritten_unawares(folder, capsys):
    (folder / "hands.lark").write_text("mine")
    assert main(["import", "pddl", "hands.pddl", "-o", "hands.lark"]) == 1
    assert "hands.lark is there already" in capsys.readouterr().err
    assert (folder / "hands.lark").read_text() == "mine"
    assert main(["import", "pddl", "hands.pddl", "-o", "hands.lark", "--force"]) == 0


def test_as_json(folder, capsys):
    assert main(["import", "pddl", "hands.pddl", "--text", "move=walk from {from} to {to}", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["actions"]["move"] == ["move", "pick", "drop"]
    assert '"walk from " from " to " to' in data["lark"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["nowhere.pddl"], "can't read nowhere.pddl"),
        (["two.pddl"], "two.pddl:2:2: this doesn't begin with (define (domain NAME)"),
        (["hands.pddl", "--text", "move"], "--text 'move' is not NAME=TEXT"),
        (["hands.pddl", "--problem", "hands.pddl"], "no (:objects ...)"),
    ],
)
def test_what_is_wrong_is_said(folder, capsys, arguments, message):
    assert main(["import", "pddl", *arguments]) == 1
    assert message in capsys.readouterr().err
