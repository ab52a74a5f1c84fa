"""Arguments that nobody means: each is one clear error, never a traceback."""

import io
import json
import sys

import pytest

from constrained.cli import main

BRACKETS, DIGITS = "[" * 100_000, "9" * 5000


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "hotpotqa", "--bind", f"X={BRACKETS}"],
        ["check", "hotpotqa", "Search[x]", "--bind", f"X=[{DIGITS}]"],
        ["check", "hotpotqa", "a\udc80b"],
        ["plan", "a\udc80b"],
        ["plan", "--game", ""],
        ["plan", "put a mug in the cabinet", "--device", "meta", "--max-steps", "1"],
        ["plan", "put a mug in the cabinet", "--trace", "."],
        ["plan", "put a mug in the cabinet", "--max-steps", "-1"],
        ["view", "."],
        ["view", ""],
        ["check", "hotpotqa", "--runs", "x", "--limit", "-1"],
    ],
    ids=lambda arguments: " ".join(arguments)[:40],
)
def test_one_clear_error(arguments, capsys):
    assert main(arguments) in (1, 2)
    told = capsys.readouterr().err
    assert told.startswith("error: ") and len(told) < 1000


@pytest.mark.parametrize("limit", ["0", "-1", "x", "9" * 20])
def test_a_limit_is_a_number_from_one_on(limit, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["import", "gsm8k", "x", "-o", "y", "--limit", limit])
    assert "argument --limit" in capsys.readouterr().err


def test_what_the_terminal_can_not_show_is_escaped(tmp_path, monkeypatch):
    file = tmp_path / "snow.lark"
    file.write_text('%declare _STEP\n// ☃ é\nstart: go\n// go: go.\ngo: "☃😀é" _STEP [go]\n', encoding="utf-8")

    def told(*arguments):
        out = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
        monkeypatch.setattr(sys, "stdout", out)
        assert main([*arguments]) == 0
        out.flush()
        return out.buffer.getvalue().decode("latin-1")

    assert "\\u2603 é\n" in told("show", str(file), "--text")
    assert json.loads(told("explain", str(file), "--json"))["forced"] == "☃😀é"


def test_a_closed_standard_input_is_one_clear_error(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["check", "hotpotqa", "--file", "-"]) == 1
    assert capsys.readouterr().err.startswith("error: can't read -: standard input is closed")
