"""Most schemas are told to be plain by one look at each: nothing is told of them that a closer look would not tell."""

import random

import pytest

from constrained import Grammar, GrammarError
from constrained.grammar.json_schema.alternatives import Alternatives
from constrained.grammar.json_schema.document import Document
from constrained.grammar.json_schema.keywords import Options
from constrained.grammar.json_schema.outline import Outlines
from constrained.grammar.json_schema.plain import plain
from constrained.limits import DEFAULT
from tests.grammar.json_schema.test_random_schemas import Schemas

DRAFT_4 = "http://json-schema.org/draft-04/schema#"


def outlines(schema) -> tuple[Outlines, Alternatives]:
    alternatives = Alternatives(Document(schema, DEFAULT), Options(DEFAULT, any_order=True))
    return Outlines(alternatives), alternatives


@pytest.mark.parametrize("seed", range(300))
def test_what_an_outline_tells_is_what_a_closer_look_tells(seed):
    schema = Schemas(random.Random(seed)).whole()
    outline, alternatives = outlines(schema)
    work, seen = [alternatives.document.root], set()
    while work:
        part = work.pop()
        found = outline(part) if part.pointer not in seen else None
        seen.add(part.pointer)
        if found is not None:
            alternatives.checked.clear()
            alternatives.check(part)
            assert plain(part, alternatives) is not None
            work += found.parts


@pytest.mark.parametrize(
    "wrong",
    [
        {"type": ["text"]},
        {"type": None},
        {"enum": "a"},
        {"enum": [float("inf")]},
        {"type": "object", "required": "a"},
        {"properties": {"b": 5}},
        {"properties": {"\ud800": {}}},
        {"items": {"type": "x"}, "type": "array"},
        {"minItems": None},
        {"maxLength": True},
        {"minimum": "5"},
        {"anyOf": []},
        {"oneOf": [{"type": "string"}, 5]},
        {"pattern": 5},
        {"$ref": ["#"]},
        {"additionalProperties": 0},
        {"additionalProperties": {"type": "x"}},
    ],
)
def test_a_wrong_form_that_lies_deep_is_refused(wrong):
    with pytest.raises(GrammarError, match="#/properties/a/items"):
        Grammar.from_json_schema({"properties": {"a": {"items": wrong}}})


def test_a_keyword_of_another_draft_tells_no_branches_apart():
    branches = [{"type": "object", "required": ["k"], "properties": {"k": {"const": k}}} for k in "ab"]
    schema = {"properties": {"x": {"oneOf": branches}}}
    assert Grammar.from_json_schema(schema).matches('{"x": {"k": "a"}}')
    assert not Grammar.from_json_schema({"$schema": DRAFT_4, **schema}).is_prefix('{"x"')


def test_what_stands_beside_a_reference_tells_no_branches_apart_before_2019():
    branches = [{"$ref": "#/definitions/any", "type": kind} for kind in ("string", "integer")]
    schema = {"properties": {"x": {"oneOf": branches}}, "definitions": {"any": {"description": "anything"}}}
    assert Grammar.from_json_schema(schema).matches('{"x": 1}')
    assert not Grammar.from_json_schema({"$schema": DRAFT_4, **schema}).is_prefix('{"x"')


def test_a_python_value_that_stands_in_many_places_is_looked_at_few_times():
    schema = {"type": "string"}
    for _ in range(60):
        schema = {"properties": {"a": schema, "b": schema}}
    assert Grammar.from_json_schema(schema).matches('{"a": {"b": {"a": {}}}}')


def test_a_schema_without_any_value_is_told_wherever_it_is_repeated():
    empty = {"type": "object", "properties": {"a": {"enum": []}}, "required": ["a"]}
    schema = {"properties": {"x": empty, "y": dict(empty), "z": {"anyOf": [dict(empty), {"type": "null"}]}}}
    grammar = Grammar.from_json_schema(schema)
    assert not grammar.is_prefix('{"x"') and not grammar.is_prefix('{"y"') and not grammar.is_prefix('{"z": {')
    assert grammar.matches('{"z": null}')
