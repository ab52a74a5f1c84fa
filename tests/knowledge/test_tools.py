"""Tool lists as action knowledge: one call, and every call that is written is of a tool, with valid arguments."""

import json
import random

import numpy as np
import pytest

from constrained import ActionKnowledge, Vocabulary, compile_grammar, generate_plan
from constrained.errors import GrammarError, KnowledgeError
from constrained.knowledge import Knowledge
from tests.automaton.tokenizers import vocabulary
from tests.decoding.tiny import tiny
from tests.grammar.json_schema.oracle import is_valid, random_text
from tests.knowledge.tool_list import EVERY, MCP, OPENAI, named

ALL = [*OPENAI, *EVERY["responses"], *MCP["tools"]]

CALLS = {
    "get_weather": [{"city": "Paris"}, {"city": "São Paulo", "unit": "celsius"}],
    "create_event": [
        {"title": "Lunch", "start": "2024-02-29T12:00:00Z", "attendees": ["a@b.org"], "repeat": {"every": "week"}}
    ],
    "read_file": [{"path": "a.txt", "lines": [1, 20]}],
    "run_sql": [{"query": 'select "x"', "parameters": {"day": 3, "name": None}}],
    "select_rows": [{"table": "t", "where": {"kind": "and", "of": [{"kind": "is", "column": "a", "value": None}]}}],
    "calculate": [{"of": {"op": "+", "args": [1.5, {"op": "*", "args": ["x", -2]}]}}],
    "convert": [{"amount": 0.01, "from": "EUR", "to": "USD"}],
    "now": [{}],
    "set_light": [{"room": "hall", "level": 35}],
    "tag": [{"labels": {"a": "x", "b": "y"}}],
    "pick": [{"colours": ["blue", "red"]}],
    "ping": [{}],
}
WRONG = {
    "get_weather": [{}, {"city": 5}, {"city": "Paris", "unit": "kelvin"}, {"city": "Paris", "day": 1}],
    "create_event": [{"title": "Lunch", "start": "2023-02-29T12:00:00Z"}],
    "read_file": [{"path": ""}, {"path": "a", "lines": [1]}, {"path": "a", "lines": [0, 1]}],
    "calculate": [{"of": {"op": "%", "args": [1]}}, {"of": {"op": "+", "args": []}}],
    "convert": [{"amount": 0, "to": "USD"}, {"amount": 1, "to": "usd"}],
    "now": [{"zone": "UTC"}],
    "set_light": [{"room": "hall", "level": 33}, {"room": "hall", "level": 105}],
    "tag": [{"labels": {"A": "x"}}],
    "pick": [{"colours": []}, {"colours": ["red", "red"]}],
    "ping": [{"x": 1}],
}


