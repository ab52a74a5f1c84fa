"""A regular expression means the texts that `re.fullmatch` accepts."""

# ruff: noqa: E501  # one case, one line

from __future__ import annotations

import random
import re
import sys
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from constrained import Grammar, GrammarError
from tests.grammar.oracles import assert_same_language, completion

I, S, A, M, X = re.IGNORECASE, re.DOTALL, re.ASCII, re.MULTILINE, re.VERBOSE  # noqa: E741  # as in `re`

# pattern, flags, alphabet, longest text tried exhaustively
PATTERNS = [
    (r"a(cb)*", 0, "abc", 5),  # outlines_core 0.2.14 never allows `c` after `a`
    (r"(go to )?(desk_1|desk_10)", 0, "desk_10", 2),
    (r"[1-9]|[1-4][0-9]|50", 0, "0145", 3),
    (r"(a|ab)(c|bcd)(d*)", 0, "abcd", 5),
    (r"(a|b)+c{1,3}", 0, "abc", 5),
    (r"a*?b+?a??", 0, "ab", 5),
    (r"(ab|a){2,3}?", 0, "ab", 6),
    (r"(?:a{2}){2}|a{7}", 0, "a", 9),
    (r"(a?){3}b", 0, "ab", 5),
    (r"(a?b??){2,4}", 0, "ab", 5),
    (r"(a*)*b", 0, "ab", 5),
    (r"(|a)+", 0, "ab", 4),
    (r"", 0, "a", 1),
    (r"a{0}b{0,0}c", 0, "abc", 3),
    (r"x{,2}y{2,}", 0, "xy", 5),
    (r"[^ab\n]{1,2}", 0, "abcé\n", 3),
    (r"[^\S ]", 0, " \t\n\xa0a", 2),
    (r"[]a\]-]+", 0, "]a-b", 3),
    (r"[\w-]+@\d", 0, "a_-@1é٣", 3),
    (r"\W\D\S", 0, "a1 .é", 3),
    (r"[^\W\d]", 0, "a1_é٣ ", 2),
    (r".\n.", 0, "a\n\r", 3),
    (r".\n.", S, "a\n\r", 3),
    (r"\w\d\s", A, "aé1٣ \xa0", 3),
    (r"[\w][^\d][\S]", A, "aé1٣ \xa0", 3),
    (r"(?a:\w)\w", 0, "aé", 2),
    (r"(?u:\w)\w", A, "aé", 2),
    (r"(?i:a)b", 0, "aAbB", 2),
    (r"(?-i:a)b", I, "aAbB", 2),
    (r"(?i)ab", 0, "aAbB", 2),
    (r"(?s:.)(?-s:.)", S, "a\n", 2),
    (r"(?x) a b # comment", 0, "ab #", 3),
    ("a b\n[ c]\\ ", X, "abc ", 4),
    (r"^ab$", 0, "ab\n", 3),
    (r"^a|b$", 0, "ab", 2),
    (r"(^a|^b)(c$|d\Z)", 0, "abcd", 3),
    (r"\Aab\Z", M, "ab\n", 3),
    (r"^$", 0, "a", 1),
    (r"(?P<n>a)(?:b)(?#c)", 0, "abc", 3),
    (r"\x41\u00e9\U0001F600\101\0", 0, "Aé😀\0", 2),
    (r"\.\*\\\[\{", 0, ".*", 2),
    (r"\t\n\r\f\v\a", 0, "\t\n", 2),
    ("[\x00-\x7f]é", 0, "a\x00é", 3),
    (r"[à-ü]{2}|[一-丰]|[😀-😂]", 0, "àü一丰丱😀😃", 3),
    (r"[^\x00-\uffff]", 0, "a\uffff\U00010000\U0010ffff", 2),
    (r"(a|a|a)*(a|a)*", 0, "a", 5),
    (r"((a|b)(c|d)?){1,2}(e|)", 0, "abcde", 3),
    (r"(['\"]).*?\1", 0, "'\"a", 5),
    (r"(['\"])(?:(?!\1).)*\1", 0, "'\"a", 5),
    (r"(?P<q>a|ab|)c?(?P=q)", 0, "abc", 5),
    (r"(?:(a|b)c\1)*", 0, "abc", 6),
    (r"((a|b)\2c)\1", 0, "abc", 6),
    (r"(a{1,3})b\1", 0, "ab", 7),
    (r"(a|b)(a|b)\2\1", 0, "ab", 5),
    (r"(a|b)(?:c\1)*d", 0, "abcd", 6),
    (r"(a)?b\1", 0, "ab", 4),
    (r"(1|-)\1", I, "1-", 3),
    (r"(<)?a+(?(1)>|!)", 0, "<a>!", 5),
    (r"(<)?a+(?(1)>)", 0, "<a>!", 5),
    (r"(a)?(b)?(?(1)c|d)(?(2)e|f)", 0, "abcdef", 4),
    (r"(a)(?(1)b|c)", 0, "abc", 3),
]


