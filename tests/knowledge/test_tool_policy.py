"""Tool policies: calls admitted by what results told and what was said, in masks and verdicts alike."""

import json
import re

import pytest

from constrained import ActionKnowledge
from constrained.automaton import Vocabulary, compile_grammar
from constrained.cli import main
from constrained.errors import GrammarError, KnowledgeError
from constrained.knowledge.lines import expression
from constrained.knowledge.lines.expression import Evaluation, Unknown
from constrained.knowledge.tool_policy import read_policy
from constrained.knowledge.tool_policy.call_writer import call_grammar
from constrained.knowledge.tool_policy.memory import found_at

TOOLS = [
    {"name": "get_order", "inputSchema": {"type": "object", "properties": {"order_id": {"type": "string"}}}},
    {
        "name": "refund",
        "inputSchema": {
            "type": "object",
            "properties": {
                "order_id": {"type": "string", "description": "Which order."},
                "items": {"type": "array", "items": {"type": "string"}},
                "reason": {"enum": ["broken", "late"]},
            },
            "required": ["order_id", "items", "reason"],
        },
    },
]
POLICY = """
%declare _STEP RESPOND GET_ORDER REFUND
//: message respond
//: fails by "Error"
//: init said = ""
//: init refunded = []
//: tells said = $ by respond
//: tells order[@.id] = $ by get_order
//: let yes() = search("(?i)yes", said)

// Help.
start: respond | get_order | refund

//: makes ORDER = find_all("#[0-9]+", result)
respond: RESPOND _STEP [start]

//: needs order_id in ORDER
get_order: GET_ORDER _STEP start

//: needs yes() // the user hasn't said yes
//: needs order_id in [o for o in keys(order) if order[o].status == "pending" and o not in refunded]
//: needs items[i] in [x for x in order[order_id].items if x not in items]
//: makes refunded = refunded + [order_id]
refund: REFUND _STEP start
"""


class Talk:
    """A conversation under the policy."""

    def __init__(self):
        self.knowledge = ActionKnowledge.from_tools(
            [{**TOOLS[0], "inputSchema": {**TOOLS[0]["inputSchema"], "required": ["order_id"]}}, TOOLS[1]],
            policy=POLICY,
        )
        self.tools = self.knowledge.tools
        self.memory = self.tools.policy.initial

    def now(self):
        return self.knowledge.bind_view(self.tools.view(self.memory))

    def judge(self, name, **arguments):
        return self.now().judge(self.tools.write(name, arguments))

    def tell(self, name, result, **arguments):
        self.memory = self.tools.told(self.memory, self.tools.write(name, arguments), result)


def test_what_no_result_has_shown_cannot_be_written():
    talk = Talk()
    assert not talk.judge("get_order", order_id="#1")
    talk.tell("respond", "It is order #1.", content="Which order?")
    assert talk.judge("get_order", order_id="#1") and not talk.judge("get_order", order_id="#2")
    assert not talk.judge("refund", order_id="#1", items=["cup"], reason="late")


def test_a_change_needs_a_yes_a_state_and_happens_once():
    talk = Talk()
    talk.tell("get_order", json.dumps({"id": "#1", "status": "pending", "items": ["cup", "pan"]}), order_id="#1")
    talk.tell("get_order", json.dumps({"id": "#2", "status": "sent", "items": ["cup"]}), order_id="#2")
    call = {"order_id": "#1", "items": ["pan", "cup"], "reason": "late"}
    assert talk.tools.unmet(talk.memory, "refund", call) == ["the user hasn't said yes"]
    talk.tell("respond", "Yes!", content="Shall I?")
    assert talk.judge("refund", **call)
    assert not talk.judge("refund", **{**call, "order_id": "#2", "items": ["cup"]})
    assert not talk.judge("refund", **{**call, "items": ["cup", "cup"]})
    assert not talk.judge("refund", **{**call, "items": ["mug"]})
    talk.tell("refund", "Error: try later", **call)
    assert talk.judge("refund", **call)
    talk.tell("refund", "done", **call)
    assert not talk.judge("refund", **call)


