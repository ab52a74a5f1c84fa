"""Plain schemas are written when a text reaches them; what is refused is refused before."""

import json
import pickle

import pytest
from jsonschema import Draft202012Validator

from constrained import Grammar, GrammarError, LimitError, Limits, Vocabulary, compile_grammar
from constrained.grammar.deferred_rules import DeferredRules
from constrained.grammar.json_schema.decide import Disjoint

TEXT = {"type": "string"}
DEEP = {
    "type": "object",
    "properties": {"a": {"type": "object", "properties": {"b": {"type": "array", "items": TEXT}}}, "c": TEXT},
    "required": ["a"],
    "additionalProperties": False,
}


def written(grammar: Grammar) -> set[str]:
    """The rules that are written so far."""
    assert isinstance(grammar.rules, DeferredRules)
    return set(grammar.rules.written)


def test_a_property_is_written_when_a_text_reaches_it():
    grammar = Grammar.from_json_schema(DEEP)
    before = written(grammar)
    assert not any("properties" in name for name in before)
    assert grammar.is_prefix('{"a"')
    assert "#/properties/a/properties/b value" not in written(grammar)
    assert grammar.matches('{"a": {"b": ["x"]}}')
    assert "#/properties/a/properties/b value" in written(grammar)


def test_only_to_ask_for_all_rules_writes_them_all():
    grammar = Grammar.from_json_schema(DEEP)
    before = written(grammar)
    assert "JSON Schema" in repr(grammar) and written(grammar) == before
    with pytest.raises(TypeError, match="not iterable"):
        list(grammar.rules)
    assert "#/properties/a value" in grammar.all_rules() and written(grammar) == set(grammar.all_rules())
    assert all(name in grammar.rules for name in Grammar.from_json_schema(DEEP).all_rules())


def test_masks_are_the_same_whether_or_not_all_is_written():
    vocabulary = Vocabulary([bytes((i,)) for i in range(256)] + [b"</s>"], eos_token_ids=[256], special_ids=[256])
    late, early = Grammar.from_json_schema(DEEP), Grammar.from_json_schema(DEEP)
    assert early.all_rules()
    one, other = compile_grammar(late, vocabulary).matcher(), compile_grammar(early, vocabulary).matcher()
    for byte in b'{"a": {"b": ["x", "y"]}, "c": ""}':
        assert one.allowed_token_ids().tolist() == other.allowed_token_ids().tolist()
        assert one.advance(byte) and other.advance(byte)
    assert one.is_complete and other.is_complete


def test_a_grammar_with_rules_to_write_can_be_pickled_and_saved(tmp_path):
    grammar = Grammar.from_json_schema(DEEP)
    assert pickle.loads(pickle.dumps(grammar)).all_rules().keys() == grammar.all_rules().keys()
    vocabulary = Vocabulary([bytes((i,)) for i in range(256)] + [b"</s>"], eos_token_ids=[256], special_ids=[256])
    compiled = compile_grammar(Grammar.from_json_schema(DEEP), vocabulary)
    compiled.save(tmp_path / "saved")
    assert type(compiled).load(tmp_path / "saved", vocabulary).grammar.matches('{"a": {"b": []}}')


@pytest.mark.parametrize(
    "inner",
    [
        {"type": "array", "uniqueItems": True, "contains": True},
        {"type": "string", "pattern": "(a)\\1"},
        {"type": "string", "minLength": -1},
        {"$ref": "elsewhere.json"},
        {"anyOf": [{"$ref": "#/properties/a/properties/b"}, {"type": "null"}]},
    ],
)
def test_what_lies_deep_is_refused_when_the_schema_is_loaded(inner):
    with pytest.raises(GrammarError, match="#/properties/a/properties/b"):
        Grammar.from_json_schema({"properties": {"a": {"properties": {"b": inner}}}})


