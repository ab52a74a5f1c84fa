"""What the engine benchmark measures: texts and grammars that mean the same in every notation, and a fair referee."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.engine.language import (
    Chars,
    Choice,
    Repeat,
    Seq,
    Text,
    prefix_pattern,
    to_ebnf,
    to_lark,
    to_regex,
)
from benchmarks.engine.referees import begins_calculation, is_calculation
from benchmarks.engine.workloads import (
    COMMANDS,
    ROWS,
    STEPS,
    WORKLOADS,
    household_commands,
    household_step,
)
from constrained import Grammar

ALPHABET = 'ab]\n\\"é'


def nodes() -> st.SearchStrategy:
    leaves = st.one_of(
        st.builds(Text, st.text(ALPHABET, min_size=1, max_size=3)),
        st.builds(
            Chars, st.sampled_from(["a-b", "]\n", "a"]), st.integers(1, 2), st.sampled_from([None, 2, 3]), st.booleans()
        ),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: Seq(*parts)),
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: Choice(*parts)),
            st.builds(Repeat, inner, st.integers(0, 1), st.sampled_from([None, 1, 2])),
        ),
        max_leaves=5,
    )


@given(nodes(), st.lists(st.text(ALPHABET, max_size=6), min_size=1, max_size=8))
def test_all_notations_mean_the_same(node, texts):
    regex = Grammar.from_regex(to_regex(node))
    lark = Grammar.from_lark(to_lark({"root": node}))
    begins = prefix_pattern(node)
    for text in texts:
        assert bool(re.fullmatch(to_regex(node), text)) == regex.matches(text) == lark.matches(text)
        for end in range(len(text.encode()) + 1):
            data = text.encode()[:end]
            assert bool(begins.fullmatch(data)) == regex.is_prefix(data) == lark.is_prefix(data)


def test_ebnf_is_gbnf():
    node = Seq('say "', Chars("]\n", 1, 60, negated=True), '"\n', Repeat(Choice("a", "b\\"), 0, 1))
    assert to_ebnf({"root": node}) == 'root ::= "say \\"" [^\\]\\n]{1,60} "\\"\\n" (("a" | "b\\\\")){0,1}\n'


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_texts_are_in_the_language(name):
    workload = WORKLOADS[name]()
    for case in workload.cases[:: max(1, len(workload.cases) // 4)]:
        grammar = Grammar.from_lark(to_lark(case.rules))
        begins = case.referee()
        for text in case.texts:
            data = text.encode()
            assert case.whole(data) and grammar.matches(data)
            assert all(begins(data[:end]) for end in range(len(data) + 1))
            assert not begins(b"\x00" + data) and not case.whole(data[:-1] + b"\x00")
        if case.regular is not None:
            assert re.fullmatch(to_regex(case.regular), case.texts[0])


def test_the_sizes_are_those_that_are_announced():
    assert len(WORKLOADS["batch"]().cases) == ROWS
    cases = WORKLOADS["choices"]().cases
    assert len(cases) == STEPS == len({case.choices for case in cases})
    assert all(len(set(case.choices)) == COMMANDS for case in cases)
    (graph,) = WORKLOADS["graph"]().cases
    actions = [node for name, node in graph.rules.items() if name.startswith("act")]
    assert len(actions) == 44 and len(graph.rules["object"].options) == 100
    assert all(to_lark({"root": action}).count("act") == 8 for action in actions)


def test_one_text_goes_to_every_limit():
    (case,) = WORKLOADS["bounded"]().cases
    text = case.texts[-1]
    path, thought, action = text.split("\n")
    assert path.count("->") == 8
    assert len(thought.split(": ", 1)[1]) == 300 and len(action[action.index("[") + 1 : -1]) == 60
    for longer in (text.replace("]\nT", "]->Search[x]\nT"), text.replace("\nA", ".\nA"), text[:-1] + "?]"):
        assert not case.whole(longer.encode()) and WORKLOADS["step"]().cases[0].whole(longer.encode())


def test_the_graph_as_a_regex_is_the_graph():
    (graph,) = WORKLOADS["graph"]().cases
    begins, grammar = graph.referee(), Grammar.from_lark(to_lark(graph.rules))
    lines = graph.texts[0].split("\n")
    for text in (
        "\n".join([*lines, lines[0]]),  # goes round again, but does not end there
        "\n".join(lines[:5]),
        "\n".join([lines[0], lines[6]]),  # not a successor
        "open " + lines[0].split(" ", 2)[2],
        lines[0] + "\n" + lines[0],
    ):
        assert graph.whole(text.encode()) == grammar.matches(text)
        assert begins(text.encode()) == grammar.is_prefix(text)


@given(st.text("12.+*/-()", max_size=14))
def test_the_calculators_referee(text):
    grammar = Grammar.from_lark(to_lark(WORKLOADS["calculator"]().cases[0].rules))
    data = b"Calculator(" + text.encode()
    assert begins_calculation(data) == grammar.is_prefix(data)
    assert is_calculation(data) == grammar.matches(data)


def test_workloads_are_the_same_in_every_run():
    assert household_commands(5) == household_commands(5) != household_commands(6)
    assert [case.texts for case in WORKLOADS["step"]().cases] == [case.texts for case in WORKLOADS["step"]().cases]


def test_a_step_to_generate_ends_with_one_of_its_commands():
    prompt, case = household_step(1)
    assert prompt.endswith(".\n") and household_step(1)[0] == prompt != household_step(2)[0]
    head = case.regular.parts[0].text
    action = case.regular.parts[3].options[7].text
    assert case.whole(f"{head}I think so.\nAction {head.split(':')[0].split()[1]}: {action}".encode())
    assert not case.whole(f"{head}\nAction 1: {action}".encode())
