"""A guard judges calls as the masks would write them, from the conversation alone."""

from __future__ import annotations

import json

import pytest

from constrained import ActionKnowledge
from constrained.errors import KnowledgeError
from constrained.guard import Guard
from constrained.guard.answers import correction, judge_answer
from constrained.guard.followed import Followed
from constrained.guard.messages import Said, ToolCall, events_of, message_events
from constrained.guard.verdict import FACTS, ORDER, REFUSED, SCHEMA, TOOL, WORDS
from tests.guard.shop import AGREED, CANCEL, LISTED, LOOKED, PENDING, POLICY, TOOLS, asked, said, told, user

SHOP = Guard(TOOLS, POLICY)


def kinds(verdict) -> list[str]:
    return [unmet.kind for unmet in verdict.unmet]


@pytest.mark.parametrize(
    ("messages", "name", "arguments", "expected"),
    [
        ([], "list_orders", {}, []),
        ([], "get_order", {"id": "#11"}, [FACTS, ORDER]),
        (LISTED, "get_order", {"id": "#11"}, []),
        (LISTED, "get_order", {"id": "#1"}, [FACTS]),
        (LISTED, "get_order", {"id": "#111"}, [FACTS]),
        (LISTED, "get_order", {}, [SCHEMA]),
        (LISTED, "get_order", {"id": "#11", "order": {"#9": {}}}, [SCHEMA]),
        (LISTED, "get_order", '{"id": "#11"', [SCHEMA]),
        (LISTED, "get_order", '{"id": "#11", "id": "#12"}', [SCHEMA]),
        (LISTED, "get_orders", {"id": "#11"}, [TOOL]),
        (LOOKED, "cancel_order", CANCEL, [WORDS]),
        (AGREED, "cancel_order", CANCEL, []),
        (AGREED, "cancel_order", {**CANCEL, "reason": "because"}, [SCHEMA]),
        (AGREED, "cancel_order", {**CANCEL, "id": "#12"}, [FACTS]),
        (AGREED, "refund", {"id": "#11", "amount": 20.5}, []),
        (AGREED, "refund", {"id": "#11", "amount": 20.51}, [FACTS]),
        (AGREED, "refund", {"id": "#11", "amount": float("nan")}, [FACTS, FACTS]),
        (AGREED, "refund", {"id": "#11", "amount": "20.5", "price": 99}, [FACTS, FACTS]),
        ([*AGREED, asked(("cancel_order", CANCEL))], "cancel_order", CANCEL, [WORDS]),
        ([*AGREED, asked(("cancel_order", CANCEL)), *told("Error: try again")], "cancel_order", CANCEL, []),
        ([*AGREED, asked(("cancel_order", CANCEL)), *told(REFUSED)], "cancel_order", CANCEL, [WORDS]),
        ([*LISTED, asked(("get_order", {"id": "#9"})), *told(PENDING)], "refund", {"id": "#11", "amount": 1}, []),
        ([*LISTED, asked(("get_order", {"id": "#9"})), *told(f"{REFUSED}no")], "refund", {"id": "#11", "amount": 1},
         [FACTS, FACTS]),
    ],
)  # fmt: skip
def test_a_call_is_judged_by_order_facts_words_and_schema(messages, name, arguments, expected):
    verdict = SHOP.follow(messages).judge(name, arguments)
    assert kinds(verdict) == expected, verdict.why
    assert bool(verdict) == (not expected)


def test_a_refusal_names_the_condition_its_line_and_what_is_allowed():
    verdict = SHOP.follow(LOOKED).judge("cancel_order", CANCEL)
    [unmet] = verdict.unmet
    line = POLICY.splitlines()[unmet.line - 1]
    assert unmet.condition == "agreed" and "needs agreed // the customer hasn't said yes" in line
    assert set(verdict.allowed) == {"list_orders", "get_order", "refund"}
    assert verdict.allowed["get_order"] == {"id": ["#11", "#12"]}
    assert verdict.text().startswith(f"{REFUSED}cancel_order: the customer hasn't said yes")
    assert "Allowed now: a message to the user, list_orders, get_order, refund." in verdict.text()
    assert "id may be: '#11', '#12'." in SHOP.follow(LOOKED).judge("get_order", {"id": "#9"}).text()


