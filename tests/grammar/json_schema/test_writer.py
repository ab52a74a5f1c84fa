"""JSON Schema keywords, one by one: what is admitted is what is valid, written as json.dumps writes it."""

import json
from itertools import permutations, product

import pytest

from constrained import Grammar, GrammarError
from tests.grammar.json_schema.oracle import accepted, is_valid

VALUES = [
    None, True, False, 0, 1, -1, 2, 7, 10, 14, 99, 100, -5, 0.5, -0.5, 2.25, 1.5, 99.99, 100.01, 12.345,
    "", "a", "b", "ab", "abc", "abcd", "é", "日本", "😀", 'q"', "\\", "a\tb", "a/b", "x y", "\x01", "\x7f", "12",
    "admin",
    [], [1], [1, 2], ["a"], ["a", "b"], ["a", "a"], [1, "a"], [None, True], [[1]], [1, 2, 3, 4],
    {}, {"a": 1}, {"a": "x"}, {"b": 1}, {"a": 1, "b": "x"}, {"c": None}, {"a": 1, "c": 2}, {"é": 1}, {"x_1": 2},
    {"a": {"a": {"a": {}}}}, {"kind": "circle", "radius": 1}, {"kind": "square", "side": 2},
    {"kind": "circle", "side": 2},
    {"value": 1, "next": {"value": 2, "next": None}}, {"value": 1, "next": {"value": "x"}},
]  # fmt: skip

CIRCLE = {"properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}}, "required": ["kind", "radius"]}
SQUARE = {"properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]}
LINKED = {
    "$defs": {"node": {"type": "object", "properties": {"value": {"type": "integer"}, "next": {"$ref": "#/$defs/link"}},
                       "required": ["value"], "additionalProperties": False},
              "link": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]}},
    "$ref": "#/$defs/node",
}  # fmt: skip