def test_masks_admit_what_is_judged_ok_and_nothing_else():
    talk = Talk()
    talk.tell("get_order", json.dumps({"id": "#1", "status": "pending", "items": ["cup", "pan"]}), order_id="#1")
    talk.tell("respond", "yes", content="Shall I?")
    grammar = call_grammar(talk.tools.calls["refund"], talk.memory)
    texts = set()
    for items in (["cup"], ["pan"], ["cup", "pan"], ["pan", "cup"], [], ["cup", "cup"], ["mug"]):
        for reason in ("broken", "late", "gone"):
            text = talk.tools.write("refund", {"reason": reason, "items": items, "order_id": "#1"})
            admitted = grammar.matches(text)
            assert admitted == bool(talk.now().judge(text))
            if admitted:
                texts.add(text)
    assert len(texts) == 10
    vocabulary = Vocabulary([bytes([b]) for b in range(256)], [256])
    compiled = compile_grammar(grammar, vocabulary)
    for text in texts:  # no dead end on the way, and the end is the end
        matcher = compiled.matcher()
        for byte in text.encode():
            assert byte in matcher.allowed_token_ids().tolist() and matcher.advance(byte)
        assert matcher.allowed_token_ids().tolist() == [256]


def test_slots_in_schemas_are_filled_from_results():
    tools = [
        {"name": "list", "inputSchema": {"type": "object"}},
        {
            "name": "show",
            "inputSchema": {
                "type": "object",
                "properties": {"id": {"type": "string", "x-slot": "ORDER"}},
                "required": ["id"],
            },
        },
    ]
    policy = (
        "%declare _STEP LIST SHOW\n//: tells ORDER = $.orders[*].id by list\n"
        "start: list | show\nlist: LIST _STEP [start]\nshow: SHOW _STEP [start]\n"
    )
    knowledge = ActionKnowledge.from_tools(tools, policy=policy)
    memory = knowledge.tools.policy.initial
    call = knowledge.tools.write("show", {"id": "A1"})
    assert not knowledge.bind_view(knowledge.tools.view(memory)).judge(call)
    memory = knowledge.tools.told(memory, knowledge.tools.write("list", {}), '{"orders": [{"id": "A1"}, {"x": 1}]}')
    assert knowledge.bind_view(knowledge.tools.view(memory)).judge(call)
    for nonsense in ("not JSON", "[", "7", '{"orders": 3}'):
        assert knowledge.tools.told(memory, knowledge.tools.write("list", {}), nonsense)["ORDER"] == ["A1"]


def test_descriptions_of_parameters_reach_the_prompt():
    assert "order_id: Which order." in Talk().knowledge.to_text()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("//: needs order_id in", "the lines end"),
        ('//: needs __import__("os").system("x")', "unexpected `[(]`"),
        ('//: needs open("x")', "no fact or function `open`"),
        ("//: needs (lambda: 1)()", "unexpected `:`"),
        ("//: needs some x: order (x)", "only worlds have quantifiers"),
        ("//: tells x = orders by list", "unexpected"),
        ("//: let len(x) = 1", "is a built-in function"),
        ("//: makes [1] = 2", "no place that can be changed"),
        ("//: makes done", "no fact `done`"),
        ("//: wants x", "unexpected"),
        ("//: init x = y", "nothing is known yet of 'y'"),
        ('//: fails by "{"', "a hole is written"),
        ("//: type order", "a policy has no `type`"),
        ('//: tells x = $ by "yes"', "values are told by tools"),
        ("//: fact done\n//: tells done by list", "a fact is told by a text in an answer"),
        ("//: let two(a, b) = a == b\n//: needs two(1)", "`two` takes 2 arguments, not 1"),
        ("//: fact done(x)\n//: makes done", "`done` has 1 argument, not 0"),
        ("//: needs len([], [])", "`len` takes 1 argument, not 2"),
        ("//: needs range(1, 2, 3, 4)", "`range` takes 1 to 3 arguments, not 4"),
        ('//: needs search("(", "x")', "is not a regular expression"),
    ],
)
def test_a_line_that_cannot_be_read_is_one_clear_error(line, told):
    policy = f"%declare _STEP LIST\nstart: list\n{line}\nlist: LIST _STEP [start]\n"
    with pytest.raises(GrammarError, match=told) as error:
        ActionKnowledge.from_tools([{"name": "list"}], policy=policy)
    assert error.value.line == 3 + line.count("\n") and error.value.hint


