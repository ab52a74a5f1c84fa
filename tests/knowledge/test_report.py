"""`check`: each action is ok, invalid or misordered, with the reason, and how the path continues after it."""

import json

import pytest

from constrained import ActionKnowledge
from constrained.environments.household import HouseholdEnv
from constrained.errors import GrammarError, KnowledgeError
from constrained.knowledge.commands import slot_values
from tests.environments.household.small_house import small_house


@pytest.fixture(scope="module")
def hotpotqa():
    return ActionKnowledge.from_lark("hotpotqa")


def in_house(*done):
    """household.lark at the place that these actions lead to, and the game there.

    Its view says what could be taken even with a full hand: what was listed last.
    """
    env, knowledge = HouseholdEnv(small_house()), ActionKnowledge.from_lark("household")
    view = slot_values(knowledge.grammar, env.admissible())
    knowledge = knowledge.bind_view(view)
    for action in done:
        env.step(action)
        assert env.had_effect, action
        knowledge = knowledge.after(action)
        view = {slot: view.get(slot, {}) for slot in ("OBJECT", "REACH")} | slot_values(
            knowledge.grammar, env.admissible()
        )
        knowledge = knowledge.bind_view(view)
    return knowledge, env


def test_a_path_as_the_paper_has_it(hotpotqa):
    report = hotpotqa.check(["Search[Milhouse]", "Lookup[named after]", "Finish[Richard Nixon]"])
    assert report.ok and report.finished
    assert report.verdicts == ["ok"] * 3
    assert [j.action for j in report] == ["search", "lookup", "finish"]
    assert [j.reason for j in report] == [""] * 3


def test_an_unfinished_path_is_ok_but_not_finished(hotpotqa):
    report = hotpotqa.check(["Search[Milhouse]"])
    assert report.ok and not report.finished
    assert hotpotqa.check([]).ok and not hotpotqa.check([]).finished


def test_misordered_an_action_the_rules_do_not_admit_here(hotpotqa):
    report = hotpotqa.check(["Lookup[x]"])
    assert report.verdicts == ["misordered"] and report.misordered == 1 and not report.ok
    assert report[0].action == "lookup"
    assert report[0].reason == "lookup is not admitted at the start; may follow: retrieve, search"
    last = hotpotqa.check(["Search[a]", "Finish[b]", "Search[c]"])[2]
    assert last.verdict == "misordered"
    assert last.reason == "search is not admitted after 'Finish[b]'; may follow: nothing"


INVALID = {
    "Calculate[1+1]": (None, "no admitted action begins like this; the actions are retrieve, search, lookup, finish"),
    "Serch[x]": ("search", "stops fitting after 'Se', expected 'arch['"),
    "Search[x": ("search", "stops fitting after 'Search[x', expected /[^\\n\\]]{0,199}/, ']'"),
    "Search[x]y": ("search", "stops fitting after 'Search[x]', expected nothing more"),
    "Search[]": ("search", "stops fitting after 'Search[', expected /[^\\n\\]]{1,200}/"),
    "search[x]": (None, "no admitted action begins like this"),
    "Search[a\nb]": ("search", "stops fitting after 'Search[a'"),
    " Search[x]": (None, "no admitted action begins like this"),
    "": (None, "no admitted action begins like this"),
    "Search[" + "é" * 201 + "]": ("search", "expected ']'"),
}


@pytest.mark.parametrize("action", INVALID)
def test_invalid_no_such_action_or_arguments_that_do_not_fit(hotpotqa, action):
    name, reason = INVALID[action]
    judgement = hotpotqa.judge(action)
    assert judgement.verdict == "invalid" and judgement.action == name
    assert reason in judgement.reason
    assert not judgement


def test_after_an_invalid_action_the_place_is_unchanged(hotpotqa):
    report = hotpotqa.check(["Lookp[x]", "Lookup[x]", "Search[a]", "Calculate[2]", "Lookup[b]", "Finish[c]"])
    assert report.verdicts == ["invalid", "misordered", "ok", "invalid", "ok", "ok"]
    assert (report.invalid, report.misordered, report.finished) == (2, 1, True)


def test_a_misordered_action_counts_once_and_the_path_goes_on_after_it(hotpotqa):
    report = hotpotqa.check(["Finish[x]"])
    assert report.verdicts == ["misordered"] and report.finished
    report = hotpotqa.check(["Lookup[x]", "Lookup[y]", "Finish[z]", "Search[a]", "Finish[b]"])
    assert report.verdicts == ["misordered", "ok", "ok", "misordered", "ok"]


def test_a_misordered_action_that_leads_back_leaves_the_place_as_it_is():
    """What follows open is a parameter: where open may not come, it leads back to where one is."""
    knowledge = ActionKnowledge.from_lark(
        '%declare _STEP\nstart: go\nat: | open{at} | take\ngo: "A" _STEP at\n'
        'open{then}: "B" _STEP then\ntake: "C" _STEP start\n'
    )
    assert knowledge.check(["B", "A", "B", "C", "B", "A"]).verdicts == [
        "misordered", "ok", "ok", "ok", "misordered", "ok",
    ]  # fmt: skip


