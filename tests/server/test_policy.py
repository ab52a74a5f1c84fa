"""What a policy admits, whatever a request leaves out: tools, the choice of tools, or both."""

from __future__ import annotations

import json

import pytest

from tests.server.served import ASK, POLICY, SHOP, TOOLS, ask, called, openai, post, running, schema_format

LIST, GET, CANCEL = SHOP
LISTED = [*ASK, *called("list_orders", {}, '{"orders": ["#11"]}')]
LOOKED = [*LISTED, *called("get_order", {"id": "#11"}, '{"id": "#11", "status": "pending"}')]
AGREED = [*LOOKED, {"role": "assistant", "content": "Shall I?"}, {"role": "user", "content": "Yes."}]
CANCELLED = [*AGREED, *called("cancel_order", {"id": "#11", "reason": "no longer needed"}, "{}")]


@pytest.fixture(scope="module")
def shop():
    yield from running(POLICY)


@pytest.fixture(scope="module")
def silent():
    """A policy without `message`: it says nothing of texts."""
    lines = [line for line in POLICY.splitlines() if "respond" not in line or line.startswith("more:")]
    yield from running("\n".join(lines).replace("more: respond | ", "more: ").replace("RESPOND ", ""))


def calls(answer) -> list[str]:
    return [call.function.name for call in answer.choices[0].message.tool_calls or []]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tools": []},
        {"tools": None},
        {"tool_choice": "none"},
        {"tool_choice": "auto"},
        {"tools": SHOP, "tool_choice": "none"},
        {"response_format": {"type": "json_object"}},
        {"tools": SHOP, "tool_choice": "none", "response_format": schema_format({"type": "object"})},
        {"stream": True},
        {"stop": ["x"]},
        {"tools": [TOOLS[1]], "tool_choice": "none"},
        {"tools": [{"name": "another", "parameters": {}}]},
    ],
)
def test_no_text_is_served_where_only_a_call_is_admitted(shop, options):
    answer = post(shop, options)
    assert answer.status_code == 400, answer.text
    assert "no text is admitted" in answer.text or "neither text nor a call is admitted" in answer.text


@pytest.mark.parametrize(
    "options", [{}, {"tools": SHOP, "tool_choice": "none"}, {"tools": [GET], "tool_choice": "none"}]
)
def test_a_text_is_served_where_the_policy_admits_one(shop, options):
    answer = ask(shop, LISTED, max_tokens=5, **options)
    assert answer.choices[0].message.content and not calls(answer)


@pytest.mark.parametrize("tools", [[], [LIST], [GET], [CANCEL], [LIST, CANCEL], SHOP])
def test_the_conversation_is_judged_whatever_tools_are_offered(shop, tools):
    """A tool that was handed over, or not selected this time, is known by its calls alone."""
    offered = {"tools": tools, "tool_choice": "none"} if tools else {}
    assert ask(shop, CANCELLED, max_tokens=5, **offered).choices[0].message.content
    for wrong, told in [
        ([*ASK, *called("get_order", {"id": "#11"}, "{}")], "get_order is not admitted there"),
        ([*ASK, *called("cancel_order", {"id": "#11", "reason": "no longer needed"}, "{}")], "not admitted there"),
        ([*LOOKED, *called("cancel_order", {"id": "#11", "reason": "no longer needed"}, "{}")], "the customer hasn"),
        ([*AGREED, *called("cancel_order", {"id": "#12", "reason": "no longer needed"}, "{}")], "it isn.t pending"),
        ([*LISTED, *called("list_orders", {}, "{}")], "list_orders is not admitted there"),
        ([*LISTED, *called("burn", {}, "{}")], "no rule of the policy is about the tool .burn"),
        ([*ASK, {"role": "assistant", "content": "Hello!"}], "not admitted there"),
    ]:
        with pytest.raises(openai.BadRequestError, match=told):
            ask(shop, wrong, max_tokens=5, **offered)


def test_some_of_the_tools_are_offered(shop):
    assert calls(ask(shop, tools=[LIST])) == calls(ask(shop, tools=[LIST, CANCEL])) == ["list_orders"]
    for tools in ([GET], [GET, CANCEL], [GET, {"name": "another", "parameters": {"properties": {"x": {}}}}]):
        assert calls(ask(shop, LISTED, tools=tools, tool_choice="required")) == ["get_order"]
    with pytest.raises(openai.BadRequestError, match="no call is admitted"):
        ask(shop, LISTED, tools=[LIST], tool_choice="required")
    with pytest.raises(openai.BadRequestError, match="no call is admitted"):
        ask(shop, LISTED, tools=[CANCEL], tool_choice="required")  # nothing was looked up
    with pytest.raises(openai.BadRequestError, match="there is no tool .cancel_order"):
        ask(shop, AGREED, tools=[GET], tool_choice={"type": "function", "function": {"name": "cancel_order"}})
    with pytest.raises(openai.BadRequestError, match="neither text nor a call is admitted"):
        ask(shop, tools=[GET])  # a list comes first
    cancelled = ask(shop, AGREED, tools=[CANCEL], tool_choice="required").choices[0].message.tool_calls[0]
    assert json.loads(cancelled.function.arguments)["id"] == "#11"


def test_a_policy_without_a_message_says_nothing_of_texts(silent):
    assert ask(silent, max_tokens=5).choices[0].message.content
    assert ask(silent, max_tokens=5, tools=SHOP, tool_choice="none").choices[0].message.content
    assert calls(ask(silent, tools=SHOP, tool_choice="required")) == ["list_orders"]
