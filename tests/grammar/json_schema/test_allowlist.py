"""What `satisfiable` doesn't look into is written when a schema is loaded: it costs time, never a mask."""

import random

import pytest

from constrained import Grammar, GrammarError
from constrained.grammar.json_schema import satisfiable
from constrained.grammar.json_schema.shape import Members
from tests.grammar.json_schema.test_random_schemas import Schemas

TEXT = {"type": "string"}
SCHEMAS = [
    {"type": "object", "properties": {"a": {"type": "object", "minProperties": 1, "additionalProperties": False}}},
    {"properties": {"a": {"type": "object", "required": ["x"], "additionalProperties": False}, "b": TEXT}},
    {"properties": {"a": {"type": "integer", "minimum": 5, "maximum": 4}, "b": {"type": "number", "minimum": 1}}},
    {"properties": {"a": {"type": "string", "minLength": 3, "maxLength": 2}, "b": {**TEXT, "pattern": "^a+$"}}},
    {"properties": {"a": {"type": "array", "items": {"enum": []}, "minItems": 1}, "b": {"items": TEXT, "maxItems": 2}}},
    {"properties": {"a": {"format": "date", **TEXT, "maxLength": 9}, "b": {"format": "date", **TEXT}}},
    {"properties": {"a": {"contains": {"const": 2}, "items": {"maximum": 1}, "type": "array"}, "b": TEXT}},
    {"type": "object", "properties": {"a": {"anyOf": [{"enum": [1]}, TEXT]}, "b": {"allOf": [TEXT]}}},
    {"properties": {"a": {"oneOf": [{"const": "x"}, {"const": "y"}]}, "b": {"$ref": "#/properties/a"}}},
    {"properties": {"a": {"type": "object", "patternProperties": {"^x": TEXT}, "anyOf": [{"required": ["x"]}, {
        "required": ["y"]}]}, "b": {"not": {"required": ["z"]}, "dependentRequired": {"z": ["y"]}}}},
    {"$ref": "#/$defs/list", "$defs": {"list": {"properties": {"a": {"$ref": "#/$defs/list"}}, "required": ["b"]}}},
    {"$ref": "#/$defs/never", "$defs": {"never": {"type": "object", "properties": {"a": {"$ref": "#/$defs/never"}},
                                                  "required": ["a"]}}},
]  # fmt: skip
"""Some have properties that nothing fits."""
ROWS = [(record, field) for record, fields in satisfiable.DECIDED.items() for field in sorted(fields)]


def read(schema) -> Grammar | str:
    """The grammar, or why there is none."""
    try:
        return Grammar.from_json_schema(schema)
    except GrammarError as error:
        return error.message


def masks(one: Grammar, other: Grammar, rng: random.Random, steps: int = 40) -> None:
    """Hold the bytes that may follow against each other, along a random text; none comes to a dead end."""
    state, beside = one.begin, other.begin
    for _ in range(steps):
        following = sorted(state.first())
        assert following == sorted(beside.first()) and state.accepting == beside.accepting
        assert following or state.accepting
        if not following:
            return
        ahead = [byte for byte in following if byte in b'"{}[]:,abxyz0129']
        byte = rng.choice(ahead if ahead and rng.random() < 0.9 else following)
        state, beside = state.step(byte), beside.step(byte)


def hold(schemas: list, shorten) -> None:
    """Hold the grammars of schemas against those that are read with a shorter list."""
    every = [read(schema) for schema in schemas]
    shorten()
    for schema, expected in zip(schemas, every):
        found = read(schema)
        if isinstance(expected, str) or isinstance(found, str):
            assert found == expected
            continue
        for seed in range(4):
            masks(expected, found, random.Random(seed))


RANDOM = [Schemas(random.Random(f"allowlist {number}")).whole() for number in range(12)]


@pytest.mark.parametrize("record, field", ROWS, ids=[f"{record.__name__}.{field}" for record, field in ROWS])
def test_a_field_that_is_not_looked_into_costs_no_mask(record, field, monkeypatch):
    shorter = satisfiable.DECIDED[record] - {field}
    hold([*SCHEMAS, *RANDOM], lambda: monkeypatch.setitem(satisfiable.DECIDED, record, shorter))


@pytest.mark.parametrize("join", sorted(satisfiable.JOINS))
def test_a_join_that_is_not_looked_into_costs_no_mask(join, monkeypatch):
    shorter = satisfiable.JOINS - {join}
    hold([*SCHEMAS, *RANDOM], lambda: monkeypatch.setattr(satisfiable, "JOINS", shorter))


def test_a_schema_of_which_nothing_is_looked_into_is_written_as_a_whole(monkeypatch):
    def none():
        for record in satisfiable.DECIDED:
            monkeypatch.setitem(satisfiable.DECIDED, record, frozenset())

    hold([*SCHEMAS, *RANDOM], none)


def test_a_field_that_is_taken_for_looked_into_shows_as_a_dead_end(monkeypatch):
    def after(text: bytes) -> bytes:
        state = Grammar.from_json_schema(SCHEMAS[0]).begin
        for byte in text:
            assert byte in state.first()
            state = state.step(byte)
        return bytes(sorted(state.first()))

    assert ord('"') not in after(b'{"a')  # no object without members fits, so no member is called "a"
    monkeypatch.setitem(satisfiable.DECIDED, Members, satisfiable.DECIDED[Members] | {"low"})
    assert not after(b'{"a":').strip()  # but for spaces, nothing follows
