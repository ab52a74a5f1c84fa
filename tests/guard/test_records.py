"""Recorded conversations under a policy: violations, near misses, outcomes; the command and its page."""

from __future__ import annotations

import json

import pytest

from constrained.cli import main
from constrained.errors import DataError
from constrained.guard.records import CONFIRMATION, READ, changing, check_records, read_record, read_records
from constrained.knowledge.tool_policy import read_policy
from tests.guard.shop import AGREED, CANCEL, LISTED, LOOKED, POLICY, TOOLS, asked, told, user

SHOP = read_policy(POLICY)
DONE = told('{"id": "#11", "status": "cancelled"}')
GOLD = [{"name": "cancel_order", "kwargs": CANCEL}]


def row(messages, **more):
    return {"messages": messages, "tools": TOOLS, **more}


ROWS = [
    row([*AGREED, asked(("cancel_order", CANCEL)), *DONE], reward=1.0, gold=GOLD),
    row([*LOOKED, asked(("cancel_order", CANCEL)), *DONE], reward=0.0, gold=GOLD),  # nobody agreed
    row([*LISTED, user("Yes!"), asked(("cancel_order", CANCEL)), *DONE], reward=1.0),  # nobody looked
    row([*AGREED, asked(("cancel_order", CANCEL)), *DONE, user("Yes!"), asked(("cancel_order", CANCEL)), *DONE],
        success=False),  # twice: against what is known
    row([*LISTED, asked(("cancel_order", CANCEL)), *told("Error: no")], solved=True),
]  # fmt: skip


def found(rows, **options):
    return check_records([read_record(one, f"row {i}") for i, one in enumerate(rows)], SHOP, **options)


def test_near_misses_are_changes_that_succeeded_without_a_step():
    findings = found(ROWS)
    assert [(one.conversation, one.missing, one.failed) for one in findings.violations] == [
        ("row 1", CONFIRMATION, False), ("row 2", READ, False), ("row 3", "", False), ("row 4", "", True),
    ]  # fmt: skip
    assert findings.to_dict()["near misses"] == {CONFIRMATION: 1, READ: 1}


def test_outcomes_are_compared_with_what_is_refused():
    data = found(ROWS).to_dict()
    figures = {"failed": 2, "failed flagged": 2, "solved": 3, "solved flagged": 2, "precision": 0.5, "recall": 1.0}
    assert data["outcomes"] == figures
    assert data["outcomes by what was carried out"]["solved flagged"] == 1
    assert (data["gold calls"], data["gold calls refused"]) == (2, 1)
    assert (data["errors"], data["errors refused"]) == (1, 1)


def test_refusals_are_counted_by_their_first_condition():
    rows = found(ROWS).by_condition()
    assert [(one["why"], one["kind"], one["calls"]) for one in rows] == [
        ("cancel_order: the customer hasn't said yes", "words", 2),
        ("cancel_order: not pending, or never looked up", "facts", 2),
    ]
    assert all("needs" in POLICY.splitlines()[one["line"] - 1] for one in rows)


def test_calls_are_judged_by_the_policy_alone_where_no_tools_are_given():
    rows = [{key: value for key, value in one.items() if key != "tools"} for one in ROWS]
    assert [one.conversation for one in found(rows).violations] == [f"row {i}" for i in range(1, 5)]


def test_tools_that_change_something_are_found_in_the_policy():
    assert changing(SHOP) == {"CANCEL_ORDER"}
    assert "RETURN_DELIVERED_ORDER_ITEMS" in changing(read_policy("tau_retail"))
    refund = [*LISTED, asked(("refund", {"id": "#11", "amount": 1})), *told("done")]
    assert [one.missing for one in found([row(refund)]).violations] == [""]
    assert [one.missing for one in found([row(refund)], changes=["refund"]).violations] == [READ]


def test_results_without_identities_are_those_of_the_calls_in_order():
    calls = asked(("list_orders", {}), ("cancel_order", CANCEL))
    answers = [{"role": "tool", "content": text} for text in ('{"orders": []}', "Error: no")]
    [violation] = found([row([calls, *answers])]).violations
    assert violation.failed and violation.answer == "Error: no"


def test_tau_bench_s_and_tau2_bench_s_records_are_read():
    task = {"actions": [{"name": "cancel_order", "kwargs": CANCEL}]}
    tau = read_record({"traj": AGREED, "reward": 0.0, "info": {"task": task}}, "tau")
    assert tau.solved is False and tau.gold == (("cancel_order", CANCEL),)
    actions = [{"name": "cancel_order", "arguments": CANCEL, "requestor": "assistant"},
               {"name": "toggle", "arguments": {}, "requestor": "user"}]  # fmt: skip
    whole = {
        "tasks": [{"id": "7", "evaluation_criteria": {"actions": actions}}],
        "simulations": [{"task_id": "7", "messages": AGREED, "reward_info": {"reward": 1.0}}],
    }
    [tau2] = read_records([("results", whole)])
    assert tau2.solved is True and tau2.gold == (("cancel_order", CANCEL),)


@pytest.mark.parametrize(("value", "message"), [(7, "no conversation"), ({"a": 1}, "no messages"), ({"traj": 7}, "no")])
def test_what_is_no_conversation_is_refused(value, message):
    with pytest.raises(DataError, match=message):
        read_record(value, "row 1")


@pytest.fixture
def shop(tmp_path):
    (tmp_path / "shop.lark").write_text(POLICY, encoding="utf-8")
    lines = "".join(json.dumps(one) + "\n" for one in ROWS)
    (tmp_path / "talks.jsonl").write_text(lines, encoding="utf-8")
    return tmp_path


def run(shop, *options):
    return main(["check", str(shop / "shop.lark"), "--conversations", str(shop / "talks.jsonl"), *options])


def test_the_command_reports_as_text_and_as_json(shop, capsys):
    assert run(shop) == 1
    text = capsys.readouterr().out
    assert "4 violations, 3 of them carried out" in text and "row 2, message 7" not in text
    assert "row 3, message 4: near miss: no read: cancel_order: not pending" in text
    assert run(shop, "--json") == 1
    data = json.loads(capsys.readouterr().out)
    assert data["violations"] == len(data["each violation"]) == 4
    assert run(shop, "--limit", "1") == 0


def test_the_page_shows_each_violation_and_escapes_what_it_quotes(shop, capsys):
    evil = [user("<script>alert(1)</script>"), *LOOKED, asked(("cancel_order", {**CANCEL, "x": "<b>"})), *DONE]
    (shop / "talks.jsonl").write_text(json.dumps(row(evil)), encoding="utf-8")
    run(shop, "--html", str(shop / "page.html"))
    text = (shop / "page.html").read_text(encoding="utf-8")
    assert "<script>alert" not in text and "&lt;script&gt;alert(1)" in text and "&lt;b&gt;" in text
    assert "the customer hasn&#x27;t said yes" in text or "the customer hasn't said yes" in text
    assert "near misses" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--html", "{talks}"], "talks.jsonl"),
        (["--conversations", "missing.jsonl"], "can't read"),
        (["list_orders"], "takes one policy"),
    ],
)
def test_wrong_arguments_are_refused(shop, options, message, capsys):
    code = run(shop, *[one.replace("{talks}", str(shop / "talks.jsonl")) for one in options])
    error = capsys.readouterr().err
    assert code != 0 and message in error


def test_a_page_without_conversations_is_refused(shop, capsys):
    assert main(["check", str(shop / "shop.lark"), "--html", "x.html"]) != 0
    assert "give --conversations FILE" in capsys.readouterr().err