def test_the_guard_and_the_masks_admit_the_same_calls():
    knowledge = ActionKnowledge.from_tools(TOOLS, policy=POLICY)
    calls = [("get_order", {"id": "#11"}), ("get_order", {"id": "#9"}), ("cancel_order", CANCEL),
             ("refund", {"id": "#11", "amount": 20.5}), ("refund", {"id": "#11", "amount": 21}),
             ("list_orders", {})]  # fmt: skip
    point = SHOP.start
    for event in events_of([*AGREED, asked(("cancel_order", CANCEL)), *told("{}"), said("Done."), user("Thanks.")]):
        bound = knowledge.bind_view(knowledge.tools.view(point.memory))
        for name, arguments in calls if not point.waiting else ():
            assert bool(point.judge(name, arguments)) == bool(bound.judge({"name": name, "arguments": arguments}))
        if isinstance(event, Said):
            for call in event.calls or [ToolCall("respond", {"content": event.text})]:
                knowledge = bound.after({"name": call.name, "arguments": call.arguments})
        point = point.after(event)


def test_of_several_calls_the_admitted_beginning_is_kept():
    again = ("cancel_order", CANCEL)
    judged = judge_answer(SHOP.follow(AGREED), asked(("list_orders", {}), again, again, ("list_orders", {})))
    assert judged.kept == 2 and not judged.refused
    assert judged.verdict.name == "cancel_order" and kinds(judged.verdict) == [WORDS]


def test_a_call_is_not_admitted_by_the_hope_that_one_before_it_succeeds():
    policy = POLICY.replace("//: fact agreed", "//: fact agreed, seen(order)").replace(
        "get_order: GET", "//: makes seen(id)\nget_order: GET"
    ).replace("//: needs id in keys(order)", "//: needs seen(id)")  # fmt: skip
    guard = Guard(TOOLS, policy)
    message = asked(("get_order", {"id": "#11"}), ("refund", {"id": "#11", "amount": 1}))
    assert judge_answer(guard.follow(LISTED), message).kept == 1


def test_a_refused_answer_goes_back_with_a_result_for_each_call():
    message = asked(("cancel_order", CANCEL), ("list_orders", {}))
    judged = judge_answer(SHOP.follow(LOOKED), message)
    answer, first, second = correction(message, judged)
    assert judged.refused and answer["tool_calls"] == message["tool_calls"]
    assert (first["tool_call_id"], second["tool_call_id"]) == ("c0", "c1")
    assert first["content"] == judged.verdict.text() and second["content"].startswith(REFUSED)
    # In the conversation afterwards, nothing was carried out.
    after = SHOP.follow([*LOOKED, answer, first, second])
    assert after.memory == SHOP.follow(LOOKED).memory and not after.waiting


def test_a_text_is_judged_too():
    judged = judge_answer(SHOP.follow([user("Hello!")]), said("Hello!"))
    assert judged.refused and kinds(judged.verdict) == [ORDER]
    assert [message["role"] for message in correction(said("Hello!"), judged)] == ["assistant", "user"]
    assert judge_answer(SHOP.follow(LISTED), said("There are two.")) == ((), 0, None)


def test_a_refusal_that_a_tool_writes_itself_does_not_hide_its_call():
    after = SHOP.follow([*AGREED, asked(("cancel_order", CANCEL)), *told(f"{REFUSED}nothing happened")])
    assert kinds(after.judge("cancel_order", CANCEL)) == [WORDS]  # the consent is used up


@pytest.mark.parametrize("answer", ["Go ahead.", "yes"])
def test_a_function_takes_the_place_of_the_search_for_a_yes(answer):
    heard = []

    def says_yes(asked_for, text):
        heard.append((asked_for, text))
        return text == "Go ahead."

    guard = Guard(TOOLS, POLICY, says_yes=says_yes)
    point = guard.follow([*LOOKED, said("Shall I cancel it?"), user(answer)])
    assert bool(point.judge("cancel_order", CANCEL)) == (answer == "Go ahead.")
    assert heard == [("", "About my order."), ("Shall I cancel it?", answer)]


def test_a_function_replaces_a_policy_s_own_yes():
    guard = Guard(None, "tau_airline", says_yes=lambda asked_for, text: text == "ok then")
    whole = json.dumps({"reservation_id": "ABCDEF", "user_id": "u_v_1", "cabin": "business", "flights": []})
    messages = [user("I am u_v_1, ABCDEF"), asked(("get_user_details", {"user_id": "u_v_1"})), *told("{}"),
                asked(("get_reservation_details", {"reservation_id": "ABCDEF"})), *told(whole)]  # fmt: skip
    for answer, expected in (("yes", False), ("ok then", True)):
        point = guard.follow([*messages, said("Shall I?"), user(answer)])
        assert bool(point.judge("cancel_reservation", {"reservation_id": "ABCDEF"})) is expected


