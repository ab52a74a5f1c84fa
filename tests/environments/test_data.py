"""Data files are read row by row, and what is wrong with one is said with its place."""

import gzip
import json

import pytest

from constrained.environments.data import fields, read_rows
from constrained.errors import DataError

ROWS = [{"question": "who?"}, {"question": "où ?"}]


@pytest.mark.parametrize("ending", [".json", ".jsonl", ".json.gz", ".jsonl.gz"])
def test_rows_are_the_same_in_every_form(tmp_path, ending):
    path = tmp_path / f"rows{ending}"
    text = json.dumps(ROWS) if ending.startswith(".json.") or ending == ".json" else "\n".join(map(json.dumps, ROWS))
    path.write_bytes(gzip.compress(text.encode()) if ending.endswith(".gz") else text.encode())
    assert list(read_rows(path)) == [(f"{path}, row {i}", row) for i, row in enumerate(ROWS, 1)]


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.json", b"", "not JSON"),
        ("a.json", b'{"a": 1}', "not a list"),
        ("a.json", b'[{"a": 1}, 2]', "row 2: not an object but a int"),
        ("a.json", b"[" * 100_000, "not JSON"),
        ("a.jsonl", b'{"a": 1}\n{"a": ', "row 2: not JSON"),
        ("a.jsonl", b'{"a": "\xff"}\n', "can't read"),
        ("a.jsonl", b'{"a": "\\ud83d\\ude00"}\n{"a": "\\uD83D"}\n', "after row 2: .*surrogates not allowed"),
        ("a.json", b'[{"a": ["\\udc00"]}]', "surrogates not allowed"),
        ("a.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 1000, mtime=0)[:-12], "can't read"),
        ("a.json.gz", b"[]", "can't read"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as error:
        list(read_rows(path))
    assert name in str(error.value)


def test_characters_written_as_two_escapes_are_read(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b'[{"a": "\\ud83d\\ude00"}]')
    assert list(read_rows(path)) == [(f"{path}, row 1", {"a": "\U0001f600"})]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match="none.jsonl"):
        list(read_rows(tmp_path / "none.jsonl"))


@pytest.mark.parametrize("row", [{}, {"answer": None}, {"answer": 1}, {"answer": ["a"]}])
def test_a_field_that_is_missing_or_of_another_type_is_named(row):
    with pytest.raises(DataError, match="here: no text under 'answer'"):
        fields("here", row, answer=str)


def test_true_is_no_number():
    with pytest.raises(DataError, match="whole number under 'id'"):
        fields("here", {"id": True}, id=int)
