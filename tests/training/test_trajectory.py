"""Trajectories from the record of a run."""

import json

import pytest

from constrained.agents.run_file import lines_since, summary
from constrained.environments.question.env import INVALID
from constrained.errors import DataError
from constrained.training.trajectory import from_record
from tests.agents.baselines import question, says


def trial(answer):
    return ["Thought 1: look\nAction 1: Search[Milhouse]", f"Thought 2: done\nAction 2: Finish[{answer}]"]


def record(plan):
    """The steps of a plan as a run's file has them, and its end."""
    steps = [json.loads(json.dumps(line))["step"] for line in lines_since("who?", plan, 0, 0)]
    return steps, json.loads(json.dumps(summary(plan)))


def test_the_last_phase_of_a_run_is_its_trajectory():
    plan = says(question("reflexion"), *trial("Matt Groening"), "Reflection: no.", *trial("Richard Nixon"))
    found = from_record("who?", *record(plan), "run.jsonl:7")
    assert (found.task, found.success, found.length, found.source) == ("who?", True, 2, "run.jsonl:7")
    assert [act.text for act in found.acts] == ["Search[Milhouse]", "Finish[Richard Nixon]"]
    assert [act.verdict for act in found.acts] == ["ok", "ok"] and found.violation is None
    assert found.outcome == plan.outcome and found.outcome["f1"] == 1.0


def test_an_action_that_is_not_admitted_comes_with_the_reason():
    player = question("react", constrained=False)
    plan = says(player, "Thought 1: hm\nAction 1: Lookup[a]", "Thought 2: hm\nAction 2: Finish[Richard Nixon]")
    found = from_record("who?", *record(plan))
    assert found.success and found.source == ""
    assert found.violation == found.acts[0] and found.violation.verdict == "misordered"
    assert "Lookup" in found.violation.text and "lookup is not admitted at the start" in found.violation.reason


STEP = {"action": "look", "verdict": "ok", "reason": "", "had_effect": True, "phase": "", "observation": "A desk."}
END = {"success": True, "outcome": {"success": 1.0}}


def test_a_task_that_failed_is_no_success_and_may_have_no_steps():
    assert from_record("one", [], END) == from_record("one", [], END | {"note": "over at once"})
    assert from_record("one", [], END).success and not from_record("one", [STEP], END | {"failure": "it died"}).success


@pytest.mark.parametrize(
    "said, trouble", [(INVALID, "Invalid Action"), ("Search error: no index.", "Search error"), (None, "")]
)
def test_what_the_environment_answered_is_its_trouble_if_in_the_last_phase(said, trouble):
    troubled, plain = STEP | {"observation": said, "phase": "trial 1"}, STEP | {"phase": "trial 2"}
    assert from_record("one", [plain | {"phase": "trial 1"}, troubled], END).trouble == trouble
    assert from_record("one", [troubled, plain], END).trouble == ""


@pytest.mark.parametrize(
    "steps, end, missing",
    [
        ([], {"success": 1, "outcome": {}}, "no truth value under 'success'"),
        ([], {"success": True}, "no object under 'outcome'"),
        ([STEP | {"verdict": None}], END, "no text under 'verdict'"),
        ([{"verdict": "ok"}], END, "no text under 'action'"),
    ],
)
def test_a_damaged_record_is_one_error_with_its_place(steps, end, missing):
    with pytest.raises(DataError, match=missing) as caught:
        from_record("one", steps, end, "run.jsonl:7")
    assert caught.value.message.startswith("run.jsonl:7: ")