@pytest.mark.parametrize(("pattern", "flags", "alphabet", "longest"), PATTERNS)
def test_a_pattern_means_what_re_says(pattern, flags, alphabet, longest):
    compiled = re.compile(pattern, flags)
    good = assert_same_language(
        Grammar.from_regex(pattern, flags), lambda t: compiled.fullmatch(t) is not None, alphabet, longest
    )
    assert good or "desk" in pattern


@pytest.mark.filterwarnings("ignore:Possible")  # of `re`: `--` and the like
@pytest.mark.parametrize("times", ["", "*", "+", "?"])
def test_a_class_has_the_characters_that_re_finds_in_it(times):
    long = "b" + "".join(map(chr, range(0x100, 0x400, 2)))
    for members in [long, *map("".join, product("ac-^[\\~é", repeat=3))]:
        pattern = f"[{members}]{times}"
        try:
            compiled = re.compile(pattern)
        except re.error:
            with pytest.raises(GrammarError):
                Grammar.from_regex(pattern)
            continue
        grammar = Grammar.from_regex(pattern)
        for text in ("", *"abc-^[\\~éx", "aa", "éc"):
            assert grammar.matches(text) == bool(compiled.fullmatch(text)), (pattern, text)


def test_names_that_begin_alike_are_all_there():
    grammar = Grammar.from_regex("(go to )?(desk_1|desk_10|desk_100)")
    for name in ("desk_1", "desk_10", "desk_100"):
        assert grammar.matches(name) and grammar.matches("go to " + name)
    assert not grammar.matches("desk_1000") and not grammar.is_prefix("desk_2")


@pytest.mark.parametrize("flags", [0, I, A, I | A, I | S])
@pytest.mark.parametrize(
    "pattern",
    [r"\w", r"\W", r"\d", r"\D", r"\s", r"\S", r"[\w.]", r"[^\W]", r"[\W\w]", ".", "[^k]", "[k-s]", "[^a-zA-Z]",
     "[Z-a]", "[^Z-a]", "ſ", "[ı]", "K", "[µ]", "ß", "ẞ", "[ͅι]", "Σ", "ǆ", "[^ς]", "İ", "ﬅ", "[^Ω]", "[á-þ]", r"[\dA-Fx]"],
)  # fmt: skip
def test_one_character_of_every_pattern_is_of_the_same_set(pattern, flags):
    """Over all Unicode characters: classes, categories, and how they fold case."""
    compiled = re.compile(pattern, flags)
    state = Grammar.from_regex(pattern, flags).automaton.start
    chars = (c for c in map(chr, range(sys.maxunicode + 1)) if not "\ud800" <= c <= "\udfff")
    if flags not in (0, I) or pattern not in ("K", r"\W"):  # these over all of Unicode, the others where letters are
        chars = (
            chr(c) for c in [*range(0x2200), *range(0xA640, 0xAC00), *range(0xFB00, 0xFB20), *range(0x10400, 0x10440)]
        )
    for char in chars:
        after = state.read(char.encode())
        assert (after is not None) == (compiled.fullmatch(char) is not None), f"U+{ord(char):04X}"
    assert state.read(b"\xed\xa0\x80") is None  # a surrogate is no character
    assert state.read(b"\xc0\x80") is None and state.read(b"\xf4\x90\x80\x80") is None  # nor are these