def test_json_paths():
    value = {"orders": [{"id": 1}, {"id": 2}, {}], "by": {"x": {"id": 3}}}
    assert list(found_at("$.orders[*].id", value)) == [1, 2]
    assert list(found_at("$.by.*.id", value)) == [3]
    assert list(found_at("$['orders'][-2].id", value)) == [2]
    assert list(found_at("$.none[*]", value)) == []


def read_condition(text: str) -> expression.Expression:
    return read_policy(f"%declare _STEP ACT\nstart: act\n//: needs {text}\nact: ACT _STEP\n").needs["act"][0]


@pytest.mark.parametrize(("text", "held"), [("[]", False), ("{}", False), ("[[]]", True), ("not []", True)])
def test_a_condition_may_be_a_value_without_a_word_in_it(text, held):
    condition = read_condition(f"{text} // why")
    assert condition.holds({}, Evaluation({}, {})) is held and condition.words == "why"


def test_expressions_know_nothing_of_python_itself():
    evaluation = Evaluation({}, {})
    assert read_condition("sum(x.n * 2 for x in xs if x.n > 1)").value({"xs": [{"n": 1}, {"n": 2}]}, evaluation) == 4
    for text in ('"a" * 1000000000', "xs.__class__", "missing", "1 / 0"):
        with pytest.raises(Unknown):
            read_condition(text).value({"xs": [1]}, evaluation)
    assert not read_condition("missing == 1").holds({}, evaluation)
    assert read_condition("missing or 1 == 1").holds({}, evaluation)


FACTS = """
%declare _STEP RESPOND GET_ORDER REFUND
//: message respond
//: fact agreed, looked_up(order), refunded(order), said_of(order, word)
//: tells ORDER = $.orders[*] by get_order

start: respond | get_order | refund

//: makes not agreed
//: tells agreed by "yes", "go ahead"
//: makes ORDER = find_all("#[0-9]+", result)
respond: RESPOND _STEP [start]

//: needs order_id in ORDER
//: makes looked_up(order_id), said_of(order_id, "seen")
get_order: GET_ORDER _STEP start

//: needs agreed // nobody agreed
//: needs looked_up(order_id), not refunded(order_id), said_of(order_id, "seen") // not looked up, or done
//: makes refunded(order_id), not agreed
refund: REFUND _STEP start
"""


def test_facts_are_declared_needed_and_made_as_in_a_world():
    knowledge = ActionKnowledge.from_tools(TOOLS, policy=FACTS)
    assert knowledge.world is None  # a policy, not a world
    tools = knowledge.tools
    memory = tools.policy.initial

    def judge(order):
        call = {"name": "refund", "arguments": {"order_id": order, "items": [], "reason": "late"}}
        return bool(knowledge.bind_view(tools.view(memory)).judge(call))

    def tell(name, result, **arguments):
        nonlocal memory
        memory = tools.told(memory, tools.write(name, arguments), result)

    tell("respond", "It is #1 or #2.", content="?")
    tell("get_order", "{}", order_id="#1")
    assert not judge("#1")
    tell("respond", "Oh YES.", content="Shall I?")
    assert judge("#1") and not judge("#2")
    tell("respond", "Wait!", content="Sure?")
    assert not judge("#1")
    tell("respond", "Yes, yes.", content="Sure?")
    tell("refund", "{}", order_id="#1", items=[], reason="late")
    assert memory["refunded"] == ["#1"] and memory["agreed"] == []
    tell("respond", "go ahead", content="Shall I?")
    assert not judge("#1")