SCHEMAS = {
    "true": True,
    "empty": {},
    "described only": {"title": "T", "description": "d", "default": 5, "examples": [1], "$comment": "c"},
    **{f"type {t}": {"type": t} for t in ("null", "boolean", "object", "array", "number", "integer", "string")},
    "types": {"type": ["string", "null"]},
    "enum": {"enum": [1, "a", None, True, [1], {"a": 1}, 'q"', "é"]},
    "enum beside others": {"enum": ["a", "ab", 1, [1], {"a": 1}], "type": ["string", "array"], "minLength": 2},
    "const": {"const": {"a": 1, "b": "x"}},
    "const number": {"const": 1.0},
    "minimum": {"type": "number", "minimum": 0.5},
    "maximum": {"type": "number", "maximum": 2.25},
    "exclusive": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 100},
    "between": {"type": "number", "minimum": -0.5, "maximum": 99.99},
    "integer between": {"type": "integer", "minimum": -1, "maximum": 99},
    "integer above a fraction": {"type": "integer", "exclusiveMinimum": 0.5},
    "multiples": {"type": "integer", "multipleOf": 7},
    "multiples between": {"type": "integer", "multipleOf": 5, "minimum": 1, "maximum": 100},
    "multiples of two numbers": {"type": "integer", "allOf": [{"multipleOf": 2}, {"multipleOf": 5}]},
    "a bound says nothing of strings": {"minimum": 5},
    "minLength": {"type": "string", "minLength": 2},
    "maxLength": {"type": "string", "maxLength": 1},
    "lengths count characters": {"type": "string", "minLength": 1, "maxLength": 2},
    "pattern": {"type": "string", "pattern": "^a"},
    "pattern anywhere": {"type": "string", "pattern": "b"},
    "pattern to the end": {"type": "string", "pattern": "b$"},
    "pattern alternatives": {"type": "string", "pattern": "^ab|c$"},
    "pattern with escapes": {"type": "string", "pattern": r'^["\\]$'},
    "pattern beyond ASCII": {"type": "string", "pattern": "^[é日本]+$"},
    "pattern and length": {"type": "string", "pattern": "a", "minLength": 2, "maxLength": 3},
    "two patterns": {"allOf": [{"pattern": "a"}, {"pattern": "b"}], "type": "string"},
    "patterns in groups": {"pattern": "^$|(^a{2,}$)|((?:b$|^c))", "maxLength": 4},
    "lookahead": {"type": "string", "pattern": "^(?!admin).*$"},
    "items": {"type": "array", "items": {"type": "integer"}},
    "item counts": {"type": "array", "minItems": 1, "maxItems": 2},
    "prefixItems": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
    "tuple": {"type": "array", "prefixItems": [{"type": "integer"}], "items": False, "minItems": 1},
    "contains": {"type": "array", "contains": {"type": "integer", "minimum": 2}},
    "uniqueItems": {"type": "array", "items": {"enum": ["a", "b", 1]}, "uniqueItems": True},
    "properties": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}},
    "required": {"type": "object", "properties": {"a": {}}, "required": ["a", "c"]},
    "closed": {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False},
    "additional": {"properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "null"}},
    "patternProperties": {"type": "object", "patternProperties": {"^[ab]$": {"type": "integer"}, "_": {"const": 2}},
                          "additionalProperties": False},
    "patternProperties and others": {"patternProperties": {"^a": {"type": "integer"}},
                                     "additionalProperties": {"type": "null"}},
    "propertyNames": {"type": "object", "propertyNames": {"maxLength": 1}},
    "propertyNames listed": {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "minProperties": 2},
    "minProperties": {"type": "object", "minProperties": 1},
    "maxProperties": {"type": "object", "properties": {"a": True, "b": True}, "maxProperties": 1},
    "dependentRequired": {"type": "object", "dependentRequired": {"a": ["b"]}},
    "dependentSchemas": {"type": "object", "dependentSchemas": {"a": {"properties": {"b": {"type": "string"}}}}},
    "unevaluatedProperties": {"allOf": [{"properties": {"a": True}}], "properties": {"b": True}, "type": "object",
                              "unevaluatedProperties": False},
    "anyOf": {"anyOf": [{"type": "string", "maxLength": 1}, {"type": "integer"}]},
    "oneOf by type": {"oneOf": [{"type": "string"}, {"type": "array"}]},
    "oneOf by a const": {"type": "object", "oneOf": [CIRCLE, SQUARE]},
    "oneOf whose branches name no type": {"oneOf": [CIRCLE, SQUARE, {"type": "integer"}]},
    "oneOf of which two leave numbers free": {"oneOf": [{"minLength": 2}, {"maxLength": 3}, {"type": "array"}]},
    "if by what is required": {"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}},
    "oneOf by what is required": {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    "oneOf of closed objects": {"oneOf": [
        {"type": "object", "properties": {"a": True}, "required": ["a"], "additionalProperties": False},
        {"type": "object", "properties": {"b": True}, "additionalProperties": False, "required": ["b"]},
        {"type": "object", "properties": {"a": True, "b": True}, "required": ["b", "a"]},
    ]},
    "oneOf of a closed object and one of which a pattern has the name": {"oneOf": [
        {"type": "object", "properties": {"a": True}, "patternProperties": {"b": True}, "additionalProperties": False},
        {"type": "object", "required": ["b"], "properties": {"b": {"type": "integer"}}},
    ]},
    "oneOf by bounds": {"type": "integer", "oneOf": [{"maximum": 1}, {"minimum": 10}]},
    "allOf": {"allOf": [{"type": "object", "required": ["a"]}, {"properties": {"a": {"type": "integer"}}}]},
    "not const": {"type": "string", "not": {"const": "a"}},
    "not enum": {"type": "integer", "not": {"enum": [1, 7]}},
    "not type": {"not": {"type": ["object", "array", "number"]}},
    "not required": {"type": "object", "not": {"required": ["a"]}},
    "not integer": {"not": {"type": "integer"}},
    "not a number between": {"type": "number", "not": {"minimum": 1, "maximum": 2}},
    "not a pattern": {"type": "string", "not": {"pattern": "a"}},
    "not a length": {"not": {"maxLength": 1}},
    "not properties": {"type": "object", "not": {"properties": {"a": {"type": "integer"}}}},
    "not additionalProperties": {"type": "object", "not": {"additionalProperties": {"type": "integer"}}},
    "not patternProperties": {"type": "object", "not": {"patternProperties": {"^a": {"type": "integer"}}}},
    "not propertyNames": {"type": "object", "not": {"propertyNames": {"maxLength": 1}}},
    "not items": {"type": "array", "not": {"items": {"type": "integer"}}},
    "not prefixItems": {"type": "array", "not": {"prefixItems": [{"type": "integer"}]}},
    "not contains": {"type": "array", "not": {"contains": {"type": "integer"}}},
    "not anyOf": {"not": {"anyOf": [{"type": "integer"}, {"type": "string"}, {"minItems": 1}]}},
    "not allOf": {"not": {"allOf": [{"type": "object"}, {"required": ["a"]}]}},
    "not oneOf": {"not": {"oneOf": [{"type": "integer"}, {"minimum": 2}]}},
    "not not": {"not": {"not": {"type": "string"}}},
    "not const of an object": {"type": "object", "not": {"const": {"a": 1}}},
    "not enum of an array": {"type": "array", "not": {"enum": [[1], []]}},
    "not multipleOf": {"type": "integer", "not": {"multipleOf": 2}},
    "if and then": {"if": {"type": "string"}, "then": {"minLength": 1}},
    "if, then and else": {"type": "object", "if": {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
                          "then": {"required": ["b"]}, "else": {"maxProperties": 1}},
    "oneOf that overlaps": {"oneOf": [{"type": "integer"}, {"minimum": 2}]},
    "oneOf of objects": {"type": "object", "oneOf": [{"required": ["a"]}, {"properties": {"b": {"type": "string"}}}]},
    "contains so many": {"type": "array", "contains": {"type": "integer"}, "minContains": 1, "maxContains": 1},
    "contains twice": {"type": "array", "allOf": [{"contains": {"type": "integer"}}, {"contains": {"type": "string"}}]},
    "contains beside others": {"type": "array", "prefixItems": [{"type": "integer"}], "contains": {"type": "string"},
                               "maxItems": 2},
    "a fraction": {"type": "number", "multipleOf": 0.5, "minimum": 0},
    "unevaluatedItems": {"type": "array", "allOf": [{"prefixItems": [{"type": "integer"}]}], "unevaluatedItems": False},
    "unevaluatedProperties and anyOf": {
        "type": "object", "anyOf": [{"properties": {"a": True}, "required": ["a"]}, {"properties": {"b": True}}],
        "unevaluatedProperties": False,
    },
    "unevaluatedProperties and if": {
        "type": "object", "if": {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
        "unevaluatedProperties": False,
    },
    "$ref to itself": {"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": False},
    "$ref with siblings": {"$defs": {"s": {"type": "string"}}, "$ref": "#/$defs/s", "maxLength": 2},
    "$anchor": {"$defs": {"s": {"$anchor": "text", "type": "string"}}, "items": {"$ref": "#text"}, "type": "array"},
    "$id": {"$id": "https://x.org/a", "$defs": {"s": {"$id": "s", "type": "string"}}, "type": "array",
            "items": {"$ref": "s"}},
    "a linked list": LINKED,
    "draft 7 tuple": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "array",
                      "items": [{"type": "integer"}], "additionalItems": False},
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEMAS)
def test_admits_the_valid_values_and_no_others(name):
    schema = SCHEMAS[name]
    grammar = Grammar.from_json_schema(schema)
    valid = [v for v in VALUES if is_valid(schema, v)]
    assert valid
    assert [v for v in VALUES if accepted(grammar, v)] == valid


@pytest.mark.parametrize("name", [n for n, s in SCHEMAS.items() if isinstance(s, dict) and "properties" in s])
def test_in_any_order(name):
    schema = SCHEMAS[name]
    grammar = Grammar.from_json_schema(schema)
    for value in VALUES:
        text = json.dumps(dict(reversed(value.items())) if isinstance(value, dict) else value)
        assert grammar.matches(text) == is_valid(schema, value)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": True, "b": True, "c": True}, "required": ["c"], "maxProperties": 2},
        {"properties": {"a": True, "b": True}, "minProperties": 1, "additionalProperties": False},
        {"properties": {"a": True}, "required": ["a"], "minProperties": 2, "maxProperties": 2},
        {"properties": {"a": True}, "not": {"additionalProperties": {"type": "null"}}},
        {"properties": {"a": True, "b": True}, "not": {"properties": {"a": {"type": "null"}}}},
        {"properties": {"a": True, "b": True}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {
            "properties": {"a": True, "b": True, "c": True}, "additionalProperties": False,
            "dependentRequired": {"a": ["b"]}, "not": {"required": ["b", "c"]},
        },
        {
            "properties": {"a": {"const": 0}, "b": True}, "minProperties": 1,
            "if": {"required": ["a"]}, "then": {"properties": {"d": False}}, "else": {"required": ["d"]},
        },
        {
            "properties": {"a": True, "b": True, "c": True}, "maxProperties": 2,
            "dependentRequired": {"a": ["b"], "b": ["c"]}, "anyOf": [{"required": ["b"]}, {"required": ["d"]}],
        },
        {
            "properties": {"a": True, "b": True}, "maxProperties": 2, "minProperties": 1,
            "dependentRequired": {"c": ["a"]}, "not": {"additionalProperties": {"type": "null"}},
        },
        {"not": {"properties": {"a": True, "b": {"const": 0}}, "additionalProperties": False}},
        {
            "patternProperties": {"^a$": True}, "additionalProperties": False,
            "not": {"additionalProperties": {"type": "null"}},
        },
        {"oneOf": [{"properties": {name: {"const": 0}}, "additionalProperties": False} for name in "abc"]},
        {
            "anyOf": [{"required": ["a"]}, {"required": ["b", "c"]},
                      {"properties": {"d": {"const": 0}}, "required": ["d"]}],
        },
        {
            "not": {"anyOf": [
                {"properties": {"a": {"const": 0}, "b": {"const": 0}}, "required": ["a"]},
                {"properties": {"a": {"enum": [None]}, "c": {"const": 0}}, "required": ["d", "a"]},
            ]},
        },
    ],
)  # fmt: skip
def test_members_in_any_order_are_those_that_are_valid_and_no_mask_is_a_dead_end(schema):
    grammar = Grammar.from_json_schema({"type": "object", **schema}, whitespace="compact")
    values = [dict(zip(names, given)) for size in range(5) for names in permutations("abcd", size)
              for given in product((None, 0), repeat=size)]  # fmt: skip
    texts = [json.dumps(value, separators=(",", ":")) for value in values]
    valid = [text for text, value in zip(texts, values) if is_valid(schema, value)]
    assert [text for text in valid if grammar.matches(text)] == valid
    assert not any(grammar.matches(text) for text in set(texts) - set(valid))
    for text in texts:
        for end in range(len(text)):
            state = grammar.begin.read(text[:end].encode())
            assert state is None or state.accepting or state.first(), text[:end]


def test_properties_come_in_the_schemas_order_optional_ones_left_out_at_will():
    schema = {"properties": {k: {"const": k} for k in "abcd"}, "required": ["b", "d"], "additionalProperties": False}
    grammar = Grammar.from_json_schema({"type": "object", **schema}, whitespace="compact", any_order=False)
    for names in ("bd", "abd", "bcd", "abcd"):
        assert grammar.matches("{" + ",".join(f'"{k}":"{k}"' for k in names) + "}")
    for names in ("", "b", "d", "db", "abc", "bdc", "bbd"):
        assert not grammar.matches("{" + ",".join(f'"{k}":"{k}"' for k in names) + "}")


def test_a_name_of_the_schema_is_not_written_as_another_one():
    grammar = Grammar.from_json_schema({"type": "object", "properties": {"a": {"type": "integer"}}})
    assert grammar.matches('{"b": "x"}') and grammar.matches('{"a": 1, "aa": "x"}')
    for again in ('{"a": "x"}', '{"b": 1, "a": "x"}', '{"\\u0061": "x"}', '{"a": 1, "a": 1}'):
        assert not grammar.matches(again)


def test_strings_have_every_spelling_of_rfc_8259():
    grammar = Grammar.from_json_schema({"type": "string"})
    good = r'"\u00e9" "\u00E9" "é" "\/" "/" "\b\f\n\r\t\"\\" "\ud83d\ude00" "😀" ""'.split()
    bad = ['"\n"', r'"\x41"', r'"\u12"', r'"\ud83d"', r'"\ude00"', r'"\ud83d\u0041"', "'a'", '"a', 'a"', '"\x00"']
    assert all(map(grammar.matches, good)) and not any(map(grammar.matches, bad))
    assert all(isinstance(json.loads(text), str) for text in good)


def test_a_length_counts_an_escape_as_one_character():
    grammar = Grammar.from_json_schema({"type": "string", "minLength": 2, "maxLength": 2})
    assert all(map(grammar.matches, [r'"\u00e9x"', r'"\ud83d\ude00x"', r'"\n\n"', '"😀x"']))
    assert not any(map(grammar.matches, [r'"\u00e9"', r'"\ud83d\ude00"', r'"\n\n\n"']))


def test_white_space_is_bounded():
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "integer"}}}}
    value = {"a": [1, 2]}
    texts = {
        "compact": json.dumps(value, separators=(",", ":")),
        "dumps": json.dumps(value),
        "two": json.dumps(value, indent=2),
        "tabs": json.dumps(value, indent="\t"),
        "mixed": '{"a":[1, 2]}',
        "many": '{"a":   [1, 2]}',
        "lines": '{\n\n"a": [1, 2]}',
    }
    admitted = {
        "flexible": {"compact", "dumps", "two", "tabs", "mixed"},
        "single": {"compact", "dumps", "mixed"},
        "dumps": {"dumps"},
        "compact": {"compact"},
    }
    for whitespace, names in admitted.items():
        grammar = Grammar.from_json_schema(schema, whitespace=whitespace)
        assert {name for name, text in texts.items() if grammar.matches(text)} == names
        assert not grammar.is_prefix("{\n" + " " * 101) and not grammar.is_prefix("{  ")


