"""The records in `benchmarks/results`: their rows, and where each is from."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from benchmarks.result_files import RECORDS, RESULTS
from constrained.errors import DataError

TABLE = re.compile(r"(?m)(?:^\|.*\n)+")
"""A Markdown table."""


@cache
def record(name: str) -> Any:
    """A record of `benchmarks/results`."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def rows_of(name: str, **wanted: Any) -> list[dict]:
    """The rows of a record in which these keys have these values."""
    return [row for row in record(name)["rows"] if all(row.get(key) == value for key, value in wanted.items())]


def row_of(name: str, **wanted: Any) -> dict:
    """The only such row."""
    [row] = rows_of(name, **wanted)
    return row


def tables_of(text: str) -> list[str]:
    """The Markdown tables of a text."""
    return [match[0].rstrip("\n") for match in TABLE.finditer(f"{text}\n")]


def provenance(name: str) -> dict[str, str]:
    """Command, date, commit, machine, seeds and sample of a record.

    Raises DataError: nothing is noted of it.
    """
    if name not in _provenances():
        hint = "write it by the benchmark's own --json or --update, which note that, and add its seeds and its sample"
        raise DataError(f"{RECORDS.name} doesn't say where {name}.json is from", hint)
    return _provenances()[name]


@cache
def _provenances() -> dict[str, dict[str, str]]:
    return json.loads(RECORDS.read_text(encoding="utf-8"))
