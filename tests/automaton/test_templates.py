"""Slots: bound to lists, to lists by key, to grammars; one value of a template's argument everywhere."""

from __future__ import annotations

import re

import pytest

from constrained import Grammar, GrammarError, Vocabulary, compile_grammar
from tests.automaton.brute import Language, same


def test_a_slot_is_any_of_its_values_wherever_it_stands():
    grammar = Grammar.from_lark('%declare S\nstart: S "," S\n').bind(S=["a", "ab"])
    assert same(grammar).texts == {b"a,a", b"a,ab", b"ab,a", b"ab,ab"}


def test_an_argument_has_one_value_everywhere():
    grammar = Grammar.from_lark('%declare S\nstart: t{S}\nt{x}: x " and " x\n').bind(S=["desk 1", "desk 10", "desk"])
    assert same(grammar).texts == {b"desk 1 and desk 1", b"desk 10 and desk 10", b"desk and desk"}


@pytest.mark.parametrize(
    "rules",
    [
        't{x}: a{x} "," b{x}\na{y}: "A" y\nb{y}: "B" y\n',  # handed to two calls
        't{x}: p{x, x}\np{y, z}: y "-" z\n',  # twice to one call
        't{x}: a{x} x\na{y}: "A" | y\n',  # first handed on, then written
        't{x}: ("(" x ")")? a{x}\na{y}: y "!" y\n',  # perhaps written first
        't{x}: "<" a{b{x}} ">" x\na{p}: p | "." p\nb{y}: "B" y\n',  # inside another argument before it has a value
        't{x}: (x ",")~1..2 x\n',  # in a repeat
        "t{x}: a{x} | b{x} x\na{y}: y y\nb{y}: y a{y}\n",  # through several
    ],
)
def test_an_argument_keeps_its_value_when_it_is_handed_on(rules):
    grammar = Grammar.from_lark(f"%declare S\nstart: t{{S}}\n{rules}").bind(S=["1", "2", "12"])
    listed = same(grammar)
    assert len(listed.texts) >= 3


def test_two_arguments_are_two_values():
    grammar = Grammar.from_lark('%declare S\nstart: t{S, S}\nt{x, y}: x "," y "," x\n').bind(S=["1", "2"])
    assert same(grammar).texts == {f"{x},{y},{x}".encode() for x in "12" for y in "12"}


def test_values_by_key_follow_the_argument_after_them():
    grammar = Grammar.from_lark(
        '%declare PLACE THING\nstart: at{PLACE}\nat{p}: "go " p "; " take{THING, p}\ntake{t, p}: "take " t " from " p\n'
    )
    bound = grammar.bind(PLACE=["desk 1", "desk 10"], THING={"desk 1": ["mug", "pen"], "desk 10": ["pen"]})
    assert same(bound).texts == {
        b"go desk 1; take mug from desk 1",
        b"go desk 1; take pen from desk 1",
        b"go desk 10; take pen from desk 10",
    }


def test_keys_of_keys():
    grammar = Grammar.from_lark('%declare A B C\nstart: t{C, B, A, "k"}\nt{x, y, z, k}: x y z k\n')
    bound = grammar.bind(A={"k": ["1", "2"]}, B={"1": ["p"], "2": ["p", "q"]}, C={"p": ["x"], "q": ["y", "z"]})
    assert same(bound).texts == {b"xp1k", b"xp2k", b"yq2k", b"zq2k"}


def test_a_terminal_with_choices_can_be_the_key():
    grammar = Grammar.from_lark('%declare S\nstart: t{S, K}\nt{x, k}: k "=" x\nK: "a" | "b" | "c"\n')
    assert same(grammar.bind(S={"a": ["1"], "b": ["2", "3"]})).texts == {b"a=1", b"b=2", b"b=3"}


def test_a_missing_key_is_none_there():
    """Not even the first byte of what leads only there is admitted."""
    grammar = Grammar.from_lark(
        '%declare PLACE THING\nstart: "go " at{PLACE}\nat{p}: p ": " (take{THING, p} | "look")\ntake{t, p}: "take " t\n'
    )
    listed = same(grammar.bind(PLACE=["a", "b"], THING={"a": ["mug"], "b": []}))
    assert listed.texts == {b"go a: take mug", b"go a: look", b"go b: look"}
    only = Grammar.from_lark(
        '%declare PLACE THING\nstart: "go " at{PLACE}\nat{p}: p ": " take{THING, p}\ntake{t, p}: t\n'
    )
    assert same(only.bind(PLACE=["a", "ab"], THING={"ab": ["mug"]})).texts == {b"go ab: mug"}


