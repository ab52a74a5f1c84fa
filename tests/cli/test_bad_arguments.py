"""Arguments that nobody means: each is one clear error, never a traceback."""

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