def test_a_function_for_a_yes_needs_a_policy_that_asks_for_one():
    with pytest.raises(KnowledgeError, match="doesn't ask whether the user says yes"):
        Guard(TOOLS, POLICY.replace('"yes", "oui"', '"oui"'), says_yes=lambda *_: True)


def test_an_async_function_is_no_yes():
    async def says_yes(asked_for, text):
        return False

    with pytest.raises(KnowledgeError, match="would always pass for a yes"):
        Guard(TOOLS, POLICY, says_yes=says_yes).follow(LOOKED)


HANDED = (
    POLICY.replace("REFUND\n", "REFUND TRANSFER_TO_BILLING\n", 1).replace(
        "| refund\n", "| refund | transfer_to_billing\n"
    )
    + "\n// transfer_to_billing: hand the customer over.\ntransfer_to_billing: TRANSFER_TO_BILLING _STEP [more]\n"
)
TRANSFER = {"type": "function", "function": {"name": "transfer_to_billing", "parameters": {"type": "object"}}}


def test_an_agent_that_takes_over_has_other_tools_and_the_same_past():
    reception, billing = [*TOOLS[:2], TRANSFER], TOOLS[2:]
    before = Guard(reception, HANDED).follow(LOOKED)
    assert before.judge("transfer_to_billing", {})
    assert kinds(before.judge("refund", {"id": "#11", "amount": 5})) == [TOOL]
    handed = [*LOOKED, asked(("transfer_to_billing", {})), *told('{"assistant": "billing"}')]
    after = Guard(billing, HANDED).follow([*handed, {**said("Billing here."), "name": "billing"}])
    assert after.judge("refund", {"id": "#11", "amount": 5})
    assert kinds(after.judge("transfer_to_billing", {})) == [TOOL] and after.violations == 0
    # Without its line in the policy, nothing is known of the tool that hands over.
    assert kinds(Guard(reception, POLICY).follow(LOOKED).judge("transfer_to_billing", {})) == [TOOL]


def test_a_sub_agent_that_begins_anew_knows_nothing():
    guard = Guard(TOOLS, POLICY)
    assert guard.follow(LOOKED).judge("refund", {"id": "#11", "amount": 5})
    assert not guard.follow([user("Refund 5 of #11.")]).judge("refund", {"id": "#11", "amount": 5})


def test_a_request_may_offer_some_tools_and_its_past_may_hold_calls_of_others():
    guard = Guard(TOOLS[1:2], POLICY)
    point = guard.follow(LISTED)
    assert point.judge("get_order", {"id": "#11"})
    assert kinds(point.judge("list_orders", {})) == [TOOL]
    assert [*point.allowed()] == ["get_order"]


@pytest.mark.parametrize(
    "messages",
    [
        # OpenAI's old form, Anthropic's, tau2's, LangChain's roles
        [{"role": "assistant", "function_call": {"name": "list_orders", "arguments": "{}"}},
         {"role": "function", "name": "list_orders", "content": '{"orders": ["#11"]}'}],
        [{"role": "assistant", "content": [{"type": "text", "text": "Well."},
                                           {"type": "tool_use", "id": "t", "name": "list_orders", "input": {}}]},
         {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t",
                                       "content": [{"type": "text", "text": '{"orders": ["#11"]}'}]}]}],
        [{"role": "assistant", "content": None, "tool_calls": [
            {"id": "t", "name": "list_orders", "arguments": {}, "requestor": "assistant"}]},
         {"role": "user", "content": None, "tool_calls": [
             {"id": "u", "name": "toggle", "arguments": {}, "requestor": "user"}]},
         {"role": "tool", "id": "u", "content": "on", "requestor": "user"},
         {"role": "tool", "id": "t", "content": '{"orders": ["#11"]}', "requestor": "assistant"}],
        [{"type": "ai", "content": "", "tool_calls": [{"name": "list_orders", "args": {}, "id": "t"}]},
         {"type": "tool", "content": '{"orders": ["#11"]}', "tool_call_id": "t"}],
    ],
)  # fmt: skip
def test_messages_of_several_forms_are_read(messages):
    assert SHOP.follow([{"role": "system", "content": "Be kind."}, *messages]).judge("get_order", {"id": "#11"})