def test_what_nothing_tells_is_told_by_name():
    with pytest.raises(KnowledgeError, match="'ordr', which nothing tells") as error:
        ActionKnowledge.from_tools(TOOLS, policy=POLICY.replace("keys(order)", "keys(ordr)"))
    assert "did you mean order?" in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "code", "told"),
    [
        ("//: init said", "//: fact done\n//: init said", "fact-without-use", "nothing asks for it"),
        ("by get_order", "by get_ordr", "unknown-tool", "'get_ordr', which is not a tool with a rule"),
        ("keys(order)", "keys(arguments)", "unknown-name", "looks at 'arguments', which nothing tells"),
        ("refunded + [order_id]", "refunded + [order]", "", ""),
        ("refunded + [order_id]", "refunded + [ordr]", "unknown-name", "`makes` of refund looks at 'ordr'"),
        ("items[i] in", "items[i].nam in", "unknown-name", "items.[i] has no member 'nam'"),
    ],
)
def test_faults_of_a_policy_name_their_place(old, new, code, told, tmp_path, capsys):
    """In a check, and where the policy is read with tools."""
    items = {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}
    schema = TOOLS[1]["inputSchema"]
    tools = [TOOLS[0], {**TOOLS[1], "inputSchema": {**schema, "properties": {**schema["properties"], "items": items}}}]
    policy = POLICY.replace(old, new, 1)
    files = [tmp_path / "shop.lark", tmp_path / "tools.json"]
    for file, text in zip(files, (policy, json.dumps(tools)), strict=True):
        file.write_text(text)
    words = ["check", str(files[0]), "--tools", str(files[1]), "--json", "--ignore", "no-definition-comment"]
    assert main(words) == (code not in ("", "fact-without-use"))
    [report] = json.loads(capsys.readouterr().out)["files"]
    found = [(one["code"], one["line"]) for one in report["findings"]]
    line = next(i for i, text in enumerate(policy.split("\n"), 1) if new.split("\n")[0] in text)
    assert found == ([(code, line)] if code else [])
    assert all(told in one["message"] for one in report["findings"])
    if code in ("unknown-tool", "unknown-name"):
        with pytest.raises(KnowledgeError, match=f":{line}:.*{re.escape(told)}"):
            ActionKnowledge.from_tools(tools, policy=policy)
    else:
        ActionKnowledge.from_tools(tools, policy=policy)


def named(*names, required=None, **properties):
    """Tools of these names; the first has arguments."""
    schema = {"type": "object", "properties": properties, "required": [*properties] if required is None else required}
    return [{"name": name, "inputSchema": {} if i else schema} for i, name in enumerate(names)]


def one_tool(lines="", rule="act", **options):
    """A tool `act` with these arguments under a policy of some lines above its rule."""
    policy = f"%declare _STEP ACT LIST\n//: tells ID = $.ids[*] by list\nstart: {rule} | list\n{lines}\n"
    policy += f"{rule}: ACT _STEP start\nlist: LIST _STEP [start]\n"
    return ActionKnowledge.from_tools(named("act", "list", **options), policy=policy)


def told(knowledge, result):
    tools = knowledge.tools
    memory = tools.told(tools.policy.initial, tools.write("list", {}), result)
    return knowledge.bind_view(tools.view(memory))


def test_arguments_that_may_be_left_out():
    """Also the first one, and one with a slot that nothing is known of."""
    knowledge = one_tool(a={"const": 1}, b={"const": 2}, c={"type": "string", "x-slot": "ID"}, required=["b"])
    written = ['"a": 1, "b": 2', '"b": 2']
    texts = [text for text in told(knowledge, "{}").next_actions() if "act" in text]
    assert texts == sorted(f'{{"name": "act", "arguments": {{{one}}}}}' for one in written)
    now = told(knowledge, '{"ids": ["x"]}')
    assert len([text for text in now.next_actions() if "act" in text]) == 4
    assert now.judge({"name": "act", "arguments": {"b": 2, "c": "x"}})
    assert not now.judge({"name": "act", "arguments": {"b": 2, "c": "y"}})
    memory = knowledge.tools.policy.initial
    assert not knowledge.tools.unmet(memory, "act", {"b": 2})
    assert knowledge.tools.unmet(memory, "act", {"b": 2, "c": "y"}) == ["c in ID"]


def test_slots_within_objects_and_lists():
    slot = {"type": "string", "x-slot": "ID"}
    pay = {"type": "object", "properties": {"by": slot, "sum": {"const": 1}}, "required": ["by"]}
    knowledge = one_tool(pay=pay, legs={"type": "array", "items": {"type": "object", "properties": {"to": slot}}})
    now = told(knowledge, '{"ids": ["x"]}')
    for by, to, admitted in (("x", "x", True), ("y", "x", False), ("x", "y", False)):
        arguments = {"pay": {"by": by, "sum": 1}, "legs": [{"to": "x"}, {"to": to}]}
        assert bool(now.judge({"name": "act", "arguments": arguments})) is admitted
        assert (
            knowledge.tools.unmet(knowledge.tools.policy.initial.with_values(ID=["x"]), "act", arguments) == []
        ) is admitted
    assert now.judge({"name": "act", "arguments": {"pay": {"by": "x"}, "legs": [{}]}})


