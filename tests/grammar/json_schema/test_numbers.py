"""Bounds of numbers, exactly: every text is held against them by Fraction, and as the double that validators read."""

import json
import random
from fractions import Fraction

import pytest

from constrained import Grammar, GrammarError
from tests.grammar.json_schema.oracle import is_valid, random_text

BOUNDS = [
    {}, {"minimum": 0}, {"exclusiveMinimum": 0}, {"maximum": 0}, {"exclusiveMaximum": 0}, {"minimum": 0, "maximum": 1},
    {"exclusiveMinimum": 0, "exclusiveMaximum": 1}, {"minimum": -1, "maximum": 1}, {"minimum": 5}, {"maximum": -2.5},
    {"minimum": 0.1, "maximum": 0.35}, {"minimum": -180, "maximum": 180}, {"exclusiveMinimum": 9.99, "maximum": 1000.5},
    {"minimum": 1e-05, "maximum": 0.001}, {"exclusiveMaximum": 0.1}, {"minimum": 12.5, "maximum": 12.5},
]  # fmt: skip


def floats(rng):
    """Numbers of all sizes, those that are written with an exponent among them."""
    for _ in range(400):
        yield rng.choice([1, -1]) * rng.random() * 10.0 ** rng.choice([-9, -6, -5, -4, -2, -1, 0, 1, 2, 3])
        yield round(rng.uniform(-200, 200), rng.randint(0, 4))
    yield from (0.0, -0.0, 1.0, 0.1, 0.35, 12.5, 1e-05, 0.001, 1000.5, 9.99, -2.5, 5.0, 180.0, 0.30000000000000004)


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_what_json_dumps_writes_is_admitted_where_it_is_valid(bounds):
    schema = {"type": "number", **bounds}
    grammar, rng = Grammar.from_json_schema(schema), random.Random(1)
    for value in floats(rng):
        if "e" in json.dumps(value) and bounds.get("minimum") == 1e-05:
            continue  # so near a bound that not any digits are within it: written out, see docs/json.md
        assert grammar.matches(json.dumps(value)) == is_valid(schema, value), value


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_what_is_written_is_within_the_bounds(bounds):
    schema = {"type": "number", **bounds}
    grammar, rng, read = Grammar.from_json_schema(schema), random.Random(2), 0
    for _ in range(200):
        text = random_text(grammar, rng)
        if text is not None:
            read += 1
            value = Fraction(text.decode())
            assert is_valid(schema, json.loads(text)), text
            assert Fraction(str(bounds.get("minimum", value))) <= value <= Fraction(str(bounds.get("maximum", value)))
    assert read > 50


@pytest.mark.parametrize(
    "low, high", [(0, 7), (-3, 12), (95, 1105), (-1000, -99), (30, 30), (None, 9), (10, None), (None, -10)]
)
def test_whole_numbers_between_two_others(low, high):
    bounds = {k: v for k, v in (("minimum", low), ("maximum", high)) if v is not None}
    for of in (1, 3, 10):
        grammar = Grammar.from_json_schema({"type": "integer", "multipleOf": of, **bounds})
        least, most = -1200 if low is None else low, 1200 if high is None else high
        admitted = [v for v in range(-1200, 1201) if grammar.matches(str(v))]
        assert admitted == [v for v in range(least, most + 1) if not v % of]


def test_a_number_that_a_double_can_not_tell_from_a_bound_left_out_is_left_out():
    grammar = Grammar.from_json_schema({"type": "number", "exclusiveMaximum": 1, "exclusiveMinimum": 0.1})
    assert grammar.matches("0.9999999999999999") and not grammar.matches("0.99999999999999999999")
    assert grammar.matches("0.10000000000000002") and not grammar.matches("0.100000000000000000001")


def test_that_no_number_is_left_is_told_without_trying_all():
    schema = {"type": "number", "multipleOf": 1e-8, "not": {"multipleOf": 1e-8}}
    with pytest.raises(GrammarError, match="no value is valid"):
        Grammar.from_json_schema(schema)
    grammar = Grammar.from_json_schema({"type": "number", "multipleOf": 1, "not": {"multipleOf": 99_999_999}})
    assert grammar.matches("99999998") and not grammar.matches("99999999")
