"""The proxy before a server of the Responses API: what the policy doesn't admit never reaches the client."""

from __future__ import annotations

import json

import pytest

from tests.guard.scripted import RESPONSE, as_input, response, response_event, response_events
from tests.guard.shop import AGREED, CANCEL, FLAT, LISTED, LOOKED, POLICY, asked, said, told, user
from tests.server.proxied import CANCELS, Running, both, http, openai

EXACT = POLICY.replace("// respond:", '//: needs search("^.{1,39}$", content)\n// respond:')
"""A policy that looks at texts."""


@both
def test_an_admitted_answer_reaches_the_client_as_it_is(script, proxy, stream):
    script.answers = [asked(("cancel_order", CANCEL), ("list_orders", {})), said("It is done, é.")]
    text, calls, whole, _ = proxy.respond(AGREED, stream, instructions="Be brief.", temperature=0.5)
    assert (text, calls) == ("", ["cancel_order", "list_orders"])
    assert json.loads(whole.output[1].arguments) == CANCEL and whole.output[0].type == "reasoning"
    assert proxy.respond(LOOKED, stream)[0] == "It is done, é."
    headers, body = script.requests[0]
    assert (body["input"], body["instructions"], body["temperature"]) == (as_input(AGREED), "Be brief.", 0.5)
    assert "x-slot" not in str(body["tools"]) and [tool["name"] for tool in body["tools"]] == [t["name"] for t in FLAT]
    assert headers.get("authorization", headers.get("Authorization")) == "Bearer sk-secret"


@both
def test_a_refused_answer_goes_back_to_the_model_and_the_client_sees_the_next(script, proxy, stream):
    script.answers = [{**CANCELS, "content": "One moment."}, said("Shall I cancel it?")]
    text, calls, whole, _ = proxy.respond(LOOKED, stream)
    # What was streamed before the refused call stays.
    assert (text, calls) == ("One moment.Shall I cancel it?" if stream else "Shall I cancel it?", [])
    sent = script.requests[1][1]["input"]
    before = as_input(LOOKED)
    assert sent[: len(before)] == before
    said_, call, result = sent[len(before) :]
    assert said_ == said("One moment.") and "id" not in call and call["call_id"] == result["call_id"] == "c0"
    assert "the customer hasn't said yes" in result["output"]
    if not stream:
        assert whole.usage.total_tokens == 4 and whole.usage.input_tokens_details.cached_tokens == 2


@both
def test_the_admitted_beginning_of_several_calls_is_kept(script, proxy, stream):
    script.answers = [asked(("list_orders", {}), ("cancel_order", CANCEL), ("list_orders", {}))]
    assert proxy.respond(LOOKED, stream)[1] == ["list_orders"] and len(script.requests) == 1


@both
def test_a_model_that_insists_leads_to_a_question(script, proxy, stream):
    script.answers = [CANCELS] * 9
    text, calls, whole, _ = proxy.respond(LOOKED, stream)
    assert calls == [] and whole.status == "completed" and len(script.requests) == 3
    assert text.startswith('May I go ahead with cancel_order (id: "#11"')
    script.answers = [CANCELS]
    assert proxy.respond([*LOOKED, said(text), user("Yes.")], stream)[1] == ["cancel_order"]


@both
def test_block_is_an_error_and_flag_a_mark(script, stream):
    with Running(script.url, retries=0, on_violation="block") as proxy:
        script.answers = [CANCELS]
        with pytest.raises(openai.APIError, match="the customer hasn't said yes"):
            proxy.respond(LOOKED, stream)
        script.answers = [{**CANCELS, "content": "I will."}]  # some text was streamed
        with pytest.raises(openai.APIError, match="the customer hasn't said yes"):
            proxy.respond(LOOKED, stream)
    with Running(script.url, retries=0, on_violation="flag") as proxy:
        script.answers = [CANCELS]
        _, calls, whole, _ = proxy.respond(LOOKED, stream)
        assert calls == ["cancel_order"]
        assert whole.model_extra["constrained"]["unmet"][0]["why"] == "the customer hasn't said yes"


@both
def test_texts_that_a_condition_looks_at_are_judged_whole(script, stream):
    with Running(script.url, EXACT) as proxy:
        script.answers = [said("It was a pleasure to help you with all of your orders."), said("Goodbye.")]
        assert proxy.respond(LOOKED, stream)[0] == "Goodbye."
        # Events that say something else than the whole response are not passed on.
        lies = [*[*response_events(said("Hello."))][:-1], response_event("completed", response=response(said("Bye.")))]
        script.answers = [{"raw": "".join(lies)}]
        if stream:
            assert proxy.respond(LOOKED, stream)[0] == "Bye."


