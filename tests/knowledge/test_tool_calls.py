"""Recorded calls are known by what they say: in any spacing and order of keys, as dictionaries, and in messages."""

import json

import pytest

from constrained import ActionKnowledge
from constrained.errors import KnowledgeError

WEATHER = {
    "name": "weather",
    "inputSchema": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
    },
}
ARGUMENTS = {"days": 3, "city": "Paris"}
KNOWLEDGE = ActionKnowledge.from_tools([WEATHER])


@pytest.mark.parametrize("whitespace", ["single", "compact", "dumps", "flexible"])
@pytest.mark.parametrize(
    "call",
    [
        '{"arguments":{"days":3,"city":"Paris"},"name":"weather"}',
        '{ "name" : "weather" ,\n "arguments" : { "city" : "Paris" } }',
        {"name": "weather", "arguments": ARGUMENTS},
        {"type": "function", "id": "1", "function": {"name": "weather", "arguments": json.dumps(ARGUMENTS)}},
        {"type": "tool_use", "id": "1", "name": "weather", "input": ARGUMENTS},
    ],
    ids=str,
)
def test_a_call_in_any_form(call, whitespace):
    knowledge = ActionKnowledge.from_tools([WEATHER], whitespace=whitespace)
    assert knowledge.judge(call) and knowledge.check([call, call]).ok and knowledge.after(call).path


@pytest.mark.parametrize(
    "call",
    [
        {"name": "weather", "arguments": {"days": "three", "city": "Paris"}},
        {"name": "weather", "arguments": {"town": "Paris"}},
        {"name": "storm", "arguments": {}},
        {"name": "weather", "arguments": "no JSON"},
        {"weather": ARGUMENTS},
    ],
    ids=str,
)
def test_a_wrong_call_is_invalid_in_any_form(call):
    assert KNOWLEDGE.judge(call).verdict == "invalid"


def test_messages_of_both_providers():
    openai = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "tool_calls": [{"function": {"name": "weather", "arguments": json.dumps(ARGUMENTS)}}]},
        {"role": "tool", "content": "sunny"},
        {"role": "assistant", "content": "It is sunny."},
    ]
    use = {"type": "tool_use", "name": "weather", "input": {"city": 3}}
    anthropic = [{"role": "assistant", "content": [{"type": "text", "text": "Well,"}, use]}]
    assert KNOWLEDGE.check(openai).verdicts == ["ok"]
    assert KNOWLEDGE.check(anthropic).verdicts == ["invalid"]


def test_what_a_client_gives_is_read_as_it_is():
    """OpenAI's client: messages and calls as objects, and the items of its Responses API."""
    chat = pytest.importorskip("openai.types.chat")
    call = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": json.dumps(ARGUMENTS)}}
    message = chat.ChatCompletionMessage.model_validate({"role": "assistant", "content": None, "tool_calls": [call]})
    assert KNOWLEDGE.check([message]).verdicts == ["ok"] == KNOWLEDGE.check(message.tool_calls).verdicts
    assert KNOWLEDGE.judge(message.tool_calls[0])
    item = {"type": "function_call", "call_id": "1", "name": "weather", "arguments": json.dumps(ARGUMENTS)}
    result = {"type": "function_call_output", "call_id": "1", "output": "sunny"}
    assert KNOWLEDGE.check([{"type": "reasoning"}, item, result]).verdicts == ["ok"]


CIRCLE: dict = {}
CIRCLE["again"] = CIRCLE


@pytest.mark.parametrize(
    ("actions", "told"),
    [
        ([{"role": "assistant", "tool_calls": 5}], "tool_calls are 5"),
        ([{"name": "weather", "arguments": {"city": object()}}], "can't be written as JSON"),
        ([{"name": "weather", "arguments": {"city": CIRCLE}}], "can't be written as JSON"),
    ],
)
def test_what_is_no_call_is_one_clear_error(actions, told):
    with pytest.raises(KnowledgeError, match=told):
        KNOWLEDGE.check(actions)


def test_some_of_the_tools_are_still_tools():
    some = ActionKnowledge.from_tools([WEATHER, {"name": "now"}]).only(["weather"], "Look.")
    assert some.judge('{"arguments": {"city": "Paris"}, "name": "weather"}')
    assert not some.judge({"name": "now", "arguments": {}})


def test_views_by_step():
    knowledge = ActionKnowledge.from_lark('%declare _STEP X\nstart: go\ngo: "go " X _STEP [start]\n')
    assert knowledge.check(["go a", "go b"], views=[{"X": ["a"]}, {"X": ["b"]}]).ok
    assert knowledge.check(["go a", "go b"], views=[{"X": ["a"]}, {"X": ["a"]}]).verdicts == ["ok", "invalid"]
    with pytest.raises(KnowledgeError, match="fewer views"):
        knowledge.check(["go a", "go b"], views=[{"X": ["a"]}])
    with pytest.raises(KnowledgeError, match="views are 5"):
        knowledge.check(["go a"], views=5)