@pytest.mark.parametrize(
    "impossible",
    [
        {"type": "integer", "minimum": 5, "maximum": 4},
        {"type": "integer", "minimum": 4.2, "maximum": 4.9},
        {"type": "integer", "exclusiveMinimum": 4, "exclusiveMaximum": 5},
        {"type": "number", "exclusiveMinimum": 4.5, "maximum": 4.5},
        {"type": "object", "properties": {"x": {"$ref": "#/properties/a"}}, "required": ["x"]},
        {"type": "array", "items": {"enum": []}, "minItems": 1},
        {"type": "string", "minLength": 3, "maxLength": 2},
        {"type": "object", "required": ["x"], "additionalProperties": False},
        {"type": "object", "anyOf": [{"required": ["x"], "additionalProperties": False}]},
        {"type": "integer", "oneOf": [{"minimum": 5, "maximum": 4}]},
        {"type": "string", "anyOf": [{"enum": [1, None]}, {"type": "null"}]},
    ],
)
def test_no_mask_leads_to_what_nothing_fits(impossible):
    grammar = Grammar.from_json_schema({"properties": {"a": impossible}})
    assert not grammar.is_prefix('{"a"') and grammar.matches('{"b": 1}') and grammar.matches("{}")


@pytest.mark.parametrize("types", [{}, {"type": ["object", "null"]}, {"type": "null"}], ids=["any", "or null", "null"])
def test_no_mask_leads_to_what_fits_no_names_where_other_values_break_the_condition(types):
    one_of = [{"required": ["a"]}, {"required": ["b"]}]  # what is no object fits both
    impossible = {**types, "properties": {"c": {"type": "integer"}}, "additionalProperties": False, "oneOf": one_of}
    grammar = Grammar.from_json_schema({"type": "object", "properties": {"x": impossible, "y": {"type": "null"}}})
    assert grammar.matches('{"y": null}') and not grammar.is_prefix('{"x"')
    with pytest.raises(GrammarError, match="no value is valid"):
        Grammar.from_json_schema(impossible)


@pytest.mark.parametrize("count", [3, 60])
def test_any_order_takes_any_number_of_properties(count):
    properties = {f"p{i}": {"type": "integer"} for i in range(count)}
    schema = {"type": "object", "properties": properties, "required": ["p1"], "additionalProperties": False}
    grammar = Grammar.from_json_schema(schema, any_order=True)
    assert grammar.matches('{"p2": 1, "p1": 2}') and grammar.matches('{"p1": 1, "p0": 0, "p2": 2}')
    assert not grammar.matches('{"p2": 1}') and not grammar.is_prefix('{"p1": 1, "p1"')


def test_an_object_in_any_order_is_few_rules_until_it_is_written_out():
    grammar = Grammar.from_json_schema({"properties": {f"p{i}": TEXT for i in range(40)}})
    assert grammar.matches('{"p7": "", "p3": ""}') and len(grammar.all_rules()) < 60
    with pytest.raises(LimitError, match="any_order=False"):
        grammar.to_gbnf()


def test_unique_items_of_a_long_enum():
    values = [f"v{i}" for i in range(40)]
    schema = {"type": "array", "items": {"enum": values}, "uniqueItems": True, "minItems": 2}
    grammar = Grammar.from_json_schema(schema)
    assert grammar.matches('["v7", "v39", "v0"]')
    assert not grammar.matches('["v7"]') and not grammar.is_prefix('["v7", "v39", "v7"')


BESIDE = {"allOf": [{"properties": {"a": DEEP, "b": TEXT}}, {"required": ["b"], "properties": {"b": {"maxLength": 2}}}]}


def test_an_object_of_several_schemas_is_written_when_a_text_reaches_it():
    grammar = Grammar.from_json_schema({"properties": {"x": {"type": "object", **BESIDE}}})
    before = written(grammar)
    assert not any(name.endswith("object") for name in before)
    assert grammar.matches('{"x": {"b": "ok", "a": {"a": {}}}}') and not grammar.matches('{"x": {"b": "long"}}')
    assert len(written(grammar)) > len(before)


def test_no_mask_leads_to_an_object_of_several_schemas_that_nothing_fits():
    beside = [{"type": "object", "required": ["a"], "properties": {"a": {"const": i}}} for i in (1, 2)]
    grammar = Grammar.from_json_schema({"anyOf": [{"allOf": beside}, {"type": "null"}]})
    assert not grammar.is_prefix("{") and grammar.matches("null")


def test_a_refusal_in_an_object_of_several_schemas_comes_when_it_is_loaded():
    unique = {"properties": {"a": {"type": "array", "uniqueItems": True, "contains": True}}}
    with pytest.raises(GrammarError, match="uniqueItems"):
        Grammar.from_json_schema({"properties": {"x": {"allOf": [unique, {"properties": {"b": TEXT}}]}}})


