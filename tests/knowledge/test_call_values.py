"""A verdict on a call is about its values: held against jsonschema, whatever the order, spacing and spelling."""

import json
import random

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from constrained import ActionKnowledge
from constrained.errors import ConstrainedError
from tests.grammar.json_schema.oracle import is_valid
from tests.grammar.json_schema.test_random_schemas import Schemas, Values

WHOLE = {"type": "integer"}
PAIR = {"type": "object", "properties": {"a": WHOLE, "b": WHOLE}, "required": ["a", "b"]}
OTHER = {"type": "object", "properties": {"c": {"const": 1}, "a": WHOLE, "b": WHOLE}, "required": ["c"]}
TREE = {"type": "object", "properties": {"x": WHOLE, "y": {"type": "array", "items": {"$ref": "#/$defs/d"}}}}


def knowledge_of(value: dict, *, defs: dict | None = None, **options) -> ActionKnowledge:
    """The knowledge of one tool `t` with an argument `v` of a schema."""
    parameters = {"type": "object", "properties": {"v": value}, "required": ["v"], "$defs": defs or {}}
    return ActionKnowledge.from_tools([{"name": "t", "parameters": parameters}], **options)


def shuffled(value, rng: random.Random):
    """A value with the members of its objects in another order."""
    if isinstance(value, list):
        return [shuffled(item, rng) for item in value]
    if isinstance(value, dict):
        return {name: shuffled(value[name], rng) for name in rng.sample(list(value), len(value))}
    return value


