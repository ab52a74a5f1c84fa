"""The action graph: which rules are actions, what may follow which, where a path may end; as the masks have it."""

import pytest

from constrained import ActionKnowledge
from constrained.errors import GrammarError, KnowledgeError

HOTPOTQA = {
    "start": {"search", "retrieve"},
    "retrieve": {"retrieve", "search", "lookup", "finish"},
    "search": {"search", "retrieve", "lookup", "finish"},
    "lookup": {"lookup", "search", "retrieve", "finish"},
    "finish": set(),
}
"""KnowAgent, Table 6."""

SHAPES = {
    "one after the other": 'start: a b\na: "A" _STEP\nb: "B"',
    "one may be left out": 'start: a [b] c\na: "A" _STEP\nb: "B" _STEP\nc: "C"',
    "repeated by the rule above": 'start: (a _STEP)* b\na: "A"\nb: "B"',
    "repeated so and so often": 'start: (a _STEP)~2..3\na: "A" | "B"',
    "recursion": 'start: a\na: "A" _STEP (a | b)\nb: "B"',
    "may go on or stop": 'start: a\na: "A" (_STEP b | _STEP c | )\nb: "B" _STEP\nc: "C" _STEP a',
    "chosen in rules between": 'start: any\nany: a | b\na: "A" _STEP any\nb: "B" _STEP last\nlast: | c\nc: "C"',
    "what follows is a parameter": 'start: f{a} | f{b}\nf{then}: "F" _STEP then\na: "A" _STEP start\nb: "B"',
    "a parameter in a parameter": 'start: f{g{a}}\nf{t}: "F" _STEP t\ng{t}: "G" _STEP t\na: "A" _STEP | "B"',
    "an action named end": 'start: a\na: "A" _STEP (a | end)\nend: "B"',
    "a part of an action is no action": 'start: a\na: "A" letter _STEP [a]\nletter: "B" | "C"',
}


def test_hotpotqa_is_exactly_the_papers_table():
    knowledge = ActionKnowledge.from_lark("hotpotqa")
    assert {action: set(after) for action, after in knowledge.rules.items()} == HOTPOTQA
    assert all(len(set(after)) == len(after) for after in knowledge.rules.values())
    assert list(knowledge.actions) == ["retrieve", "search", "lookup", "finish"]
    assert knowledge.graph.may_end == {"finish"}


def walk(knowledge, last, depth, edges, ends):
    """Try every text of up to two of the letters A to G as the next action."""
    if knowledge.may_end:
        ends.add(last)
    for text in [*LETTERS, *(a + b for a in LETTERS for b in LETTERS)] if depth else []:
        judgement = knowledge.judge(text)
        if judgement:
            edges.setdefault(last, set()).add(judgement.action)
            walk(knowledge.after(text), judgement.action, depth - 1, edges, ends)


LETTERS = "ABCFG"


@pytest.mark.parametrize("shape", SHAPES)
def test_the_graph_is_what_paths_really_do(shape):
    knowledge = ActionKnowledge.from_lark("%declare _STEP\n" + SHAPES[shape] + "\n")
    edges, ends = {}, set()
    walk(knowledge, "start", 5, edges, ends)
    assert {name: set(after) for name, after in knowledge.rules.items() if after} == edges
    assert knowledge.graph.may_end == ends


def test_rules_out_of_reach_are_no_actions_and_change_nothing():
    knowledge = ActionKnowledge.from_lark(
        '%declare _STEP\nstart: a\na: "A" _STEP [b]\nb: "B"\nlost: "L" _STEP b _STEP a\n'
    )
    assert knowledge.rules == {"start": ("a",), "a": ("b",), "b": ()}