WITH_K = {"type": "object", "required": ["k"]}


@pytest.mark.parametrize(
    "branches",
    [
        [{"enum": ["a"]}, {"enum": ["b"]}],
        [{"type": "object", "required": ["k"], "properties": {"k": {"const": k}}} for k in "ab"],
        [{"type": "object", "properties": {"k": TEXT}}, {"type": "string"}],
        [{"type": "string", "pattern": "^a"}, {"type": "string", "pattern": "^b"}, {"type": "integer"}],
        [{**WITH_K, "properties": {"k": {"type": "integer", **bound}}} for bound in ({"maximum": 3}, {"minimum": 4})],
    ],
)
def test_a_one_of_whose_branches_show_that_they_differ_waits(branches):
    grammar = Grammar.from_json_schema({"properties": {"x": {"oneOf": branches}}})
    assert not any("oneOf" in name for name in written(grammar))


def test_branches_that_a_property_tells_apart_are_neither_written_nor_compared(monkeypatch):
    base = {"type": "object", "required": ["kind"], "properties": {"kind": TEXT, "x": TEXT}}
    kinds = [{"allOf": [{"$ref": "#/$defs/base"}, {"properties": {"kind": {"$ref": f"#/$defs/{k}"}}}]} for k in "ab"]
    closed = {"type": "object", "properties": {"other": TEXT}, "additionalProperties": False}
    schema = {"properties": {"v": {"oneOf": [*kinds, closed, {"type": ["string", "null"]}]}}}
    defs = {"base": base, "a": {"enum": ["a1", "a2"]}, "b": {"allOf": [{"enum": ["b"]}]}}
    monkeypatch.setattr(Disjoint, "__call__", None)
    grammar = Grammar.from_json_schema({**schema, "$defs": defs}, any_order=True)
    assert grammar.matches('{"v": {"x": "", "kind": "a2"}}') and grammar.matches('{"v": {"kind": "b"}}')
    assert grammar.matches('{"v": {"other": ""}}') and grammar.matches('{"v": null}')
    assert not grammar.is_prefix('{"v": {"kind": "c')


KIND = {"type": "object", "required": ["k"], "properties": {"k": {"enum": ["a"]}}}


@pytest.mark.parametrize(
    "one, other",
    [
        (KIND, {"type": "object", "properties": {"k": {"enum": ["b"]}}, "patternProperties": {"^z": False}}),
        ({**KIND, "type": ["object", "null"]}, {"enum": [None]}),
        (KIND, {**KIND, "properties": {"k": {"enum": ["a", "b"]}}}),
        (KIND, {"type": "object", "additionalProperties": False, "patternProperties": {"k": TEXT}}),
        (KIND, {"type": "object", "required": ["k"], "allOf": [{"properties": {"l": {"enum": ["b"]}}}]}),
        (KIND, {"type": "object", "required": ["k"], "properties": {"k": {"$id": "https://a.org/", "$ref": "#/$defs/b",
                                                                          "$defs": {"b": {"enum": ["a", "c"]}}}}}),
    ],
)  # fmt: skip
def test_branches_that_may_share_a_value(one, other):
    schema = {"oneOf": [one, other], "$defs": {"b": {"enum": ["b"]}}}
    texts = ['{"k": "a"}', '{"k": "b"}', '{"k": "c"}', '{"k": 1}', "{}", '{"l": "a"}', "null", '{"k": "a", "l": "b"}']
    grammar, valid = Grammar.from_json_schema(schema, any_order=True), Draft202012Validator(schema).is_valid
    assert [text for text in texts if grammar.matches(text)] == [text for text in texts if valid(json.loads(text))]


def test_a_one_of_lists_overlapping_arrays():
    lists = [[[1], [2, 4], [5]], [[1], [1, 2]], [[1], [2, 4], [4, 6], [5]]]
    grammar = Grammar.from_json_schema({"oneOf": [{"enum": values} for values in lists]})
    assert [t for t in ("[1]", "[2, 4]", "[5]", "[1, 2]", "[4, 6]") if grammar.matches(t)] == ["[1, 2]", "[4, 6]"]


