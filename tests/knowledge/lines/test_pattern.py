"""What answers name: single names, lists in a sentence, lists of lines, and what stands in brackets."""

import pytest

from constrained.knowledge.lines.pattern import Pattern

ROOM = """This room is called the shed. In it, you see:\x20
\ta rack. On the rack is: a box (holding a cup (holding a substance called tea), a pen), a lamp, which is off.
\ta fan, which is on
\ta recipe titled How to
\ta clock, currently 5
You also see:
\tA door (open)
"""


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("called the {p}.", [{"p": ["shed"]}]),
        ("see:{t; ...}", [{"t": ["rack", "fan", "How to", "clock"]}, {"t": ["door"]}]),
        ("On the {c} is: {t, ...}.", [{"c": ["rack"], "t": ["box", "lamp"]}]),
        # what a box holds in brackets is found, too, and what is in that
        (r"{c} \(holding {t, ...}\)", [{"c": ["box"], "t": ["cup", "pen"]}, {"c": ["cup"], "t": ["tea"]}]),
        (r"door \({s}\)", [{"s": ["open"]}]),
    ],
)
def test_names_are_read_without_what_is_said_of_them(pattern, found):
    assert list(Pattern(pattern).find(ROOM)) == found


def test_a_name_at_the_end_of_a_pattern_is_whole():
    assert list(Pattern("joined to {a}").find("Joined to the red wire, at last.")) == [{"a": ["red wire"]}]
    assert list(Pattern("you see {a, ...}").find("You see a cup, and a red pen.")) == [{"a": ["cup", "red pen"]}]


def test_a_list_of_lines_may_be_empty():
    assert list(Pattern("you see:{t; ...}").find("You see:\nnothing of note")) == [{"t": []}]


def test_what_is_written_is_read_again():
    pattern, values = Pattern("In the {p} you see:{t; ...}"), {"p": ["shed"], "t": ["rack", "red pen"]}
    assert list(pattern.find(pattern.write(values))) == [values]
