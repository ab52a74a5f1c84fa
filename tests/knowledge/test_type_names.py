"""Types of programming languages in tools' schemas."""

import pytest

from constrained import ActionKnowledge
from constrained.errors import KnowledgeError, LimitError
from constrained.knowledge.type_names import with_json_types
from constrained.limits import DEFAULT, Limits

PYTHON = {
    "name": "plan_trip",
    "description": "Plan a trip.",
    "parameters": {
        "type": "dict",
        "properties": {
            "start": {"type": "tuple", "items": {"type": "float"}, "description": "Latitude and longitude."},
            "people": {"type": "list", "items": {"type": "dict", "properties": {"name": {"type": "str"}}}},
            "note": {"type": "any"},
            "type": {"type": "str", "enum": ["dict", "float"]},
        },
        "required": ["start"],
    },
}
JAVA = {
    "name": "Lock.acquire",
    "parameters": {
        "type": "HashMap",
        "properties": {"wait": {"type": "long"}, "keys": {"type": "ArrayList", "items": {"type": "String"}}},
        "required": ["wait"],
    },
}
GOOGLE = {
    "name": "set_light",
    "parameters": {"type": "OBJECT", "properties": {"level": {"type": "INTEGER"}, "on": {"type": "BOOLEAN"}}},
}


def admits(tool, **arguments):
    return bool(ActionKnowledge.from_tools([tool]).judge({"name": tool["name"], "arguments": arguments}))


def test_types_of_python_java_and_google_are_read():
    assert admits(PYTHON, start=[48.1, 11], people=[{"name": "Ann"}], note={"a": None}, type="dict")
    assert not admits(PYTHON, start=["48.1"])
    assert not admits(PYTHON, start=[1], people=[{"name": 1}])
    assert not admits(PYTHON, start=[1], type="object")
    assert admits(JAVA, wait=5, keys=["a"]) and not admits(JAVA, wait=5.5) and not admits(JAVA, wait=5, keys=[1])
    assert admits(GOOGLE, level=3, on=True) and not admits(GOOGLE, level="3")
    assert "plan_trip(start: list of number" in ActionKnowledge.from_tools([PYTHON]).to_text()


def test_only_types_are_renamed():
    schema = {
        "type": ["dict", "None"],
        "properties": {"type": {"enum": ["dict"]}, "items": {"type": "int"}},
        "default": {"type": "dict"},
        "anyOf": [{"type": "set"}, {"const": {"type": "float"}}],
        "$defs": {"x": {"type": ["any", "int"]}},
    }
    assert with_json_types(schema, "t", DEFAULT) == {
        "type": ["object", "null"],
        "properties": {"type": {"enum": ["dict"]}, "items": {"type": "integer"}},
        "default": {"type": "dict"},
        "anyOf": [{"type": "array"}, {"const": {"type": "float"}}],
        "$defs": {"x": {}},
    }
    plain = {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]}
    assert with_json_types(plain, "t", DEFAULT) is plain


@pytest.mark.parametrize(
    "kind, remedy",
    [
        ("list[str]", '{"type": "array", "items": {"type": "string"}}'),
        ("ArrayList<Integer>", '{"type": "array", "items": {"type": "integer"}}'),
        ("int[]", '{"type": "array", "items": {"type": "integer"}}'),
        ("List<Order>", '{"type": "array", "items": {"type": "..."}}'),
        ("Dict[str, int]", '{"type": "object", "additionalProperties": {"type": "..."}}'),
        ("int?", '{"type": ["integer", "null"]}'),
        ("Order", "the types are: null, boolean"),
    ],
)
def test_an_unknown_type_is_refused_with_what_to_write(kind, remedy):
    tool = {"name": "buy", "parameters": {"type": "object", "properties": {"what": {"type": kind}}}}
    with pytest.raises(KnowledgeError) as refused:
        ActionKnowledge.from_tools([tool])
    assert str(refused.value).startswith(
        f"tool 'buy': JSON Schema at #/properties/what/type: there is no type {kind!r}"
    )
    assert remedy in str(refused.value)


def test_a_type_that_is_no_name_is_told_by_the_schema_reader():
    for kind in (None, 3, ["dict", ["dict"]]):
        tool = {"name": "buy", "parameters": {"type": "object", "properties": {"what": {"type": kind}}}}
        with pytest.raises(KnowledgeError, match="is not one or several of null"):
            ActionKnowledge.from_tools([tool])


def test_a_schema_without_end_is_refused():
    endless: dict = {"type": "dict"}
    endless["items"] = endless
    with pytest.raises(LimitError, match="tool 't': a schema too deep"):
        with_json_types(endless, "t", Limits(depth=50))