def test_a_pattern_of_names_that_says_nothing_is_left_out():
    freeing = {"^x-": {"description": "anything"}, "^_": {"additionalProperties": True}}
    grammar = Grammar.from_json_schema({"properties": {"a": TEXT}, "patternProperties": freeing})
    assert grammar.matches('{"x-b": 1, "_": {"c": 2}, "other": 3}')
    assert not any(":key" in name for name in written(grammar))
    closed = Grammar.from_json_schema({"patternProperties": freeing, "additionalProperties": False})
    assert closed.matches('{"x-b": 1}') and not closed.matches('{"b": 1}')
    rest = Grammar.from_json_schema({"patternProperties": freeing, "unevaluatedProperties": False})
    assert rest.matches('{"x-b": 1}') and not rest.matches('{"b": 1}')


def test_a_pattern_of_names_waits_beside_listed_ones():
    named = {
        "properties": {"a": DEEP},
        "patternProperties": {"^x-": {"type": "integer"}},
        "additionalProperties": False,
    }
    grammar = Grammar.from_json_schema({"properties": {"inner": named}})
    assert not any(name.endswith("inner object") for name in written(grammar))
    assert grammar.matches('{"inner": {"x-b": 1, "a": {"a": {}}}}') and not grammar.matches('{"inner": {"b": 1}}')


def test_a_value_of_which_a_property_and_a_pattern_say_the_same_waits():
    value = {"type": "array", "items": {"anyOf": [DEEP, TEXT]}}
    named = {"properties": {"a": {"title": "A", **value}}, "patternProperties": {"^a": value}}
    grammar = Grammar.from_json_schema({"properties": {"inner": {"type": "object", **named}}})
    assert not any(name.endswith("inner object") for name in written(grammar))
    assert grammar.matches('{"inner": {"a": ["x"]}}') and not grammar.is_prefix('{"inner": {"a": [1')


def test_branches_have_the_types_beside_them():
    paths = {"type": "string", "anyOf": [{"pattern": "[.]yaml$"}, {"pattern": "^https?://"}, {"enum": ["-", 1]}]}
    named = {"required": ["a"], "properties": {"a": TEXT}, "additionalProperties": False}
    sized = {"type": ["object", "null"], "oneOf": [named, {"enum": [{"b": 1}, None]}]}  # null fits both
    grammar = Grammar.from_json_schema({"properties": {"p": paths, "s": sized}})
    assert all(grammar.matches(f'{{"p": "{path}"}}') for path in ("x.yaml", "http://x", "-"))
    assert not grammar.matches('{"p": "x"}') and not grammar.is_prefix('{"p": 1')
    assert all(grammar.matches(f'{{"s": {value}}}') for value in ('{"a": ""}', '{"b": 1}'))
    assert not any(grammar.is_prefix(f'{{"s": {value}') for value in ("{}", "[", "n"))


def test_closed_objects_leave_out_what_others_name():
    one_of = [{"type": "object", "properties": {name: TEXT}, "additionalProperties": False} for name in "abcd"]
    grammar = Grammar.from_json_schema({"oneOf": one_of})
    assert grammar.matches('{"c": ""}') and not grammar.matches("{}") and not grammar.is_prefix('{"a": "", "b"')
    assert sum(name.endswith("object") for name in grammar.all_rules()) == len(one_of)  # not each with every complement
    many = [{**one, "properties": {f"p{i}": TEXT, "name": TEXT}} for i, one in enumerate(one_of * 8)]
    named = Grammar.from_json_schema({"oneOf": many})
    assert named.matches('{"name": "", "p30": ""}') and not named.matches('{"name": ""}')


def test_an_object_of_several_properties_may_have_conditions_on_their_names():
    counted = {"type": "object", "minProperties": 2, "properties": dict.fromkeys("abc", TEXT)}
    inner = {**counted, "additionalProperties": False, "dependentRequired": {"a": ["b"]}}
    other = {"type": "object", "anyOf": [{"required": ["x"]}, {"required": ["y"]}]}
    grammar = Grammar.from_json_schema({"properties": {"inner": inner, "other": other}})
    assert grammar.matches('{"inner": {"a": "", "b": ""}}') and grammar.matches('{"inner": {"c": "", "b": ""}}')
    assert not any(grammar.matches(f'{{"inner": {value}}}') for value in ('{"b": ""}', '{"a": "", "c": ""}'))
    assert grammar.matches('{"other": {"z": 1, "y": 2}}') and not grammar.matches('{"other": {"z": 1}}')
    unique = {"type": "array", "items": TEXT, "uniqueItems": True, "contains": TEXT}
    read_twice = {"u": unique, "inner": {**inner, "properties": {**counted["properties"], "a": unique}}}
    places = ["#/properties/u/uniqueItems", "#/properties/inner/properties/a/uniqueItems"]
    assert sorted(Grammar.from_json_schema({"properties": read_twice}, lenient=True).left_out) == sorted(places)


