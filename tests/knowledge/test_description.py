"""What the model reads, from the file's own rules and comments."""

import lark
import pytest

from constrained import ActionKnowledge
from constrained.automaton import Grammar
from constrained.grammar import STEP, shipped_names
from constrained.grammar.source import SHIPPED

KNOWLEDGE = [name for name in shipped_names() if STEP in Grammar.from_lark(name).slots and not name.startswith("tau_")]
"""The definitions of tau-bench's actions are those of its tools."""

COMMENTED = """
// Not the overview: a blank line parts it.

// First line of the overview,
//second line.
%declare _STEP   // a comment after a line defines nothing

// Do the task.
// It has two steps.
start: first

# first: the sharp sign begins a comment too.
first: "A" _STEP (second | _and_so_on)

// gone: "X"

?second: "B" _STEP
       | "C"
_and_so_on: "D"   // not this one
"""


@pytest.mark.parametrize("name", shipped_names())
def test_lark_itself_loads_what_ships(name):
    file = SHIPPED / f"{name}.lark"
    lark.Lark(file.read_text(), source_path=str(file), import_paths=[str(SHIPPED)])


def test_text_of_hotpotqa():
    knowledge = ActionKnowledge.from_lark("hotpotqa")
    overview, rules, actions, principle = knowledge.to_text().split("\n\n")
    assert overview == knowledge.comments["start"] != ""
    assert rules.splitlines() == [
        "What may follow what:",
        "  start    -> retrieve, search",
        "  retrieve -> retrieve, search, lookup, finish",
        "  search   -> search, retrieve, lookup, finish",
        "  lookup   -> lookup, search, retrieve, finish",
        "  finish   -> nothing: the plan is over",
    ]
    assert actions.splitlines()[0] == "The actions:"
    for n, (line, start) in enumerate(zip(actions.splitlines()[1:], (
        "retrieve: Retrieve[entity]", "search: Search[topic]", "lookup: Lookup[keyword]", "finish: Finish[answer]",
    )), 1):  # fmt: skip
        assert line.startswith(f"({n}) {start} ")
    assert principle.startswith("Plan one action at a time.") and "ActionPath" in principle


def test_comments_directly_above_a_rule_are_its_words():
    knowledge = ActionKnowledge.from_lark(COMMENTED)
    assert knowledge.actions == {
        "first": "first: the sharp sign begins a comment too.", "second": "", "_and_so_on": "",
    }  # fmt: skip
    text = knowledge.to_text()
    assert text.startswith("Do the task. It has two steps.\n\nWhat may follow what:\n  start ")
    assert "  second     -> nothing: the plan is over\n" in text
    assert "(2) second\n(3) _and_so_on\n" in text


def test_an_action_that_may_be_the_last_or_not_says_so():
    text = ActionKnowledge.from_lark('%declare _STEP\nstart: a\na: "A" _STEP [a]\n').to_text()
    assert "  a     -> a (or the plan ends)" in text


def test_where_order_does_not_matter_one_line_says_so():
    def order(after: str) -> list[str]:
        ways = f'%declare _STEP\nstart: | a | b\na: "A" _STEP {after}\nb: "B" _STEP start\n'
        return ActionKnowledge.from_lark(ways).to_text().split("\n\n")[0].splitlines()[1:]

    assert order("start") == ["  any action may come first, and after any other (or the plan ends)"]
    assert order("[b]") == ["  start -> a, b (or the plan ends)", "  a     -> b (or the plan ends)",
                            "  b     -> a, b (or the plan ends)"]  # fmt: skip


@pytest.mark.parametrize("name", KNOWLEDGE)
def test_the_text_names_every_action_and_its_definition(name):
    knowledge = ActionKnowledge.from_lark(name)
    text = knowledge.to_text()
    for number, (action, definition) in enumerate(knowledge.actions.items(), 1):
        assert definition
        assert f"({number}) {definition}" in text
        assert f"  {action} " in text or "  any action may come first, and after any other" in text