def test_closed_objects_admit_what_they_list():
    inner = {"type": "object", "properties": {"b": {}}}
    schema = {"type": "object", "properties": {"a": inner, "c": {"type": "object"}}}
    grammar = Grammar.from_json_schema(schema, closed=True)
    assert grammar.matches('{"a": {"b": 1}, "c": {"anything": 1}}')
    assert not grammar.matches('{"d": 1}') and not grammar.matches('{"a": {"d": 1}}')


def test_objects_merged_by_allof_are_closed_together():
    schema = {"type": "object", "allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}
    grammar = Grammar.from_json_schema(schema, closed=True)
    assert grammar.matches('{"a": 1, "b": 2}') and not grammar.matches('{"a": 1, "c": 2}')


def test_a_schema_is_a_dict_a_text_or_a_file(tmp_path):
    path = tmp_path / "schema.json"
    path.write_text('{"type": "boolean"}')
    for schema in ({"type": "boolean"}, '{"type": "boolean"}', path, str(path)):
        assert Grammar.from_json_schema(schema).matches("true")


def test_what_lenient_leaves_out_is_named():
    properties = {"a": {"type": "array", "uniqueItems": True, "contains": True}}
    schema = {
        "type": "object",
        "properties": properties,
        "not": {"required": ["b"], "properties": {"b": {"uniqueItems": True}}},
    }
    grammar = Grammar.from_json_schema(schema, lenient=True)
    assert set(grammar.left_out) == {"#/properties/a/uniqueItems", "#/not/properties/b/uniqueItems"}
    assert grammar.matches('{"a": [1, 1]}')
    assert Grammar.from_json_schema({"type": "string"}).left_out == ()


def test_what_the_standard_does_not_know_is_an_annotation_named_or_with_strict_refused():
    schema = {"type": "object", "properties": {"b": {"nullable": True, "new": 1}}, "x-mine": 1, "title": "t"}
    assert Grammar.from_json_schema(schema).unknown == ("#/properties/b/nullable", "#/properties/b/new")
    with pytest.raises(GrammarError, match=r"#/properties/b/nullable: 'nullable' is no keyword that is known"):
        Grammar.from_json_schema(schema, strict=True)
    assert Grammar.from_json_schema({"type": "string", "x-mine": 1}, strict=True).unknown == ()


DRAFTS = {n: f"http://json-schema.org/draft-0{n}/schema#" for n in (4, 6, 7)} | {
    n: f"https://json-schema.org/draft/{n}/schema" for n in ("2019-09", "2020-12")
}
BY_DRAFT = {
    "exclusive bounds": ({"minimum": 1, "exclusiveMinimum": True}, 1, {4}),
    "numbers as bounds": ({"exclusiveMinimum": 1}, 1, {4, 6, 7, "2019-09", "2020-12"}),
    "const": ({"const": 2}, 1, {6, 7, "2019-09", "2020-12"}),
    "if": ({"if": {"type": "integer"}, "then": {"minimum": 2}}, 1, {7, "2019-09", "2020-12"}),
    "a list of items": ({"items": [{"type": "string"}]}, [1], {4, 6, 7, "2019-09"}),
    "prefixItems": ({"prefixItems": [{"type": "string"}]}, [1], {"2020-12"}),
    "dependencies": ({"dependencies": {"a": ["b"]}}, {"a": 1}, {4, 6, 7}),
    "dependentRequired": ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, {"2019-09", "2020-12"}),
    "what stands beside $ref": (
        {"$ref": "#/definitions/a", "minimum": 2, "definitions": {"a": {"type": "integer"}}}, 1, {"2019-09", "2020-12"}
    ),
    "id": ({"items": {"$ref": "a"}, "definitions": {"x": {"id": "a", "type": "string"}}}, [1], {4}),
    "$id": ({"additionalProperties": {"$ref": "a"}, "definitions": {"x": {"$id": "a", "type": "string"}}}, {"b": 1},
            {6, 7, "2019-09", "2020-12"}),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_DRAFT)