@pytest.mark.parametrize(
    ("result", "left"),
    [
        ('{"ids": ["\\ud800", 7, null, {"a": 1}, true]}', ["?"]),
        ('{"ids": [NaN]}', []),
        ('{"ids": [1e999]}', []),
        ('{"ids": ["' + "[" * 9 + '"]}', ["[" * 9]),
        ("[" * 100_000, []),
        ({"ids": ["x"]}, ["x"]),
        (None, []),
    ],
)
def test_whatever_a_result_holds_only_valid_calls_are_written(result, left):
    texts = told(one_tool(id={"type": "string", "x-slot": "ID"}), result).next_actions()
    assert [json.loads(text)["arguments"]["id"] for text in texts if "act" in text] == left


LIST = {"type": "array", "items": {"type": "string"}}
PEOPLE = {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"const": 1}}}}


@pytest.mark.parametrize(
    ("kind", "conditions", "admitted", "refused"),
    [
        ("string", 'x != "a"', ["b"], ["a"]),
        ("string", "x not in ID", ["b"], ["p"]),
        ("string", 'search("^A", x), search("B$", x)', ["AB", "A-B"], ["B", "A"]),
        ("string", 'not search("[0-9]", x)', ["no"], ["a1"]),
        ("string", 'x in ID, search("^p", x)', ["p"], ["q"]),
        ("string", 'x == "a" or agreed', ["a"], ["b"]),
        ("number", "x > 0, x <= top", [0.5, 2, 12.5, 3000.25], [0, -1, 5000.5]),
        ("number", "x <= 100 or agreed", [100, -0.5], [100.5]),
        ("number", "top >= x, 0 < x", [5000], [5001, 0]),
        ("integer", "x >= low, x <= 10", [2, 10], [1, 11]),
        ("integer", "x <= nothing_known", [], [0, 5]),
        ({"type": "integer", "minimum": 2, "multipleOf": 5}, "x <= top", [5, 5000], [0, 6, 5005]),
        ({"type": "string", "pattern": "^p"}, "x in ID", ["p"], ["q"]),
        ({"enum": ["a", "b"]}, 'x != "a"', ["b"], ["a"]),
        ("boolean", "not x", [False], [True]),
        ("string", 'search("(?i)^ab", x)', ["AB", "abc"], ["", "bab"]),
        (LIST, "x[i] in ID", [[], ["p"], ["p", "q"]], [["r"], ["p", "r"]]),
        (LIST, 'x[i] != "a"', [[], ["b"]], [["a"], ["b", "a"]]),
        (LIST, "x != []", [["b"]], [[]]),
        (PEOPLE, "x[i].n in [1, 2], sum(p.n for p in x) < 4", [[{"n": 1, "s": 1}, {"n": 2}]], [[{"n": 2}, {"n": 2}]]),
    ],
)
def test_conditions_on_what_may_be_anything_hold_in_masks_and_verdicts_alike(kind, conditions, admitted, refused):
    lines = "//: fact agreed\n//: init low = 1.5, top = 5000, nothing_known = null\n"
    knowledge = one_tool(f"{lines}//: needs {conditions}", x=kind if isinstance(kind, dict) else {"type": kind})
    now = told(knowledge, '{"ids": ["p", "q"]}')
    memory = knowledge.tools.told(
        knowledge.tools.policy.initial, knowledge.tools.write("list", {}), '{"ids": ["p", "q"]}'
    )
    for value in admitted:
        assert now.judge({"name": "act", "arguments": {"x": value}})
        assert not knowledge.tools.unmet(memory, "act", {"x": value})
    for value in refused:
        assert not now.judge({"name": "act", "arguments": {"x": value}})
        assert knowledge.tools.unmet(memory, "act", {"x": value}) or isinstance(kind, dict)


TWO = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["a", "b"]}