def test_true_and_one_are_not_the_same():
    named = {"properties": {"a": {"const": True}}, "patternProperties": {"^a": {"const": 1}}}
    grammar = Grammar.from_json_schema({"type": "object", **named})
    assert grammar.matches("{}") and not grammar.is_prefix('{"a"')


def test_what_only_refers_to_another_schema_is_that_schema():
    defs = {"a": {"allOf": [{"$ref": "#/$defs/b"}], "title": "A"}, "b": {"$ref": "#/$defs/c"}, "c": DEEP, "no": False}
    grammar = Grammar.from_json_schema({"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": defs})
    assert grammar.matches('{"x": {"a": {}}}') and "#/$defs/c value" in written(grammar)
    many = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}", "title": f"{i}"} for i in range(20)}
    long = Grammar.from_json_schema({"properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {**many, "d20": DEEP}})
    assert long.matches('{"x": {"a": {}}}') and not long.is_prefix('{"x": 1')
    dead = Grammar.from_json_schema({"properties": {"x": {"$ref": "#/$defs/no"}}, "$defs": defs})
    assert dead.matches("{}") and not dead.is_prefix('{"x"')


@pytest.mark.parametrize("back", [{"$ref": "#/$defs/a"}, {"allOf": [{"$ref": "#/$defs/b"}]}, {"$ref": "#/$defs/b"}])
def test_a_schema_that_only_refers_to_itself_is_refused(back):
    defs = {"a": {"$ref": "#/$defs/b"}, "b": back}
    with pytest.raises(GrammarError, match="refers to itself"):
        Grammar.from_json_schema({"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": defs})


def test_a_one_of_of_patterns_that_are_found_anywhere_rules_out_texts_with_two():
    texts = [{"type": "string", "pattern": pattern} for pattern in ("customer", "maker", "admin")]
    grammar = Grammar.from_json_schema({"oneOf": texts})
    assert grammar.matches('"a customer"') and grammar.matches('"maker"')
    assert not grammar.matches('"maker, customer"') and not grammar.matches('"adminmaker"')


def test_branches_of_many_values_are_not_compared_two_by_two():
    grammar = Grammar.from_json_schema({"oneOf": [{"const": f"v{i}"} for i in range(9_000)]})  # 40 million pairs
    assert grammar.matches('"v8999"') and not grammar.is_prefix('"v9000')


def test_a_schema_that_is_repeated_is_written_once():
    point = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x"]}
    row = {"type": "array", "items": dict(point)}
    grammar = Grammar.from_json_schema({"type": "object", "properties": {"a": point, "b": row, "c": {**point}}})
    assert grammar.matches('{"a": {"x": 1}, "b": [{"x": 2}], "c": {"x": 3}}')
    assert not grammar.matches('{"c": {"y": 3}}')
    assert sum(name.startswith("#/properties/") and name.endswith(" object") for name in grammar.all_rules()) == 1


def test_true_and_one_are_no_repeats_of_each_other():
    grammar = Grammar.from_json_schema({"properties": {"a": {"const": [True]}, "b": {"const": [1]}}})
    assert grammar.matches('{"a": [true], "b": [1]}') and not grammar.matches('{"b": [true]}')


def test_what_is_unknown_or_left_out_is_named_wherever_it_is_repeated():
    unique = {"type": "array", "uniqueItems": True, "contains": {"type": "null"}, "maxItem": 5}
    inner = {"properties": {"x": unique}, "required": ["x"]}
    schema = {"properties": {"a": inner, "b": dict(inner), "c": {"items": dict(inner)}}}
    places = ["#/properties/a", "#/properties/b", "#/properties/c/items"]
    grammar = Grammar.from_json_schema(schema, lenient=True)
    assert sorted(grammar.left_out) == [f"{place}/properties/x/uniqueItems" for place in places]
    assert sorted(grammar.unknown) == [f"{place}/properties/x/maxItem" for place in places]


def test_a_schema_that_leads_back_to_what_nothing_fits():
    impossible = {"type": "array", "items": {"type": "integer", "minimum": 5, "maximum": 4}, "minItems": 1}
    a = {"type": "object", "required": ["n"], "properties": {"b": {"$ref": "#/$defs/b"}, "n": impossible}}
    defs = {"a": a, "b": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}}
    named = {"x": {"$ref": "#/$defs/a"}, "y": {"$ref": "#/$defs/b"}}
    grammar = Grammar.from_json_schema({"type": "object", "properties": named, "$defs": defs})
    assert not grammar.is_prefix('{"x"') and not grammar.is_prefix('{"y": {"a"') and grammar.matches('{"y": {"c": 1}}')


def test_a_refusal_comes_when_it_is_loaded_though_the_schema_is_met_first_beside_another():
    a = {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}}, "minProperties": 2}
    a["propertyNames"] = {"pattern": "^[a-z]"}
    defs = {"a": a, "b": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}}
    beside = [{"$ref": "#/$defs/a"}, {"properties": {"b": True, "c": True}, "additionalProperties": False}]
    with pytest.raises(GrammarError, match="#/\\$defs/a/minProperties"):
        Grammar.from_json_schema({"properties": {"x": {"allOf": beside}}, "$defs": defs})