def test_a_keyword_says_what_its_draft_makes_of_it(name):
    schema, value, refused_by = BY_DRAFT[name]
    for draft, uri in DRAFTS.items():
        try:
            grammar = Grammar.from_json_schema({"$schema": uri, **schema})
        except GrammarError:  # not its form in that draft
            assert name in ("exclusive bounds", "numbers as bounds", "a list of items", "id", "$id")
            continue
        assert grammar.matches(json.dumps(value)) == (draft not in refused_by), draft


def test_a_large_enum_of_objects_is_one_choice():
    grammar = Grammar.from_json_schema({"enum": [{"id": i, "name": f"n{i}"} for i in range(20_000)]})
    state = grammar.automaton.read(b'{"id": 1')
    assert len(state.positions) == 1
    for text in ('{"id": 4711, "name": "n4711"}', '{"id":19999,"name":"n19999"}'):
        assert grammar.matches(text)
    assert not grammar.matches('{"id": 4711, "name": "n4712"}')


def test_what_several_properties_must_show_between_them_never_leads_nowhere():
    """Each of two properties must be there because of a not; one name can stand for one of them only."""

    def some(pattern: str, kind: str) -> dict:
        return {"not": {"patternProperties": {pattern: {"not": {"type": kind}}}}}

    parts = [some("^a$", "string"), some("a|b", "integer"), some("b|c", "null")]
    schema = {"properties": dict.fromkeys("abc", True), "additionalProperties": False, "type": "object", "allOf": parts}
    grammar = Grammar.from_json_schema(schema)
    assert grammar.matches('{"c": null, "b": 1, "a": "x"}')
    assert not grammar.is_prefix('{"a": 1') and not grammar.is_prefix('{"c": 2') and not grammar.is_prefix('{"b": "x"')
    with pytest.raises(GrammarError, match="no value is valid"):
        Grammar.from_json_schema({**schema, "properties": {"a": {}, "b": {"type": "null"}}})


