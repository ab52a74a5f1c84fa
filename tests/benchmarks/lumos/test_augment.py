"""Fresh numbers in SVAMP's problems: the same text, another answer, which the executor computes."""

import random
import re
from fractions import Fraction

import pytest

from benchmarks.lumos.problems import augment
from constrained.environments.maths.problems import WordProblem, load_svamp, svamp_parts
from constrained.training.annotations import svamp
from constrained.training.annotations.convert import execute
from tests.data import shared


def problem(question, equation, answer, asked="How many?"):
    return WordProblem("one", "", f"{question} {asked}", equation, Fraction(answer), asked)


def drawn(one, count=30):
    return [fresh for seed in range(count) if (fresh := augment(one, random.Random(seed)))]


def test_numbers_change_alike_in_text_and_equation():
    given = problem("He had 43 cakes, sold 9 and baked 120.", "( ( 43.0 - 9.0 ) + 120.0 )", 154, "How many of 43?")
    for fresh in drawn(given):
        a, b, c, again = map(int, re.findall(r"\d+", fresh.question))
        assert again == a and 2 <= b <= 9 < 10 <= a <= 99 < 100 <= c <= 999
        assert fresh.solution == f"( ( {a}.0 - {b}.0 ) + {c}.0 )" and fresh.answer == a - b + c
        assert fresh.asked == f"How many of {a}?" and fresh.name == given.name
    assert len({fresh.question for fresh in drawn(given)}) > 20


def test_what_words_agree_with_stays():
    for fresh in drawn(problem("1 cake costs 30 dollars, 0 are left.", "( 30.0 * 1.0 )", 30)):
        assert fresh.question.startswith("1 cake") and ", 0 are left" in fresh.question


def test_whole_answers_stay_whole_and_nothing_becomes_negative():
    for fresh in drawn(problem("80 cookies in 4 bags.", "( 80.0 / 4.0 )", 20)):
        assert fresh.answer.denominator == 1 and fresh.answer > 0
    for fresh in drawn(problem("8 ate 7 of 9.", "( 9.0 - ( 8.0 - 7.0 ) )", 8)):
        assert fresh.answer >= 0


@pytest.mark.parametrize(
    "question, equation", [("No number.", "3.0"), ("5 of them.", "( 5.0 / 0.0 )"), ("5 left.", "import")]
)
def test_where_nothing_fits_there_is_none(question, equation):
    assert augment(problem(question, equation, 1), random.Random(0)) is None


def test_fresh_problems_convert_and_come_to_their_answers():
    shared("svamp/SVAMP_first700.json")
    train, _ = svamp_parts(load_svamp())
    fresh = [augment(one, random.Random(0)) for one in train[:40]]
    assert sum(one is not None for one in fresh) >= 38
    for one in filter(None, fresh):
        assert execute(svamp.convert(one))[1] == ""