@pytest.mark.parametrize("names", [("^a-", "^b-"), ("-a$", "-b$"), ("^a$", "^b$"), ("^a", "[bc]$")])
def test_patterns_of_names(names):
    one, other = names
    patterns = {one: {"type": "integer"}, other: {"type": "string"}}
    inner = {"type": "object", "properties": {"c": TEXT}, "patternProperties": patterns, "additionalProperties": False}
    grammar = Grammar.from_json_schema({"properties": {"inner": inner}})
    a, b = {"^a-": ("a-1", "b-1"), "-a$": ("1-a", "1-b"), "^a$": ("a", "b"), "^a": ("a1", "1b")}[one]
    assert grammar.matches(f'{{"inner": {{"{a}": 1, "{b}": "x", "c": ""}}}}')
    assert not grammar.is_prefix(f'{{"inner": {{"{a}": "') and not grammar.is_prefix(f'{{"inner": {{"{b}": 1')
    assert not grammar.is_prefix('{"inner": {"d": ')


def test_names_of_patterns_that_begin_differently_wait():
    patterns = {f"^{letter}[0-9]+$": DEEP for letter in "abcdefgh"}
    grammar = Grammar.from_json_schema({"properties": {"inner": {"patternProperties": patterns}}})
    assert not any(name.endswith("inner object") for name in written(grammar))
    assert grammar.matches('{"inner": {"c12": {"a": {}}, "c": 1}}') and not grammar.is_prefix('{"inner": {"c12": 1')


def test_arrays_of_several_schemas_wait():
    lists = [{"type": "array", "items": DEEP, "minItems": 1}, {"items": {"properties": {"c": {"maxLength": 2}}}}]
    grammar = Grammar.from_json_schema({"properties": {"x": {"allOf": lists}}})
    assert not any(name.endswith("array") for name in written(grammar))
    assert grammar.matches('{"x": [{"a": {}, "c": "ab"}]}') and not grammar.matches('{"x": []}')
    assert not grammar.matches('{"x": [{"a": {}, "c": "abc"}]}')


@pytest.mark.parametrize("item", [{"const": 1}, {"const": 2}])
def test_no_mask_leads_to_an_array_of_several_schemas_that_nothing_fits(item):
    lists = [{"type": "array", "contains": item, "items": {"type": "integer"}}, {"items": {"maximum": 1}}]
    grammar = Grammar.from_json_schema({"properties": {"x": {"allOf": lists}}})
    assert grammar.matches('{"x": [0, 1]}') == grammar.is_prefix('{"x"') == (item == {"const": 1})


def test_a_format_of_bounded_length_waits():
    grammar = Grammar.from_json_schema({"properties": {"x": {"type": "string", "format": "uri", "maxLength": 40}}})
    assert not any("string" in name for name in written(grammar))
    assert grammar.matches('{"x": "http://a.org"}') and not grammar.matches(f'{{"x": "http://{"a" * 40}.org"}}')
    impossible = Grammar.from_json_schema({"properties": {"x": {"type": "string", "format": "date", "maxLength": 9}}})
    assert not impossible.is_prefix('{"x"')