@pytest.mark.parametrize(
    "schema, valid, invalid",
    [
        (
            {"if": {"properties": {"a": {"$ref": "#"}}}, "then": {"required": ["b"]}, "else": {"required": ["c"]}},
            ['{"a": {"a": {}}, "c": 1}', '{"b": 1}'],
            ['{"a": {}}', '{"a": {"b": 1}, "c": 1}'],
        ),
        (
            {"oneOf": [{"type": "array", "items": {"$ref": "#"}}, {"contains": {"const": 1}, "type": "array"}]},
            ["[1]", "[[1]]", "[[]]"],
            ["[2]", "[[2]]"],
        ),
    ],
)
def test_a_complement_may_lead_back_to_the_whole_in_a_part_of_the_value(schema, valid, invalid):
    grammar = Grammar.from_json_schema({"type": ["object", "array"], **schema})
    for text in [*valid, *invalid]:
        assert grammar.matches(text) == is_valid({"type": ["object", "array"], **schema}, json.loads(text)), text
    assert all(map(grammar.matches, valid)) and not any(map(grammar.matches, invalid))


@pytest.mark.parametrize(
    "schema, values",
    [
        ({"items": {"type": ["integer", "boolean"], "minimum": 1, "maximum": 7}}, [[1, True], [7, 7], [8]]),
        ({"items": {"pattern": "^[AB]1?$", "type": "string", "not": {"const": "A"}}}, [["A"], ["A1", "B"], ["B", "B"]]),
        (
            {"patternProperties": {"^[a-c]$": {"type": "null"}}, "additionalProperties": False, "minProperties": 2},
            [{"a": None}, {"a": None, "c": None}, {"a": None, "d": None}],
        ),
    ],
)
def test_values_and_names_that_a_schema_leaves_few_of_are_told_apart(schema, values):
    schema = {"type": "array", "uniqueItems": True, **schema} if "items" in schema else {"type": "object", **schema}
    grammar = Grammar.from_json_schema(schema)
    for value in values:
        assert accepted(grammar, value) == is_valid(schema, value), value


