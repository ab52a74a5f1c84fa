"""The standard's own tests of drafts 7, 2019-09 and 2020-12: each right, or its schema refused by name."""

import json
import tarfile
from collections import Counter

import pytest

from constrained import Grammar, GrammarError
from constrained.environments.data import data_file
from constrained.errors import DataError
from tests.grammar.json_schema.oracle import accepted

SCHEMA = {
    "draft7": "http://json-schema.org/draft-07/schema#",
    "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
}


COUNTS = {
    "draft7": {"right": 898, "refused": 29},
    "draft2019-09": {"right": 1183, "refused": 76},
    "draft2020-12": {"right": 1185, "refused": 114},
}


def cases(draft: str):
    """(file, group, schema, tests) of the required tests."""
    try:
        path = data_file("json_schema_test_suite/suite.tar.xz")
    except DataError as error:
        pytest.skip(str(error))
    with tarfile.open(path) as archive:
        for member in archive:
            parts = member.name.split("/")
            if parts[-3:-1] == ["tests", draft] and member.name.endswith(".json"):
                for group in json.load(archive.extractfile(member)):
                    yield parts[-1], group["description"], group["schema"], group["tests"]


def written(value):
    """The value with whole numbers as they are written here, without a point."""
    if isinstance(value, float) and value == int(value):
        return int(value)
    if isinstance(value, list):
        return [written(inner) for inner in value]
    return {name: written(inner) for name, inner in value.items()} if isinstance(value, dict) else value


def read(schema, draft: str) -> Grammar | str:
    """The grammar, or why there is none; formats are annotations, as these tests have it."""
    if isinstance(schema, dict):
        schema = {"$schema": SCHEMA[draft], **schema}
    try:
        return Grammar.from_json_schema(schema, formats=False)
    except GrammarError as error:
        return error.message


@pytest.mark.parametrize("draft", SCHEMA)
def test_every_required_test_is_right_or_refused_by_name(draft):
    counts: Counter[str] = Counter()
    wrong = []
    for file, group, schema, tests in cases(draft):
        grammar = read(schema, draft)
        for test in tests:
            if isinstance(grammar, str):
                nothing = "no value is valid" in grammar or "is required, " in grammar
                counts["right" if nothing and not test["valid"] else "refused"] += 1
                if (
                    nothing
                    and test["valid"]
                    or not (nothing or "JSON Schema at #" in grammar or "the limit `" in grammar)
                ):
                    wrong.append((file, group, test["description"], grammar))
            elif accepted(grammar, written(test["data"])) == test["valid"]:
                counts["right"] += 1
            else:
                counts["wrong"] += 1
                wrong.append((file, group, test["description"], test["valid"]))
    assert not wrong
    assert counts == COUNTS[draft]
