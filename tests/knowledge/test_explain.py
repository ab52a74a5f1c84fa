"""What may come next and which rule says so; of what does not fit, where it dies and why."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained import Grammar
from constrained.grammar import read_lark, read_source
from constrained.grammar.source_map import SourceMap
from constrained.knowledge import ActionKnowledge
from constrained.knowledge.explain import explain_path, explain_text


def explain(name, path, last=None, **values):
    return explain_path(ActionKnowledge.from_lark(name, source_map=True).bind(**values), path, last)


def explain_plain(text_of_grammar, text, **values):
    written = SourceMap(read_lark(read_source(text_of_grammar)))
    return explain_text(Grammar.from_rules(written.read).bind(**values), written, text)


def said(explanation):
    """(what may come, rule, what stands at the caret) of everything expected."""
    return [(e.text, e.spot.rule, at_caret(e.spot)) if e.spot else (e.text, None, None) for e in explanation.expected]


def at_caret(spot):
    line, caret = spot.context.splitlines()
    assert caret.strip() == "^" and len(caret) == spot.column
    return line[spot.column - 1 :].split()[0]


def test_an_action_begun():
    found = explain("hotpotqa", "Search[x]->Look")
    assert found.ok and found.verdict == "unfinished" and [step.action for step in found.path] == ["search"]
    assert said(found) == [("'up['", "lookup", '"Lookup["')]


def test_inside_an_argument_the_terminal_and_its_rule_are_named():
    found = explain("hotpotqa", "Search[Milhouse")
    assert said(found) == [("']'", "search", '"]"'), ("/[^\\n\\]]{0,192}/", "search", "/[^\\]\\n]{1,200}/")]
    assert [e.kind for e in found.expected] == ["text", "characters"]
    assert str(found.expected[1].spot).startswith("TEXT in rule search, hotpotqa.lark:")


def test_a_character_cut_in_two():
    """The command line gives characters, but the engine reads bytes."""
    grammar = 'start: "é" /[éè]{2}/\n'
    assert [e.text for e in explain_plain(grammar, "éè").expected] == ["/[èé]/"]
    assert explain_plain(grammar, "éa").reason == "stops fitting after 'é': 'a' can't come there"


PIECES = [
    "Search[a]",
    "Lookup[b]",
    "Finish[c]",
    "Retrieve[d->e]",
    "Look",
    "Search[x",
    "Jump[y]",
    "search[a]",
    "Search[]",
    "",
]


@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=4))
@settings(max_examples=60)
def test_a_path_is_explained_as_it_is_judged(actions):
    """What `check` says of each action, and `is_prefix` of one only begun, is what is said here."""
    found = explain("hotpotqa", "->".join(actions))
    place = ActionKnowledge.from_lark("hotpotqa")
    for judgement in found.path:
        assert place.judge(judgement.text)
        place = place.after(judgement.text)
    last = place.judge(found.text)
    begun = found.text == "" or (bool(place.may_follow) and place.next_action().is_prefix(found.text))
    assert found.ok == (bool(last) or begun)
    if last:
        assert found.follow == place.after(found.text).may_follow
    elif not begun:
        assert found.verdict == last.verdict or "how " in found.reason


def test_a_path_of_thousands_of_arrows_is_read_in_one_pass():
    found = explain("hotpotqa", "Search[a]" + "->" * 20_000)
    assert [step.text for step in found.path] == ["Search[a]"] and (found.text, found.verdict) == ("->", "invalid")


def test_another_rule_to_start_from():
    knowledge = ActionKnowledge.from_lark('%declare _STEP\nmain: a\na: "a" _STEP b\nb: "b"\n', "main", source_map=True)
    found = explain_path(knowledge, "b")
    assert found.verdict == "misordered" and found.said_by.rule == "main"


def test_a_whole_action_and_what_may_follow():
    found = explain("hotpotqa", "Search[x]")
    assert found.verdict == "complete" and not found.path and not found.may_end
    assert found.follow == ["search", "retrieve", "lookup", "finish"]
    assert found.said_by.rule == "search" and at_caret(found.said_by) == "_STEP"
    assert said(found) == [("the end of the action", "search", "_STEP")]
    over = explain("hotpotqa", "Search[x]->Finish[y]")
    assert over.follow == [] and over.may_end


@pytest.mark.parametrize("path", ["", "Start", "Start->"])
def test_at_the_start(path):
    found = explain("hotpotqa", path)
    assert found.follow == ["retrieve", "search"] and found.said_by.rule == "start"
    assert [rule for _, rule, _ in said(found)] == ["retrieve", "search"]


def test_a_misordered_action_is_said_by_the_rule_before_it():
    found = explain("hotpotqa", "Search[x]->Finish[y]->Lookup[z]")
    assert (found.verdict, found.said_by.rule) == ("misordered", "finish")
    assert found.reason == "lookup is not admitted after 'Finish[y]'; may follow: nothing" and not found.expected
    found = explain("hotpotqa", "Lookup[z]")
    assert (found.verdict, found.said_by.rule) == ("misordered", "start")
    assert [text for text, *_ in said(found)] == ["'Retrieve['", "'Search['"]


def test_an_action_only_begun_can_be_misordered():
    found = explain("hotpotqa", "Look")
    assert found.verdict == "misordered" and "how lookup begins" in found.reason and "retrieve, search" in found.reason


def test_where_an_action_dies_what_was_expected_there():
    found = explain("hotpotqa", "Search[x]->Looking")
    assert (found.verdict, found.read) == ("invalid", b"Look")
    assert said(found) == [("'up['", "lookup", '"Lookup["')]


@pytest.mark.parametrize(
    "text, meant",
    [("search[x]", ["Search["]), ("Serach[x]", ["Search["]), ("Retreive[y]", ["Retrieve["]), ("Calculate[1]", [])],
)
def test_what_may_have_been_meant(text, meant):
    assert explain("hotpotqa", text).meant == meant


def test_what_comes_after_a_wrong_action_is_not_looked_at():
    found = explain("hotpotqa", "Search[a]->Jump[b]->Search[c]")
    assert [step.text for step in found.path] == ["Search[a]"] and found.text == "Jump[b]"


def test_an_argument_may_hold_an_arrow():
    found = explain("hotpotqa", "Search[a->b]->Search[c -> d")
    assert [step.text for step in found.path] == ["Search[a->b]"] and found.text == "Search[c -> d"
    assert found.verdict == "unfinished"


def test_arrows_may_have_blanks_around_them():
    found = explain("hotpotqa", "Start->Search[a] -> Lookup[b] -> Fin")
    assert [step.text for step in found.path] == ["Search[a]", "Lookup[b]"] and found.text == "Fin" and found.ok


def test_the_last_action_taken_as_it_stands():
    found = explain("hotpotqa", "Search[a]", "Search[b]->")
    assert (found.text, found.verdict, len(found.path)) == ("Search[b]->", "invalid", 1)
    assert explain("hotpotqa", "", "Search[b]").verdict == "complete"
    assert explain("hotpotqa", "Lookup[a]", "Search[b]").text == "Lookup[a]"


HOUSE = dict(
    RECEPTACLE=["desk 1", "desk 10"], OBJECT={"desk 1": ["mug 1", "mug 2"]}, REACH={"desk 1": ["desk 1"]},
    **{slot: {} for slot in "CLOSED OPENED FITS CLEANER HEATER COOLER LAMP SLICEABLE EXAMINABLE".split()},
)  # fmt: skip


def test_values_are_named_by_their_slot_through_templates():
    found = explain("household", "go to desk 1->take mug", **HOUSE)
    (value,) = found.expected
    assert (value.kind, value.slot, value.text, value.count) == ("value", "OBJECT", "' 1', ' 2'", 2)
    assert (value.spot.rule, at_caret(value.spot)) == ("take", "o")
    found = explain("household", "go to desk 1->take mug 1 from ", **HOUSE)
    assert [(e.slot, e.text) for e in found.expected] == [("REACH", "'desk 1'")]


def test_a_place_between_actions_is_seen_through():
    found = explain("household", "go to desk 1->", **HOUSE)
    assert found.may_end and found.follow == ["goto", "take", "look", "inventory"]
    assert {e.spot.rule for e in found.expected if e.spot} == {"goto", "take", "look", "inventory"}


LIST = """start: "[" items "]"
items: items "," NAME | NAME
NAME: /[a-z]/
%ignore " "
"""


def test_a_grammar_without_actions_with_left_recursion_and_ignored_blanks():
    found = explain_plain(LIST, "[a , b")
    assert found.ok and found.verdict == "unfinished"
    assert set(said(found)) == {
        ("']'", "start", '"]"'),
        ("','", "items", '","'),
        ("' '", "start", '"'),
        ("' '", "items", '"'),
    }
    assert {e.spot.definition for e in found.expected} == {"start", "items", "%ignore"}
    assert explain_plain(LIST, "[a]").verdict == "complete"
    died = explain_plain(LIST, "[a,]")
    assert died.verdict == "invalid" and died.read == b"[a," and died.reason.endswith("']' can't come there")
    assert ("/[a-z]/", "items", "/[a-z]/") in said(died)


def test_rules_that_share_a_terminal_are_told_apart():
    grammar = 'start: one | two\none: "1" T\ntwo: "2" T\nT: /[a-z]/\n'
    assert said(explain_plain(grammar, "1")) == [("/[a-z]/", "one", "/[a-z]/")]
    assert said(explain_plain(grammar, "2")) == [("/[a-z]/", "two", "/[a-z]/")]


def test_an_imported_definition_is_shown_in_its_own_file():
    found = explain_plain("start: NUMBER\n%import common.NUMBER\n", "")
    assert {(e.spot.rule, e.spot.source.name) for e in found.expected} == {("start", "common.lark")}
    digit = next(e.spot for e in found.expected if e.text == "/[0-9]+/")
    assert digit.definition == "common.DIGIT" and digit.context.startswith("DIGIT: ") and at_caret(digit) == '"0".."9"'


def test_a_template_given_another_template_is_told_by_its_own_name():
    text = 'start: twice{quoted}\ntwice{t}: t{"a"} t{"b"}\nquoted{x}: "<" x ">"\n'
    assert said(explain_plain(text, "<a>")) == [("'<'", "quoted", '"<"')]


def test_a_long_text_is_cut_short():
    (expected,) = explain_plain(f'start: "{"x" * 5000}"\n', "xx").expected
    assert expected.text == f"'{'x' * 80}'... (4,998 characters)"


def test_as_data():
    data = explain("hotpotqa", "Search[x]->Look").to_dict()
    assert data["ok"] and data["read"] == "Look" and data["path"][0]["action"] == "search"
    assert data["expected"][0]["spot"]["line"] == 14 and data["said_by"] is None


def test_names_in_texts_and_comments_are_not_taken_for_the_slot():
    found = explain_plain('%declare N\nstart: "N" /N\\/x/ N  // N comes last\n', "NN/x", N=["1", "2"])
    (value,) = found.expected
    assert (value.slot, value.spot.line, value.spot.column) == ("N", 2, 19)


def test_a_step_in_a_comment_says_nothing():
    text = '%declare _STEP\nstart: a\na: "a" _STEP b\nb: "b"  // no _STEP\n'
    assert explain(text, "a->b->").said_by.column == 1


def test_a_place_further_on_is_explained_from_there_in_another_process_too():
    knowledge = ActionKnowledge.from_lark("hotpotqa", source_map=True).after("Search[x]")
    for place in (knowledge, pickle.loads(pickle.dumps(knowledge))):
        found = explain_path(place, "Loop")
        assert found.verdict == "invalid"
        assert [(e.text, e.spot.rule, at_caret(e.spot)) for e in found.expected] == [("'kup['", "lookup", '"Lookup["')]
        assert explain_path(place, "").said_by.rule == "search"