@pytest.mark.parametrize(
    "name, broken, kept",
    [
        ("date", ["x", "2023-02-30"], ["2023-02-28", "0000-02-29"]),
        ("date-time", ["2020-01-01"], ["2020-01-01T00:00:00Z", "2020-01-01 23:59:60.1234567890z"]),
        ("ipv4", ["256.1.1.1", "1.2.3"], ["1.2.3.4", "01.2.3.4"]),
        ("uuid", ["1"], ["123e4567-e89b-12d3-a456-426614174000"]),
    ],
)
def test_what_no_validator_takes_for_a_format_is_its_complement(name, broken, kept):
    grammar = Grammar.from_json_schema({"type": "string", "not": {"format": name}})
    assert all(grammar.matches(json.dumps(text)) for text in broken)
    assert not any(grammar.matches(json.dumps(text)) for text in kept)


def test_the_complement_of_a_dependency_as_old_drafts_wrote_it():
    grammar = Grammar.from_json_schema({"not": {"dependencies": {"a": "b"}}})
    assert [grammar.matches(text) for text in ("1", '{"a": 1}', '{"a": 1, "b": 1}')] == [False, True, False]


def test_members_that_must_be_there_and_their_greatest_number_hold_in_any_order():
    some = {"not": {"patternProperties": {"^[ac]$": {"not": {"type": "integer"}}}}}
    schema = {"properties": {"a": {}, "b": {}}, "required": ["b"], "maxProperties": 2, "type": "object", **some}
    grammar = Grammar.from_json_schema(schema)
    assert all(map(grammar.matches, ('{"a": 1, "b": 0}', '{"b": 0, "c": 1}', '{"c": 1, "b": 0}')))
    assert not grammar.is_prefix('{"a": "x"') and not grammar.matches('{"b": 0}')
    with pytest.raises(GrammarError, match="no value is valid"):
        Grammar.from_json_schema({**schema, "maxProperties": 1})


