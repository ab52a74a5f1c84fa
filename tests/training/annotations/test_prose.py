"""Calculations read out of prose, from lines as GSM8K has them."""

from fractions import Fraction

import pytest

from constrained.training.annotations.algebra import algebra_readings
from constrained.training.annotations.gsm8k import by_marks, by_text
from constrained.training.annotations.prose import calculations, value_of

LINES = {
    "Sam memorized 4+6=10 digits of pi.": ["4 + 6"],
    "Mary added a total of 7 stickers/page * 6 pages= 42 stickers to": ["7 * 6"],
    "60 minutes/hour / 2 minutes/mile = 30 miles/hour": ["60 / 2"],
    "Female:44(.50)=22": ["44 * (.50)"],
    "14 / 1 / 4 = 14 * 4 = 56 washes.": ["14 * 4"],
    "6 monkeys / 10 animals * 100% = 60%": ["6 / 10 * 100"],
    "70% * 50% = 35%": ["70% * 50%"],
    "3 / 4 * 2 = 1 1/2 square feet": ["3 / 4 * 2"],
    "2 miles / 1/6 hour = 12 miles/hour": ["2 / (1 / 6)"],
    "he needs 10 x 1,248 = 12,480 and 5 x 3 = 15": ["10 * 1248", "5 * 3"],
    "Natalie has $26 − $18 = $8 left.": ["26 - 18"],
    "7/2 = 3 full weeks": ["floor(7 / 2)"],
    "14-3 equals 11, and 150 divided by 5 equals 30.": ["14 - 3", "150 / 5"],
    "√(144) = 12": ["sqrt(144)"],
    "The price is $80 000+ $16 000 = $96 000.": ["80000 + 16000"],
    "So 6/3=.5 hour": [],  # the sides don't agree
    "Rodney: 2(4x-7)=8x-14": [],  # a letter is no unit
    "Total = 5, in 2010": [],
    "": [],
}


@pytest.mark.parametrize("line", LINES)
def test_the_calculations_of_a_line(line):
    assert [found.formula for found in calculations(line)] == LINES[line]


def test_what_was_rounded_is_kept_exact():
    (found,) = calculations("15 / 90 = 16.66...%, which rounds up")
    assert found.value == Fraction(1, 6) and found.stated == Fraction("0.1666")


def test_a_formula_that_is_none_has_no_value():
    assert value_of("2 * (3 + 4)") == 14 and value_of("10**10**10") is None and value_of("x + 1") is None


def test_marks_come_first_and_text_where_a_mark_only_repeats():
    (mark,) = by_marks("Sam sold 48/2 = <<48/2=24>>24 clips in May.").found
    assert (mark.formula, mark.value, mark.begin, mark.end) == ("48/2", 24, 9, 18)
    (text,) = by_marks("The team has 1,148 because 287 x 4 = <<1148=1148>>1,148").found
    assert text.formula == "287 * 4"


def test_an_equation_is_solved_and_what_follows_reads_its_value():
    lines = ["Let x be what Ron lifts.", "Total:x+4x-7+8x-14=239", "Rodney: 8x-14=146 pounds"]
    ways = list(algebra_readings([by_text(line) for line in lines], by_text))
    solving = ways[0][-1].found[0]
    assert solving.unknowns == ("x",) and solving.equations == (("x + 4 * x - 7 + 8 * x - 14", "239"),)
    assert ["8 * (20) - 14"] in [[getattr(found, "formula", None) for found in way[-1].found] for way in ways]


def test_solutions_without_equations_have_no_such_ways():
    assert list(algebra_readings([by_text("He has 4 + 4 = 8 apples, x = 3")], by_text)) == []
