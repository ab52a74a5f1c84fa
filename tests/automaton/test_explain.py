"""A trace is where the automaton is, and knows for each position the pieces of grammar that brought it there."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constrained import Grammar
from constrained.automaton import positions as p
from constrained.automaton.explain import Trace
from constrained.grammar import nodes as n

GRAMMARS = {
    "tied": '%declare R\nstart: go{R}\ngo{r}: "go " r " and stay " r\n',
    "list": 'start: list\nlist: list "," item | item\nitem: "a"+ | /[ab]{1,3}/ | "b" list "c"\n',
    "same text": 'start: "p" one | "q" two\none: "xy"\ntwo: "xy"\n',
    "words": 'start: WORD (" " WORD)*\nWORD: /[a-cé]+/ | "bb" | "ab"\n',
}


def grammar(name: str) -> Grammar:
    read = Grammar.from_lark(GRAMMARS[name])
    return read.bind(R=["desk 1", "desk 10", "d"]) if read.slots else read


@pytest.mark.parametrize("name", GRAMMARS)
@given(data=st.data())
@settings(max_examples=40)
def test_a_trace_is_at_the_positions_of_the_automaton(name, data):
    automaton = grammar(name).automaton
    automaton.stacks.join_positions = tuple  # a trace tells stacks apart that a state joins
    trace, state, text = Trace(automaton), automaton.start, b""
    for _ in range(12):
        assert set(trace.at) == set(state.positions)
        assert all(frames for frames in trace.at.values())
        if not state.first():
            break
        byte = data.draw(st.sampled_from(sorted(state.first())))
        assert trace.read(bytes((byte,))) == 1
        state, text = state.step(byte), text + bytes((byte,))
    whole = Trace(automaton)
    assert whole.read(text) == len(text) and set(whole.at) == set(state.positions)


def test_it_stops_before_what_does_not_fit():
    trace = Trace(grammar("same text").automaton)
    assert trace.read(b"pxz") == 2
    assert [q.data[q.at :] for q in trace.at] == [b"y"]


@pytest.mark.parametrize("text, rule", [(b"p", "one"), (b"qx", "two")])
def test_texts_that_the_automaton_joins_are_told_apart_by_what_came_before(text, rule):
    """After `p` and after `q` the automaton is at one and the same position."""
    read = grammar("same text")
    trace = Trace(read.automaton)
    trace.read(text)
    ((q, (frame,)),) = trace.at.items()
    assert isinstance(q, p.InLiteral) and frame.node is read.rules[rule].body


def test_a_value_read_into_a_parameter_is_traced_through_its_later_uses():
    trace = Trace(grammar("tied").automaton)
    assert trace.read(b"go desk 10 and stay desk") == 24
    ((q, (frame,)),) = trace.at.items()
    assert q.data[q.at :] == b" 10" and isinstance(frame.node, n.Var) and frame.node.name == "r"
