"""How the server shows tools to a model whose chat template doesn't describe them."""

from __future__ import annotations

import pytest

from constrained.models import load
from constrained.server.chat_request import read_request
from constrained.server.conversation import prompt

WEATHER = {
    "name": "weather",
    "description": "Say what the weather will be.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


@pytest.fixture(scope="module")
def embedded():
    return load("embedded")


def asked(loaded, *functions, messages=({"role": "user", "content": "Rain in Oslo?"},), **more):
    """The prompt of a request."""
    tools = [{"type": "function", "function": function} for function in functions]
    body = {"model": "m", "messages": list(messages), "tools": tools, **more}
    return prompt(loaded, read_request(body, "m"), None, "hermes")


def test_tools_are_shown_with_their_schemas_and_worked_examples_before_the_conversation(embedded):
    text = asked(embedded, WEATHER)
    assert text.index('<tools>\n{"type": "function", "function": {"name": "weather"') < text.index("assistant: ")
    assert text.count('{"name": "weather", "arguments": {"city": "') == 3  # worked examples
    assert text.endswith("user: Rain in Oslo?\nassistant: ")


def test_a_system_message_of_the_client_stands_before_the_tools(embedded):
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Rain in Oslo?"}]
    text = asked(embedded, WEATHER, messages=turns)
    assert text.startswith("system: Be brief.\n\n# Tools") and text.count("system: ") == 1


def test_where_no_tool_may_be_called_none_is_shown(embedded):
    assert asked(embedded, WEATHER, tool_choice="none") == "user: Rain in Oslo?\nassistant: "


@pytest.mark.parametrize(("words", "examples", "schemas"), [(0, 3, True), (30, 1, True), (2_000, 0, False)])
def test_what_leaves_no_room_for_the_answer_is_left_out_examples_first(embedded, words, examples, schemas):
    text = asked(embedded, {**WEATHER, "description": "rain " * words})
    assert text.count('{"name": "weather", "arguments": {"city": "') == examples
    assert ("<tools>" in text) == schemas


def test_a_template_that_describes_tools_shows_them_itself(embedded):
    class Described:
        chat_template = "{{ tools }}"

        @staticmethod
        def apply_chat_template(messages, tools, **_):
            return f"{tools[0]['function']['name']}: {messages}"

    class Model:
        tokenizer = Described()

    assert asked(Model(), WEATHER) == "weather: [{'role': 'user', 'content': 'Rain in Oslo?'}]"
