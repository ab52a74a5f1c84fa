"""Grammars as JSON: what they stand for, and what of a stranger's request is refused."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained import ActionKnowledge, ConstrainedError
from constrained.decoding.hosts import specification
from constrained.decoding.hosts.specification import (
    MAX_GRAMMAR,
    MAX_NESTING,
    check_specification,
    parse,
    read_specification,
)

SCHEMA = {"type": "object", "properties": {"b": {"const": 1}, "a": {"const": 2}}, "required": ["b", "a"]}
TOOLS = [{"name": "find", "parameters": {"type": "object", "properties": {"n": {"enum": [1, 22]}}, "required": ["n"]}}]
VIEW = {
    "RECEPTACLE": ["desk 1", "desk 10"],
    "REACH": {"desk 1": ["desk 1"], "desk 10": ["desk 10"]},
    "OBJECT": {"desk 1": ["mug 1"]},
}


@pytest.mark.parametrize(
    "fields, inside, outside",
    [
        ({"choices": ["desk 1", "desk 10"]}, ["desk 1", "desk 10"], ["desk", "desk 100"]),
        ({"choices": "one"}, ["one"], ["o"]),
        ({"regex": "a+|é"}, ["aa", "é"], ["", "b"]),
        ({"lark": 'start: "a" | "b" start\n'}, ["a", "bba"], ["b"]),
        ({"lark": 'start: "a"'}, ["a"], ["b"]),
        ({"lark": 'other: "a"\n', "start": "other"}, ["a"], [""]),
        (
            {"lark": "steps/react", "bindings": {"N": "3"}, "grammars": {"ACTION": {"choices": ["look"]}}},
            ["Thought 3: I see.\nAction 3: look"],
            ["Thought 4: I see.\nAction 3: look", "Thought 3: I see.\nAction 3: leave"],
        ),
        (
            {"knowledge": "household", "view": VIEW, "path": ["go to desk 1"]},
            ["take mug 1 from desk 1", "go to desk 10"],
            ["", "take mug 1 from desk 10", "put mug 1 in/on desk 10"],
        ),
        (
            {"knowledge": "hotpotqa", "path": ["Retrieve[Milhouse]"], "steps_left": 1},
            ["Finish[Nixon]"],
            ["Search[Nixon]"],
        ),
        (
            {"json_schema": SCHEMA, "closed": True, "any_order": False},
            ['{"b":1, "a": 2}'],
            ['{"a": 2, "b": 1}', "{}"],
        ),
        ({"json_schema": json.dumps(SCHEMA), "whitespace": "compact"}, ['{"b":1,"a":2}'], ['{"b": 1, "a": 2}']),
        (
            {"tools": [*TOOLS, {"name": "stop"}], "call_format": "hermes", "follow": {"start": ["find"]}},
            ['<tool_call>\n{"name": "find", "arguments": {"n": 22}}\n</tool_call>'],
            [
                '{"name": "find", "arguments": {"n": 22}}',
                '<tool_call>\n{"name": "stop", "arguments": {}}\n</tool_call>',
            ],
        ),
        (
            {"tools": TOOLS, "path": ['{"name": "find", "arguments": {"n": 1}}']},
            ['{"name": "find", "arguments": {"n": 22}}'],
            ['{"name": "find", "arguments": {"n": 2}}'],
        ),
    ],
    ids=[
        "choices",
        "one choice",
        "regex",
        "lark",
        "one line",
        "start",
        "step",
        "household",
        "steps left",
        "schema",
        "schema as text",
        "tools",
        "tools on a path",
    ],
)
def test_each_kind_as_object_and_as_text(fields, inside, outside):
    for given_as in (fields, json.dumps(fields)):
        check_specification(given_as)
        grammar = read_specification(parse(given_as))
        assert all(map(grammar.matches, inside)) and not any(map(grammar.matches, outside))


def test_knowledge_is_the_same_as_bound_by_hand():
    bindings = {slot: VIEW.get(slot, {}) for slot in ActionKnowledge.from_lark("household").slots}
    one = read_specification({"knowledge": "household", "bindings": bindings})
    two = read_specification({"knowledge": "household", "view": VIEW})
    for text in ("go to desk 1", "go to desk 10", "go to desk 2", "take mug 1 from desk 1"):
        assert one.matches(text) == two.matches(text) == (text in ("go to desk 1", "go to desk 10"))


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({}, "has one of choices, regex, lark, json_schema, knowledge, tools; this has 0"),
        ({"choices": ["a"], "regex": "a"}, "this has 2"),
        ({"choices": ["a"], "binding": {}}, "choices has no field 'binding'"),
        ({"choices": []}, "no choice|empty|choices"),
        ({"choices": [1]}, "choices: 1 is not text"),
        ({"choices": {"a": 1}}, "list of texts, not dict"),
        ({"choices": ["\ud800"]}, "lone surrogate"),
        ({"regex": None}, "regex: None is not text"),
        ({"regex": "("}, "missing|unterminated|unclosed|parenthesis"),
        ({"regex": "a", "begun": "b"}, "begins with 'b'"),
        ({"lark": "start: A\n%declare A\n"}, "A is not bound"),
        ({"lark": "start: A\n%declare A\n", "bindings": []}, "bindings is a JSON object, not list"),
        ({"lark": "start: A\n%declare A\n", "grammars": {"A": ["a"]}}, "A is a JSON object, not list"),
        ({"knowledge": "household"}, "is not bound"),
        ({"knowledge": "household", "bindings": {"CUP": ["a"]}}, "no slot 'CUP'"),
        ({"knowledge": "hotpotqa", "path": ["Fly[away]"]}, "invalid"),
        ({"knowledge": "hotpotqa", "steps_left": 0}, "steps_left is 0"),
        ({"knowledge": "hotpotqa", "steps_left": True}, "steps_left is True"),
        ({"json_schema": {"type": "objekt"}}, "objekt"),
        ({"json_schema": "schema.json"}, "json_schema is not JSON"),
        ({"json_schema": '"schema.json"'}, "give the schema"),
        ({"json_schema": {"$ref": "file:///etc/passwd"}}, "leaves the document"),
        ({"json_schema": {}, "closed": 1}, "closed is true or false"),
        ({"tools": "tools.json"}, "tools is not JSON"),
        ({"tools": []}, "there are no tools"),
        ({"tools": TOOLS, "follow": {"start": "find"}}, "follow is an object of lists"),
        ({"tools": TOOLS, "end": ["fly"]}, "no tool 'fly'"),
        ({"tools": TOOLS, "call_format": 5}, "call_format: 5 is not text"),
        ([], "a JSON object, not list"),
        (7, "a JSON object, not int"),
        ("{", "not JSON"),
        ({"choices": {1}}, "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said(wrong, message):
    with pytest.raises(ConstrainedError, match=message):
        check_specification(wrong)


@pytest.mark.parametrize("field", ["lark", "knowledge"])
@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../household", "grammars/household.lark", "C:\\secret.lark", "~/x.lark", "x:y.lark"]
)
def test_no_file_is_ever_read(field, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x:y.lark").write_text('start: "secret"\n')
    with pytest.raises(ConstrainedError) as error:
        check_specification({field: name})
    assert "root:" not in str(error.value) and "secret" not in str(error.value).replace("secret.lark", "")


def test_no_file_is_imported(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.lark").write_text('X: "secret"\n')
    for how in (" .other.X", "   .other (X)", " other.X", ".other.X", " \\\n .other.X", "\t.other.X -> X"):
        with pytest.raises(ConstrainedError, match="imports no files"):
            check_specification({"lark": f"start: X\n  %import{how}\n"})
    check_specification({"lark": "%import common.DIGIT\nstart: DIGIT+\n"})


def test_limits_have_names(monkeypatch):
    nested = {"choices": ["a"]}
    for _ in range(MAX_NESTING + 1):
        nested = {"lark": "start: A\n%declare A\n", "grammars": {"A": nested}}
    with pytest.raises(ConstrainedError, match=f"nested more than {MAX_NESTING} deep"):
        check_specification(nested)
    for long in ({"regex": "a" * (MAX_GRAMMAR + 1)}, {"lark": 'start: "a"\n' + " " * MAX_GRAMMAR}):
        with pytest.raises(ConstrainedError, match=f"more than {MAX_GRAMMAR}.*\n.*MAX_GRAMMAR"):
            check_specification(long)
    monkeypatch.setattr(specification, "MAX_SPECIFICATION", 30)
    with pytest.raises(ConstrainedError, match="more than 30.*\n.*MAX_SPECIFICATION"):
        check_specification({"choices": ["a" * 30]})


@settings(max_examples=50)
@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from("choices regex lark json_schema knowledge tools path begun view follow".split()),
        inner,
        max_size=3,
    ),
    max_leaves=6,
))  # fmt: skip
def test_anything_at_all_is_a_grammar_or_an_error_of_ours(anything):
    try:
        check_specification(anything)
    except ConstrainedError:
        return
    assert isinstance(anything, (dict, str))
