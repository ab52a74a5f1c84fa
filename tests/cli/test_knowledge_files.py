"""constrained new and import: files that every other command accepts, and what to know about them."""

import json
import re

import lark
import pytest

from constrained import ActionKnowledge, generate_plan
from constrained.cli import main
from constrained.grammar import shipped_names
from tests.planning.domains import GRIPPER, GRIPPER_PROBLEM


@pytest.fixture
def written(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["new", "kitchen"]) == 0
    assert capsys.readouterr().out.startswith("wrote kitchen.lark\n")
    return tmp_path / "kitchen.lark"


def test_it_is_clean_under_check_and_lark_itself_reads_it(written, capsys):
    assert main(["check", "kitchen.lark", "--strict"]) == 0
    assert "no findings" in capsys.readouterr().out
    lark.Lark(written.read_text(), parser="earley")


def test_it_can_be_shown_and_explained(written, capsys):
    assert main(["show", "kitchen.lark"]) == 0
    assert "search     -> open, search, ask\n" in capsys.readouterr().out
    assert main(["explain", "kitchen.lark", "search[fees]->open[12]->note[it is 3]->"]) == 0
    assert "may follow: reply\n      rule note, kitchen.lark:25:" in capsys.readouterr().out


def test_every_action_is_defined_and_can_be_reached(written):
    knowledge = ActionKnowledge.from_lark(written)
    assert list(knowledge.actions) == ["search", "ask", "open", "reply", "note"]
    assert all(definition.startswith(f"{action}: ") for action, definition in knowledge.actions.items())
    assert knowledge.comments["start"].startswith("Answer a customer's question")


def test_it_can_be_planned_with(written):
    plan = generate_plan("what does a parcel cost?", knowledge=str(written), strategy="act", max_steps=4)
    assert ActionKnowledge.from_lark(written).check(plan.path).ok and plan.steps
    assert plan.path[-1].startswith("reply[") and "nothing was executed" in plan.note


def test_the_slots_in_its_comments_are_so(written, capsys):
    """The commented example, uncommented, is knowledge too, and the command below it does what it says."""
    example = "\n".join(re.findall(r"^//   (%declare PAGE|start: .*|\w+\{p\}: .*)$", written.read_text(), re.M))
    written.write_text(f"%declare _STEP\n{example}\n")
    knowledge = ActionKnowledge.from_lark(written).bind(PAGE=["fees", "opening hours"])
    assert knowledge.check(["open[fees]", "close[fees]"]).ok
    assert knowledge.check(["open[fees]", "close[opening hours]"]).verdicts == ["ok", "misordered"]
    assert main(["explain", "kitchen.lark", "open[", "--bind", 'PAGE=["fees", "opening hours"]']) == 0
    assert "PAGE: 'fees', 'opening hours' (2 values)" in capsys.readouterr().out


def test_a_file_is_never_written_over(written, capsys):
    written.write_text("mine")
    for name in ("kitchen", "kitchen.lark"):
        assert main(["new", name]) == 1
        assert "kitchen.lark already exists" in capsys.readouterr().err
    assert written.read_text() == "mine"


def test_from_a_grammar_that_ships(capsys, tmp_path):
    file = tmp_path / "new" / "house.lark"
    assert main(["new", str(file), "--from", "household"]) == 0
    assert ActionKnowledge.from_lark(file).rules == ActionKnowledge.from_lark("household").rules
    assert main(["new", str(tmp_path / "other"), "--from", "palace"]) == 1
    assert "no grammar 'palace' ships" in capsys.readouterr().err and "template" in shipped_names()


@pytest.mark.parametrize("name", ["", ".", "/"])
def test_what_is_no_name_is_an_error(capsys, name):
    assert main(["new", name]) == 1
    assert "is not a file name" in capsys.readouterr().err


def test_a_plan_takes_values_of_slots(capsys, tmp_path):
    file = tmp_path / "pages.lark"
    file.write_text('%declare _STEP PAGE\nstart: open{PAGE}\nopen{p}: "open " p _STEP close{p}\nclose{p}: "close " p\n')
    assert main(["plan", "read", "--knowledge", str(file), "--strategy", "act", "--bind", 'PAGE=["fees"]']) == 0
    out = capsys.readouterr().out
    assert "> open fees\n" in out and "> close fees\n" in out


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hands.pddl").write_text(GRIPPER)
    (tmp_path / "two.pddl").write_text(GRIPPER_PROBLEM)
    return tmp_path


def test_a_domain_becomes_a_file_that_loads(folder, capsys):
    assert main(["import", "pddl", "hands.pddl", "-o", "hands.lark"]) == 0
    out, err = capsys.readouterr()
    assert out == "wrote hands.lark: 3 actions, 3 slots\n" and err == ""
    assert list(ActionKnowledge.from_lark(folder / "hands.lark").actions) == ["move", "pick", "drop"]


def test_a_refined_file_is_not_overwritten_unawares(folder, capsys):
    (folder / "hands.lark").write_text("mine")
    assert main(["import", "pddl", "hands.pddl", "-o", "hands.lark"]) == 1
    assert "hands.lark already exists" in capsys.readouterr().err
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
    ],
)
def test_what_is_wrong_is_said(folder, capsys, arguments, message):
    assert main(["import", "pddl", *arguments]) == 1
    assert message in capsys.readouterr().err
