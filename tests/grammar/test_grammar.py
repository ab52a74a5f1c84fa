"""`from_choices`, and what counts as text: bytes, lone surrogates, things that are no text at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained import Grammar, GrammarError, LimitError, Limits

texts = st.lists(
    st.one_of(st.text("ab/é\0 ", max_size=4), st.text(max_size=3).filter(lambda t: t.isprintable())), min_size=1
)


@given(texts, texts)
def test_exactly_the_choices(choices, others):
    grammar = Grammar.from_choices(choices)
    for text in {*choices, *others, *(c[:i] for c in choices for i in range(len(c))), *(c + "a" for c in choices)}:
        assert grammar.matches(text) == (text in choices)
        assert grammar.is_prefix(text) == any(c.startswith(text) for c in choices)


def test_names_that_begin_alike():
    grammar = Grammar.from_choices(["go to desk 1", "go to desk 10", "go to desk"])
    state = grammar.automaton.read(b"go to desk")
    assert state.accepting and state.first() == {ord(" ")}
    assert state.texts(10) == [b"", b" 1", b" 10"]
    assert grammar.matches("go to desk 10") and not grammar.is_prefix("go to desk 100")


def test_any_iterable_of_texts_and_bytes():
    grammar = Grammar.from_choices(t for t in ("a", b"b", "é", "é".encode(), "a"))
    assert all(map(grammar.matches, ("a", b"a", "b", "é", b"\xc3\xa9", bytearray(b"a"), memoryview(b"b"))))
    assert grammar.is_prefix(b"\xc3") and not grammar.matches(b"\xc3")
    assert Grammar.from_choices("abc").matches("abc") and not Grammar.from_choices("abc").is_prefix("b")
    assert Grammar.from_choices({"x": 1}).matches("x")


def test_bytes_that_are_no_utf8_are_choices_like_others():
    grammar = Grammar.from_choices([b"\xff\xfe", b"\xff", b"\xc3"])
    assert grammar.matches(b"\xff\xfe") and grammar.matches(b"\xc3") and not grammar.is_prefix(b"\xfe")
    assert grammar.automaton.start.first() == {0xFF, 0xC3}


def test_only_the_empty_text():
    grammar = Grammar.from_choices([""])
    assert grammar.matches("") and grammar.matches(b"") and not grammar.is_prefix("a")
    assert grammar.automaton.start.forced_text() == b""


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ([], "choices: nothing to choose from"),
        ({}, "choices: nothing to choose from"),
        (iter(()), "choices: nothing to choose from"),
        (None, "choices: None is not text, nor a list of texts"),
        (7, "choices: 7 is not text, nor a list of texts"),
        (["a", 7], "choices: 7 is not text"),
        (["a", None], "choices: None is not text"),
        ([["a"]], "choices: ['a'] is not text"),
        (["a\ud800"], "choices: 'a\\ud800' has a lone surrogate, which is not text"),
    ],
)
def test_what_is_no_list_of_texts(choices, message):
    with pytest.raises(GrammarError) as caught:
        Grammar.from_choices(choices)
    assert caught.value.message == message
    if "nothing" in message:
        assert caught.value.hint.startswith("an empty list admits no text")


def test_too_many_choices():
    limits = Limits(values=100)
    assert Grammar.from_choices(map(str, range(100)), limits=limits).matches("99")
    with pytest.raises(LimitError, match="choices: too many values .the limit `values` is 100"):
        Grammar.from_choices(map(str, range(10**12)), limits=limits)


@pytest.mark.parametrize("make", [lambda: Grammar.from_regex(r"(?s).*"), lambda: Grammar.from_regex("[^a]*")])
def test_lone_surrogates_and_broken_utf8_are_no_text(make):
    grammar = make()
    for text in (
        "\ud800",
        "b\udfff",
        "\ud800\udc00",
        b"\xed\xa0\x80",
        b"\x80",
        b"\xc3(",
        b"\xf5",
        b"\xe0\x80",
        b"\xf0\x8f",
    ):
        assert not grammar.matches(text) and not grammar.is_prefix(text)
    for text in (b"\xed", b"\xed\x9f", b"\xee\x80", b"\xf4\x8f\xbf", b"\xf0\x90", b"b\xe2"):
        assert grammar.is_prefix(text) and not grammar.matches(text)
    assert grammar.matches("\U0010ffff\ud7ff\ue000\0")


@pytest.mark.parametrize("given_", [None, 5, ["a"], 0, True])
def test_asking_about_what_is_no_text_is_an_error(given_):
    grammar = Grammar.from_choices(["a", "\0"])
    for ask in (grammar.matches, grammar.is_prefix):
        with pytest.raises(GrammarError, match="is not text"):
            ask(given_)


def test_a_grammar_of_itself_stays_as_it_was():
    """Reading changes nothing that shows: the same questions have the same answers in any order."""
    grammar = Grammar.from_regex("(ab?){2,3}c")
    before = [grammar.matches(t) for t in ("aac", "abc", "ababc", "")]
    for text in ("ababab", "x", "aaa", "aaaa", ""):
        grammar.is_prefix(text)
    assert [grammar.matches(t) for t in ("aac", "abc", "ababc", "")] == before == [True, False, True, False]