def test_schemas_that_need_one_another_wait():
    link = {"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#/$defs/any"}, "also": DEEP}}
    defs = {
        "any": {"anyOf": [{"$ref": "#/$defs/link"}, {"$ref": "#/$defs/end"}]},
        "link": link,
        "end": {"type": "null"},
    }
    grammar = Grammar.from_json_schema({"properties": {"x": {"$ref": "#/$defs/any"}}, "$defs": defs})
    assert not any("link" in name for name in written(grammar))
    assert grammar.matches('{"x": {"next": {"next": null}}}') and not grammar.matches('{"x": {"next": {}}}')


def test_schemas_that_need_one_another_without_end_have_no_value():
    link = {"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#/$defs/any"}}}
    ends = {"anyOf": [{"$ref": "#/$defs/link"}, {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/any"}}]}
    grammar = Grammar.from_json_schema(
        {"properties": {"x": {"$ref": "#/$defs/any"}}, "$defs": {"any": ends, "link": link}}
    )
    assert not grammar.is_prefix('{"x"') and grammar.matches('{"y": 1}')


def test_schemas_with_a_uri_of_their_own_wait():
    inner = {"$id": "https://a.org/inner", "type": "object", "properties": {"b": {"$ref": "#/$defs/b"}, "c": DEEP}}
    inner["$defs"] = {"b": {"enum": ["inner"]}}
    schema = {"properties": {"x": inner, "b": {"$ref": "#/$defs/b"}, "y": {"$ref": "https://a.org/inner"}}}
    grammar = Grammar.from_json_schema({**schema, "$defs": {"b": {"enum": ["outer"]}}})
    assert not any("properties/x" in name for name in written(grammar))
    assert grammar.matches('{"x": {"b": "inner"}, "b": "outer", "y": {"b": "inner"}}')
    assert not grammar.is_prefix('{"x": {"b": "o') and not grammar.is_prefix('{"b": "i')
    assert not grammar.is_prefix('{"y": {"b": "o')


def test_a_python_value_that_stands_where_its_references_mean_something_else():
    shared = {"type": "object", "properties": {"b": {"$ref": "#/$defs/b"}}, "required": ["b"]}
    inner = {"$id": "https://a.org/inner", "properties": {"s": shared}, "$defs": {"b": {"enum": ["inner"]}}}
    schema = {"properties": {"s": shared, "x": inner}, "$defs": {"b": {"enum": ["outer"]}}}
    grammar = Grammar.from_json_schema(schema)
    assert grammar.matches('{"s": {"b": "outer"}, "x": {"s": {"b": "inner"}}}')
    assert not grammar.is_prefix('{"s": {"b": "i') and not grammar.is_prefix('{"x": {"s": {"b": "o')


@pytest.mark.parametrize("within", [dict, lambda one: {"anyOf": [one, {"$ref": "#/$defs/x"}]}], ids=["alone", "anyOf"])
@pytest.mark.parametrize("first", ["a", "b"])
def test_a_reference_that_stands_where_it_means_what_nothing_fits(within, first):
    shared = within({"$ref": "#/$defs/x"})  # one Python value in two places
    needing = {"type": "object", "required": ["q"], "properties": {"q": shared}}
    endless = {"type": "object", "required": ["p"], "properties": {"p": {"$ref": "#/$defs/x"}}}
    both = {"a": {"$id": "https://a.org/inner", "$defs": {"x": endless}, **needing}, "b": needing}
    grammar = Grammar.from_json_schema(
        {"$id": "https://a.org/", "$defs": {"x": {"type": "integer"}},
         "properties": dict(sorted(both.items(), reverse=first == "b"))},
    )  # fmt: skip
    assert grammar.matches('{"b": {"q": 1}}') and not grammar.is_prefix('{"a"')


def test_schemas_are_counted_once_wherever_they_stand():
    def schema(count, distinct):
        return {"properties": {f"p{i}": {"enum": [i % distinct]} for i in range(count)}}

    assert Grammar.from_json_schema(schema(200, 40), limits=Limits(schema=60)).matches('{"p41": 1}')
    with pytest.raises(LimitError, match="too many schemas"):
        Grammar.from_json_schema(schema(200, 80), limits=Limits(schema=60))
