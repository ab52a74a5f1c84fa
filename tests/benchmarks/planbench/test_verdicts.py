"""The verdicts on recorded plans equal the benchmark's own."""

import json

import pytest

from benchmarks.planbench.instances import RecordedPlan, read_instances, read_plans
from benchmarks.planbench.verdicts import judge_recorded, lines, summary, table
from constrained.cli import main
from tests.data import shared
from tests.planning_domains import blocks_task


def recorded(*plan: str, correct: bool | None = None) -> RecordedPlan:
    return RecordedPlan("blocks/basic/1", "m", "p", plan, correct)


def test_every_failure_says_what_failed_and_what_was_missing():
    task = blocks_task()
    plans = [recorded("(pick-up a)"), recorded("(unstack c a)", "(put-down c)"), recorded("(fly)"), recorded()]
    rows = [judge_recorded(plan, task) for plan in plans]
    assert [row.verdict for row in rows] == ["inapplicable action", "goal not reached", "unknown action", "no plan"]
    assert lines(rows).splitlines() == [
        "blocks/basic/1, m, p: inapplicable action (pick-up a), step 1: needs (clear a)",
        "blocks/basic/1, m, p: goal not reached: missing (on a b), (on b c)",
        "blocks/basic/1, m, p: unknown action (fly), step 1: the actions are pick-up, put-down, stack, unstack",
        "blocks/basic/1, m, p: no plan: missing (on a b), (on b c)",
    ]
    assert summary(rows)[0]["impossible action"] == 2


def test_a_verdict_that_differs_from_the_benchmarks_is_counted():
    rows = [judge_recorded(recorded("(pick-up a)", correct=correct), blocks_task()) for correct in (True, False, None)]
    assert [row.agrees for row in rows] == [False, True, True]
    assert "of the benchmark's 2 recorded verdicts, 1 differ" in table(rows)


def test_verdicts_equal_the_benchmarks_on_a_sample():
    shared("planbench")
    tasks = {one.name: one.task() for one in read_instances()}
    rows = [judge_recorded(plan, tasks[plan.instance]) for plan in list(read_plans())[::10]]
    assert sum(row.correct is not None for row in rows) > 300
    assert [row for row in rows if not row.agrees] == []


def test_the_command_prints_a_table_and_json(capsys):
    shared("planbench")
    assert main(["check", "planbench", "o1-preview_chat", "--limit", "20"]) == 0
    assert "| blocksworld | o1-preview_chat |" in capsys.readouterr().out
    assert main(["check", "planbench", "o1-preview_chat", "--limit", "20", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] and len(found["plans"]) == 20


def test_an_unknown_model_is_an_error(capsys):
    shared("planbench")
    assert main(["check", "planbench", "gpt-5"]) != 0
    assert "there are plans by" in capsys.readouterr().err


@pytest.mark.parametrize("limit", ["0", "-1"])
def test_a_limit_below_one_is_an_error(limit, capsys):
    assert main(["check", "planbench", "--limit", limit]) != 0
    assert "--limit" in capsys.readouterr().err