def test_arguments_that_are_there_but_not_now_are_misordered_and_others_invalid():
    knowledge, _ = in_house("go to table 1", "take knife 1 from table 1")
    verdicts = {
        "put knife 1 in/on table 1": "ok",
        "take mug 1 from shelf 1": "misordered",  # it lies there, but the hand is full
        "take box 1 from cabinet 2": "invalid",  # not in reach
        "put mug 1 in/on table 1": "misordered",  # could have been taken
        "put box 1 in/on table 1": "invalid",  # could not
        "put knife 1 in/on fridge 1": "invalid",
        "put knife 1 in/on ": "invalid",
        "open table 1": "invalid",
        "clean knife 1 with sinkbasin 1": "invalid",
        "go to table 1": "invalid",  # one is there
        "dance": "invalid",
    }
    assert {action: knowledge.judge(action).verdict for action in verdicts} == verdicts


def test_reasons_name_what_could_stand_there():
    knowledge, _ = in_house("go to table 1", "take knife 1 from table 1")
    reason = {a: knowledge.judge(a).reason for a in (
        "take mug 1 from shelf 1", "put mug 1 in/on table 1", "put knife 1 in/on shelf 1", "open table 1", "go to mars",
    )}  # fmt: skip
    assert reason["take mug 1 from shelf 1"] == (
        "take is not admitted after 'take knife 1 from table 1'; "
        "may follow: carry, put, slice, use, examine, look, inventory"
    )
    assert reason["put mug 1 in/on table 1"] == (
        "put with these arguments is not admitted after 'take knife 1 from table 1': "
        "stops fitting after 'put ', expected 'knife 1'"
    )
    assert reason["put knife 1 in/on shelf 1"] == "stops fitting after 'put knife 1 in/on ', expected 'table 1'"
    assert reason["open table 1"] == "stops fitting after 'open ': nothing is there now that could stand here"
    assert reason["go to mars"].startswith("stops fitting after 'go to m', expected 'icrowave 1'")


def test_an_action_is_named_by_what_it_is_here_where_two_write_the_same():
    knowledge, _ = in_house("go to table 1")
    assert knowledge.judge("go to fridge 1").action == "goto"
    knowledge, _ = in_house("go to table 1", "take knife 1 from table 1", "look", "use desklamp 1")
    assert knowledge.judge("go to fridge 1").action == "carry"
    assert knowledge.after("go to fridge 1").judge("take mug 1 from shelf 1").reason == (
        "take is not admitted after 'go to fridge 1'; may follow: carry, look, inventory"
    )


def test_a_report_as_data_and_as_text(hotpotqa):
    report = hotpotqa.check(["Search[a]", "Searching"])
    data = json.loads(json.dumps(report.to_dict()))
    assert data["invalid"] == 1 and data["misordered"] == 0 and not data["ok"] and not data["finished"]
    assert data["steps"][1] == {
        "text": "Searching", "verdict": "invalid", "action": "search",
        "reason": "stops fitting after 'Search', expected '['",
    }  # fmt: skip
    assert len(report) == 2 and report[0].text == "Search[a]"
    assert str(report).splitlines()[0].split() == ["1", "ok", "Search[a]"]
    assert str(report).endswith("the path is not finished")


def test_what_is_no_list_of_texts_is_refused(hotpotqa):
    with pytest.raises(KnowledgeError, match="a path is a list of actions"):
        hotpotqa.check("Search[a]")
    with pytest.raises(KnowledgeError, match="an action is text, not int"):
        hotpotqa.check([3])
    with pytest.raises(KnowledgeError, match=r"'Search\[\\udc80\]' has a lone surrogate"):
        hotpotqa.check(["Search[\udc80]"])


def test_slots_that_were_not_bound_are_named():
    with pytest.raises(GrammarError, match="slot CLEANER is not bound") as caught:
        ActionKnowledge.from_lark("household").check(["look"])
    assert "RECEPTACLE=[...]" in caught.value.hint


def test_names_where_actions_are_joined_by_the_rules_above_them():
    knowledge = ActionKnowledge.from_lark(
        '%declare _STEP\nstart: y\ny: "A" _STEP x* z\nx: "B" _STEP\nz: "A" _STEP last\nlast: "C" _STEP | "B"\n'
    )
    report = knowledge.check(["A", "B", "B", "A", "B"])
    assert [j.action for j in report] == ["y", "x", "x", "z", "last"] and report.ok and report.finished
    assert knowledge.check(["A", "A", "C", "A"])[3].reason == "y is not admitted after 'C'; may follow: nothing"
