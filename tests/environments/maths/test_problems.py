"""GSM8K's and SVAMP's problems: read with their answers, and what is wrong with a row is said with its place."""

import json
from fractions import Fraction

import pytest

from constrained.environments.maths.problems import (
    is_held_out,
    load_gsm8k,
    load_svamp,
    numbers_given,
    read_number,
    same_number,
)
from constrained.environments.suite import open_suite
from constrained.errors import DataError
from tests.data import shared

GSM8K = {"question": "How many?", "answer": "It is 2*540=<<2*540=1080>>1,080.\n#### 1,080"}
SVAMP = {
    "ID": "chal-1",
    "Type": "Subtraction",
    "Body": "I had 5",
    "Question": "How many?",
    "Equation": "( 5.0 - 2.0 )",
    "Answer": 3.0,
}


def rows(tmp_path, name, *found):
    path = tmp_path / name
    path.write_text("\n".join(map(json.dumps, found)) if name.endswith("l") else json.dumps(found))
    return path


def test_a_row_becomes_a_problem(tmp_path):
    [problem] = load_gsm8k(rows(tmp_path, "gsm8k.jsonl", GSM8K))
    assert (problem.name, problem.kind, problem.question, problem.answer) == (
        "gsm8k-1",
        "1 calculation",
        "How many?",
        1080,
    )
    [problem] = load_svamp(rows(tmp_path, "svamp.json", SVAMP))
    assert (problem.name, problem.question, problem.asked, problem.answer) == (
        "chal-1",
        "I had 5. How many?",
        "How many?",
        3,
    )


@pytest.mark.parametrize("change, said", [
    ({"question": None}, "no text under 'question'"), ({"answer": "1,080"}, "doesn't end in #### and a number"),
    ({"answer": "so\n#### many"}, "doesn't end in ####"), ({"answer": "so\n#### 1/0"}, "doesn't end in ####"),
])  # fmt: skip
def test_a_malformed_row_is_named(tmp_path, change, said):
    with pytest.raises(DataError, match=f"gsm8k.jsonl, row 2: .*{said}"):
        load_gsm8k(rows(tmp_path, "gsm8k.jsonl", GSM8K, GSM8K | change))


@pytest.mark.parametrize(
    "change", [{"Answer": None}, {"Answer": True}, {"Answer": float("nan")}, {"ID": 3}, {"Equation": []}]
)
def test_a_malformed_row_of_svamp_is_named(tmp_path, change):
    with pytest.raises(DataError, match="svamp.json, row 1: "):
        load_svamp(rows(tmp_path, "svamp.json", SVAMP | change))


@pytest.mark.parametrize("text, number", [
    ("72", 72), ("72.0", 72), ("$1,080", 1080), ("-$2.50", Fraction(-5, 2)), ("3/4", Fraction(3, 4)),
    (".5", Fraction(1, 2)),
    ("20%", 20), ("5.", 5), (" 7 ", 7), ("1e9", None), ("", None), ("1,08", None), ("two", None), ("1/0", None),
    ("nan", None), ("٣", None), ("9" * 101, None), ("1 2", None),
])  # fmt: skip
def test_numbers_are_read_exactly_or_not_at_all(text, number):
    assert read_number(text) == number
    assert number is None or same_number(text, Fraction(number))


@pytest.mark.parametrize("text, given", [
    ("He had $1,200.50 and 3/4 of it.", ["1200.50", "1200.5", "3", "4"]),
    ("Half of twenty-one, twice a dozen", ["0.5", "2", "20", "1", "12"]),
    ("20% of .50", ["20", "0.2", ".2", ".50", "0.5", ".5"]), ("100% of 0", ["100", "1", "0"]),
    ("someone often attends", []), ("", []), ("٣ and R2D2", ["2"]), ("9" * 16, []),
])  # fmt: skip
def test_numbers_given_as_formulas_write_them(text, given):
    assert numbers_given(text) == given


def test_the_shared_problems():
    shared("gsm8k/train.jsonl.gz"), shared("svamp/SVAMP_first700.json")
    problems = load_gsm8k()
    held_out = [problem for problem in problems if is_held_out(problem)]
    assert (len(problems), len(held_out), len(load_svamp())) == (7473, 761, 700)
    parts = [{task.name for task in open_suite("gsm8k", split=split).tasks} for split in ("held_out", "train")]
    assert len(parts[0]) == 761 and len(parts[1]) == 6712 and not parts[0] & parts[1]
    assert [task.name for task in open_suite("svamp", limit=2).tasks] == ["chal-1", "chal-2"]
    for name in ("gsm8k", "svamp"):
        with pytest.raises(DataError, match="has no split 'test'"):
            open_suite(name, split="test")
