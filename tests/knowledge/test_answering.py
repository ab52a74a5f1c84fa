"""How knowledge gives an answer, and which of its actions take any text."""

import pytest

from constrained import ActionKnowledge
from constrained.knowledge.answering import answer_actions, answer_only, text_calls

ROOMS = """
%declare _STEP PLACE THING
start: goto{PLACE}
goto{p}: "go to " p _STEP (goto{PLACE} | take{THING, p} | shout)
take{t, p}: "take " t " from " p
shout: "Shout[" /[a-z]+/ "]" _STEP (goto{PLACE} | enough)
enough: "That's all."
"""


def test_an_answer_is_what_nothing_may_follow_and_nothing_must_precede():
    assert answer_actions(ActionKnowledge.from_lark("hotpotqa")) == ["finish"]
    assert answer_actions(ActionKnowledge.from_lark("household")) == []  # it ends anywhere, and says nothing by that
    assert answer_actions(ActionKnowledge.from_lark(ROOMS)) == ["enough"]  # what is taken hangs on where one stands


def test_the_answer_alone_may_come_at_once():
    whole = ActionKnowledge.from_lark("hotpotqa")
    answer = answer_only(whole)
    assert answer.rules == {"start": ("finish",), "finish": ()}
    verdicts = {text: answer.judge(text).verdict for text in ("Finish[Nixon]", "Finish[]", "Search[Nixon]")}
    assert verdicts == {"Finish[Nixon]": "ok", "Finish[]": "invalid", "Search[Nixon]": "invalid"}
    assert answer.after("Finish[Nixon]").may_end
    assert "Search" not in answer.to_text()
    assert whole.judge("Finish[Nixon]").verdict == "misordered"  # the knowledge itself is as it was


def test_bindings_are_kept():
    text = '%declare _STEP LABEL\nstart: look\nlook: "look" _STEP say\nsay: "Say[" LABEL "]"\n'
    answer = answer_only(ActionKnowledge.from_lark(text).bind(LABEL=["yes", "no"]))
    assert [answer.judge(f"Say[{label}]").verdict for label in ("yes", "maybe")] == ["ok", "invalid"]


def test_where_no_action_answers_there_is_none():
    assert answer_only(ActionKnowledge.from_lark("household")) is None


@pytest.mark.parametrize(
    "name, calls",
    [
        ("hotpotqa", {"search": "Search", "retrieve": "Retrieve", "lookup": "Lookup"}),
        ("hotpotqa_seen", {"search": "Search"}),  # the others take only what has been seen
        ("household", {}),
        (ROOMS, {}),  # letters only are not any text
    ],
)
def test_calls_that_take_any_text(name, calls):
    assert text_calls(ActionKnowledge.from_lark(name).bind_view({})) == calls