@pytest.mark.parametrize(
    ("conditions", "arguments", "told_so"),
    [
        ("x != y", {"x": {"type": "string"}, "y": {"type": "string"}}, "x may be anything where `needs x != y`"),
        ("len(x) > 3", {"x": {"type": "string"}}, r"x may be anything where `needs len\(x\) > 3`"),
        ("x < y", {"x": {"type": "integer"}, "y": {"type": "integer"}}, "more than 2,000 values"),
        ("x.a != x.b", {"x": TWO}, "a condition looks at a value that may still be anything"),
        ("x[i] != x[0]", {"x": LIST}, "says something of elements that can't be enforced"),
        ('x >= "2024"', {"x": {"type": "string"}}, "can.t compare texts by their order"),
        ('search("(?x)a", x)', {"x": {"type": "string"}}, "of flags there are"),
        ("x in ID", {"x": {"anyOf": [{"type": "string"}], "x-slot": "ID"}}, None),
    ],
)
def test_what_masks_cannot_keep_is_refused_and_not_let_through(conditions, arguments, told_so):
    if told_so is None:
        assert told(one_tool(f"//: needs {conditions}", **arguments), '{"ids": ["p"]}')
        return
    with pytest.raises(KnowledgeError) as caught:
        told(one_tool(f"//: needs {conditions}", **arguments), '{"ids": ["p"]}')
    assert re.search(told_so, f"{caught.value}")


def test_keywords_of_all_arguments_are_kept_or_refused():
    tools = named("act", "list", x={"type": "string"}, y={"type": "string"}, required=[])
    tools[0]["inputSchema"]["minProperties"] = 1
    rules = "\nact: ACT _STEP start\nlist: LIST _STEP [start]\n"
    policy = "%declare _STEP ACT LIST\n//: tells ID = $.ids[*] by list\nstart: act | list\n"
    now = told(ActionKnowledge.from_tools(tools, policy=policy + rules), "{}")
    assert now.judge({"name": "act", "arguments": {"y": "b"}})
    assert not now.judge({"name": "act", "arguments": {}})
    with pytest.raises(KnowledgeError, match="'minProperties' of its arguments can't be kept"):
        ActionKnowledge.from_tools(tools, policy=f"{policy}//: needs x in ID{rules}")


def test_results_of_any_shape_and_size_are_told_once():
    """The many are told in one go: one after the other took time with the square of their number."""
    knowledge = one_tool("//: tells thing[@.id] = $.things[*] by list\n//: needs x in keys(thing), x in ID", x={})
    result = {"ids": [f"order {i}" for i in range(20_000)] * 2 + [{"a": 1}], "things": [{"id": "order 10"}, 5, None]}
    result["things"] += [{"id": {"a": 1}}, {"id": ["b"]}, {"id": None}]
    memory = knowledge.tools.told(knowledge.tools.policy.initial, knowledge.tools.write("list", {}), result)
    assert len(memory["ID"]) == 20_001 and list(memory["thing"]) == ["order 10"]
    now = knowledge.bind_view(knowledge.tools.view(memory))
    assert now.judge({"name": "act", "arguments": {"x": "order 10"}})
    assert not now.judge({"name": "act", "arguments": {"x": "order 1"}})


def test_names_beyond_ascii_are_written_as_they_are():
    knowledge = one_tool("//: needs größe in ID", größe={"type": "string"})
    assert told(knowledge, '{"ids": ["ü"]}').judge({"name": "act", "arguments": {"größe": "ü"}})
    assert ActionKnowledge.from_tools(named("größe", x={"const": 1})).judge({"name": "größe", "arguments": {"x": 1}})


def test_a_result_that_json_cannot_say_is_one_clear_error():
    with pytest.raises(KnowledgeError, match="the result of list is of type bytes"):
        told(one_tool(id={"type": "string"}), b"{}")


def test_a_policy_of_needs_alone_is_no_world():
    knowledge = one_tool('//: needs id == "x"', id={"type": "string"})
    assert knowledge.world is None
    assert [text for text in told(knowledge, "{}").next_actions() if "act" in text] == [
        '{"name": "act", "arguments": {"id": "x"}}'
    ]


