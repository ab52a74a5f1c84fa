"""Recursion of every kind, by an exact stack: engine against lark's Earley parser, and depth against counts."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given
from lark.exceptions import LarkError

from constrained import Grammar, GrammarError, Limits
from tests.grammar.grammars import CALCULATOR, GRAMMARS, tangled
from tests.grammar.oracles import assert_same_language, examples, lark_accepts, words


@pytest.mark.parametrize("name", GRAMMARS)
def test_the_same_language_as_lark(name):
    text, alphabet, longest, more = GRAMMARS[name]
    assert assert_same_language(Grammar.from_lark(text), lark_accepts(text), alphabet, longest, more)


@examples(50)
@given(tangled())
def test_random_recursion(text):
    try:
        accepts = lark_accepts(text)
    except LarkError:
        assume(False)
    grammar = Grammar.from_lark(text, limits=Limits(state_positions=300))
    letters = "abc ," if "%ignore" in text else "abc"
    tried = list(words(letters, 3))
    rnd = random.Random(text)
    tried += ["".join(rnd.choices("aabbc", k=rnd.randint(4, 8))) for _ in range(25)]
    good = {word for word in tried if accepts(word)}
    assert {word for word in tried if grammar.matches(word)} == good
    for word in good:
        assert all(grammar.is_prefix(word[:i]) for i in range(len(word)))


def made(grammar: Grammar) -> int:
    return len(grammar.automaton.positions)


@pytest.mark.parametrize(
    "text", [CALCULATOR, GRAMMARS["json"][0].replace('"1"', '"1"|"(" v ")"'), GRAMMARS["an operator on both sides"][0]]
)
def test_10_000_open_brackets_take_what_10_000_brackets_take(text):
    counts = []
    for depth in (1_000, 10_000):
        grammar = Grammar.from_lark(text)
        whole = grammar.automaton.read(b"(" * depth + b"1" + b")" * depth)
        assert whole.accepting and whole.read(b")") is None
        counts.append(made(grammar))
    assert counts[0] < 1_000 * 10 and counts[1] < 10.1 * counts[0]


@pytest.mark.parametrize(
    ("name", "text", "most"),
    [
        ("an operator on both sides", "1" + "+1*1" * 500, 10),
        ("the same twice", "a" * 1_000, 10),
        ("front and end", "c" + "a" * 1_000, 10),
        ("calculator", "1" + "+2*1" * 500, 20),
        ("left recursion around brackets", "1" + ",1" * 1_000, 10),
    ],
)
def test_what_does_not_nest_takes_no_stack(name, text, most):
    grammar = Grammar.from_lark(GRAMMARS[name][0])
    assert grammar.matches(text) and made(grammar) <= most


def test_ways_that_begin_alike_share_a_stack():
    grammar = Grammar.from_lark(GRAMMARS["many ways that begin alike"][0])
    assert grammar.matches("a" * 300 + "d" + "bc" * 150)
    assert max(len(state.positions) for state in grammar.automaton.states) <= 2


def test_a_slot_that_is_bound_to_nothing_must_not_hide_recursion():
    grammar = Grammar.from_lark('%declare S\nstart: S start "x" | "y"\n')
    assert grammar.bind(S=["a", "b"]).matches("aabyxxx")
    for value in (["a", ""], Grammar.from_regex("a?"), Grammar.from_lark("%declare T\nstart: T\n").bind(T=["", "t"])):
        with pytest.raises(GrammarError, match="rule 'start' is left-recursive where S is empty") as caught:
            grammar.bind(S=value).matches("y")
        assert caught.value.hint == "bind the slot that stands before the recursion to text only"
    tail = Grammar.from_lark('%declare S\nstart: S start | "(" start ")" | "y"\n')
    assert tail.bind(S=["a", ""]).matches("a(a(ay))")


def test_the_recursion_that_an_empty_slot_uncovers_may_be_in_a_rule_that_was_made_of_a_template():
    grammar = Grammar.from_lark('%declare P S\nstart: P start | P* P* | P a?\na: | P* c{"k"} "x"\nc{x}: "x"? | x | a\n')
    with pytest.raises(GrammarError, match="is left-recursive where P is empty"):
        grammar.bind(P=["", "k"], S=["s"]).matches("y")


@pytest.mark.parametrize(
    "rules",
    [
        'a{x}: x | a{b{x}}\nb{x}: x "b"',
        'a{x}: x | b{x}\nb{x}: "b"? a{c{x}} | x\nc{x}: "c" x',
    ],
)
def test_a_template_that_begins_with_itself_and_longer_arguments_is_refused(rules):
    with pytest.raises(GrammarError, match=r"rule '[ab]' is left-recursive") as caught:
        Grammar.from_lark(f"%declare S\nstart: a{{S}}\n{rules}\n")
    assert caught.value.hint == "put some text before the call, or hand the same parameters on"


def test_a_relation_to_a_piece_of_grammar_is_an_error_in_a_left_recursive_template_too():
    grammar = Grammar.from_lark(
        '%import relations (next)\n%declare S\nstart: "a" t{start} | "b"\nt{x}: t{x} "c" | next{S, x}\n'
    )
    with pytest.raises(GrammarError, match="x is a piece of grammar, not one text"):
        grammar.bind(S=["k", "x"]).is_prefix("ak")


def test_a_slot_inside_brackets_keeps_its_value_at_each_depth():
    """A parameter is one value for its own call, not for the calls of the same rule inside it."""
    text = '%declare S\nstart: t{S}\nt{x}: x "(" (t{S} | "!") ")" x\n'
    grammar = Grammar.from_lark(text).bind(S=["a", "b"])
    assert grammar.matches("a(b(a(!)a)b)a") and grammar.matches("a(a(!)a)a")
    assert not grammar.is_prefix("a(b(!)a") and not grammar.is_prefix("a(b(a(!)a)b)b")


def test_slots_that_may_have_no_value_are_not_begun_at_any_depth():
    grammar = Grammar.from_lark(
        '%declare ROOM THING\nstart: visit{ROOM}\nvisit{r}: r "(" (take{THING, r} | "!" | visit{ROOM}) ")"\n'
        'take{o, r}: "take " o " from " r\n'
    ).bind(ROOM=["a", "b"], THING={"a": ["cup"]})
    deep = "a(b(" * 500
    for end, ok in (("a(take cup from a", True), ("b(t", False), ("b(!", True)):
        assert grammar.is_prefix(deep + end) == ok
    assert grammar.matches(deep + "a(take cup from a)" + "))" * 500)