# random patterns

ALPHABET = "abAé\n1"
char = st.sampled_from(["a", "b", "A", "é", "1", r"\n", r"\.", r"\x61"])
char_class = st.sampled_from(
    ["[ab]", "[^a]", "[a-bé]", "[^\\W\\d]", r"\w", r"\d", r"\s", r"\W", ".", "[A-b]", "[^\\n1]", "[\\wé]", "[^A-b]"]
)
counts = st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,3}", "{2,}", "{,2}", "*?", "+?", "??", "{1,2}?", "{0}"])


def _larger(inner):
    return st.one_of(
        st.lists(inner, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda x: f"({'|'.join(x)})"),
        st.lists(inner, min_size=2, max_size=3).map(lambda x: f"(?:{'|'.join(x)})"),
        st.tuples(inner, counts).map(lambda x: f"(?:{x[0]}){x[1]}"),
        st.tuples(inner, st.sampled_from(["i", "s", "-i", "a", "i-s"])).map(lambda x: f"(?{x[1]}:{x[0]})"),
    )


patterns = st.recursive(
    st.one_of(char, char, char_class, st.tuples(char_class, counts).map("".join)), _larger, max_leaves=7
)


@settings(max_examples=80)
@given(patterns, st.sampled_from([0, I, S, A, I | S, I | A]), st.randoms(use_true_random=False))
def test_random_patterns(pattern, flags, rnd):
    try:
        compiled = re.compile(pattern, flags)
    except re.error:
        assume(False)
    try:
        grammar = Grammar.from_regex(pattern, flags)
    except GrammarError as error:
        assert "matches no text at all" in str(error)
        return
    texts = ["", *ALPHABET, *("".join(rnd.choices(ALPHABET, k=rnd.randint(2, 6))) for _ in range(20))]
    for text in texts:
        expected = compiled.fullmatch(text) is not None
        assert grammar.matches(text) == expected, text
        if grammar.is_prefix(text):
            whole = (text.encode() + completion(grammar, text.encode())).decode()
            assert compiled.fullmatch(whole), (text, whole)
        else:
            assert not any(compiled.fullmatch(text + rest) for rest in texts[:12]), text


@settings(max_examples=60)
@given(patterns, patterns)
def test_what_re_accepts_goes_through_every_prefix(first, second):
    """A text the engine writes for `first` is one of `first|second`, and so is each of its beginnings."""
    try:
        one, both = Grammar.from_regex(first), Grammar.from_regex(f"(?:{first})|(?:{second})")
    except GrammarError:
        assume(False)
    text = completion(one, b"")
    assert both.matches(text) and re.fullmatch(f"(?:{first})|(?:{second})", text.decode())
    assert all(both.is_prefix(text[:i]) for i in range(len(text) + 1))


# refusals

WRITE_OUT, BRANCHES = (
    "it is not a regular language; write the repeated text out",
    "write both branches as an alternation",
)
MANY = "a backreference to a group of more than 64 texts"
REFUSED = [
    (r"(.)\1", MANY, WRITE_OUT),
    (r"(a*)\1", MANY, WRITE_OUT),
    (r"(a\b)\1", "a backreference to a group that looks around", WRITE_OUT),
    (r"(?P<x>[a-z]{2})(?P=x)", MANY, WRITE_OUT),
    (r"([0-9])([0-9])([0-9])([0-9])\4\3\2\1", "a pattern whose groups have more than 1000 texts together", WRITE_OUT),
    (r"(?i)(a|b)\1", "a backreference to letters of either case", WRITE_OUT),
    (r"(?:(a)|b)*\1", "a backreference", WRITE_OUT),
    (r"(?:(a)|b)(?(1)c|d)", "a conditional group", BRANCHES),
    (r"(?:(a)?b(?(1)c|d))*", "a conditional group", BRANCHES),
    (r"(?(1)a|b)(c)", "a conditional group", BRANCHES),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "what", "hint"), REFUSED)