def test_what_is_left_out_of_tagged_objects_takes_few_combinations():
    rest = {"number": {"type": "integer"}, "text": {"type": "string"}}
    tagged = [{"properties": {"tag": {"const": i}, **rest}, "required": ["tag", "number"]} for i in range(20)]
    grammar = Grammar.from_json_schema({"type": "object", "not": {"anyOf": tagged}})
    fine = (
        "{}",
        '{"tag": 20, "number": 1}',
        '{"tag": 7}',
        '{"number": "a", "tag": 7}',
        '{"text": 1, "number": 1, "tag": 7}',
    )
    assert all(map(grammar.matches, fine))
    assert not any(map(grammar.matches, ('{"tag": 7, "number": 1}', '{"number": 1, "text": "a", "tag": 19}')))


def test_a_short_enum_has_objects_with_their_names_in_any_order():
    value = {"a": [{"b": 1, "c": 2}], "desk 1": None, "desk 10": True}
    turned = {"desk 10": True, "desk 1": None, "a": [{"c": 2, "b": 1}]}
    for schema in ({"const": value}, {"enum": [value, {"a": 1, "b": 2}]}):
        grammar = Grammar.from_json_schema(schema)
        assert grammar.matches(json.dumps(value)) and grammar.matches(json.dumps(turned))
        assert not grammar.matches(json.dumps({"desk 1": None, "a": value["a"]}))
        assert not Grammar.from_json_schema(schema, any_order=False).matches(json.dumps(turned))


def test_branches_of_an_anyof_that_list_values_are_one_list():
    lists = [{"enum": [1, "a"]}, {"const": True}, {"enum": ["b", {"k": 1}], "type": "string"}, {"pattern": "^x$"}]
    grammar = Grammar.from_json_schema({"anyOf": [*lists, {"type": "null"}], "not": {"const": "a"}})
    assert all(grammar.matches(text) for text in ("1", "true", '"b"', '"x"', "null", "2.5"))  # a number has no pattern
    assert not any(grammar.matches(text) for text in ('"a"', '"c"'))
    many = [{"enum": [f"t{i}"]} for i in range(300)]
    patterns = [{"properties": {"a": {"pattern": f"^t{i}$"}}} for i in range(30)]
    tasks = Grammar.from_json_schema({"type": "object", "properties": {"a": {"anyOf": many}}, "anyOf": patterns})
    assert tasks.matches('{"a": "t7"}') and not tasks.matches('{"a": "t31"}')
    with pytest.raises(GrammarError, match="#/anyOf/0/enum: '5' is not a list of JSON values"):
        Grammar.from_json_schema({"anyOf": [{"enum": 5}, {"enum": [5]}]})