def test_places_are_drawn_as_places_only_where_all_actions_lead_to_one():
    household = ActionKnowledge.from_lark("household").graph
    places = household.choice_points()
    assert {name for actions in places.values() for name in actions} == set(household.actions)
    assert places[("at", "holding")] == ["take"] and places[("holding", "at")] == ["put"]
    assert ActionKnowledge.from_lark("hotpotqa").graph.choice_points() is None
    with_last = '%declare _STEP\nstart: | go\nat: | go | done\ngo: "A" _STEP at\ndone: "B"\n'
    assert ActionKnowledge.from_lark(with_last).graph.choice_points() is None  # done leads nowhere
    optional = '%declare _STEP\nstart: [go]\nat: [go | stay]\ngo: "A" _STEP at\nstay: "B" _STEP at\n'
    assert ActionKnowledge.from_lark(optional).graph.choice_points() == {
        ("start", "at"): ["go"],
        ("at", "at"): ["go", "stay"],
    }


@pytest.mark.parametrize(
    "text, message",
    [
        ("start: \n", "there are no actions"),
        ('start: "a" | "b"\n', "start is an action itself"),
        ('%declare _STEP\nstart: "A" _STEP [start]\n', "start is an action itself"),
        ('%declare _STEP\nstart: "A" _STEP a\na: "B"\n', "start is an action itself"),
    ],
)
def test_knowledge_without_actions_of_its_own_is_refused(text, message):
    with pytest.raises(KnowledgeError, match=message) as caught:
        ActionKnowledge.from_lark(text)
    assert "rule that writes text" in caught.value.hint


def test_another_start_than_start():
    text = '%declare _STEP\n// Over.\nplan: a\n// a: does it.\na: "A" _STEP [a]\n'
    knowledge = ActionKnowledge.from_lark(text, start="plan")
    assert knowledge.rules == {"start": ("a",), "a": ("a",)}
    assert knowledge.to_text().startswith("Over.")


def test_what_no_path_can_finish_is_refused_with_its_place():
    with pytest.raises(GrammarError, match="can ever be complete") as caught:
        ActionKnowledge.from_lark('%declare _STEP\nstart: a\na: "A" _STEP b\nb: "B" _STEP a\n')
    assert caught.value.line == 2 and "give the cycle an end" in caught.value.hint


def test_only_some_actions_leave_paths_that_may_end_where_others_stood():
    knowledge = ActionKnowledge.from_lark("hotpotqa").only(["search", "lookup"], "Look things up.")
    assert knowledge.rules == {"start": ("search",), "search": ("search", "lookup"), "lookup": ("lookup", "search")}
    assert knowledge.graph.may_end == {"start", "search", "lookup"}
    assert knowledge.to_text().startswith("Look things up.") and "Finish" not in knowledge.to_text()
    after = knowledge.after("Search[x]")
    assert after.next_action().matches("Lookup[x]") and not after.next_action().matches("Finish[x]")
    assert after.may_end and after.judge("Finish[x]").verdict == "invalid"
    house = ActionKnowledge.from_lark("household").only(["goto", "open"], "Look.")
    house = house.bind_view({"RECEPTACLE": ["desk 1"], "CLOSED": {"desk 1": ["desk 1"]}})
    assert house.check(["go to desk 1", "open desk 1"]).finished
    assert [j.verdict for j in house.check(["go to desk 1", "look"]).steps] == ["ok", "invalid"]


def test_only_actions_that_are_there_can_be_left():
    knowledge = ActionKnowledge.from_lark("hotpotqa")
    with pytest.raises(KnowledgeError, match="no action 'fly'"):
        knowledge.only(["search", "fly"], "x")
    with pytest.raises(KnowledgeError, match="no path begins with lookup"):
        knowledge.only(["lookup"], "x")
    with pytest.raises(KnowledgeError):
        knowledge.only([], "x")


def test_a_chain_of_actions_may_be_longer_than_the_interpreter_s_stack():
    rules = "".join(f'a{i}: "x{i}" _STEP a{i + 1}\n' for i in range(1500))
    knowledge = ActionKnowledge.from_lark(f'%declare _STEP\nstart: a0\n{rules}a1500: "end"\n')
    assert knowledge.actions == {f"a{i}": "" for i in range(1501)}
    assert knowledge.rules["a700"] == ("a701",)
    assert knowledge.check(["x0", "x1", "x3"]).verdicts == ["ok", "ok", "misordered"]
