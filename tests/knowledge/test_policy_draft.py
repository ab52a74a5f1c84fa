"""Written policies become drafts of policies, a line for each sentence; what doesn't load is left out and told."""

from __future__ import annotations

import json

import pytest

from constrained import ActionKnowledge
from constrained.agents.distill import distill_policy
from constrained.cli import main
from constrained.errors import ConstrainedError
from constrained.knowledge.policy_draft import MAX_SENTENCES, draft_policy, line_grammar, sentences
from tests.decoding.tiny import tiny

TOOLS = [
    {"name": "find_user", "parameters": {"properties": {"email": {"type": "string"}}}},
    {"name": "cancelOrder", "parameters": {"properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}},
]
POLICY = "# Shop\n\n- Say hello. Results show orders.\n\n**Only** shown orders are cancelled.\n1. Be nice!\n"
LINES = {
    "Say hello.": "none",
    "Results show orders.": "tells ORDER = $.orders[*] by find_user",
    "Only shown orders are cancelled.": "cancelorder: needs order_id in ORDER",
    "Be nice!": "cancelorder: needs nice(order_id)",
}


def test_a_recorded_draft_is_checked_line_by_line_and_has_each_sentence_beside_its_line():
    draft = draft_policy(POLICY, TOOLS, lambda sentence, grammar: LINES[sentence], source="shop.md")
    assert "// line 5: Only shown orders are cancelled.\n//: needs order_id in ORDER // Only shown" in draft.text
    assert [(one.text, one.line) for one, _ in draft.left_out] == [("Say hello.", 3), ("Be nice!", 6)]
    assert "no fact or function `nice`" in draft.left_out[1][1] and "// not drafted, line 6: Be nice!" in draft.text
    tools = ActionKnowledge.from_tools(TOOLS, policy=draft.text).tools
    assert tools.unmet(tools.policy.initial, "cancelOrder", {"order_id": "W1"}) == ["Only shown orders are cancelled."]


@pytest.mark.parametrize(
    "line",
    ["", "x", "needs a", "other: needs true", "cancelorder: makes x", "cancelorder: needs (", "init", "fact none none",
     "tells X = $ by nothing", "cancelorder: needs colour == 1", "message", "let len(x) = 1", "init a = b"],
)  # fmt: skip
def test_a_line_that_does_not_load_is_left_out_with_its_reason(line):
    draft = draft_policy("Be nice.", TOOLS, lambda *_: line)
    [(sentence, why)] = draft.left_out
    assert sentence.text == "Be nice." and why and "\n//:" not in draft.text
    ActionKnowledge.from_tools(TOOLS, policy=draft.text)


def test_what_was_written_before_is_not_asked_for_again():
    asked = []

    def write(sentence, grammar):
        asked.append(sentence)
        return LINES[sentence]

    known = dict(list(LINES.items())[:3])
    assert draft_policy(POLICY, TOOLS, write, answers=known).answers == LINES and asked == ["Be nice!"]


def test_headings_code_and_marks_of_lists_are_no_sentences():
    found = sentences("# A heading.\n```\ncode.\n```\n* One. Two!\n  2) Três é três?\n---\n> Four.")
    assert [(one.text, one.line) for one in found] == [("One.", 5), ("Two!", 5), ("Três é três?", 6), ("Four.", 8)]


@pytest.mark.parametrize("text", ["", "# Only a heading", "...\n---", "Yes.\n" * (MAX_SENTENCES + 1)])
def test_a_policy_without_sentences_or_with_too_many_is_refused(text):
    with pytest.raises(ConstrainedError, match="sentences"):
        draft_policy(text, TOOLS, lambda *_: "none")


def test_a_model_of_random_weights_writes_lines_of_the_form():
    draft = distill_policy(POLICY, TOOLS, model=tiny(context=2048), line_tokens=40)
    grammar = line_grammar(["find_user", "cancelOrder"])
    assert draft.answers.keys() == LINES.keys() and grammar.slots == frozenset()
    ActionKnowledge.from_tools(TOOLS, policy=draft.text)


def test_the_command_goes_on_from_answers_and_names_what_is_missing(tmp_path, capsys):
    policy, tools, answers, out = (tmp_path / name for name in ("shop.md", "tools.json", "answers.json", "shop.lark"))
    policy.write_text(POLICY)
    tools.write_text(json.dumps(TOOLS))
    answers.write_text(json.dumps(LINES))
    words = ["distill", "--policy", str(policy), "--tools", str(tools), "--answers", str(answers), "-o", str(out)]
    assert main(words) == 0
    told = capsys.readouterr()
    assert "2 actions" in told.out and "note: not drafted, line 6: Be nice!" in told.err
    assert json.loads(answers.read_text()) == LINES and "//: needs order_id in ORDER" in out.read_text()
    answers.write_text("[]")
    assert main([*words, "--force"]) == 1 and main(words[:3]) == 1 and main(["distill"]) == 1
    told = capsys.readouterr().err
    assert "not a JSON object" in told and "--policy takes --tools" in told and "there is no task" in told
