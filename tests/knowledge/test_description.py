"""What the model reads, from the file's own rules and comments."""

import re

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
        "  start -> retrieve, search",
        "  retrieve, search, lookup -> retrieve, search, lookup, finish",
        "  finish -> the end",
    ]
    assert actions.splitlines()[0] == "The actions:"
    for n, (line, start) in enumerate(zip(actions.splitlines()[1:], (
        "retrieve: Retrieve[entity]", "search: Search[topic]", "lookup: Lookup[keyword]", "finish: Finish[answer]",
    )), 1):  # fmt: skip
        assert line.startswith(f"({n}) {start} ")
    assert principle.startswith("Plan one action at a time.")


def test_comments_directly_above_a_rule_are_its_words():
    knowledge = ActionKnowledge.from_lark(COMMENTED)
    assert knowledge.actions == {
        "first": "first: the sharp sign begins a comment too.", "second": "", "_and_so_on": "",
    }  # fmt: skip
    text = knowledge.to_text()
    assert text.startswith("Do the task. It has two steps.\n\nWhat may follow what:\n  start ")
    assert "  second, _and_so_on -> the end\n" in text
    assert "(2) second\n(3) _and_so_on. It is written: D\n" in text


def test_an_action_that_may_be_the_last_or_not_says_so():
    text = ActionKnowledge.from_lark('%declare _STEP\nstart: a\na: "A" _STEP [b]\nb: "B"').to_text()
    assert "  start -> a\n  a -> b, or the end\n  b -> the end\n" in text


def test_where_order_does_not_matter_nothing_is_said_of_it():
    def text(after: str) -> str:
        ways = f'%declare _STEP\nstart: | a | b\na: "A" _STEP {after}\nb: "B" _STEP start\n'
        return ActionKnowledge.from_lark(ways).to_text()

    assert "follow" not in text("start")
    assert "  start -> a, b, or the end\n  a -> b, or the end\n  b -> a, b, or the end\n" in text("[b]")


WRITTEN = """
%declare _STEP GUEST ROOM
start: book{ROOM, GUEST} | swap{ROOM, ROOM} | confirm{GUEST} | note | quit
book{r, g}: "book " r " for " g _STEP start
swap{a, b}: "swap " a " and " b _STEP start
// confirm: send the confirmation.
confirm{g}: "send confirmation to " g _STEP start
// note: note text.
note: "note " TEXT _STEP start
// quit: leave.
quit: "leave" | "go"
TEXT: /[a-z]{1,9}/
"""


def test_how_an_action_is_written_stands_beside_its_definition():
    actions = ActionKnowledge.from_lark(WRITTEN).to_text().split("The actions:\n")[1].splitlines()
    assert actions[:5] == [
        "(1) book. It is written: book ROOM for GUEST",
        "(2) swap. It is written: swap ROOM1 and ROOM2",
        "(3) confirm: send the confirmation. It is written: send confirmation to GUEST",
        "(4) note: note text.",
        "(5) quit: leave.",
    ]


def test_conditions_are_told_in_words():
    text = ActionKnowledge.from_lark("household").to_text()
    assert (
        "(9) carry: go to RECEPTACLE with the thing in your hand. It needs: not at RECEPTACLE, held OBJECT.\n" in text
    )
    assert "your hands empty. It needs: at REACH, in OBJECT REACH, not closed REACH, not held anything.\n" in text


@pytest.mark.parametrize("name", KNOWLEDGE)
def test_the_text_names_every_action_and_its_definition(name):
    knowledge = ActionKnowledge.from_lark(name)
    text = knowledge.to_text()
    for number, (action, definition) in enumerate(knowledge.actions.items(), 1):
        assert definition
        assert f"({number}) {definition}" in text
        assert "What may follow what:" not in text or re.search(rf"(?m)^  (.*, )?{action}(, .*)? -> ", text)
