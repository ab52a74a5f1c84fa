"""Schemas that are refused, each with its place, a reason and a remedy; hostile ones before they cost much."""

import re
import time

import pytest

from constrained import Grammar, GrammarError, LimitError
from constrained.limits import Limits

REFUSED = {
    "#": [5, [1], None, {"$ref": "#"}, {"anyOf": [{"$ref": "#"}, {"type": "null"}]}, {1: 2}],
    "#/type": [{"type": "text"}, {"type": 5}, {"type": []}],
    "#/minimum": [{"minimum": "5"}, {"minimum": True}, {"minimum": float("inf")}],
    "#/exclusiveMinimum": [
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "minimum": 5, "exclusiveMinimum": True}
    ],
    "#/items": [{"$schema": "https://json-schema.org/draft/2020-12/schema", "items": [{}]}],
    "#/maxLength": [{"maxLength": -1}, {"maxLength": 1.5}],
    "#/multipleOf": [{"multipleOf": "2"}, {"multipleOf": 0}],
    "#/pattern": [{"pattern": p} for p in ("(", "[a", r"(a)\1", r"\p{Greek}", r"\pL", "a(?i)", "a{,3}", 5, "[]")],
    "#/enum": [{"enum": 5}, {"enum": [float("nan")]}, {"enum": ["\ud800"]}],
    "#/required": [{"required": True}, {"required": [1]}],
    "#/properties": [{"properties": {"a": 5}}, {"properties": []}],
    "#/if": [{"if": 5, "then": {"minLength": 1}}],
    "#/oneOf": [{"oneOf": []}],
    "#/not/uniqueItems": [{"not": {"uniqueItems": True}}],
    "#/uniqueItems": [{"type": "array", "uniqueItems": True, "contains": {"type": "null"}}],
    "#/minProperties": [{"type": "object", "minProperties": 2, "propertyNames": {"pattern": "^a"}}],
    "#/unevaluatedItems": [{"unevaluatedItems": False, "contains": {"type": "string"}}],
    "#/$ref": [{"$ref": "#/$defs/none", "$defs": {}}, {"$ref": "https://x.org/y"}, {"$ref": "#none"}, {"$ref": 5}],
    "#/properties/a~1b/minLength": [{"type": "object", "properties": {"a/b": {"minLength": "x"}}}],
    "#/$defs/d/type": [{"$ref": "#/$defs/d", "$defs": {"d": {"type": "x"}}}],
    "#/patternProperties/(": [{"type": "object", "patternProperties": {"(": {}}}],
}  # fmt: skip


@pytest.mark.parametrize("place, schema", [(place, s) for place, several in REFUSED.items() for s in several])
def test_the_place_and_what_to_do_are_said(place, schema):
    with pytest.raises(GrammarError) as error:
        Grammar.from_json_schema(schema)
    assert re.match(rf"JSON Schema at {re.escape(place)}: ", error.value.message)
    assert error.value.hint


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"type": "integer", "minimum": 5, "maximum": 4},
        {"type": "string", "const": 5},
        {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
        {"type": "string", "pattern": "^a$", "minLength": 2},
        {"type": "object", "required": ["a"], "additionalProperties": False},
        {"type": "array", "items": False, "minItems": 1},
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
    ],
)
def test_a_schema_that_nothing_fits(schema):
    with pytest.raises(GrammarError, match="no value is valid|'a' is required, but properties lacks it"):
        Grammar.from_json_schema(schema)


@pytest.mark.parametrize("text", ["{", '{"type": "string",}', "[" * 100_000, "nowhere.json", '{"a": NaN', "\0"])
def test_a_text_that_is_no_json(text):
    with pytest.raises(GrammarError):
        Grammar.from_json_schema(text)


# hostile schemas