def test_what_is_not_regular_is_refused(pattern, what, hint):
    with pytest.raises(GrammarError) as caught:
        Grammar.from_regex(pattern)
    assert (caught.value.message, caught.value.hint) == (f"{what} is not supported in /{pattern}/", hint)


def test_a_refusal_is_one_line():
    with pytest.raises(GrammarError, match=r"not supported in /<\(\.\)\\n\\1/"):
        Grammar.from_regex("<(.)\n\\1")


def test_a_reference_within_an_atomic_group_is_refused_but_not_one_into_it():
    """By cases, the group's ways would be tried in another order."""
    with pytest.raises(GrammarError, match="a backreference is not supported"):
        Grammar.from_regex(r"(?>((a)?)\1b)")
    compiled = re.compile(r"(a|b)(?>c\1|c)\1?")
    grammar = Grammar.from_regex(compiled.pattern)
    assert assert_same_language(grammar, lambda t: compiled.fullmatch(t) is not None, "abc", 4)


@pytest.mark.parametrize(
    "pattern", ["a(b", "ab[c", "*a", "é{2,1}", "ab\ncd)e", "a\\", "x[b-a]", "(?P<1>a)", "a{99999999999}"]
)
def test_a_broken_pattern_says_where(pattern):
    with pytest.raises(GrammarError) as caught:
        Grammar.from_regex(pattern)
    error = caught.value
    try:
        re.compile(pattern)
    except OverflowError:
        assert error.message.endswith("regular expression does not parse: the repetition number is too large")
        return
    except re.error as its:
        assert (error.line, error.column) == (its.lineno, its.colno)
        line = pattern.split("\n")[its.lineno - 1]
        assert error.context == line + "\n" + " " * (its.colno - 1) + "^"
        assert error.message == (
            f"regex:{its.lineno}:{its.colno}: regular expression does not parse: {its.msg}\n{error.context}"
        )
    assert error.hint == "it is read as Python's `re` reads it"


@pytest.mark.parametrize("pattern", ["[^\\s\\S]", "a[^\\w\\W]b", "(?:[^\\d\\D]){1,2}", "\ud800", "[\ud800-\udfff]"])
def test_a_pattern_without_texts_is_an_error(pattern):
    with pytest.raises(GrammarError, match="matches no text at all"):
        Grammar.from_regex(pattern)


def test_a_part_without_texts_is_left_out():
    assert_same_language(Grammar.from_regex("a|[^\\s\\S]b|(?:c[^\\s\\S])*d"), lambda t: t in ("a", "d"), "abcd", 3)


@pytest.mark.parametrize(
    ("pattern", "flags", "what"),
    [
        (b"a", 0, "a regular expression is text, not bytes"),
        (5, 0, "a regular expression is text, not int"),
        (None, 0, "a regular expression is text, not NoneType"),
        ("a", re.LOCALE, "regular expression does not parse: cannot use LOCALE flag with a str pattern"),
        ("a", A | re.UNICODE, "regular expression does not parse: ASCII and UNICODE flags are incompatible"),
    ],
)
def test_no_text_or_impossible_flags_are_errors(pattern, flags, what):
    with pytest.raises(GrammarError) as caught:
        Grammar.from_regex(pattern, flags)
    assert caught.value.message == what


def test_random_walks_over_a_large_pattern_stay_inside_re():
    """Dates, numbers, quoted strings: one pattern of everyday parts."""
    pattern = r'("[^"\\\n]*(\\.[^"\\\n]*)*"|-?(0|[1-9]\d{0,8})(\.\d{1,6})?([eE][+-]?\d{1,2})?|\d{4}-(0[1-9]|1[0-2])-[0-3]\d|true|false|null)(, ?|;)?'
    compiled, grammar = re.compile(pattern), Grammar.from_regex(pattern)
    rnd = random.Random(5)
    for _ in range(60):
        state, out = grammar.automaton.start, b""
        for _ in range(rnd.randint(0, 12)):
            if not state.first():
                break
            byte = rnd.choice(sorted(state.first()))
            state, out = state.step(byte), out + bytes((byte,))
        assert compiled.fullmatch((out + completion(grammar, out)).decode())
