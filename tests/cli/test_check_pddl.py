"""`constrained check` reads PDDL as PDDL."""

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


def test_a_domain_and_its_problem_have_no_findings(folder, capsys):
    assert main(["check", "boat.pddl"]) == 0
    assert capsys.readouterr().out.startswith("boat.pddl: no findings\n  3 actions: sail, board, debark\n")
    assert main(["check", "cross.pddl", "boat.pddl"]) == 0
    assert "cross.pddl: no findings" in capsys.readouterr().out


@pytest.mark.parametrize(
    "file, old, new, code, found",
    [
        ("boat.pddl", "action board", "action sail", "syntax", "there are two actions sail"),
        ("boat.pddl", "(aboard ?c - car)", "(aboard ?c - car) (near ?c)", "fact-without-use", "no action needs or"),
        ("boat.pddl", "(domain boat)", "(domain boat))", "syntax", "something follows the PDDL domain"),
        ("boat.pddl", "shore car", "shore - car car - shore", "syntax", "types that belong to themselves"),
        ("cross.pddl", "(:domain boat)", "(:domain ferry)", "syntax", "this is a problem of the domain ferry"),
        ("cross.pddl", "(at van south)", "(or)", "out-of-reach", "the goal can't be reached"),
        ("cross.pddl", "(at van south)", "(at van west)", "syntax", "no object 'west'"),
    ],
)
def test_what_is_wrong_is_a_finding_with_its_place(folder, capsys, file, old, new, code, found):
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new))
    main(["check", "boat.pddl", "cross.pddl", "--json"])
    data = json.loads(capsys.readouterr().out)
    [finding] = next(one for one in data["files"] if one["file"] == file)["findings"]
    assert finding["code"] == code and finding["message"].startswith(found) and finding["line"]
    assert data["ok"] == (finding["severity"] != "error")
    assert main(["check", "boat.pddl", "cross.pddl", "--ignore", code]) == 0


def test_a_path_is_judged_with_the_problem(folder, capsys):
    assert main(["check", "boat.pddl", "cross.pddl", "board van north", "debark van north"]) == 0
    assert main(["check", "boat.pddl", "cross.pddl", "debark van north"]) == 1
    assert "it needs aboard van" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, message",
    [
        (["cross.pddl"], "cross.pddl is a problem, and no domain is given"),
        (["boat.pddl", "mine.lark"], "PDDL files are checked by themselves"),
        (["boat.pddl", "sail north south"], "PDDL files are checked by themselves"),
    ],
)
def test_what_cannot_be_checked_is_said(folder, capsys, words, message):
    assert main(["check", *words]) == 2
    assert message in capsys.readouterr().err


def test_other_commands_say_that_a_pddl_file_is_no_lark_file(folder, capsys):
    assert main(["show", "boat.pddl"]) == 1
    assert "boat.pddl is PDDL, not a .lark file\n  hint: `constrained import pddl`" in capsys.readouterr().err