@pytest.mark.parametrize(
    ("rules", "texts"),
    [
        # one of several values of a call's argument
        ('start: t{A, R, "p"}\nt{a, s, r}: a " x " u{O, s}\nu{o, s}: o\n', {b"1 x o"}),
        # two things needed for the same value
        ('start: "go " c{S} | "stay"\nc{x}: x t{A, x} t{O, x}\nt{o, x}: o\n', {b"stay", b"go d1o"}),
        # in a choice, with what comes after it
        (
            'start: c{S} | "stay"\nc{x}: ("P" t{A, x} | "Q" t{O, x}) x t{O, x}\nt{o, x}: o\n',
            {b"stay", b"P1do", b"Qodo"},
        ),
        # in a repeat
        ('start: c{S}\nc{x}: "[" ("+" t{O, x})~0..2 "]" x\nt{o, x}: o\n', {b"[]d", b"[]e", b"[+o]d", b"[+o+o]d"}),
        ('start: c{S}\nc{x}: "[" ("+" t{O, x})~1..2 "]" x\nt{o, x}: o\n', {b"[+o]d", b"[+o+o]d"}),
        # what an argument's piece of grammar needs
        ('start: c{S} | "."\nc{x}: x f{t{O, x}}\nt{o, x}: o\nf{y}: "f" y | "g" y "h"\n', {b".", b"dfo", b"dgoh"}),
        # round a cycle of rules
        ('start: a{S}\na{x}: x b{x}\nb{x}: "," a2{x} | t{O, x}\na2{x}: "!" t{O, x}\nt{o, x}: o\n', {b"do", b"d,!o"}),
    ],
)
def test_no_value_leads_into_a_dead_end(rules, texts):
    grammar = Grammar.from_lark(f"%declare S A R O\n{rules}")
    bound = grammar.bind(S=["d", "e"], A={"d": ["1"], "e": ["2"]}, R={"p": ["d", "e"]}, O={"d": ["o"]})
    assert same(bound).texts == texts


def test_nothing_left_at_all_is_an_error():
    grammar = Grammar.from_lark('%declare S\nstart: t{S, "a"} | "x" t{S, "b"}\nt{s, k}: s k\n')
    assert same(grammar.bind(S={"b": ["1"]})).texts == {b"x1b"}
    for nothing in ({}, {"a": []}, {"c": ["1"]}):
        with pytest.raises(GrammarError, match="with these bindings no text can be complete") as caught:
            grammar.bind(S=nothing).matches("")
        assert caught.value.hint == "every text needs a slot that has no value; bind more values"
        with pytest.raises(GrammarError, match="no text can be complete"):
            compile_grammar(grammar.bind(S=nothing), Vocabulary([b"a", b""], [1]))


def test_dead_ends_are_found_without_trying_every_way():
    """Thirty choices of two, all dead at their end: 2^30 ways."""
    rules = "".join(f'r{i}: "a" r{i + 1} | "b" r{i + 1}\n' for i in range(30))
    grammar = Grammar.from_lark(f'%declare S\nstart: r0 | "ok"\n{rules}r30: t{{S, "k"}}\nt{{s, k}}: s\n')
    dead = grammar.bind(S={})
    assert dead.automaton.start.texts(5) == [b"ok"]
    assert grammar.bind(S={"k": ["!"]}).matches("ab" * 15 + "!")


def test_dead_ends_at_the_end_of_a_long_chain_of_rules():
    rules = "".join(f'r{i}: "a" r{i + 1} | "." \n' for i in range(1200))
    grammar = Grammar.from_lark(f'%declare S\nstart: r0\n{rules}r1200: t{{S, "k"}}\nt{{s, k}}: s\n')
    assert grammar.bind(S={}).matches("a" * 1199 + ".") and not grammar.bind(S={}).is_prefix("a" * 1200)
    assert grammar.bind(S={"k": ["!"]}).matches("a" * 1200 + "!")


@pytest.mark.parametrize("nothing", [{}, {"other": ["x"]}])
@pytest.mark.parametrize("end", ["", "_STEP"])
def test_arguments_that_grow_with_each_call_are_examined_no_further_than_needed(nothing, end):
    """The template has instances without end: y^n b^n a, some of whose ends have no value."""
    grammar = Grammar.from_lark(
        f'%declare S T _STEP\nstart: longer{{S}} | "-" t{{T, "k"}}\nlonger{{x}}: "y" longer{{more{{x}}}} | x {end}\n'
        'more{x}: "b" x\nt{s, k}: s\n'
    ).bind(S=["a"], T=nothing)
    assert grammar.matches("a") and grammar.matches("y" * 40 + "b" * 40 + "a")
    assert not grammar.is_prefix("yyba") and not grammar.is_prefix("-")
    matcher = compile_grammar(grammar, Vocabulary([*(bytes((b,)) for b in range(256)), b""], [256])).matcher()
    for byte in b"yybba":
        assert byte in matcher.allowed_token_ids() and matcher.advance(byte)
    assert matcher.is_complete