def chain(keyword: str, length: int) -> dict:
    """Each definition holds the next one twice."""
    defs = {f"d{i}": {keyword: [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(length)}
    return {"$defs": {**defs, f"d{length}": {"type": "string"}}, "$ref": "#/$defs/d0"}


def deep(levels: int) -> dict:
    schema: dict = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def circle(**keywords) -> dict:
    schema: dict = {"type": "object", **keywords}
    schema["properties"] = {"a": schema, "b": schema}
    return schema


HOSTILE = {
    "deep": deep(5_000),
    "anyOf of anyOf": chain("anyOf", 60),
    "many anyOf": {"allOf": [{"anyOf": [{"minLength": i}, {"maxLength": i}]} for i in range(40)]},
    "a pattern of 10^6 states": {"type": "string", "pattern": "((a{1,100}){1,100}){1,100}", "minLength": 5},
    "many lookaheads": {"type": "string", "pattern": "".join(f"(?=.*{chr(c)})" for c in range(97, 117))},
    "long strings": {"type": "string", "minLength": 10**12},
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_schema_meets_a_limit(name):
    began = time.process_time()
    with pytest.raises(LimitError, match="the limit `"):
        Grammar.from_json_schema(HOSTILE[name])
    assert time.process_time() - began < 5  # meant: a second


@pytest.mark.parametrize("keywords", [{}, {"minProperties": 1, "dependentRequired": {"a": ["b"]}}])
def test_a_schema_that_contains_itself_is_refused(keywords):
    with pytest.raises(GrammarError, match="at #/properties/[ab]: the schema is a Python value that contains itself"):
        Grammar.from_json_schema(circle(**keywords))


def test_a_limit_can_be_raised():
    schema = {"properties": {f"p{i}": {"const": i} for i in range(9)}}
    with pytest.raises(LimitError):
        Grammar.from_json_schema(schema, limits=Limits(schema=9))
    assert Grammar.from_json_schema(schema, limits=Limits(schema=100)).matches('{"p1": 1}')


def test_what_looks_hostile_and_is_not():
    assert Grammar.from_json_schema(chain("allOf", 60)).matches('"a"')
    assert Grammar.from_json_schema(deep(60)).matches('{"a": {"a": {}}}')
    multiples = Grammar.from_json_schema({"type": "integer", "multipleOf": 10**9, "not": {"multipleOf": 3 * 10**9}})
    needed = Grammar.from_json_schema({"dependentRequired": {f"a{i}": ["b"] for i in range(40)}})
    assert needed.matches('{"a1": 0, "a2": 0, "b": 0}') and not needed.matches('{"a1": 0, "a2": 0}')
    assert multiples.matches("4000000000") and not multiples.matches("3000000000")
    states = {"type": "string", "pattern": "(a|b)*a" + "(a|b)" * 30, "maxLength": 40}  # 2^30 of them
    many = Grammar.from_json_schema(states)
    assert many.matches(f'"c{"ab" * 16}"') and many.is_prefix(f'"{"c" * 9}') and not many.is_prefix(f'"{"c" * 10}')
    names = Grammar.from_json_schema({"patternProperties": {f"{c}.*{c}.*{c}.*{c}": {"minimum": 0} for c in "abcde"}})
    assert names.matches('{"abcabcabcdd": -1}') and not names.matches('{"abcabcabcabca": -1}')
    assert Grammar.from_json_schema({"type": "array", "minItems": 10**6}).is_prefix("[1, 2")
    assert Grammar.from_json_schema({"enum": list(range(20_000))}).matches("19999")


def test_alternatives_that_lead_back_to_themselves_are_told_apart():
    kinds = [
        {"type": "object", "properties": {"kind": {"const": kind}, "of": {"$ref": "#"}}, "required": ["kind"]}
        for kind in ("list", "map")
    ]
    grammar = Grammar.from_json_schema({"oneOf": [{"type": "string"}, *kinds]})
    assert grammar.matches('{"kind": "map", "of": {"kind": "list", "of": "x"}}')
    assert not grammar.matches('{"kind": "set"}')


def test_combinations_end_where_a_required_property_has_no_value_left():
    rules = [{"if": {"properties": {"kind": {"const": f"k{i}"}}}, "then": {"required": [f"p{i}"]}} for i in range(24)]
    grammar = Grammar.from_json_schema({"type": "object", "required": ["kind"], "allOf": rules})
    assert grammar.matches('{"kind": "k3", "p3": 1}') and grammar.matches('{"kind": "other"}')
    assert not grammar.matches('{"kind": "k3", "p4": 1}')


def test_many_patterns_of_which_few_match_one_name():
    patterns = {f"^p{i}_": {"type": "integer"} for i in range(9)}
    grammar = Grammar.from_json_schema({"type": "object", "patternProperties": patterns})
    assert grammar.matches('{"p3_x": 1, "other": "x"}') and not grammar.matches('{"p3_x": "x"}')


def test_bounds_as_large_as_a_double_holds():
    grammar = Grammar.from_json_schema({"type": "number", "maximum": 1.79769e308})
    assert grammar.matches("12.5") and grammar.matches("-3")


def test_branches_that_an_optional_property_tells_apart():
    """Each branch is beside the complements of all others; what decides one of these decides most of them."""
    shared = {"enabled": {"type": "boolean"}}
    kinds = [
        {"allOf": [{"$ref": "#/$defs/all"}, {"properties": {"kind": {"enum": [f"k{i}"]}}, "required": required}]}
        for i, required in enumerate([[], *[["kind", "x"]] * 12])
    ]
    shape = {"type": "object", "properties": shared, "required": ["enabled"]}
    grammar = Grammar.from_json_schema({"oneOf": kinds, "$defs": {"all": shape}})
    assert grammar.matches('{"enabled": true}') and grammar.matches('{"enabled": true, "kind": "k0"}')
    assert grammar.matches('{"kind": "k7", "enabled": true, "x": 1}')
    assert not grammar.matches('{"enabled": true, "kind": "k7"}') and not grammar.matches('{"kind": "k0"}')