def test_events_of_a_call_are_those_that_were_judged(script, proxy):
    *pieces, end = response_events(CANCELS)
    whole = json.loads(end.partition("data: ")[2])["response"]
    whole["output"][1] = response(asked(("list_orders", {})))["output"][1]
    lies = [*pieces, response_event("completed", response=whole)]
    script.answers = [{"raw": "".join(lies)}]
    _, calls, _, events = proxy.respond(LOOKED, True)
    assert calls == ["list_orders"] and "cancel" not in str(events)


def test_text_flows_while_it_is_written(script, proxy):
    item = {"id": "m", "type": "message", "role": "assistant", "content": []}
    begin = response_event("created", response=RESPONSE) + response_event(
        "output_item.added", output_index=0, item=item
    )
    delta = response_event("output_text.delta", output_index=0, content_index=0, item_id="m", delta="word ")
    script.answers = [{"begin": begin, "endless": delta, "events": True}]
    answer = proxy.client.responses.create(model="m", input=as_input(LISTED), tools=FLAT, stream=True)
    types = [next(answer).type for _ in range(5)]
    assert types == ["response.created", "response.output_item.added", *["response.output_text.delta"] * 3]
    answer.close()


@both
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"raw": "<html>"}, "can't be read"),
        ({"raw": "{}"}, "can't be read"),
        ({"raw": '{"output": [7]}'}, "can't be read"),
        ({"raw": json.dumps(response({}) | {"output": [{"type": "mcp_call", "name": "f"}]})}, "can't be read"),
        ({"raw": 'data: {"type": 7}\n\n'}, "can't be read"),
        ({"raw": response_event("mcp_call.completed", output_index=0)}, "isn't judged|can't be read"),
        ({"raw": response_event("failed", response={"error": {"message": "out of memory"}})}, "can't be read"),
        ({"raw": response_event("completed", response=RESPONSE)}, "can't be read"),
        ({"raw": "".join([*response_events(CANCELS)][:-1]) + response_event("completed", response=response({}))},
         "can't be read"),
        ({"cut": [*response_events(CANCELS)][:-1]}, "can't be read|broke off"),
        ({"status": 429, "body": {"error": {"message": "slow down"}}}, "slow down"),
    ],
)  # fmt: skip
def test_an_upstream_s_nonsense_is_one_clear_error_and_no_call(script, proxy, answer, message, stream):
    script.answers = [answer]
    with pytest.raises(openai.APIError, match=message):
        proxy.respond(AGREED, stream)
    script.answers = [said("Hello.")]
    assert proxy.respond(AGREED, stream)[0] == "Hello."


def test_tools_that_cannot_be_called_are_left_out_and_values_are_listed(script):
    with Running(script.url, narrow=True) as proxy:
        proxy.respond(LOOKED)
        tools = {tool["name"]: tool for tool in script.requests[-1][1]["tools"]}
        assert set(tools) == {"list_orders", "get_order", "refund"}
        assert tools["get_order"]["parameters"]["properties"]["id"] == {"type": "string", "enum": ["#11", "#12"]}
        with pytest.raises(openai.UnprocessableEntityError, match="no call of cancel_order is admitted now"):
            proxy.respond(LOOKED, tool_choice={"type": "function", "name": "cancel_order"})


def test_a_text_is_an_input_and_a_violation_in_the_past_is_said(script, proxy):
    # The policy begins with a call.
    script.answers = [asked(("list_orders", {}))]
    answer = proxy.client.responses.create(model="m", input="About my order.", tools=FLAT)
    assert [item.type for item in answer.output] == ["reasoning", "function_call"]
    past = as_input([*LOOKED, CANCELS, *told('{"id": "#11", "status": "cancelled"}')])
    answer = http.post(f"{proxy.address}/v1/responses", json={"model": "m", "input": past, "tools": FLAT})
    assert answer.status_code == 200 and answer.headers["x-constrained-past-violations"] == "1"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "there is no input"),
        ({"input": 7}, "there is no input"),
        ({"input": "x", "previous_response_id": "r"}, "previous_response_id can't be judged"),
        ({"input": "x", "tools": [{"type": "web_search"}]}, "tools of the type 'web_search'"),
        ({"input": "x", "tools": 7}, "tools are no list"),
        ({"input": [{"type": "mcp_call"}]}, "items of the type 'mcp_call'"),
        ({"input": [{"type": "function_call", "name": 7}]}, "a form that isn't judged"),
        ({"input": [{"role": "robot", "content": "?"}]}, "the role 'robot'"),
    ],
)
def test_requests_that_cannot_be_judged_are_refused(script, proxy, body, message):
    answer = http.post(f"{proxy.address}/v1/responses", json=body)
    assert answer.status_code == 400 and message in answer.json()["error"]["message"]
    assert script.requests == []