@pytest.mark.parametrize(
    ("messages", "message"),
    [
        ("hello", "a list of messages"),
        ([7], "no message"),
        ([{"content": "?"}], "has the role None"),
        ([{"role": "assistant", "tool_calls": "list_orders"}], "tool_calls are"),
        ([{"role": "assistant", "tool_calls": [{"id": "c"}]}], "a call has no name"),
    ],
)
def test_messages_that_cannot_be_read_are_refused_with_the_place(messages, message):
    with pytest.raises(KnowledgeError, match=message):
        SHOP.follow(messages)


def test_a_conversation_that_grew_is_not_replayed_from_its_beginning():
    followed = Followed(SHOP)
    point = followed.at_end_of(LOOKED)
    assert followed.at_end_of(LOOKED) is point
    again = followed.at_end_of(json.loads(json.dumps(AGREED)))
    assert again.memory == SHOP.follow(AGREED).memory
    other = followed.at_end_of([*LISTED, user("No.")])
    assert other.memory == SHOP.follow([*LISTED, user("No.")]).memory


@pytest.mark.parametrize("text", ["é" * 10_000, "\ud800", "{" * 5_000, '{"a": NaN}', "[]", "null"])
def test_arguments_that_are_no_object_refuse_the_call(text):
    message = asked(("get_order", text))
    judged = judge_answer(SHOP.follow(LISTED), message)
    assert judged.refused and kinds(judged.verdict) == [SCHEMA]
    assert SHOP.follow([*LISTED, message, *told("?")]).memory == SHOP.follow(LISTED).memory


@pytest.mark.parametrize("depth", [10, 300, 900, 5_000])
def test_arguments_and_results_that_are_nested_deeply_are_judged_or_refused(depth):
    policy = "%declare _STEP SAVE\n//: tells seen = $ by save\nstart: save\nsave: SAVE _STEP [start]\n"
    tool = {"name": "save", "parameters": {"properties": {"x": {"type": "array", "items": {}}}, "required": ["x"]}}
    guard, text = Guard([tool], policy), "[" * depth + "]" * depth
    message = asked(("save", f'{{"x": {text}}}'))
    judged = judge_answer(guard.start, message)
    assert judged.kept == 1 if depth == 10 else judged.kept == 1 or kinds(judged.verdict) == [SCHEMA]
    assert guard.follow([message, *told(text)]).violations == (not judged.kept)


def test_conditions_are_judged_where_nothing_is_known_yet():
    lines = ["%declare _STEP FIND GET", "//: tells ID = $ by find", "start: find | get", "find: FIND _STEP [start]"]
    policy = "\n".join([*lines, "//: needs id in ID // nothing has shown it", "get: GET _STEP [start]"])
    tools = [
        {"name": "find"},
        {"name": "get", "parameters": {"properties": {"id": {"type": "string"}}, "required": ["id"]}},
    ]
    guard = Guard(tools, policy)
    assert not guard.start.memory and [*guard.start.allowed()] == ["find"]
    assert kinds(guard.start.judge("get", {"id": "1"})) == [FACTS]
    assert guard.follow([asked(("find", {})), *told("a")]).judge("get", {"id": "a"})
    both = judge_answer(guard.start, asked(("find", {}), ("get", {"id": "a"})))
    assert both.kept == 1


def test_what_equals_but_is_written_otherwise_is_not_taken_for_the_same():
    messages, kept = [*LISTED], []
    for price in (1, 1.0, True, 1, -0.0, 0.0):
        order = json.dumps({"id": "#11", "status": "pending", "price": price})
        messages += [asked(("get_order", {"id": "#11"})), *told(order)]
        kept.append(Guard(TOOLS, POLICY).follow(messages).memory["order"]["#11"]["price"])
    assert repr(kept) == "[1, 1.0, True, 1, -0.0, 0.0]"


def test_a_later_result_changes_no_earlier_point_of_the_conversation():
    before = Guard(TOOLS, POLICY).follow(LOOKED)
    again = [asked(("get_order", {"id": "#11"})), *told('{"id": "#11", "status": "shipped"}')]
    after = Guard(TOOLS, POLICY).follow([*LOOKED, *again])
    point = before
    for message in again:
        for event in message_events(message):
            point = point.after(event)
    assert before.memory["order"]["#11"]["status"] == "pending"
    assert point.memory["order"] == after.memory["order"] and point.memory["order"]["#11"]["status"] == "shipped"
