"""What the model reads and what a person sees, both from the file's own rules and comments."""

import xml.etree.ElementTree as ElementTree

import lark
import pytest

from constrained import ActionKnowledge
from constrained.grammar import shipped_names
from constrained.grammar.source import SHIPPED

KNOWLEDGE = [name for name in shipped_names() if not name.startswith("steps/")]

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
NASTY = """
%declare _STEP
// <b>"Ends" & 'starts'</b>
start: end | click
// end: x < y && "z" > 'w'
end: "E" _STEP (end | click | graph)
click: "C" _STEP [end]
graph: "G"
"""


@pytest.mark.parametrize("name", shipped_names())
def test_lark_itself_loads_what_ships(name):
    lark.Lark((SHIPPED / f"{name}.lark").read_text())


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


@pytest.mark.parametrize("name", KNOWLEDGE)
def test_the_text_names_every_action_and_its_definition(name):
    knowledge = ActionKnowledge.from_lark(name)
    text = knowledge.to_text()
    for number, (action, definition) in enumerate(knowledge.actions.items(), 1):
        assert definition
        assert f"({number}) {definition}" in text
        assert f"  {action} " in text


def mermaid_edges(text):
    """(from, to, labels) of every arrow; nodes by the name they show."""
    shown, edges = {}, []
    for line in text.splitlines()[1:]:
        line = line.strip()
        if "-->" not in line:
            identifier, _, rest = line.partition("[" if "([" not in line else "(")
            shown[identifier] = rest.split('"')[1]
    for line in text.splitlines()[1:]:
        if "-->" in line:
            source, target = line.split("-->")
            source, _, label = source.partition(" -- ")
            labels = label.strip().strip('"').split("<br/>") if label else []
            edges.append((shown[source.strip()], shown[target.strip()], labels))
    return edges


@pytest.mark.parametrize("name", [*KNOWLEDGE, NASTY])
def test_mermaid_has_every_edge(name):
    knowledge = ActionKnowledge.from_lark(name)
    text = knowledge.to_mermaid()
    assert text.startswith("flowchart ") and text.endswith("\n")
    edges = mermaid_edges(text)
    places = knowledge.graph.places()
    if places:
        assert {(a, b): labels for a, b, labels in edges} == places
        assert {action for *_, labels in edges for action in labels} == set(knowledge.actions)
    else:
        assert sorted((a, b) for a, b, _ in edges) == sorted(
            (action, after) for action, successors in knowledge.rules.items() for after in successors
        )


def test_no_node_of_mermaid_is_called_by_a_word_of_its_language():
    text = ActionKnowledge.from_lark(NASTY).to_mermaid()
    identifiers = {word for line in text.splitlines()[1:] for word in line.split("[")[0].split("(")[0].split()}
    assert not identifiers & {"end", "click", "graph", "start"}
    assert '["click"]' in text and '["end"]' in text


@pytest.mark.parametrize("name", [*KNOWLEDGE, NASTY])
def test_svg_is_well_formed_and_has_every_action_with_its_definition(name):
    knowledge = ActionKnowledge.from_lark(name)
    root = ElementTree.fromstring(knowledge.to_svg())
    space = "{http://www.w3.org/2000/svg}"
    assert root.tag == f"{space}svg"
    labels = {text.text: text.findtext(f"{space}title") for text in root.iter(f"{space}text")}
    for action, definition in knowledge.actions.items():
        assert labels[action] == (definition or action)
    edges = knowledge.graph.places() or [(a, b) for a, after in knowledge.rules.items() for b in after]
    assert len(list(root.iter(f"{space}path"))) == len(edges)
    width, height = map(float, root.get("viewBox").split()[2:])
    for text in root.iter(f"{space}text"):
        assert 0 < float(text.get("x")) < width and 0 < float(text.get("y")) < height
    if not knowledge.graph.places():
        boxes = len(list(root.iter(f"{space}rect")))
        assert boxes == len(knowledge.rules) + len(knowledge.graph.may_end)
