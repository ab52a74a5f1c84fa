"""Which questions are variations of each other, and the parts of SVAMP that follow from it."""

import random
from itertools import combinations

import pytest

from constrained.environments.maths.problems import load_svamp, svamp_parts
from constrained.environments.similarity import VariationFinder, families, question_words
from constrained.environments.suite import open_suite
from constrained.errors import DataError
from tests.data import shared

CAKES = "Baker made 43 cakes and 114 pastries. How many cakes did he make?"
MORE_CAKES = "Baker made 9 cakes and sold 4 pastries. How many more cakes did he make?"
BUS = "There were 28 children on the bus. How many got off?"


def half_in_common(one, other):
    return 2 * len(question_words(one) & question_words(other)) >= len(question_words(one) | question_words(other))


def test_numbers_say_nothing_and_half_of_the_words_is_enough():
    finder = VariationFinder([CAKES, BUS])
    assert finder.similar(MORE_CAKES) == [0] and finder.similar(BUS.replace("28", "5")) == [1]
    assert finder.similar("") == finder.similar("How much?") == [] and VariationFinder([]).similar(CAKES) == []


def test_it_finds_what_comparing_all_pairs_finds():
    rng = random.Random(0)
    texts = [" ".join(rng.choices("abcdefgh", k=rng.randint(0, 7))) for _ in range(200)]
    finder = VariationFinder(texts)
    for text in texts:
        if text:
            assert finder.similar(text) == [i for i, other in enumerate(texts) if other and half_in_common(text, other)]


def test_a_family_is_all_that_is_joined_by_way_of_others():
    chain = ["a b c d", "c d e f", "e f g h", "x y"]  # a third in common only
    assert families(chain) == [0, 1, 2, 3]
    assert families(["a b c", "b c d", "c d e", "x y", "a b c"]) == [0, 0, 0, 3, 0]


def test_svamps_parts_share_no_family():
    shared("svamp/SVAMP_first700.json")
    problems = load_svamp()
    train, held_out = svamp_parts(problems)
    assert (len(train), len(held_out)) == (564, 136)
    assert sorted(p.name for p in [*train, *held_out]) == sorted(p.name for p in problems)
    finder = VariationFinder([problem.question for problem in held_out])
    assert not any(finder.similar(problem.question) for problem in train)
    shuffled = random.Random(1).sample(problems, len(problems))
    assert {p.name for p in svamp_parts(shuffled)[1]} == {p.name for p in held_out}


def test_the_suites_of_the_parts():
    shared("svamp/SVAMP_first700.json")
    parts = {split: {task.name for task in open_suite("svamp", split=split).tasks} for split in ("train", "held_out")}
    assert {name: len(part) for name, part in parts.items()} == {"train": 564, "held_out": 136}
    assert not parts["train"] & parts["held_out"] and open_suite("svamp", split="train", limit=1).name == "svamp/train"
    with pytest.raises(DataError, match="there are: held_out, train"):
        open_suite("svamp", split="dev")


def test_held_out_questions_of_one_family_stay_together():
    shared("svamp/SVAMP_first700.json")
    _, held_out = svamp_parts(load_svamp())
    joined = families([p.question for p in held_out])
    assert 10 < len(set(joined)) < 40
    assert any(half_in_common(a.question, b.question) for a, b in combinations(held_out, 2))
