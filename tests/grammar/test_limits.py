"""Large and deep input: read in bounded time and space, or one clear error; never a crash or a hang.

Where there is no error, what is counted is what was made, not how long it took.
"""

from __future__ import annotations

import re

import pytest

from constrained import Grammar, GrammarError, LimitError, Limits, Vocabulary, compile_grammar


def made(grammar: Grammar) -> int:
    """Positions the automaton has come to hold."""
    return len(grammar.automaton.positions)


@pytest.mark.parametrize("repeat", ["{1,100000}", "{100000}", "{1,1000000000}", "{3,}"])
@pytest.mark.parametrize("item", ["[a-f]", "(ab|c)", "(a?b?)", "([ab]{1,3}c)"])
def test_a_huge_repeat_costs_only_what_is_read(item, repeat):
    grammar = Grammar.from_regex(f"{item}{repeat}")
    text = {"[a-f]": "abcdef", "(ab|c)": "abcab", "(a?b?)": "abba", "([ab]{1,3}c)": "abcaacbbbc"}[item]
    assert grammar.is_prefix(text * 3) and not grammar.is_prefix(text * 3 + "x")
    assert grammar.matches(text * 3) == (repeat != "{100000}" or item == "(a?b?)")
    assert made(grammar) < 400


def test_a_repeat_is_counted_to_its_last():
    grammar = Grammar.from_regex("a{3,20000}b")
    assert grammar.matches("a" * 20000 + "b") and grammar.matches("aaab")
    assert not grammar.is_prefix("a" * 20001) and not grammar.is_prefix("aab")


def test_repeats_of_repeats_multiply_only_as_far_as_they_are_read():
    grammar = Grammar.from_regex("(([ab]{1,1000}c){1,1000}d){1,1000}")
    assert grammar.is_prefix("abcaacbcd" * 20) and made(grammar) < 2_000


def test_ambiguous_repeats_of_repeats_take_no_more():
    grammar = Grammar.from_regex("((a{1,1000}){1,1000}){1,1000}")
    assert grammar.matches("a" * 500) and not grammar.is_prefix("a" * 500 + "b")
    assert max(len(state.positions) for state in grammar.automaton.states) < 20


@pytest.mark.parametrize("row", ['"a"? ' * 5_000, '"a"~0..2 ' * 30, "X? " * 40, "[item] " * 40, '("a"? "b"?) ' * 16])
def test_a_long_row_of_what_may_be_missing_is_counted(row):
    grammar = Grammar.from_lark(f'start: {row}"c"\nX: /[ab]/\nitem: "a" | "bb"\n')
    short = Grammar.from_lark(f'start: {row[: row.index(" ", 6) + 1] * 2}"c"\nX: /[ab]/\nitem: "a" | "bb"\n')
    for text in ("c", "aac", "ac", "abc", "bbc", "a" * 30 + "c", "cc", "b"):
        assert grammar.matches(text) >= short.matches(text)
    assert grammar.matches("a" * 16 + "c") and not grammar.is_prefix("a" * 10_001)
    assert max(len(state.positions) for state in grammar.automaton.states) < 50


def test_what_can_be_read_in_too_many_ways_is_refused():
    pattern = "|".join(f"[ab]{{{i}}}b" for i in range(1, 11_000))
    with pytest.raises(LimitError, match="the text so far can be read in too many ways .the limit `state_positions`"):
        Grammar.from_regex(pattern).matches("a" * 5)
    grammar = Grammar.from_regex(pattern, limits=Limits(positions=9_000))
    with pytest.raises(LimitError, match="the automaton has too many positions") as caught:
        grammar.matches("a" * 5)
    assert (caught.value.limit, caught.value.value) == ("positions", 9_000)
    assert caught.value.hint == (
        "limits=Limits(positions=...) raises it; or loosen a bound: bounded repeats of bounded repeats multiply"
    )


def deep_regex(depth: int) -> str:
    return "(" * depth + "a" + ")?" * depth


def deep_lark(depth: int) -> str:
    return 'start: "x" ' + "(" * depth + '"a"' + ' "b")?' * depth + "\n"


@pytest.mark.parametrize(
    "read", [lambda d: Grammar.from_regex(deep_regex(d)), lambda d: Grammar.from_lark(deep_lark(d))]
)
def test_deep_groups_are_read_or_refused(read):
    """Python's recursion limit shows at some depth; on neither side of it does anything but a GrammarError come."""
    refused = 0
    for depth in (1, 20, 60, *range(70, 420, 25), 1_000, 20_000):
        try:
            grammar = read(depth)
        except GrammarError as error:
            assert "groups are nested too deeply" in str(error)
            refused += 1
        else:
            assert not refused, "what is deeper is refused, too"
            assert depth < 500 and grammar.is_prefix("a") != grammar.is_prefix("x")
    assert refused
    assert read(60).is_prefix("")