def spelled(value, rng: random.Random) -> str:
    """JSON text of a value with spaces, escapes and numbers written at random."""
    space = lambda: rng.choice(["", "", " ", "\n", "\t  "])  # noqa: E731
    if isinstance(value, dict):
        members = (f"{space()}{spelled(k, rng)}{space()}:{space()}{spelled(v, rng)}{space()}" for k, v in value.items())
        return f"{{{','.join(members) or space()}}}"
    if isinstance(value, list):
        return f"[{','.join(f'{space()}{spelled(item, rng)}{space()}' for item in value)}]"
    if isinstance(value, str):
        ways = [json.dumps(value), json.dumps(value, ensure_ascii=False)]
        return rng.choice([*ways, '"' + "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else c for c in value) + '"'])
    if isinstance(value, int) and not isinstance(value, bool):
        return rng.choice([str(value), f"{value}.0", f"{value}e0", f"{value * 10}E-1"])
    return json.dumps(value)


def in_some_form(arguments, rng: random.Random):
    """A call in one of the forms that programs hold."""
    arguments = shuffled(arguments, rng)
    text = spelled(arguments, rng)
    return rng.choice(
        [
            {"name": "t", "arguments": arguments},
            {"type": "function", "function": {"arguments": text, "name": "t"}},
            {"type": "tool_use", "name": "t", "input": arguments},
            f'{{"arguments": {text},\n "name":"t"}}',
            f'{{"name": "t", "arguments": {text}}}',
        ]
    )


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.booleans(), st.sampled_from(["single", "compact", "dumps", "flexible"]))
def test_the_verdict_is_that_of_jsonschema(rng, any_order, whitespace):
    drawn = Schemas(rng)
    defs = {"v": drawn.schema(0), "d0": drawn.schema(1), "d1": drawn.schema(1)}
    options = {"closed": False, "any_order": any_order, "whitespace": whitespace}
    try:
        knowledge = knowledge_of({"$ref": "#/$defs/v"}, defs=defs, **options)
    except ConstrainedError:  # no value fits, or the schema is refused
        reject()
    root = knowledge.form.schemas["t"]
    values = Values(rng, root)
    for _ in range(6):
        arguments = {"v": values.near(defs["v"])}
        try:
            valid = is_valid(root, arguments)
        except RecursionError:  # of references that only lead to each other
            reject()
        call = in_some_form(arguments, rng)
        judged = knowledge.judge(call)
        assert bool(judged) == valid, (root, call, judged)
        if judged:
            assert json.loads(judged.text)["arguments"] == arguments and knowledge.after(call).path == (judged.text,)
        else:
            assert judged.reason.startswith("arguments of t: ")


ORDERS = [
    ({"anyOf": [PAIR, {"type": "null"}]}, {"b": 1, "a": 2}),
    ({"oneOf": [OTHER, PAIR]}, {"b": 1, "a": 2}),
    ({"oneOf": [PAIR, OTHER]}, {"a": 1, "c": 1}),
    ({"allOf": [PAIR]}, {"b": 1, "a": 2}),
    ({"allOf": [PAIR, {"properties": {"z": {}, "a": {}}, "required": ["z"]}]}, {"z": 1, "b": 1, "a": 2}),
    ({"anyOf": [{"anyOf": [{"allOf": [{"anyOf": [PAIR]}]}]}]}, {"b": 1, "a": 2}),
    ({"type": "array", "prefixItems": [PAIR, {"type": "string"}]}, [{"b": 1, "a": 2}, "x"]),
    ({"type": "array", "items": {"anyOf": [PAIR, OTHER]}}, [{"b": 1, "a": 2}, {"a": 1, "c": 1}]),
    ({"type": "array", "contains": PAIR}, [1, {"b": 1, "a": 2}]),
    ({"type": "object", "additionalProperties": PAIR}, {"q": {"b": 1, "a": 2}, "p": {"b": 1, "a": 2}}),
    ({"type": "object", "patternProperties": {"^x": PAIR}}, {"xy": {"b": 1, "a": 2}}),
    ({"type": "object", "properties": {"k": WHOLE}, "additionalProperties": PAIR}, {"q": {"b": 1, "a": 2}, "k": 1}),
    ({"$ref": "#/$defs/d"}, {"y": [{"y": [], "x": 1}], "x": 1}),
    ({"enum": [{"a": 1, "b": [{"c": 1, "d": 2}]}, 3]}, {"b": [{"d": 2, "c": 1}], "a": 1}),
    ({"const": {"a": 1, "b": {"c": 1, "d": 2.0}}}, {"b": {"d": 2, "c": 1.0}, "a": 1}),
    ({"if": {"required": ["c"]}, "then": OTHER, "else": PAIR}, {"a": 1, "c": 1}),
    ({"type": "object", "dependentSchemas": {"a": {**PAIR, "additionalProperties": True}}}, {"b": 1, "z": 0, "a": 2}),
    ({**PAIR, "unevaluatedProperties": False, "anyOf": [{"properties": {"e": {}}}]}, {"e": 1, "b": 1, "a": 2}),
    ({"type": "array", "uniqueItems": True, "items": {"enum": [{"a": 1, "b": 2}, 3]}}, [3, {"b": 2, "a": 1}]),
    (WHOLE, 4.0),
    ({"multipleOf": 5}, 15.0),
    ({"type": "number", "multipleOf": 0.5}, 1e1),
    ({"enum": [4.0, "a"]}, 4),
    ({"const": 1}, 1.0),
    ({"type": "number"}, 1e-7),
    ({"type": "number", "exclusiveMinimum": 0, "maximum": 1e-6}, 1e-7),
    ({"type": "string", "pattern": "^[é\\n<]+$"}, "é\n<"),
    ({"type": "string", "maxLength": 2}, "日本"),
]


@pytest.mark.parametrize(("any_order", "whitespace"), [(False, "single"), (False, "compact"), (True, "flexible")])
@pytest.mark.parametrize(("schema", "value"), ORDERS, ids=lambda one: json.dumps(one)[:60])
def test_order_spacing_and_spelling_do_not_matter_at_any_depth(schema, value, any_order, whitespace):
    rng = random.Random(5)
    nested = {"type": "object", "properties": {"deep": {"type": "array", "items": schema}}, "required": ["deep"]}
    for closed in (False, True):
        knowledge = knowledge_of(nested, defs={"d": TREE}, any_order=any_order, whitespace=whitespace, closed=closed)
        for _ in range(3):
            call = in_some_form({"v": {"deep": [value, value]}}, rng)
            assert knowledge.judge(call), call
            assert knowledge.check([call, call]).ok and knowledge.after(call).after(call)


def test_a_schema_that_is_a_reference_at_the_top_is_followed():
    tree = {"$ref": "#/$defs/d", "$defs": {"d": TREE}}
    knowledge = ActionKnowledge.from_tools([{"name": "t", "parameters": tree}])
    assert knowledge.judge({"name": "t", "arguments": {"y": [{"y": [], "x": 1}], "x": 2.0}})
    assert not knowledge.judge({"name": "t", "arguments": {"y": [{"y": [], "x": "1"}], "x": 2}})


UNION = {"anyOf": [PAIR, {"type": "null"}, {"type": "array", "items": WHOLE}]}


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        (WHOLE, "three", 'v: "three" is not of type integer'),
        (WHOLE, 4.5, "v: 4.5 is not of type integer"),
        (WHOLE, True, "v: true is not of type integer"),
        ({"type": "integer", "minimum": 3}, 2, "v: 2 is below 3"),
        ({"type": "number", "exclusiveMaximum": 3}, 3.0, "v: 3.0 is not below 3"),
        ({"multipleOf": 5}, 16, "v: 16 is no multiple of 5"),
        ({"enum": ["a", "b"]}, "c", 'v: "c" is not one of "a" or "b"'),
        ({"type": "string", "maxLength": 3}, "日本語語", "v: has 4 characters; 3 at most may be there"),
        ({"type": "string", "pattern": "^a"}, "ba", 'v: "ba" doesn\'t match the pattern ^a'),
        ({"type": "string", "format": "date"}, "1 May", 'v: "1 May" has not the format date'),
        ({"type": "array", "minItems": 2}, [1], "v: has 1 item; 2 at least are needed"),
        ({"type": "array", "items": {"enum": [1, 2]}, "uniqueItems": True}, [1, 1.0], "v: its items 0 and 1 are equal"),
        (PAIR, {"a": 1}, "v: 'b' is missing"),
        (PAIR, {"a": 1, "b": 1, "q": 1}, "v: 'q' may not be there; what may be: a, b"),
        (UNION, {"a": 1, "b": "x"}, 'v.b: "x" is not of type integer'),
        (UNION, [1, None], "v[1]: null is not of type integer"),
        (UNION, "x", 'v: "x" is not of type array, null or object'),
        ({"oneOf": [OTHER, PAIR]}, {"c": 1, "a": "x"}, 'v.a: "x" is not of type integer'),
        ({"type": "object", "additionalProperties": WHOLE}, {"a b": ""}, 'v["a b"]: "" is not of type integer'),
        ({"not": {"const": 1}}, 1.0, "v: 1.0 is ruled out"),
    ],
    ids=str,
)
def test_the_reason_is_about_the_value(schema, value, reason):
    judged = knowledge_of(schema).judge({"name": "t", "arguments": {"v": value}})
    assert judged.verdict == "invalid" and f"arguments of t: {reason}" in judged.reason


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ('{"name": "t", "arguments": {"v": 1, "v": 2}}', "the key 'v' stands twice"),
        ('{"name": "t", "arguments": {"v": NaN}}', "NaN is no number of JSON's"),
        ({"name": "t", "arguments": {"v": float("inf")}}, "Infinity is no number of JSON's"),
        ('{"name": "t", "arguments": {"v": 1e999}}', "1e999 is more than a double holds"),
        ('{"name": "t", "arguments": {"v": "\\ud800"}}', "lone surrogate"),
        ({"name": "t", "arguments": {"v": "\ud800"}}, "lone surrogate"),
        ({"name": "t", "arguments": [1]}, "its arguments are no object"),
        ({"name": "t", "arguments": "[1]"}, "its arguments are no object"),
        ({"name": "T", "arguments": {"v": 1}}, "there is no tool 'T'; did you mean t?"),
        ({"arguments": {"v": 1}}, "it names no tool"),
        ('{"name": "t", "arguments": {"v": 1}', "it is not JSON"),
    ],
    ids=str,
)
def test_what_is_no_call_of_a_tool_is_said(call, reason):
    judged = knowledge_of({}).judge(call)
    assert judged.verdict == "invalid" and reason in judged.reason


