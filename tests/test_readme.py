"""What the README shows is true."""

import re
import shlex
from pathlib import Path

import lark
import pytest

from constrained import ActionKnowledge
from constrained.cli import main
from tests.documents import blocks

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "README.md"
README = PAGE.read_text(encoding="utf-8")


@pytest.fixture
def refunds(tmp_path, monkeypatch) -> str:
    """The world that the README shows, as a file in the present folder."""
    (text,) = (block.text for block in blocks(PAGE) if block.language == "lark")
    monkeypatch.chdir(tmp_path)
    Path("refunds.lark").write_text(text, encoding="utf-8")
    return text


def test_its_commands_check_and_solve_the_world(refunds, capsys):
    commands = re.findall(r"^\$ constrained (.*refunds.*)$", README, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        assert main(shlex.split(command)) == 0
    printed = capsys.readouterr().out
    assert "refunds.lark: no findings" in printed and "Solved in" in printed


def test_only_what_was_looked_up_and_is_broken_is_refunded(refunds):
    knowledge = ActionKnowledge.from_lark(refunds)
    world = knowledge.for_problem(knowledge.world.problem)
    assert world.next_actions() == ["look up A17", "look up B42"]
    assert world.after("look up A17").next_actions() == ["close", "look up A17", "look up B42", "refund A17"]
    assert world.after("look up B42").judge("refund A17").verdict == "misordered"
    assert world.judge("look up C99").verdict == "invalid"


def test_nothing_can_be_done_after_the_end_of_the_conversation(refunds):
    knowledge = ActionKnowledge.from_lark(refunds)
    world = knowledge.for_problem(knowledge.world.problem).after("look up A17").after("close")
    assert all(world.judge(action).verdict == "misordered" for action in ("close", "look up B42", "refund A17"))


def test_the_world_loads_in_lark(refunds):
    lark.Lark(refunds, parser="earley")


def test_it_is_at_most_a_thousand_words():
    words = re.sub(r"<!--.*?-->", "", README).split()
    assert len([word for word in words if re.search(r"\w", word)]) <= 1000  # the bars of tables are none


def test_every_file_named_is_there():
    for name in re.findall(r"\]\((?!https?:|#)([^)#]+)", README):
        assert (ROOT / name).exists(), name
