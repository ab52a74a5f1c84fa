"""Which trajectories are learned from, and why the others are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.errors import DataError
from constrained.training.filter import RULES, filter_trajectories, reason_to_drop
from tests.training.trajectories import ADMITTED, ANY, INVALID, MISORDERED, trajectory


@pytest.mark.parametrize(
    "made, released, paper",
    [
        (trajectory("t", ADMITTED), None, None),
        (trajectory("t"), None, None),
        (trajectory("t", ADMITTED, success=False), "not correct", "not correct"),
        (trajectory("t", ADMITTED, trouble="Invalid Action"), "refused action", "refused action"),
        (trajectory("t", ADMITTED, trouble="Search error"), "search error", "search error"),
        (trajectory("t", ADMITTED, INVALID), None, "invalid action"),
        (trajectory("t", MISORDERED, ADMITTED), None, "misordered action"),
    ],
)
def test_each_reason_alone(made, released, paper):
    assert (reason_to_drop(made, "released"), reason_to_drop(made, "paper")) == (released, paper)


def test_of_several_reasons_the_first_is_given():
    failed = trajectory("t", INVALID, MISORDERED, success=False, trouble="Search error")
    assert reason_to_drop(failed, "paper") == "not correct"
    assert reason_to_drop(trajectory("t", INVALID, MISORDERED, trouble="Search error"), "paper") == "search error"
    assert reason_to_drop(trajectory("t", INVALID, MISORDERED), "paper") == "invalid action"
    assert reason_to_drop(trajectory("t", ADMITTED, MISORDERED, INVALID), "paper") == "misordered action"


def test_a_drop_leads_to_the_action_and_the_words_of_the_knowledge():
    ((dropped, reason),) = filter_trajectories([trajectory("t", ADMITTED, MISORDERED, INVALID)], "paper").dropped
    assert reason == "misordered action"
    assert (dropped.violation.text, dropped.violation.reason) == (MISORDERED.text, "take is not admitted at the start")


def test_the_kept_and_the_dropped_are_in_the_order_they_came():
    runs = [
        trajectory("desk 1", ADMITTED), trajectory("desk 10", INVALID), trajectory("größer?", success=False),
        trajectory("desk 1", ADMITTED, ADMITTED), trajectory("desk 11", INVALID),
    ]  # fmt: skip
    filtered = filter_trajectories(iter(runs), "paper")
    assert filtered.kept == [runs[0], runs[3]]
    assert filtered.dropped == [(runs[1], "invalid action"), (runs[2], "not correct"), (runs[4], "invalid action")]
    assert filtered.reasons == {"invalid action": 2, "not correct": 1}


@pytest.mark.parametrize("runs", [[], [trajectory()]])
def test_another_rule_is_an_error(runs):
    with pytest.raises(DataError, match="no rule 'strict'.*\n.*released, paper"):
        filter_trajectories(runs, "strict")


@given(st.lists(ANY, max_size=8))
def test_every_trajectory_is_kept_or_dropped_and_the_paper_keeps_no_more(runs):
    kept = {}
    for rule in RULES:
        filtered = filter_trajectories(runs, rule)
        kept[rule] = filtered.kept
        assert len(filtered.kept) + len(filtered.dropped) == len(runs) == len(filtered.kept) + filtered.reasons.total()
        assert filter_trajectories(filtered.kept, rule).kept == filtered.kept
    assert kept["released"] == [t for t in runs if t.success and not t.trouble]
    assert kept["paper"] == [t for t in kept["released"] if all(act.verdict == "ok" for act in t.acts)]