def test_an_argument_without_parameters_makes_one_instance():
    grammar = Grammar.from_lark('%declare S\nstart: t{S}\nt{x}: "a" t{u{"b"}} | x\nu{x}: x "c"\n').bind(S=["k"])
    assert grammar.matches("k") and grammar.matches("a" * 500 + "bc")
    assert len(grammar.automaton.states) < 20


# steps


HOUSE = """
%declare _STEP PLACE THING SPOT
start: goto{PLACE} | "wait"
goto{p}: "go " p _STEP at{p}
at{p}: goto{PLACE} | take{THING, p} | "look" _STEP at{p}
take{t, p}: "take " t _STEP with{t, p}
with{t, p}: put{t, SPOT, p} | "drop " t
put{t, s, p}: "put " t " on " s
"""


def test_an_unbound_step_ends_the_text_and_what_comes_after_needs_no_value():
    grammar = Grammar.from_lark(HOUSE).bind(PLACE=["a", "ab"], THING={}, SPOT={})
    assert same(grammar).texts == {b"go a", b"go ab", b"wait"}
    state = grammar.automaton.read(b"go ab")
    assert len(state.ends()) == 1 and not state.first()


def test_a_bound_step_makes_whole_paths_and_none_of_them_ends_in_a_corner():
    grammar = Grammar.from_lark(HOUSE.replace(' | "drop " t', "").replace('"look" _STEP at{p}', '"look"'))
    bound = grammar.bind(PLACE=["a", "b"], THING={"a": ["mug", "pen"], "b": []}, SPOT={"a": ["a 1"]}, _STEP="\n")
    listed = Language(bound, 40)
    assert b"go a\ntake mug\nput mug on a 1" in listed.texts
    for text in sorted(listed.prefixes):
        state = bound.automaton.read(text)
        assert state is not None and state.accepting == (text in listed.texts)
    corner = bound.bind(SPOT={"b": ["b 1"]})
    assert corner.is_prefix("go a\nlook") and corner.matches("go b\ngo a\nlook")
    assert not corner.is_prefix("go a\nt"), "nothing taken at a can be put anywhere"


def test_an_action_may_end_inside_what_is_dead_further_on():
    """Where one way through a group ends the action and another goes on into nothing, only that one is shut."""
    grammar = Grammar.from_lark('%declare _STEP S\nstart: ("a" _STEP | "b") t{S, "k"}\nt{s, k}: s\n')
    assert same(grammar.bind(S={})).texts == {b"a"}
    assert same(grammar.bind(S={"k": ["!"]})).texts == {b"a", b"b!"}
    with pytest.raises(GrammarError, match="no text can be complete"):
        grammar.bind(S={}, _STEP="\n").matches("")


# grammars as values


def test_a_slot_bound_to_a_grammar():
    inner = Grammar.from_lark('%declare S\nstart: S "!"\n').bind(S=["x", "xy"])
    outer = Grammar.from_lark('%declare G S\nstart: "(" G ")" S t{G}\nt{g}: "<" g ">"\n').bind(G=inner, S=["s"])
    assert same(outer).texts == {f"({a}!)s<{b}!>".encode() for a in ("x", "xy") for b in ("x", "xy")}


def test_a_grammar_with_dead_ends_inside_another():
    inner = Grammar.from_lark('%declare S\nstart: "a" t{S, "k"} | "b"\nt{s, k}: s\n').bind(S={})
    outer = Grammar.from_lark('%declare G\nstart: "(" G ")"\n').bind(G=inner)
    assert same(outer).texts == {b"(b)"}


def test_an_unbound_slot_inside_a_grammar_is_an_error():
    inner = Grammar.from_lark("%declare S\nstart: S\n")
    outer = Grammar.from_lark('%declare G\nstart: G "x" | "y"\n').bind(G=inner)
    with pytest.raises(GrammarError, match=r"slot G is bound to a grammar whose slots are not: \['S'\]"):
        outer.matches("y")