LACKING = [
    {"name": "a", "parameters": {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x", "y"]}}
]


def inside(tools):
    """Tools with their arguments one level deeper."""
    return [{**t, "parameters": {"properties": {"x": t["parameters"]}, "required": ["x"]}} for t in tools]


def call(name, arguments, **options):
    return json.dumps({"name": name, "arguments": arguments}, **options)


@pytest.fixture(scope="module")
def knowledge():
    return ActionKnowledge.from_tools(ALL)


@pytest.mark.parametrize("form", EVERY)
def test_every_form_of_a_tool_list_is_read(form, tmp_path):
    tools, path = EVERY[form], tmp_path / "tools.json"
    path.write_text(json.dumps(tools))
    for given in (tools, json.dumps(tools), path, str(path)):
        assert list(ActionKnowledge.from_tools(given).actions) == list(named(tools))


@pytest.mark.parametrize("pages", [lambda message: message, lambda message: [message, PAGE]], ids=["one", "two pages"])
@pytest.mark.parametrize("as_text", [False, True])
def test_the_message_that_carries_a_tool_list_is_read(pages, as_text):
    given = pages({"jsonrpc": "2.0", "id": 7, "result": {**MCP, "nextCursor": "x"}})
    names = [*named(MCP), *(["clock"] if isinstance(given, list) else [])]
    assert list(ActionKnowledge.from_tools(json.dumps(given) if as_text else given).actions) == names


PAGE = {"jsonrpc": "2.0", "id": 8, "result": {"tools": [{"name": "clock", "inputSchema": {"type": "object"}}]}}
RESERVED = [
    "start", "start_", "_STEP", "#0", "a", "a#edge", "aedge", "a#comma", "a##", "a##/properties/x value", "NAME",
    "ARGUMENTS", "end", "None", "#", '"', "a\nb", "</tool_call>", "日本", "a.b-c/d",
]  # fmt: skip


@pytest.mark.parametrize("form", ["json", "llama", "hermes", "<function=NAME>ARGUMENTS</function>"])
def test_tools_may_have_the_names_that_rules_have(form):
    nested = {"type": "object", "properties": {"x": {"type": "object", "properties": {"y": {"type": "integer"}}}}}
    knowledge = ActionKnowledge.from_tools([{"name": n, "parameters": nested} for n in RESERVED], call_format=form)
    assert len(knowledge.actions) == len(RESERVED) == len(set(knowledge.actions))
    judged = [knowledge.judge({"name": n, "arguments": {"x": {"y": 1}}}) for n in RESERVED]
    assert all(judged) and [j.action for j in judged] == list(knowledge.actions)
    assert not any(knowledge.judge({"name": n, "arguments": {"x": {"y": "1"}}}) for n in RESERVED)
    assert "start(x: {y?: integer})" not in knowledge.comments["start"] and "start(x?:" in knowledge.comments["start__"]


def test_the_order_tells_a_tool_named_start_from_the_beginning():
    tools = [{"name": name} for name in ("start", "stop")]
    ordered = ActionKnowledge.from_tools(tools, follow={"start": ["start"], "start_": ["stop"], "stop": []}, end="stop")
    first, last = ({"name": name, "arguments": {}} for name in ("start", "stop"))
    assert ordered.check([first, last]).ok and ordered.check([first, last]).finished
    assert ordered.check([last]).verdicts == ["misordered"] and ordered.check([first, first]).verdicts[1] != "ok"
    assert ordered.only(["start_"], "").judge(first)


def test_right_calls_are_ok_and_wrong_ones_invalid(knowledge):
    for name, several in CALLS.items():
        for arguments in several:
            assert is_valid(named(ALL)[name], arguments)
            for options in ({}, {"ensure_ascii": False}, {"separators": (",", ":")}):
                judged = knowledge.judge(call(name, arguments, **options))
                assert judged and judged.action == name, judged
    for name, several in WRONG.items():
        for arguments in several:
            assert knowledge.judge(call(name, arguments)).verdict == "invalid"
    assert knowledge.judge(call("get_wether", {"city": "Paris"})).verdict == "invalid"


def test_whatever_is_written_is_a_call_with_valid_arguments():
    """Thousands of calls made from random bytes within the grammar."""
    rng, written = random.Random(7), 0
    for name, schema in named(ALL).items():
        tool = next(t for t in ALL if t.get("function", t)["name"] == name)
        action = ActionKnowledge.from_tools([tool]).next_action()
        for _ in range(60):
            text = random_text(action, rng)
            if text is not None:
                found = json.loads(text)
                assert list(found) == ["name", "arguments"] and found["name"] == name
                assert is_valid(schema, found["arguments"]), text
                written += 1
    assert written > 1000


@pytest.mark.parametrize("tokenizer", ["gpt2", "qwen2.5"])
def test_whatever_the_masks_let_a_model_write_is_a_valid_call(tokenizer):
    known = vocabulary(tokenizer)
    every, rng = named(ALL), np.random.default_rng(3)
    matcher = compile_grammar(ActionKnowledge.from_tools(ALL).next_action(), known).matcher()
    for _ in range(5):
        matcher.reset()
        matcher.set_budget(60)
        out = b""
        while len(allowed := np.setdiff1d(matcher.allowed_token_ids(), known.eos_token_ids)):
            token = int(rng.choice(allowed))
            assert matcher.advance(token)
            out += known.tokens[token]
        assert matcher.is_complete
        found = json.loads(out)
        assert is_valid(every[found["name"]], found["arguments"]), out


def test_any_tool_may_follow_any_other_unless_told_otherwise(knowledge):
    everyone = tuple(named(ALL))
    assert set(knowledge.rules.values()) == {everyone}
    follow = {"start": ["web_search"], "web_search": ["open_page"], "open_page": ["send_mail"]}
    ordered = ActionKnowledge.from_tools(OPENAI, follow=follow, end=["send_mail"])
    search, page = call("web_search", {"query": "x"}), call("open_page", {"url": "https://a.org/b"})
    mail = call("send_mail", {"subject": "x", "to": ["a@b.org"]})
    assert list(ordered.actions)[:3] == ["web_search", "open_page", "send_mail"]
    assert ordered.check([search, page, mail]).ok and ordered.check([search, page, mail]).finished
    assert not ordered.check([search, page]).finished
    assert [j.verdict for j in ordered.check([page, mail, page]).steps] == ["misordered", "ok", "ok"]


def test_the_text_names_each_tool_with_its_arguments(knowledge):
    text = knowledge.to_text()
    assert 'get_weather(city: string, unit?: "celsius" | "fahrenheit"): Weather at a place.' in text
    assert "calculate(of: expression): Compute an expression." in text
    assert "now(): The time." in text
    assert '{"name": "NAME", "arguments": {...}}' in text


def test_formats_of_calls():
    forms = {
        "json": '{"name": "now", "arguments": {}}',
        "llama": '{"name": "now", "parameters": {}}',
        "hermes": '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>',
        "<function=NAME>ARGUMENTS</function>": "<function=now>{}</function>",
    }
    for form, text in forms.items():
        assert ActionKnowledge.from_tools(OPENAI, call_format=form).judge(text), form


def test_what_is_forced_is_known_without_a_model():
    knowledge = ActionKnowledge.from_tools([OPENAI[0]], whitespace="dumps")
    known = Vocabulary([bytes([b]) for b in range(256)] + [b"<end>"], eos_token_ids=[256], special_ids=[256])
    forced = compile_grammar(knowledge.next_action(), known).matcher().forced_text()
    assert forced == b'{"name": "get_weather", "arguments": {"city": "'


def test_a_plan_is_made_of_tools():
    model = tiny(context=4096)
    plan = generate_plan(
        "What is the weather in Paris?", ActionKnowledge.from_tools(ALL), model=(model.model, model.tokenizer),
        strategy="act", max_steps=2, max_new_tokens=400, temperature=1.0,
    )  # fmt: skip
    assert plan.invalid == plan.misordered == 0 and plan.path
    for action in plan.path:
        found = json.loads(action)
        assert is_valid(named(ALL)[found["name"]], found["arguments"])


@pytest.mark.parametrize(
    "tools, options, message",
    [
        ([], {}, "there are no tools"),
        ("[]", {}, "there are no tools"),
        (5, {}, "not a list of tools"),
        ([{"type": "function"}], {}, "tool 0 has no name"),
        ([OPENAI[0], 7], {}, "tool 1 has no name"),
        ([OPENAI[0], OPENAI[0]], {}, "there are 2 tools named 'get_weather'"),
        ([{"name": "\ud800"}], {}, "can't be named"),
        ({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}}, {}, "Method not found"),
        ({"jsonrpc": "2.0", "id": 1, "result": {"tools": 5}}, {}, "'5' is not a list of tools"),
        (LACKING, {}, "'a': no call of it can be finished: JSON Schema at #/required: 'y' is required, but properties"),
        (inside(LACKING), {}, "JSON Schema at #/properties/x/required: 'y' is required, but properties lacks it"),
        ([{"name": "a", "parameters": {"type": "array"}}], {}, "tool 'a': its parameters are of type 'array'"),
        (
            [{"name": "a", "parameters": {"properties": {"b": {"type": "x"}}}}],
            {},
            "'a': JSON Schema at #/properties/b/",
        ),
        ([{"name": "a", "parameters": {"properties": {"b": False}, "required": ["b"]}}], {}, "no call of it can"),
        (OPENAI, {"follow": {"now": ["later"]}}, "there is no tool 'later'"),
        (OPENAI, {"follow": {"later": ["now"]}}, "there is no tool 'later'"),
        (OPENAI, {"end": []}, "no call of it can be finished"),
        (OPENAI, {"end": 5}, "end: 5 is not a list of tools"),
        (OPENAI, {"follow": 5}, "follow: 5 is not a mapping"),
        (OPENAI, {"follow": {"now": 5}}, "5 is not a list of tools"),
        ([{"name": "a", "parameters": {"properties": {"b": {"x-slot": "B"}}}}], {}, "nothing says what results tell"),
        (OPENAI, {"call_format": "NAME()"}, "not a format of calls"),
        (OPENAI, {"whitespace": "much"}, "no white space named 'much'"),
    ],
)
def test_what_is_wrong_is_said(tools, options, message):
    with pytest.raises((KnowledgeError, GrammarError), match="(?s).*hint: ") as error:
        ActionKnowledge.from_tools(tools, **options)
    assert message in str(error.value)


def test_knowledge_of_tools_is_knowledge_but_of_no_lark_file():
    tools = [{"name": "look", "parameters": {"type": "object", "properties": {}}}]
    policy = "%declare _STEP LOOK\n\nstart: look\nlook: LOOK _STEP\n"
    for knowledge in (ActionKnowledge.from_tools(tools), ActionKnowledge.from_tools(tools, policy=policy)):
        assert isinstance(knowledge, Knowledge) and not isinstance(knowledge, ActionKnowledge)
        assert list(knowledge.actions) == ["look"]