@pytest.mark.parametrize("form", ["json", "llama", "hermes", "<function=NAME>ARGUMENTS</function>"])
@pytest.mark.parametrize("nothing", ["", " ", None, {}, "{}"])
def test_a_tool_without_arguments_is_called_with_nothing(nothing, form):
    knowledge = ActionKnowledge.from_tools([{"name": "now"}, {"name": "at", "parameters": PAIR}], call_format=form)
    for call in (
        {"name": "now", "arguments": nothing},
        {"type": "function", "id": "1", "function": {"name": "now", "arguments": nothing}},
        {"type": "tool_use", "name": "now", "input": nothing},
        json.dumps({"name": "now", "arguments": nothing}),
    ):
        assert knowledge.judge(call) and knowledge.check([call, call]).ok
    missing = knowledge.judge({"name": "at", "arguments": nothing})
    assert missing.verdict == "invalid" and "'a' is missing" in missing.reason


def test_under_a_policy_values_that_results_told_are_told_apart_by_what_they_say():
    tools = [
        {"name": "look"},
        {"name": "buy", "parameters": {"properties": {"item": {"type": "object"}, "of": {"type": "number"}}}},
    ]
    policy = """
%declare _STEP LOOK BUY
start: look
//: tells ITEM = $.items[*] by look
//: tells PRICE = $.prices[*] by look
look: LOOK _STEP buy
//: needs item in ITEM
//: needs of in PRICE
buy: BUY
"""
    knowledge = ActionKnowledge.from_tools(tools, policy=policy)
    box = knowledge.tools
    first = {"name": "look", "arguments": ""}
    told = box.told(box.policy.initial, knowledge.bind_view(box.view(box.policy.initial)).judge(first).text,
                    '{"items": [{"id": 1.0, "name": "</a>"}], "prices": [4.0]}')  # fmt: skip
    knowledge = knowledge.bind_view(box.view(box.policy.initial)).after(first).bind_view(box.view(told))
    assert knowledge.judge({"name": "buy", "arguments": {"of": 4, "item": {"name": "</a>", "id": 1}}})
    assert not knowledge.judge({"name": "buy", "arguments": {"of": 4, "item": {"name": "b", "id": 1}}})


def test_a_value_that_fits_no_alternative_of_a_recursive_schema_takes_no_exponential_time():
    node = {"type": "object", "properties": {"k": {"const": 1}, "next": {"$ref": "#/$defs/d"}}, "required": ["k"]}
    other = {**node, "properties": {**node["properties"], "k": {"const": 1.0}, "q": {}}}
    knowledge = knowledge_of({"$ref": "#/$defs/d"}, defs={"d": {"anyOf": [node, other, {"type": "null"}]}})
    value: dict = {"k": 2}
    for _ in range(40):
        value = {"next": value, "k": 1}
    judged = knowledge.judge({"name": "t", "arguments": {"v": value}})
    assert "k: 2 is not 1" in judged.reason
    for _ in range(2_000):
        value = {"next": value, "k": 1}
    assert not knowledge.judge({"name": "t", "arguments": "{" + '"v":{' * 3_000})