def test_deep_groups_near_the_end_of_the_stack():
    """Called from deep inside a program there is less room: still a GrammarError, or a grammar."""

    def deeper(levels: int, what):
        return deeper(levels - 1, what) if levels else what()

    for levels in range(0, 800, 40):
        for make in (lambda: Grammar.from_regex(deep_regex(80)), lambda: Grammar.from_lark(deep_lark(80))):
            try:
                assert deeper(levels, make).bindings == {}
            except GrammarError as error:
                assert "groups are nested too deeply" in str(error)


def test_long_chains_of_rules_are_not_deep():
    count = 1500
    rules = "\n".join(f"r{i}: r{i + 1}? | " for i in range(count))
    grammar = Grammar.from_lark(f'start: r0 "!"\n{rules}\nr{count}: "x"\n')
    assert grammar.matches("x!") and grammar.matches("!") and not grammar.is_prefix("xx")
    left = "\n".join(f'r{i}: r{i + 1} "{i % 10}" | "."' for i in range(count))
    grammar = Grammar.from_lark(f'start: r0 "!"\n{left}\nr{count}: "x"\n')
    assert grammar.matches(".9876543210!") and not grammar.is_prefix(".12")


def test_a_large_grammar_and_one_that_is_too_large():
    text = "start: r0\n" + "".join(f'r{i}: "a{i:06}" r{i + 1} | "b"\n' for i in range(3_000)) + 'r3000: "c"\n'
    grammar = Grammar.from_lark(text)
    assert grammar.matches("a000000a000001b") and not grammar.is_prefix("a000001")
    with pytest.raises(LimitError, match="grammar text of 1000001 characters .the limit `characters` is 1,000,000"):
        Grammar.from_lark(text + "/" * (1_000_001 - len(text)))


def test_a_large_regex():
    words = "".join(chr(97 + i * 7919 % 26) for i in range(30_000))
    for grammar in (Grammar.from_regex(words), Grammar.from_regex(words, re.IGNORECASE)):
        assert grammar.is_prefix(words[:3000]) and not grammar.is_prefix(words[:1000] + "!")
    assert grammar.is_prefix(words[:500].upper())


def test_20_000_choices():
    names = [f"object {i} of {i * 7919 % 20_011}" for i in range(20_000)]
    for grammar in (Grammar.from_choices(names), Grammar.from_lark("%declare S\nstart: S\n").bind(S=names)):
        assert grammar.matches(names[12_345]) and not grammar.matches(names[12_345] + "0")
        assert grammar.is_prefix("object 1999") and not grammar.is_prefix("object 20000")
        assert made(grammar) < 200
    some = names[:4_000]
    quoted = " | ".join(f'"{name}"' for name in some)
    for grammar in (Grammar.from_lark(f"start: {quoted}\n"), Grammar.from_regex("|".join(some))):
        assert grammar.matches(some[2_345]) and not grammar.matches(some[2_345] + "0")
        assert grammar.is_prefix("object 399") and not grammar.is_prefix("object 4000")


def test_many_alternatives_with_something_after_each():
    rules = "\n".join(f'  | "w{i} " tail{i % 3} "{i % 10}"' for i in range(3_000))
    tails = "".join(f'tail{i}: "t{i}" | "u"\n' for i in range(3))
    grammar = Grammar.from_lark(f'start: "x"\n{rules}\n{tails}')
    assert grammar.matches("w777 u7") and grammar.matches("w2997 t07") and not grammar.is_prefix("w777 t1")


@pytest.mark.parametrize("growing", ["x | a{b{x}}", "x | e a{b{x}}", 'x | f{b{x}}\nf{x}: a{b{x}} | "q"'])
def test_what_can_go_on_for_ever_without_text_is_refused(growing):
    with pytest.raises(
        GrammarError, match="rule 'a' is left-recursive, and the left recursion can't be elimin"
    ) as caught:
        Grammar.from_lark(f'start: a{{c}}\nc: "c"\na{{x}}: {growing}\nb{{y}}: "b" y\ne: "e"?\n')
    assert caught.value.hint == "put some text before the call, or hand the same parameters on"


def test_arguments_that_grow_with_the_text_are_followed_exactly():
    """Not regular, but lazily no harder than a stack."""
    grammar = Grammar.from_lark('start: a{c}\nc: "c"\na{x}: x | "(" a{b{x}}\nb{y}: y ")"\n')
    for depth in range(30):
        assert grammar.matches("(" * depth + "c" + ")" * depth)
        assert not grammar.is_prefix("(" * depth + "c" + ")" * (depth + 1))


def test_grammars_that_share_grammars_cost_what_they_are_not_the_ways_through_them():
    form = Grammar.from_lark('%declare A B\nstart: "x" A | "y" B | "z"\n')
    grammar = Grammar.from_choices(["a"])
    for _ in range(60):  # 2**60 ways
        grammar = form.bind(A=grammar, B=grammar)
    matcher = compile_grammar(grammar, Vocabulary([b"a", b"x", b"y", b"z", b""], eos_token_ids=[4])).matcher()
    matcher.set_budget(3)
    assert matcher.allowed_token_ids().tolist() == [1, 2, 3]
    assert grammar.matches("xy" * 30 + "a") and grammar.matches("xz") and not grammar.matches("xy" * 30)
