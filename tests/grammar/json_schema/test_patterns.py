"""Formats, which Python's own readers of each format take; and patterns that one language alone reads."""

import calendar
import ipaddress
import json
import random
import re
import uuid
from contextlib import suppress
from datetime import date, datetime, time
from itertools import product
from urllib.parse import urlsplit

import pytest

from constrained import Grammar, GrammarError
from constrained.grammar.json_schema.strings import is_written
from constrained.grammar.patterns.character_automata import Texts
from constrained.grammar.patterns.ecma import end_differently, pattern_node
from constrained.grammar.patterns.finite_automata import few_texts
from constrained.grammar.patterns.formats import FORMAT_STATES, PATTERNS, format_node
from constrained.grammar.patterns.trees import example
from constrained.limits import DEFAULT, Limits
from tests.grammar.json_schema.oracle import random_text

GOOD = {
    "date": ["2024-02-29", "2000-02-29", "1999-12-31", "0001-01-01"],
    "time": ["12:30:00Z", "23:59:59.123+05:30", "00:00:00z"],
    "date-time": ["2024-02-29T12:00:00Z", "1999-12-31t23:59:59.5-08:00"],
    "duration": ["P1D", "PT5M", "P1Y2M3DT4H5M6S", "P3W", "PT0S"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000", "00000000-0000-0000-0000-00000000ABCD"],
    "email": ["a@b", "first.last+tag@mail.example.org", "x_y@a-b.co"],
    "hostname": ["localhost", "a.b.c", "xn--bcher-kva.example", "a" * 63],
    "ipv4": ["0.0.0.0", "255.255.255.255", "192.168.1.10"],
    "ipv6": ["::", "::1", "1:2:3:4:5:6:7:8", "fe80::1", "1:2:3:4:5:6:7::", "::ffff:1.2.3.4", "1::3:4:5:6:7:8"],
    "uri": ["https://a.org/b?c=d#e", "mailto:a@b.org", "urn:isbn:1", "http://[::1]:80/", "file:///a/b%20c"],
    "uri-reference": ["/a/b", "#x", "../c?d", "https://a.org", "//a/b", ""],
    "json-pointer": ["", "/a/b", "/a~1b/~0"],
}
BAD = {
    "date": ["2023-02-29", "1900-02-29", "2024-13-01", "2024-04-31", "0000-01-01", "24-01-01", "2024-1-1"],
    "time": ["12:30:00", "24:00:00Z", "12:60:00Z", "12:00:60Z"],
    "date-time": ["2024-02-30T12:00:00Z", "2024-02-29 12:00:00Z", "2024-02-29T12:00:00"],
    "duration": ["P", "PT", "1D", "P1S", "P1Y3D4H"],
    "uuid": ["123e4567e89b12d3a456426614174000", "g23e4567-e89b-12d3-a456-426614174000"],
    "email": ["a", "a@", "@b", "a@b@c", "a b@c.d", ".a@b"],
    "hostname": ["-a", "a-", "a..b", "a_b", "a" * 64, ""],
    "ipv4": ["256.0.0.1", "1.2.3", "01.2.3.4", "1.2.3.4.5"],
    "ipv6": ["1:2:3:4:5:6:7", "1::2::3", ":::", "g::1", "1:2:3:4:5:6:7:8:9", "12345::", "1::2:3:4:5:6:7:8"],
    "uri": ["a/b", "http://a b", "://x", "1http://a", "http://a/%zz"],
    "uri-reference": ["a b", "%", "\\"],
    "json-pointer": ["a", "/~", "/~2"],
}


def grammar(name, **other):
    return Grammar.from_json_schema({"type": "string", "format": name, **other})


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_texts_of_a_format_and_others(name):
    admitted = grammar(name)
    assert [t for t in GOOD[name] if not admitted.matches(f'"{t}"')] == []
    assert [t for t in BAD[name] if admitted.matches(f'"{t}"')] == []


def test_a_date_is_a_day_of_the_calendar():
    admitted = grammar("date")
    for year in (1600, 1700, 1900, 1996, 1999, 2000, 2023, 2024, 2100, 9999):
        for month in range(1, 13):
            last = calendar.monthrange(year, month)[1]
            days = [d for d in range(33) if admitted.matches(f'"{year}-{month:02}-{d:02}"')]
            assert days == list(range(1, last + 1))


READERS = {
    "date": date.fromisoformat,
    "time": lambda text: time.fromisoformat(_micro(text.upper().replace("Z", "+00:00"))),
    "date-time": lambda text: datetime.fromisoformat(_micro(text.upper().replace("Z", "+00:00"))),
    "uuid": uuid.UUID,
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
    "uri": lambda text: urlsplit(text).scheme or 1 / 0,
}


def _micro(text: str) -> str:
    """`text` with a fraction of six digits, all that Python before 3.11 reads."""
    head, point, rest = text.partition(".")
    figures = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    return f"{head}.{figures:0<6.6}{rest[len(figures) :]}" if point else text


@pytest.mark.parametrize("name", sorted(READERS))
def test_what_is_written_can_be_read(name):
    admitted, rng, read = grammar(name), random.Random(4), 0
    for _ in range(150):
        text = random_text(admitted, rng)
        if text is not None and not (name == "uri" and b"[" in text):
            READERS[name](text.decode()[1:-1])
            read += 1
    assert read > 50


def test_formats_hold_together_with_lengths_and_patterns():
    short = grammar("email", maxLength=9)
    assert short.matches('"abc@de.fg"') and not short.matches('"abcd@ef.gh"')
    year = grammar("date", pattern="^2024-")
    assert year.matches('"2024-02-29"') and not year.matches('"2023-02-28"')


def test_what_an_enum_lists_has_the_format_too():
    days = {"enum": ["2024-02-29", "2023-02-29", "soon", 7], "format": "date"}
    for schema in (days, {"anyOf": [days]}, {**days, "title": "a day"}):
        grammar = Grammar.from_json_schema(schema)
        assert [grammar.matches(json.dumps(v)) for v in days["enum"]] == [True, False, False, True]
    assert Grammar.from_json_schema(days, formats=False).matches('"soon"')


def test_a_text_of_two_formats_fits_no_oneof_of_them():
    one = Grammar.from_json_schema({"type": "string", "oneOf": [{"format": "uri"}, {"format": "email"}]})
    assert one.matches('"http://b.c/"') and one.matches('"a@b.c"') and not one.matches('"http://a@b.c/"')
    other = Grammar.from_json_schema({"type": "string", "oneOf": [{"format": "ipv4"}, {"format": "hostname"}]})
    assert other.matches('"a.b.c"') and not other.matches('"1.2.3.4"')


def test_a_text_of_one_pattern_or_of_another_language_s_reading_of_a_second_fits_no_oneof_of_them():
    grammar = Grammar.from_json_schema({"type": "string", "oneOf": [{"pattern": "^[aé]$"}, {"pattern": r"^\w$"}]})
    assert grammar.matches('"b"') and not grammar.matches('"a"') and not grammar.matches('"é"')
    listed = Grammar.from_json_schema({"oneOf": [{"enum": ["x@ y", "x"]}, {"type": "string", "format": "email"}]})
    assert listed.matches('"x"') and not listed.matches('"x@ y"')


@pytest.mark.parametrize("name, bad", [("email", "a"), ("hostname", "a b"), ("uri", "/a"), ("uri-reference", "a b")])
def test_what_no_validator_takes_for_a_format_can_be_asked_for(name, bad):
    grammar = Grammar.from_json_schema({"type": "string", "not": {"format": name}})
    assert grammar.matches(f'"{bad}"') and not any(grammar.matches(f'"{good}"') for good in GOOD[name])


UNICODE = [
    (r"^\p{L}+$", "aé漢", "a1"),
    (r"^\P{L}+$", "1-", "1a"),
    (r"^[\p{Lu}\p{General_Category=Decimal_Number}-]+$", "A-1", "a"),
    (r"^[^\p{C}]+$", "a é", "a\n"),
    (r"^\P{C}+$", "a é", "\u0378"),  # no character yet: one day it may be any
    (r"^\p{C}$", "\x01", "\u0378"),
    (r"\A[a-z]+\Z", "ab", "ab1"),
    (r"(?i)^k.?$", "K", "K\n"),
    (r"(?si)^a.$", "A\n", "b"),
    (r"^[\uD800\uDBFF-\uDC00\uDFFFa-z\uE000-\uFFFD]+$", "a\uffdd", "A"),
    (r"^[\uD83D\uDE00-\uD83D\uDE4F]$", "😀", "🚀"),
]


@pytest.mark.parametrize("pattern, good, bad", UNICODE)
def test_what_one_of_the_languages_alone_knows_means_what_it_means_there(pattern, good, bad):
    good, bad = (json.dumps(text, ensure_ascii=False) for text in (good, bad))
    grammar = Grammar.from_json_schema({"type": "string", "pattern": pattern})
    assert grammar.matches(good) and not grammar.matches(bad)
    assert not Grammar.from_json_schema({"type": "string", "not": {"pattern": pattern}}).matches(good)


def test_a_longest_length_that_no_text_comes_to_is_none():
    grammar = Grammar.from_json_schema({"type": "string", "minLength": 1, "maxLength": 2147483647})
    assert grammar.matches('"ab"') and not grammar.matches('""')


def test_other_formats_only_describe():
    assert grammar("password").matches('"any text"')
    assert Grammar.from_json_schema({"type": "integer", "format": "int32"}).matches("5")


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_what_is_known_of_formats_without_reading_their_patterns(name):
    length, limits = len(example(format_node(name))), Limits(schema=FORMAT_STATES, pattern_steps=FORMAT_STATES)
    texts = Texts([format_node(name)], [], length, length, limits)
    assert texts.lives(texts.start)


PIECES = [*"ab-_/0 9zé", "ab", *r"\d \D \w \W \s \S \. \- \n \b \1 \u0041 \$".split(), *"(()).|*+?^$"]
PIECES += ["[a-z]", "[z-a]", "[^a]", r"[^\d]", r"[^\D]", r"[\w-]", r"[\w-.]", "[-a]", "[]", "[^]", r"[^\w\W]", "[a^]"]
PIECES += ["(?:", "{2}", "{3,1}", "{1,3}", "{2,}", "{,3}", "{", "}", "]", "??", "(?=", "(?i)", "(a|b)", "(?:c)?"]


def random_patterns(rng: random.Random):
    inner = "".join(rng.choice(PIECES) for _ in range(rng.randint(1, 5)))
    return f"{'^' * rng.randint(0, 1)}{inner}{'$' * rng.randint(0, 1)}"


def has_text(*patterns: str, either: bool) -> bool:
    texts = Texts([pattern_node(pattern, DEFAULT, either) for pattern in patterns], [], 0, None, DEFAULT)
    return texts.lives(texts.start)


def test_a_pattern_that_is_written_as_it_is_has_a_text():
    rng, found = random.Random(5), 0
    for pattern in (random_patterns(rng) for _ in range(2_000)):
        with suppress(GrammarError):
            if is_written(pattern_node(pattern, DEFAULT)):
                assert has_text(pattern, either=False) and has_text(pattern, either=True), pattern
                found += 1
    assert found > 200


def test_patterns_that_end_differently_share_no_text_in_either_reading():
    rng, told = random.Random(6), 0
    for _ in range(30_000):
        one, other = random_patterns(rng), random_patterns(rng)
        if end_differently(one, other):
            try:
                shared = has_text(one, other, either=True)
            except GrammarError:  # one of them can't be read
                continue
            assert not shared, (one, other)
            told += 1
    assert told > 50


def test_names_of_a_pattern_with_many_states_are_read_where_others_are_listed():
    """Its deterministic automaton has 2**21 states; to tell whether a name can still end takes few of them."""
    inner = {"properties": {"ax": {"type": "string"}}, "patternProperties": {"[ab]*a[ab]{20}$": {"type": "integer"}}}
    schema = {"properties": {"inner": {"type": "object", **inner, "additionalProperties": False}}}
    grammar = Grammar.from_json_schema(schema)
    assert grammar.matches(f'{{"inner": {{"{"ab" * 12}a": 1, "ax": "y"}}}}')
    assert not grammar.is_prefix(f'{{"inner": {{"{"ab" * 12}a": "')
    assert not grammar.is_prefix('{"inner": {"bbbb": ')


def test_a_string_with_one_pattern_and_not_another_where_their_automata_have_many_states():
    schema = {"type": "string", "pattern": "^[ab]*a[ab]{20}$", "not": {"pattern": "bab{5}"}}
    grammar = Grammar.from_json_schema(schema)
    assert grammar.matches(f'"{"ab" * 12}a"') and not grammar.matches(f'"{"ab" * 12}abbbbb"')


@pytest.mark.parametrize(
    "pattern", ["^(?!.*b)a*[bc]$", "^(?=a.*c$)(?!ab).{2,3}$", "^(?=.$)a|b", "^(?!(?!a)).", "(?=b)."]
)
@pytest.mark.parametrize("length", [{}, {"minLength": 1, "maxLength": 2}])
def test_lookaheads_at_the_start_of_a_pattern_are_conditions_on_the_whole_text(pattern, length):
    grammar = Grammar.from_json_schema({"type": "string", "pattern": pattern, **length}, whitespace="compact")
    low, high = length.get("minLength", 0), length.get("maxLength", 4)
    for text in map("".join, (text for size in range(5) for text in product("abc", repeat=size))):
        assert grammar.matches(f'"{text}"') == (low <= len(text) <= high and bool(re.search(pattern, text))), text
    automaton = grammar.automaton  # no text comes to a dead end
    for text in map("".join, (text for size in range(4) for text in product("abc", repeat=size))):
        state = automaton.start
        for byte in f'"{text}'.encode():
            state = state and state.step(byte)
        assert not state or state.first()


@pytest.mark.parametrize(
    "pattern",
    ["^(a|bc)?d$", "^[ab]{2}$", "^(x[ab]|y){1,2}$", "^a(b|c)*$", "name", "^[a-z]$", "^(?!a)[ab]$", "^(|a)(|a)$"],
)
def test_the_few_texts_of_a_pattern_are_listed(pattern):
    listed = few_texts(pattern_node(pattern, DEFAULT), 64, DEFAULT)
    short = ("".join(text) for length in range(5) for text in product("abcdxy", repeat=length))
    letters = list("abcdefghijklmnopqrstuvwxyz")
    expected = letters if pattern == "^[a-z]$" else sorted(text for text in short if re.search(pattern, text))
    assert listed == (None if pattern in ("^a(b|c)*$", "name") else expected)


@pytest.mark.parametrize(
    "patterns", [("^(a|b)name$", "name", "x"), ("^(a|b)name$", "^b"), ("^(a|b)name$", "^(b|c)name$", "c")]
)
def test_patterns_of_names_of_which_one_has_few_texts(patterns):
    schema = {"patternProperties": {p: {"const": i} for i, p in enumerate(patterns)}, "additionalProperties": False}
    grammar = Grammar.from_json_schema(schema)
    for name in ("aname", "bname", "cname", "name", "xname", "b", "z"):
        for value in range(3):
            fits = {i == value for i, pattern in enumerate(patterns) if re.search(pattern, name)}
            assert grammar.matches(json.dumps({name: value})) == (fits == {True})
