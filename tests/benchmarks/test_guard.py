"""constrained bench guard: what the record counts is counted again, on a part; a fall is told."""

from __future__ import annotations

import json

import pytest

from benchmarks import guard
from constrained.cli import main
from constrained.errors import DataError
from constrained.guard import Guard
from tests.data import shared


@pytest.fixture(scope="module")
def transcripts():
    return guard.read_transcripts(shared("tau_bench/gold_transcripts.jsonl.xz"), 3)


@pytest.mark.parametrize("name", guard.DOMAINS)
def test_gold_calls_after_their_lookups_and_a_yes_are_admitted(transcripts, name):
    tools, tasks = transcripts
    row = guard.replay(name, tools[name], tasks[name])
    assert row["tasks"] == 3 and row["admitted"] == row["actions"] > 0 and not row["refused by"]


def test_an_unknown_yes_refuses_gold_actions_and_names_the_condition(transcripts, monkeypatch):
    monkeypatch.setattr(guard, "YES", "Maybe.")
    tools, tasks = transcripts
    row = guard.replay("airline", tools["airline"], tasks["airline"])
    assert row["admitted"] < row["actions"] and any("no clear yes" in why for why in row["refused by"])


def test_a_part_of_the_conversations_is_measured_and_written(tmp_path, capsys):
    shared("tau_bench/gpt4o_airline.jsonl.xz")
    assert main(["bench", "guard", "--limit", "2", "--calls", "2", "--json", str(tmp_path / "guard.json")]) == 0
    result = json.loads((tmp_path / "guard.json").read_text(encoding="utf-8"))
    assert result["conversations"]["conversations"] == 2
    assert [row["turns"] for row in result["cost"]] == [*guard.TURNS] * 2
    assert "| near misses |" in capsys.readouterr().out


def test_the_record_is_compared_and_a_fall_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(guard, "RECORD", tmp_path / "guard.json")
    now = json.loads((guard.RESULTS / "guard.json").read_text(encoding="utf-8"))
    guard.compare(now, update=True)
    assert guard.compare(now, update=False) == 0
    now["conversations"]["errors refused"] -= 1
    assert guard.compare(now, update=False) == 1
    now["conversations"]["errors refused"] += 1
    now["conversations"]["gold calls refused"] -= 1
    assert guard.compare(now, update=False) == 0
    said = capsys.readouterr().out
    assert "WORSE: errors refused" in said and "better: gold calls refused" in said


def test_every_call_that_the_tools_refused_is_refused_in_the_record():
    talks = json.loads((guard.RESULTS / "guard.json").read_text(encoding="utf-8"))["conversations"]
    assert talks["errors refused"] == talks["errors"] == 33


def test_a_file_without_transcripts_is_refused(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"domain": "retail", "tools": []}\n')
    with pytest.raises(DataError, match="no tools of airline"):
        guard.read_transcripts(tmp_path / "x.jsonl", None)


def test_the_record_lists_each_gold_call_that_is_refused_with_its_reasons():
    talks = json.loads((guard.RESULTS / "guard.json").read_text(encoding="utf-8"))["conversations"]
    assert len(talks["gold refused"]) == talks["gold calls refused"] > 0
    assert all(one["why"] and one["tool"] and one["arguments"] for one in talks["gold refused"])


@pytest.mark.parametrize(
    ("heard", "date", "admitted"),
    [
        ("Please cancel it, because my plans changed.", "2024-05-22", True),
        ("Please cancel it.", "2024-05-22", False),
        ("What does it cost, because my plans changed?", "2024-05-22", False),
        ("Please cancel it, because my plans changed.", "2024-05-09", False),
    ],
)
def test_a_request_with_a_reason_is_enough_to_cancel_a_trip_that_is_ahead(transcripts, heard, date, admitted):
    trip = {"reservation_id": "LU15PA", "user_id": "amelia_davis_8890", "cabin": "business", "insurance": "no",
            "created_at": "2024-05-01T00:08:44", "flights": [{"flight_number": "HAT001", "date": date}]}  # fmt: skip
    look = {"name": "get_reservation_details", "arguments": json.dumps({"reservation_id": "LU15PA"})}
    talk = Guard(transcripts[0]["airline"], "tau_airline").follow([
        {"role": "user", "content": f"I am amelia_davis_8890, it is LU15PA. {heard}"},
        {"role": "assistant", "tool_calls": [{"id": "1", "function": look}]},
        {"role": "tool", "tool_call_id": "1", "content": json.dumps(trip)},
    ])  # fmt: skip
    assert bool(talk.judge("cancel_reservation", {"reservation_id": "LU15PA"})) is admitted
