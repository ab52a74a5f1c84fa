"""What the README shows is true."""

import re
from pathlib import Path

import lark

from constrained import ActionKnowledge
from tests.documents import blocks

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "README.md"
README = PAGE.read_text(encoding="utf-8")


def run_example(capsys) -> tuple[dict, str]:
    """The names that the README's program defines, and what it prints."""
    (block,) = (block for block in blocks(PAGE) if block.language == "python")
    names: dict = {}
    exec(compile("\n" * (block.line - 1) + block.text, str(PAGE), "exec"), names)
    return names, capsys.readouterr().out


def test_the_example_runs_and_its_plan_is_valid(capsys):
    names, printed = run_example(capsys)
    plan, knowledge = names["plan"], names["knowledge"]
    assert plan.success and printed.strip() == str(plan.path)
    assert plan.path[0].startswith("look up ") and plan.path[-1] == "close"
    assert knowledge.bind(**names["Desk"]().view()).check(plan.path).ok


def test_the_example_refunds_only_the_order_that_was_looked_up(capsys):
    names, _ = run_example(capsys)
    bound = names["knowledge"].bind(**names["Desk"]().view())
    refund = "refund B42 because it was late"
    assert bound.check(["look up B42", refund, "close"]).ok
    assert bound.check(["look up A17", refund]).verdicts[1] == "misordered"
    assert bound.check(["look up C99"]).verdicts == ["invalid"]


def test_the_knowledge_shown_loads_in_lark():
    (text,) = re.findall(r'from_lark\("""\n(.*?)"""\)', README, re.DOTALL)
    lark.Lark(text, parser="earley")
    assert list(ActionKnowledge.from_lark(text).actions) == ["lookup", "refund", "close"]


def test_it_is_at_most_a_thousand_words():
    assert len(README.split()) <= 1000


def test_every_file_named_is_there():
    for name in re.findall(r"\]\((?!https?:|#)([^)#]+)", README):
        assert (ROOT / name).exists(), name