@pytest.mark.parametrize("name", ["getOrder", "get-order", "get.order"])
def test_a_rule_is_named_after_its_tool_in_lower_case(name, tmp_path, capsys):
    rule = re.sub(r"\W", "_", name.lower())
    policy = (
        f'%declare _STEP {rule.upper()}\nstart: {rule}\n//: needs id == "x"\n{rule}: {rule.upper()} _STEP [start]\n'
    )
    tools = [{**named(name, id={"type": "string"})[0], "description": "Look."}]
    knowledge = ActionKnowledge.from_tools(tools, policy=policy)
    now = knowledge.bind_view(knowledge.tools.view(knowledge.tools.policy.initial))
    assert now.judge({"name": name, "arguments": {"id": "x"}})
    assert not now.judge({"name": name, "arguments": {"id": "y"}})
    assert "Look." in knowledge.to_text()
    (tmp_path / "p.lark").write_text(policy)
    (tmp_path / "tools.json").write_text(json.dumps(tools))
    assert main(["check", str(tmp_path / "p.lark"), "--tools", str(tmp_path / "tools.json")]) == 0


@pytest.mark.parametrize(
    ("tools", "told"),
    [
        (named("act", id={"x-slot": 5}), "5 is not a slot"),
        (named("act", id={"x-slot": "a b"}), "'a b' is not a slot"),
        (named("act", id={"anyOf": [{"x-slot": "ID"}]}), "where no argument can be found"),
        (named("act", "ACT"), "the same slot ACT"),
    ],
)
def test_tools_that_a_policy_cannot_be_joined_with(tools, told):
    with pytest.raises(KnowledgeError, match=told):
        ActionKnowledge.from_tools(tools, policy="%declare _STEP ACT\nstart: act\nact: ACT _STEP [start]\n")


@pytest.mark.parametrize("condition", ["id in range(0, 100000000)", "sum(range(0, 1000000000)) > 1", "f(1)", "g(g(1))"])
def test_what_costs_too_much_is_one_clear_error(condition):
    long = " + ".join(["range_of()"] * 2)
    lines = f"//: let f(x) = f(x)\n//: let range_of() = [k for k in range(0, 1500000)]\n//: let g(x) = len({long})\n"
    with pytest.raises(KnowledgeError, match="without end|more than 2,000,000"):
        told(one_tool(f"{lines}//: needs {condition}", id={"type": "integer"}), "{}")


def test_a_regular_expression_that_takes_too_long_is_one_clear_error(monkeypatch):
    monkeypatch.setattr(expression, "MAX_SECONDS", 0.05)
    text = "a" * 60 + "b"
    with pytest.raises(KnowledgeError, match=r"'\(a\|aa\)\+\$' takes more than 0.05 s on a text of 61 characters"):
        told(one_tool(f'//: needs search("(a|aa)+$", "{text}")', id={"type": "string"}), "{}")


def test_some_of_a_policys_tools():
    """The others are not called; of their calls in the path, the policy's own conditions are judged."""
    tools = [
        {"name": "getOrder", "parameters": {"properties": {"id": {"type": "string"}}, "required": ["id"]}},
        {"name": "cancel", "parameters": {"properties": {"id": {"type": "string"}}, "required": ["id"]}},
    ]
    policy = """
%declare _STEP GETORDER CANCEL
//: tells seen[@.id] = $ by getorder
start: getorder | cancel
getorder: GETORDER _STEP [start]
//: needs id in keys(seen) // it was never looked up
cancel: CANCEL _STEP [start]
"""
    with pytest.raises(KnowledgeError, match="the policy names 'cancel', which is not a tool"):
        ActionKnowledge.from_tools(tools[:1], policy=policy)
    with pytest.raises(KnowledgeError, match="there are no tools"):
        ActionKnowledge.from_tools([], policy=policy)
    for offered in ([], tools[:1], tools[1:]):
        box = (knowledge := ActionKnowledge.from_tools(offered, policy=policy, some=True)).tools
        memory = box.policy.initial
        assert box.unmet(memory, "getOrder", {"id": "A"}) == []
        assert box.unmet(memory, "cancel", {"id": "A"}) == ["it was never looked up"]
        memory = box.named("getOrder").told(memory, "getOrder", {"id": "A"}, '{"id": "A"}')
        assert box.unmet(memory, "cancel", {"id": "A"}) == []
        assert box.unmet(memory, "cancel", {"id": "B"}) == ["it was never looked up"]
        bound = knowledge.bind_view(box.view(memory))
        assert bool(bound.judge({"name": "cancel", "arguments": {"id": "A"}})) == (offered == tools[1:])
        assert bool(bound.judge({"name": "getOrder", "arguments": {"id": "A"}})) == (offered == tools[:1])
