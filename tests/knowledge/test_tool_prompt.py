"""What a prompt tells of tools: their schemas, and worked examples made from these."""

from __future__ import annotations

import json

import pytest

from constrained import ActionKnowledge
from constrained.knowledge.tool_prompt import example_calls, tools_text


def tool(name="f", description="Do it.", required=None, **properties):
    needed = list(properties) if required is None else required
    return {
        "name": name,
        "description": description,
        "parameters": {"type": "object", "properties": properties, "required": needed},
    }


def made(*tools, call_format="hermes", count=None):
    """The examples of a tool list, one a tool unless told otherwise; the masks admit each."""
    knowledge = ActionKnowledge.from_tools(list(tools), call_format=call_format, whitespace="dumps")
    examples = example_calls(knowledge.form, len(tools) if count is None else count)
    assert all(knowledge.judge(step.action) for example in examples for step in example.steps)
    return examples


def arguments(example) -> dict:
    text = example.steps[0].action.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>")
    return json.loads(text)["arguments"]


def test_an_example_asks_in_the_descriptions_words_and_answers_with_the_call():
    described = tool("pay", "Pay a bill. It can't be undone.", to={"type": "string"}, amount={"type": "integer"})
    [example] = made(described)
    given = arguments(example)
    assert example.task == f"Pay a bill with {given['to']} as to and {given['amount']} as amount."
    assert example.steps[0].action.startswith('<tool_call>\n{"name": "pay", "arguments": {"to": "')


def test_a_tool_without_a_description_is_asked_for_by_its_name():
    assert made(tool("shop.list_orders", ""))[0].task == "shop list orders."


def test_every_second_example_has_an_optional_argument():
    examples = made(tool(required=["a"], a={"type": "boolean"}, b={"type": "string"}, c={"type": "string"}), count=3)
    assert [sorted(arguments(example)) for example in examples] == [["a"], ["a", "b"]]  # a third would equal the first
    assert arguments(examples[1])["b"] in examples[1].task


def test_beside_other_keywords_optional_arguments_are_left_out():
    described = tool(required=["a"], a={"type": "integer"}, b={"type": "string"}, c={"type": "string"})
    described["parameters"]["dependentRequired"] = {"b": ["c"]}
    assert all(sorted(arguments(example)) == ["a"] for example in made(described, count=3))


def test_no_value_is_in_two_examples():
    tools = [tool(f"t{i}", a={"type": "string"}, b={"type": "integer"}) for i in range(3)]
    values = [value for example in made(*tools) for value in arguments(example).values()]
    assert len(set(values)) == len(values) == 6


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}, {"type": "null"}, {},
        {"type": "string", "enum": ["a", "b"]}, {"const": 3}, {"type": "string", "enum": ["Ä \"ß\"\n"]},
        {"type": "array", "items": {"type": "integer"}}, {"type": "array", "items": {"type": "string"}, "minItems": 5},
        {"type": "array", "maxItems": 1}, {"type": "array", "maxItems": 0, "items": {"type": "string"}},
        {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}, {"type": "object"},
        {"type": "integer", "minimum": 100}, {"type": "integer", "maximum": -5}, {"type": ["string", "null"]},
        {"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"type": "string", "maxLength": 5},
    ],
    ids=str,
)  # fmt: skip
def test_examples_follow_their_schema(schema):
    assert len(made(tool(a=schema))) == 1


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^[0-9]{9}$"}, {"type": "string", "format": "date"},
        {"type": "string", "minLength": 99},
        {"type": "integer", "multipleOf": 64}, {"type": "integer", "exclusiveMinimum": 1000},
        {"allOf": [{"type": "string"}]},
    ],
    ids=str,
)  # fmt: skip
def test_where_no_value_surely_follows_the_schema_there_is_no_example(schema):
    assert made(tool(a=schema), tool("g", b={"type": "boolean"}))[0].steps[0].action.count('"g"') == 1


def test_a_schema_that_holds_itself_ends():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": ["next"]}
    leaf = {
        "type": "object",
        "properties": {"next": {"$ref": "#/$defs/leaf"}, "v": {"type": "integer"}},
        "required": ["v"],
    }
    described = tool("walk", a={"$ref": "#/$defs/leaf"})
    described["parameters"]["$defs"] = {"leaf": leaf}
    assert len(made(described)) == 1
    with_node = tool("walk", a={"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]})
    with_node["parameters"]["$defs"] = {"node": node}
    assert len(made(with_node, tool("g"))) <= 2


def test_there_are_at_most_as_many_as_asked_for_and_their_values_differ():
    tools = [tool(f"t{i}", a={"type": "string"}, b={"type": "integer"}, c={"type": "integer"}) for i in range(9)]
    examples = made(*tools, count=3)
    assert len(examples) == 3 and made(*tools, count=0) == []
    assert len({json.dumps(arguments(example)) for example in examples}) == 3
    assert all(arguments(example)["b"] != arguments(example)["c"] for example in examples)


def test_tools_come_again_with_other_values_where_more_examples_are_asked_for():
    one = tool("one", a={"type": "integer"})
    two = tool("two", a={"type": "string"}, b={"type": "boolean"})
    names = [example.steps[0].action.split('"')[3] for example in made(one, two, tool("none"), count=5)]
    assert names == ["one", "two", "none", "one", "two"]
    assert len({example.task for example in made(one, count=3)}) == 3
    assert len(made(tool("none"), count=3)) == 1  # whose call is always the same


@pytest.mark.parametrize("call_format", ["hermes", "json", "llama", "call NAME with ARGUMENTS"])
def test_the_text_shows_every_tool_and_how_a_call_is_written(call_format):
    tools = [tool("pay", "Pay {it} at once.", to={"type": "string"}), tool("größe")]
    knowledge = ActionKnowledge.from_tools(tools, call_format=call_format, whitespace="dumps")
    text = tools_text(knowledge.form)
    assert '"name": "pay", "description": "Pay {it} at once."' in text and "größe" in text
    assert "<args-json-object>" in text and "ARGUMENTS" not in text
    assert (
        made(*tools, call_format=call_format)[0]
        .steps[0]
        .action.endswith(knowledge.form.template.partition("ARGUMENTS")[2])
    )


def test_the_text_of_the_knowledge_doesnt_show_half_a_call():
    text = ActionKnowledge.from_tools([tool("pay", to={"type": "string"})]).to_text()
    assert "It is written" not in text and "pay(to: string): Do it." in text
