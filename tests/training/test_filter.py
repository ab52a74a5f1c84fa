"""Which trajectories are learned from and why the others are not; of each task the shortest, the later of two equal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.errors import DataError
from constrained.training.trajectory import RULES, filter_trajectories, merge, reason_to_drop
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


@pytest.mark.parametrize("earlier, later, kept", [(3, 2, "later"), (3, 3, "later"), (2, 3, "earlier")])
def test_the_later_replaces_the_earlier_unless_it_is_longer(earlier, later, kept):
    (merged,) = merge([trajectory(length=earlier, source="earlier")], [trajectory(length=later, source="later")])
    assert merged.source == kept


def test_a_task_of_one_round_alone_stays_and_the_order_is_that_of_first_appearance():
    earlier = [trajectory("desk 10", length=5), trajectory("Größe?", length=5), trajectory("desk 1", length=5)]
    later = [trajectory("new", length=9), trajectory("desk 1", length=1), trajectory("desk 10", length=6)]
    assert [(t.task, t.length) for t in merge(earlier, later)] == [
        ("desk 10", 5), ("Größe?", 5), ("desk 1", 1), ("new", 9),
    ]  # fmt: skip


def test_tasks_are_told_apart_by_every_character():
    composed, decomposed = "Größe?", "Gro\u0308ße?"
    assert len(merge([trajectory(composed)], [trajectory(decomposed), trajectory(composed + " ")])) == 3


def test_of_two_runs_of_one_task_in_a_round_the_shorter_stays():
    runs = [trajectory(length=n, source=f"{i}") for i, n in enumerate([3, 2, 4, 2])]
    assert [t.source for t in merge(runs, [])] == [t.source for t in merge([], runs)] == ["3"]


ROUND = st.lists(ANY, max_size=8)


@given(ROUND, ROUND)
def test_no_task_is_lost_and_nothing_gets_longer(earlier, later):
    merged = merge(iter(earlier), iter(later))
    assert [t.task for t in merged] == list(dict.fromkeys(t.task for t in earlier + later))
    for kept in merged:
        same = [t for t in earlier + later if t.task == kept.task]
        assert kept.length == min(t.length for t in same)
        assert kept == [t for t in same if t.length == kept.length][-1]


@given(ROUND, ROUND, ROUND)
def test_merging_again_changes_nothing_and_rounds_may_be_merged_one_by_one(one, two, three):
    merged = merge(one, two)
    assert merge(merged, []) == merge([], merged) == merge(merged, merged) == merged
    assert merge(merged, two) == merged
    assert merge(merge(one, two), three) == merge(one, two + three) == merge(one, merge(two, three))
