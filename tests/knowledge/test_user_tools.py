"""Two actors in one policy: tools that the user has, whose results are what the user says that they show."""

import json

import pytest

from constrained import ActionKnowledge
from constrained.cli import main
from constrained.errors import GrammarError, KnowledgeError
from constrained.guard import Guard
from constrained.guard.conversation import Conversation
from constrained.knowledge.lines.expression import Evaluation, Unknown
from constrained.knowledge.tool_policy import read_policy

POLICY = """
%declare _STEP RESPOND FIND_LINE RESUME_LINE CHECK_PHONE TOGGLE_AIRPLANE REBOOT

//: message respond
//: fails by "Error"
//: user check_phone, toggle_airplane, reboot
//: init shown = ""
//: fact airplane, reboot_due
//: tells line[@.id] = $ by find_line
//: tells shown = $ by check_phone
//: tells airplane by "Airplane Mode: ON"
//: tells not airplane by "Airplane Mode: OFF"

// Mend the phone.
start: respond | find_line | resume_line | check_phone | toggle_airplane | reboot

respond: RESPOND _STEP [start]

find_line: FIND_LINE _STEP start

//: needs id in keys(line) // never looked up
//: makes reboot_due
resume_line: RESUME_LINE _STEP start

check_phone: CHECK_PHONE _STEP start

//: needs airplane // nothing showed that it is on
toggle_airplane: TOGGLE_AIRPLANE _STEP start

//: needs reboot_due // no line was resumed
//: makes not reboot_due
reboot: REBOOT _STEP [start]
"""
ID = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
AGENT = [{"name": "find_line", "parameters": ID}, {"name": "resume_line", "parameters": ID}]
USER = [{"name": name, "description": "Does it."} for name in ("check_phone", "toggle_airplane", "reboot")]
KNOWLEDGE = ActionKnowledge.from_tools([*AGENT, *USER], policy=POLICY)
TOOLS = KNOWLEDGE.tools


def after(*steps):
    """The memory after some (tool, arguments, result)."""
    memory = TOOLS.policy.initial
    for tool, arguments, result in steps:
        memory = TOOLS.policy.told(memory, tool, arguments, result)
    return memory


def admitted(memory, tool, arguments=()):
    """By the masks, which must agree with the conditions."""
    call = TOOLS.write(tool, dict(arguments))
    judged = bool(KNOWLEDGE.bind_view(TOOLS.view(memory)).judge(call))
    assert judged is not TOOLS.unmet(memory, tool, dict(arguments))
    return judged


@pytest.mark.parametrize(
    ("tool", "result", "on"),
    [
        ("check_phone", "Airplane Mode: ON\nSignal: none", True),
        ("toggle_airplane", "airplane mode: on", True),
        ("respond", "It says Airplane Mode: ON.", True),
        ("find_line", '{"id": "Airplane Mode: ON"}', False),
        ("check_phone", "Error: Airplane Mode: ON", False),
    ],
)
def test_a_text_above_no_rule_is_told_by_the_user_s_tools_and_words_only(tool, result, on):
    memory = after((tool, {}, result))
    assert admitted(memory, "toggle_airplane") is on
    assert not admitted(TOOLS.policy.told(memory, "check_phone", {}, "Airplane Mode: OFF"), "toggle_airplane")


@pytest.mark.parametrize("result", ['{"id": "L1"}', "7", '["L1"]', "", "\ud800", "ünï"])
def test_what_a_tool_of_the_user_s_shows_is_text_even_if_it_looks_like_json(result):
    shown = after(("check_phone", {}, result))["shown"]
    assert shown == result.encode(errors="replace").decode()


def test_what_the_agent_changes_opens_what_the_user_may_be_asked_for():
    found = after(("find_line", {"id": "L1"}, '{"id": "L1"}'))
    assert not admitted(found, "reboot") and admitted(found, "resume_line", {"id": "L1"})
    resumed = TOOLS.policy.told(found, "resume_line", {"id": "L1"}, "done")
    assert admitted(resumed, "reboot")
    assert not admitted(TOOLS.policy.told(resumed, "reboot", {}, "Restarting"), "reboot")


def test_a_prompt_says_whose_tool_it_is():
    text = KNOWLEDGE.to_text()
    assert text.count("The user has this tool") == len(USER)
    assert "Does it. (The user has this tool" in text


def test_tools_have_their_own_names_whatever_the_rules_call_them():
    tools = [{"name": name} for name in ("checkPhone", "Toggle-Airplane", "reboot")]
    policy = POLICY.replace("check_phone", "checkphone").replace("CHECK_PHONE", "CHECKPHONE")
    knowledge = ActionKnowledge.from_tools([*AGENT, *tools], policy=policy)
    found = knowledge.tools.policy
    assert found.users == {"checkPhone", "Toggle-Airplane", "reboot"}
    memory = found.told(found.initial, "checkPhone", {}, "Airplane Mode: ON")
    assert memory["shown"] == "Airplane Mode: ON" and not knowledge.tools.unmet(memory, "Toggle-Airplane", {})


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("//: user check_phone", "//: user chek_phone, check_phone", "names 'chek_phone', which is not a tool"),
        ("//: user check_phone", "//: user respond, check_phone", "speaks to the user, so it is none of their tools"),
        ("shown = $ by", "shown = $.mode by", "what check_phone shows is a text"),
        ("//: user check_phone, ", "//: user\n//: tells x = $ by ", "unexpected `x`"),
    ],
)
def test_a_user_line_that_cannot_stand_is_one_clear_error(old, new, told):
    with pytest.raises((GrammarError, KnowledgeError), match=told):
        ActionKnowledge.from_tools([*AGENT, *USER], policy=POLICY.replace(old, new))


