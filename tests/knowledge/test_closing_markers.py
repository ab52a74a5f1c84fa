"""What ends a call for whoever reads it never stands literally in the strings of the call: masks, judge, policies."""

import json
import random

import pytest

from constrained import ActionKnowledge, compile_grammar
from tests.automaton.tokenizers import vocabulary
from tests.grammar.json_schema.oracle import random_text

FORMS = {
    "hermes": "</tool_call>",
    "<function=NAME>ARGUMENTS</function>": "</function>",
    "[CALL]NAME ARGUMENTS[/CALL]": "[/CALL]",
}
SCHEMAS = [
    lambda text: {"type": "string"},
    lambda text: {},
    lambda text: {"type": "string", "minLength": 1},
    lambda text: {"type": "string", "minLength": 3, "maxLength": 60},
    lambda text: {"type": "string", "maxLength": 60},
    lambda text: {"enum": [text, 3]},
    lambda text: {"enum": [text, "x"]},
    lambda text: {"const": [text, {text: text}]},
    lambda text: {"type": "object", "additionalProperties": True},
]


def texts_with(m: str) -> list[str]:
    """Texts that hold a marker."""
    return [m, f"a{m}b", m + m, m[:3] + m, m[:3] + m[:5] + m, f"\n{m}é", f'"{m}\\{m}', f"{m[:4]}<{m}"]


def argument(schema: dict, text: str):
    return [text, {text: text}] if "const" in schema else {"k": text} if schema.get("type") == "object" else text


def knowledge_of(schema: dict, form: str, **options) -> ActionKnowledge:
    parameters = {"type": "object", "properties": {"v": schema}, "required": ["v"]}
    return ActionKnowledge.from_tools([{"name": "t", "parameters": parameters}], call_format=form, **options)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("make", SCHEMAS)
def test_a_value_with_the_marker_is_a_call_in_which_it_is_escaped(form, make):
    marker = FORMS[form]
    for text in texts_with(marker):
        schema = make(text)
        knowledge = knowledge_of(schema, form)
        call = {"name": "t", "arguments": {"v": argument(schema, text)}}
        judged = knowledge.judge(call)
        assert judged, judged
        assert judged.text.count(marker) == 1 and judged.text.endswith(marker)
        assert knowledge.form.read(judged.text) == ("t", call["arguments"])
        literal = judged.text.replace(f"\\u{ord(marker[0]):04x}{marker[1:]}", marker)
        assert knowledge.next_action().matches(judged.text) and not knowledge.next_action().matches(literal)
        refused = knowledge.judge(literal)
        assert refused.verdict == "invalid" and f"{marker} ends the call" in refused.reason


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "string", "minLength": 2},
        {"type": "string", "maxLength": 30},
        {"type": "string", "pattern": "^[</a-z_>\\[\\]A-Z]+$"},
        {"type": "string", "pattern": "."},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"a": {}}, "additionalProperties": True},
    ],
    ids=str,
)
def test_no_text_of_the_masks_holds_it(form, schema):
    marker, rng = FORMS[form], random.Random(3)
    knowledge = knowledge_of(schema, form, closed=False)
    start = knowledge.next_action().automaton.start
    head = form.partition("NAME")[0] if form != "hermes" else '<tool_call>\n{"name": "'
    begun = start.read((head + ('t", "arguments": {"v": ' if form == "hermes" else "")).encode())
    assert begun is not None
    written = 0
    for _ in range(40):
        text = random_text(knowledge.next_action(), rng)
        if text is not None:
            assert text.decode().count(marker) == 1
            written += 1
    assert written
    # wherever a string may hold the beginning of the marker, its end never follows
    before, _ = call_texts(knowledge)
    opening = '"' if schema["type"] == "string" else '{"'
    state = start.read(f'{before}{{"v": {opening}{marker[:-1]}'.encode())
    assert state is not None or "pattern" in schema
    assert state is None or state.step(ord(marker[-1])) is None
    if state is not None and schema.get("maxLength") != 30:
        again = state.read(f"{marker[:-1]}".encode())
        assert again is not None and again.step(ord(marker[-1])) is None
        assert state.read(f"x{marker[1:]}".encode()) is not None


def call_texts(knowledge: ActionKnowledge) -> tuple[str, str]:
    before, _, after = knowledge.form.template.partition("ARGUMENTS")
    return before.replace("NAME", "t"), after.replace("NAME", "t")


def test_markup_and_code_are_written_as_they_are():
    knowledge = knowledge_of({"type": "string"}, "hermes")
    for text in ("<div></div>", "a < b > c", "</tool", "</tool_call", "</tool_calls>", "<tool_call>", "</TOOL_CALL>"):
        judged = knowledge.judge({"name": "t", "arguments": {"v": text}})
        assert judged and text in judged.text


@pytest.mark.parametrize("form", ["json", "llama", "CALL NAME(ARGUMENTS)"])
def test_forms_without_markers_write_everything_as_it_is(form):
    judged = knowledge_of({"type": "string"}, form).judge({"name": "t", "arguments": {"v": "</tool_call>"}})
    assert judged and "</tool_call>" in judged.text


def test_a_value_that_a_result_told_is_written_with_an_escape():
    tools = [{"name": "look"}, {"name": "buy", "parameters": {"properties": {"item": {"type": "string"}}}}]
    policy = """
%declare _STEP LOOK BUY
start: look
//: tells ITEM = $.items[*] by look
look: LOOK _STEP buy
//: needs item in ITEM
buy: BUY
"""
    knowledge = ActionKnowledge.from_tools(tools, policy=policy, call_format="hermes")
    box = knowledge.tools
    look = knowledge.bind_view(box.view(box.policy.initial)).judge({"name": "look", "arguments": {}})
    told = box.told(box.policy.initial, look.text, json.dumps({"items": ["</tool_call>", "cup"]}))
    knowledge = knowledge.bind_view(box.view(box.policy.initial)).after(look.text).bind_view(box.view(told))
    texts = knowledge.next_action().texts()
    assert len(texts) == 2 and all(text.count("</tool_call>") == 1 for text in texts)
    call = {"name": "buy", "arguments": {"item": "</tool_call>"}}
    assert knowledge.judge(call).text in texts
    assert box.read(knowledge.judge(call).text) == ("buy", {"item": "</tool_call>"})


def test_tokens_never_write_it():
    known = vocabulary("gpt2")
    knowledge = knowledge_of({"type": "string", "maxLength": 40}, "hermes")
    matcher = compile_grammar(knowledge.next_action(), known).matcher(
        b'<tool_call>\n{"name": "t", "arguments": {"v": "</tool_call'
    )
    allowed = set(matcher.allowed_token_ids().tolist())
    ends = [i for i, token in enumerate(known.tokens) if token.startswith(b">")]
    assert allowed and ends and allowed.isdisjoint(ends)
