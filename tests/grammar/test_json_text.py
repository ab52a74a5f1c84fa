"""JSON strings that a table reads: the texts of a pattern, however they are spelt, and no place without a way on."""

from __future__ import annotations

import itertools
import json
import random
import re

import pytest

from constrained.grammar.json_text import Table
from constrained.grammar.patterns.character_automata import Texts
from constrained.grammar.patterns.ecma import pattern_node
from constrained.limits import Limits

LETTERS = 'a bé\n\x7f"\\中😀'
PATTERNS = {
    "words": (r"^(\S+\s+){0,2}\S+$", 1, 2),
    "escapes alone": (r'^[\n\\"]{1,2}$', 0, None),
    "beyond the first plane": (r"^[😀-😏]+a?$", 0, 2),
    "at least": (r"é", 2, None),
    "anything": (r"", 2, 3),
}


def table(name: str) -> tuple[Table, str, int, int | None]:
    pattern, low, high = PATTERNS[name]
    made = Texts([pattern_node(pattern, Limits())], [], low, None, Limits()).table()
    assert made is not None
    made.check()
    return made, pattern, low, high


def read(made: Table, high: int | None, text: str) -> bool:
    """Whether the table reads the text between the quotes, and may end there."""
    place: tuple[int, int | None, int] | None = (0, high, 0)
    for byte in text.encode("utf-8", "surrogatepass"):
        place = place and made.step(*place, byte)
    return place is not None and not place[2] and made.ends[place[0]]


@pytest.mark.parametrize("name", PATTERNS)
def test_the_texts_of_a_pattern_in_both_spellings(name):
    made, pattern, low, high = table(name)
    found = 0
    for count in range(1, 4):
        for letters in itertools.product(LETTERS, repeat=count):
            text = "".join(letters)
            fits = low <= count <= (high or count) and re.search(pattern.replace("$", r"\Z"), text) is not None
            found += fits
            for ascii_only in (False, True):
                assert read(made, high, json.dumps(text, ensure_ascii=ascii_only)[1:-1]) == fits, text
    assert found


@pytest.mark.parametrize("name", PATTERNS)
def test_an_end_can_be_reached_from_every_place_in_as_many_bytes_as_is_said(name):
    made, _, _, high = table(name)
    rnd = random.Random(name)
    for _ in range(150):
        place = (0, high, 0)
        for _ in range(rnd.randrange(12)):
            ways = [after for byte in range(256) if (after := made.step(*place, byte))]
            place = rnd.choice(ways) if ways else place
            assert ways or (not place[2] and made.ends[place[0]])
        while place[2] or not made.ends[place[0]]:
            most = made.bytes_left(place[0], place[2])
            place = min(
                (after for byte in range(256) if (after := made.step(*place, byte))),
                key=lambda after: 0 if not after[2] and made.ends[after[0]] else made.bytes_left(after[0], after[2]),
            )
            assert (not place[2] and made.ends[place[0]]) or made.bytes_left(place[0], place[2]) < most


@pytest.mark.parametrize("name", PATTERNS)
def test_a_character_that_is_begun_is_completed_in_the_fewest_bytes_to_every_state_it_may_lead_to(name):
    made, _, _, _ = table(name)
    letters = {*map(chr, range(128)), *LETTERS, *"é\u0800\uffff\U00010000\U0010ffff"}
    spellings = {chosen for c in letters for chosen in (c, json.dumps(c)[1:-1], json.dumps("é" + c)[7:-1])}
    spellings |= {"\\/", *(f"\\u{ord(c):04x}" for c in letters if c < "\U00010000")}
    shortest: dict[tuple[int, int], dict[int, int]] = {}
    for state, text in itertools.product(range(len(made.after)), spellings):
        data = text.encode()
        places = [(state, None, 0)]
        while places[-1] and len(places) <= len(data):
            places.append(made.step(*places[-1], data[len(places) - 1]))
        if places[-1] and not places[-1][2]:
            for at, (_, _, inside) in enumerate(places[:-1]):
                best = shortest.setdefault((state, inside), {})
                best[places[-1][0]] = min(best.get(places[-1][0], 99), len(data) - at)
    for (state, inside), best in shortest.items():
        found = {}
        for data in made.completions(state, inside):
            place = (state, None, inside)
            for byte in data:
                place = made.step(*place, byte)
            assert place and not place[2], (state, hex(inside), data)
            found[place[0]] = len(data)
        assert all(found[to] <= count for to, count in best.items()), (state, hex(inside))
        assert made.bytes_left(state, inside, least=True) <= min(count + made.fewest[to] for to, count in best.items())


def test_escapes_without_need_stand_where_any_character_may():
    made, _, _, high = table("anything")
    for text in (r"\/\u0041", r"a\u00e9\u0020", r"\ud83d\ude00\b"):
        assert read(made, high, text), text
    words, _, _, high = table("words")
    for text in (r"\/", r"\u0041", r"\ud83d", r"\ud83d\u0041", r"\ude00", "\ud800", "\x01", '"'):
        assert not read(words, high, text), text
    assert read(words, high, r"\uD83D\uDE00\u00E9")


@pytest.mark.parametrize(
    "parts",
    [
        ((0, 5, 5), (0, 1, 0), ((0, 0, -1),), (True,)),
        ((1,), (0,), ((0, -1),), (True,)),
        ((0,), (0, 1), ((0, 0, -1),), (True,)),
        ((0,), (0,), ((1, -1),), (True,)),
        ((0,), (0,), ((0,),), (True,)),
        ((0,), (0,), ((0, -1),), (False,)),
        ((0,), (0,), ((0, -1),), (True, True)),
        ((0,), (-2,), ((),), (True,)),
    ],
)
def test_what_is_no_table_is_refused(parts):
    with pytest.raises(ValueError, match="no table"):
        Table(*parts).check()