def test_a_text_is_told_by_nobody_where_a_policy_has_no_user():
    lines = '%declare _STEP LIST\n//: fact done\n//: tells done by "yes"\n\nstart: list\nlist: LIST _STEP [start]\n'
    with pytest.raises(GrammarError, match="stands above no rule"):
        read_policy(lines)
    policy = read_policy("//: user list\n" + lines)
    assert [policy.tellers(tells) for tells in policy.tells] == [{"list"}]


def test_user_is_still_a_name():
    policy = read_policy(POLICY + "\n//: init user = {}\n//: let name() = user.name\n//: tells user = $ by find_line\n")
    assert policy.users == {"check_phone", "toggle_airplane", "reboot"} and policy.initial["user"] == {}


# conversations of tau2-bench, in which the user's own calls are recorded


def did(name, result, identity="u"):
    """The user uses a tool of theirs, as tau2-bench records it."""
    return [
        {"role": "user", "content": None,
         "tool_calls": [{"id": identity, "name": name, "arguments": {}, "requestor": "user"}]},
        {"role": "tool", "id": identity, "content": result, "requestor": "user"},
    ]  # fmt: skip


GUARD = Guard(AGENT, POLICY)
LOOKED = [
    {"role": "assistant", "tool_calls": [{"id": "u", "name": "find_line", "arguments": {"id": "L1"}}]},
    {"role": "tool", "id": "u", "content": '{"id": "L1"}'},
]


def follow(*messages) -> Conversation:
    return GUARD.follow(messages)


def test_the_user_s_own_calls_tell_what_they_show_and_are_no_violations():
    conversation = follow(*did("toggle_airplane", "Airplane Mode: ON"), *LOOKED)
    assert conversation.memory["airplane"] == [True] and conversation.violations == 0
    assert conversation.judge("resume_line", {"id": "L1"})
    assert follow(*did("check_phone", "Airplane Mode: OFF", "")).memory["shown"] == "Airplane Mode: OFF"


def test_a_result_belongs_to_whoever_made_the_call():
    user, shown = did("check_phone", "Airplane Mode: ON")
    agent, found = LOOKED
    for messages in ([agent, user, shown, found], [agent, user, found, shown], [user, agent, found, shown]):
        memory = follow(*messages).memory
        assert memory["shown"] == "Airplane Mode: ON" and memory["line"] == {"L1": {"id": "L1"}}


@pytest.mark.parametrize("name", ["find_line", "resume_line", "respond", "no_tool"])
def test_calls_of_other_tools_in_the_user_s_name_tell_nothing(name):
    conversation = follow(*did(name, '{"id": "L1"}'))
    assert conversation.memory == GUARD.start.memory and not conversation.waiting


def test_the_agent_has_none_of_the_user_s_tools_unless_they_are_in_its_list():
    assert not follow().judge("check_phone", {})
    assert Guard([*AGENT, *USER], POLICY).start.judge("check_phone", {})


@pytest.mark.parametrize(("text", "value"), [("2", 2), ("2.50", 2.5), ("-1", -1), (3, 3), (0.5, 0.5)])
def test_a_number_is_read_from_a_text(text, value):
    policy = read_policy("//: let n(x) = number(x)\n%declare _STEP ACT\nstart: act\nact: ACT _STEP\n")
    number = policy.functions["n"].body.value({"x": text}, Evaluation({}, {}))
    assert number == value and type(number) is type(value)


@pytest.mark.parametrize("text", ["", "two", "1e400", "NaN", "1_0", "٣", "9" * 40, " 1", True, None, []])
def test_what_is_no_number_is_unknown(text):
    policy = read_policy("//: let n(x) = number(x)\n%declare _STEP ACT\nstart: act\nact: ACT _STEP\n")
    with pytest.raises(Unknown):
        policy.functions["n"].body.value({"x": text}, Evaluation({}, {}))


def test_what_users_did_is_counted_apart_from_violations(tmp_path, capsys):
    """Nobody knows whether the agent asked for it."""
    path, policy = tmp_path / "talks.json", tmp_path / "phone.lark"
    policy.write_text(POLICY)
    messages = [*did("toggle_airplane", "Airplane Mode: ON"), *did("toggle_airplane", "Airplane Mode: OFF"),
                *did("reboot", "…"), *did("no_tool", "…")]  # fmt: skip
    path.write_text(json.dumps({"messages": messages}))
    assert main(["check", str(policy), "--conversations", str(path), "--html", str(tmp_path / "page.html")]) == 0
    told = capsys.readouterr().out
    assert "0 violations" in told and "calls by users: 3, of these not admitted: 2" in told
    assert "1  reboot: no line was resumed" in told
    page = (tmp_path / "page.html").read_text()
    assert "toggle_airplane: nothing showed that it is on" in page
