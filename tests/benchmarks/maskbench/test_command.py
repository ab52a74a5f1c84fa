"""MaskBench's figures."""

import json
import os
import time
from argparse import ArgumentParser

import pytest

from benchmarks.engine.worker import Worker
from benchmarks.maskbench import command
from constrained.errors import ConstrainedError, DataError


def test_a_schema_passes_if_every_instance_is_judged_right():
    records = [
        {"ttfm": 1.0, "masks": [1.0, 3.0]},
        {"ttfm": 3.0, "masks": [2.0], "validation": True},
        {"ttfm": 5.0, "masks": [2.0], "validation": True, "invalidation": True},
        {"error": "GrammarError: ...", "masks": []},
    ]
    found = command.summary(records)
    assert (found["schemas"], found["passing"], found["compile errors"]) == (4, 1, 1)
    assert (found["validation errors"], found["invalidation errors"]) == (1, 1)
    assert (found["TTFM p50 (µs)"], found["TBM p100 (µs)"], found["TBM avg (µs)"]) == (3.0, 3.0, 2.0)
    assert "| passing | 1 |" in command.table({"ours": found})


def test_of_several_rounds_the_least_of_each_time_counts_and_an_error_in_one():
    def record(schema: str, **said) -> dict:
        return {"schema": schema, "masks": [], **said}

    records = [record("a", ttfm=2.0, masks=[1.0, 4.0]), record("b", ttfm=1.0), record("a", ttfm=3.0, masks=[2.0, 3.0]),
               record("b", error="OverTime"), record("a", ttfm=0.5, masks=[0.5, 0.5])]  # fmt: skip
    assert command._least(records, 2) == [record("a", ttfm=2.0, masks=[1.0, 3.0]), record("b", error="OverTime")]
    assert command._least(records, 1) == [record("a", ttfm=2.0, masks=[1.0, 4.0]), record("b", ttfm=1.0)]


def test_our_engine_is_measured_and_a_second_run_keeps_what_is_finished(tmp_path, capsys):
    pytest.importorskip("mistral_common")
    case = {"schema": {"type": "integer"}, "tests": [{"valid": True, "data": 5}, {"valid": False, "data": "a"}]}
    (tmp_path / "one.json").write_text(json.dumps(case))
    parser = ArgumentParser()
    command.add_arguments(parser)
    options = parser.parse_args(["--data", str(tmp_path), "--engine", "ours", "--output", str(tmp_path / "runs")])
    for _ in range(2):
        assert command.run_command(options) == 0
        assert "| passing | 1 |" in capsys.readouterr().out
    assert len((tmp_path / "runs" / "maskbench.jsonl").read_text().splitlines()) == 1
    options.rounds = 2
    assert command.run_command(options) == 0
    assert len((tmp_path / "runs" / "maskbench.jsonl").read_text().splitlines()) == 2
    options.engine.append("ours-ordered")
    assert command.run_command(options) == 0
    assert "Of the 1 schemas that all of these load:\n\n|  | ours | ours-ordered |" in capsys.readouterr().out


class Engine:
    """An engine that is slow, dies, or isn't installed."""

    def __init__(self, missing: bool = False):
        if missing:
            import a_peer_that_is_not_installed  # noqa: F401

    def hello(self) -> dict:
        return {}

    def measure(self, case: dict) -> dict:
        time.sleep(case.get("seconds", 0))
        if case.get("dies"):
            os._exit(3)
        return {"masks": [1.0]}


def test_an_engine_that_hangs_or_dies_fails_at_one_schema_alone():
    worker = Worker("peer", Engine)
    try:
        assert command._ask(worker, {"seconds": 600}, 1) == {"masks": [], "error": "OverTime: over 1 s"}
        assert command._ask(worker, {}, 600) == {"masks": [1.0]}
        assert "its process ended (3)" in command._ask(worker, {"dies": True}, 600)["error"]
        assert command._ask(worker, {}, 600) == {"masks": [1.0]}
    finally:
        worker.stop()
    with pytest.raises(ConstrainedError, match="peer: not installed: No module named 'a_peer_that"):
        command._ask(Worker("peer", Engine, True), {}, 600)


def test_a_run_goes_on_after_a_line_that_was_cut_short_and_refuses_a_damaged_one(tmp_path):
    path = tmp_path / "maskbench.jsonl"
    line = '{"engine": "ours", "schema": "é", "masks": []}\n'.encode()
    for at in range(len(line)):
        path.write_bytes(line + line[:at])
        assert len(command._finished(path)) == 1 and path.read_bytes() == line
    for damaged in (b"\0\n", b'{"engine": "ours"}\n', b"[]\n", b"\xff\n"):
        path.write_bytes(line + damaged + line)
        with pytest.raises(DataError, match="line 2: damaged"):
            command._finished(path)


@pytest.mark.parametrize(
    "name, content", [("a.tar.xz", b"no archive"), ("b", None), ("c/one.json", b"[]"), ("d/one.json", b"{")]
)
def test_what_holds_no_schemas_is_one_clear_error(tmp_path, name, content):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.mkdir() if content is None else path.write_bytes(content)
    parser = ArgumentParser()
    command.add_arguments(parser)
    options = parser.parse_args(["--data", str(path if path.suffix != ".json" else path.parent), "--exact"])
    with pytest.raises(DataError, match="MaskBench"):
        command.run_command(options)


def test_another_verdict_than_the_recorded_one_is_told(tmp_path, monkeypatch, capsys):
    pytest.importorskip("mistral_common")
    monkeypatch.setattr(command, "RECORD", tmp_path / "record.json")
    data = tmp_path / "data"
    data.mkdir()
    (data / "one.json").write_text(json.dumps({"schema": {}, "tests": [{"valid": True, "data": [1]}]}))
    parser = ArgumentParser()
    command.add_arguments(parser)
    arguments = ["--data", str(data), "--exact"]
    assert command.run_command(parser.parse_args([*arguments, "--update"])) == 0
    assert command.run_command(parser.parse_args(arguments)) == 0
    assert "1 of 1 pass; 0 differ" in capsys.readouterr().out
    (tmp_path / "record.json").write_text('{"one": "passing 0"}')
    assert command.run_command(parser.parse_args(arguments)) == 1