def test_a_slot_that_may_be_empty_before_recursion_is_an_error_inside_a_grammar_too():
    inner = Grammar.from_lark('%declare S\nstart: S start "x" | "y"\n').bind(S=["", "s"])
    outer = Grammar.from_lark('%declare G\nstart: "(" G ")"\n').bind(G=inner)
    for grammar in (inner, outer):
        with pytest.raises(GrammarError, match="'start' is left-recursive where S is empty"):
            grammar.matches("y")
    assert outer.bind(G=inner.bind(S="s")).matches("(ssyxx)")


# binding


def test_binding_leaves_the_grammar_as_it_was():
    grammar = Grammar.from_lark("%declare S T\nstart: S T\n")
    one = grammar.bind(S=["a"])
    assert grammar.bindings == {} and one.unbound() == ["T"] and grammar.unbound() == ["S", "T"]
    two, three = one.bind(T="b"), one.bind(T=["c", "d"], S="e")
    assert (two.matches("ab"), two.matches("ac"), three.matches("ec"), three.matches("ac")) == (
        True,
        False,
        True,
        False,
    )
    assert two.bind(T=["c"]).matches("ac") and two.matches("ab")


def test_values_may_be_in_any_form():
    grammar = Grammar.from_lark('%declare S\nstart: t{S, "k"}\nt{s, k}: s\n')
    for value in ("ab", b"ab", ["ab"], ("ab", "ab"), {"ab": 1}.keys(), iter(["ab"])):
        assert grammar.bind(S=value).automaton.start.texts(3) == [b"ab"]
        assert grammar.bind(S={"k": value} if not hasattr(value, "__next__") else {"k": iter(["ab"])}).matches("ab")
    assert grammar.bind(S={b"k": ["", "é"]}).automaton.start.texts(3) == [b"", "é".encode()]


@pytest.mark.parametrize(
    ("values", "message", "hint"),
    [
        ({"NOPE": ["a"]}, "no slot 'NOPE'", "%declare it; the slots are: S, T"),
        (
            {"S": []},
            "slot S: nothing to choose from",
            "an empty list admits no text; bind a mapping ({} for none) where that is meant",
        ),
        (
            {"S": 5},
            "slot S: 5 is not text, nor a list of texts",
            'write the text "5", or range(5) for the numbers below it',
        ),
        ({"S": None}, "slot S: None is not text, nor a list of texts", None),
        ({"S": ["a", 5]}, "slot S: 5 is not text", 'write the text "5", or range(5) for the numbers below it'),
        ({"S": {"k": 5.0}}, "slot S['k']: 5.0 is not text, nor a list of texts", None),
        (
            {"S": range(0)},
            "slot S: nothing to choose from",
            "an empty list admits no text; bind a mapping ({} for none) where that is meant",
        ),
        ({"S": re.compile(b"a")}, "slot S: a pattern of bytes", "compile it from a str: a grammar's texts are Unicode"),
        ({"S": ["a", re.compile("b")]}, "slot S: re.compile('b') is not text", None),
        (
            {"S": {"k": {"l": "a"}}},
            "slot S['k']: keys within a key",
            "join the two keys to one text, or bind two slots",
        ),
        ({"S": {"k": ["a", None]}}, "slot S['k']: None is not text", None),
        ({"S": {5: ["a"]}}, "5 is not text", None),
        ({"S": ["\ud800"]}, "slot S: '\\ud800' has a lone surrogate, which is not text", None),
    ],
)
def test_what_can_not_be_bound(values, message, hint):
    with pytest.raises(GrammarError) as caught:
        Grammar.from_lark("%declare S T\nstart: S | T\n").bind(**values)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_an_unbound_slot_is_an_error_where_it_is_first_needed():
    grammar = Grammar.from_lark("%declare S T _STEP\nstart: S T _STEP start | S\n")
    with pytest.raises(GrammarError, match="slot S is not bound") as caught:
        grammar.matches("x")
    assert caught.value.hint == "bind it first: .bind(S=[...], T=[...])"
    with pytest.raises(GrammarError, match="slot T is not bound"):
        compile_grammar(grammar.bind(S="a"), Vocabulary([b"a", b""], [1]))


@pytest.mark.parametrize(
    "text", ["start: S\n", 'start: "a" S "b"\n', "start: t{S}\nt{s}: s\n", 'start: t{S, r}\nr: "a"\nt{s, q}: s\n']
)
def test_values_by_key_where_there_is_no_key_are_an_error(text):
    with pytest.raises(GrammarError, match="slot S depends on a key, but") as caught:
        Grammar.from_lark(f"%declare S\n{text}").bind(S={"a": ["b"]}).automaton.start.texts(5)
    assert (
        "followed by its key" in caught.value.hint or "write the parameter it depends on after it" in caught.value.hint
    )
