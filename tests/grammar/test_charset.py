"""Sets of characters are shown as a regular expression that means them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.grammar.charset import charset, class_text, matching

characters = st.integers(0, 0x10FFFF).filter(lambda c: not 0xD800 <= c <= 0xDFFF)
ranges = st.lists(st.tuples(characters, characters).map(sorted).map(tuple), min_size=1, max_size=5)


@given(ranges)
def test_the_text_is_a_class_with_the_same_characters(given_ranges):
    chars = charset(given_ranges)
    pattern = re.compile(class_text(chars))
    edges = {c for low, high in chars.ranges for c in (low - 1, low, low + 1, high - 1, high, high + 1)}
    for code in edges | set(range(128)):
        if 0 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF:
            assert (pattern.fullmatch(chr(code)) is not None) == (code in chars), (class_text(chars), code)


@pytest.mark.parametrize(
    "pattern, text",
    [
        (r"[^\]\n]", r"[^\n\]]"),
        ("[a-f0-9_]", "[0-9_a-f]"),
        ("[ab]", "[ab]"),
        ("x", "x"),
        (r"\.", r"\."),
        (r"\d", r"\d"),
        (r"\W", r"\W"),
        (".", r"[^\n]"),
        (r"[\s\S]", "(?s:.)"),
        ("[é\x00]", r"[\x00é]"),
    ],
)
def test_texts(pattern, text):
    assert class_text(matching(pattern, 0)) == text


def test_a_long_class_is_cut_short_and_says_so():
    text = class_text(charset((c, c) for c in range(0x400, 0x500, 4)))
    assert text.endswith("... 52 more ranges]") and len(text) < 40


@pytest.mark.parametrize("pattern", [r"\w", r"\D", r"\s"])
def test_a_category_is_what_re_says_of_each_character(pattern):
    is_one = re.compile(pattern).match
    chars = matching(pattern, 0)
    places = [*range(0, 0x110000, 97), *(end for pair in chars.ranges for end in pair)]
    assert all((place in chars) == bool(is_one(chr(place))) for place in places if not 0xD800 <= place <= 0xDFFF)
