"""The reward is the paper's formula, part by part."""

from dataclasses import asdict, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constrained.environments.similarity import ratio, token_set_ratio
from constrained.environments.webshop.catalogue import Goal, Product
from constrained.environments.webshop.reward import reward, same_text, title_words

SHOES = Product(
    "B1", "Mens Basketball Sneakers, the 2 Casual Shoes - Off White", "fashion", "a › b › c", "sneakers",
    "A comfortable shoe with a rubber sole", ("made in Portugal",), {"color": ("grey",), "size": ("9",)}, 35.0, "$35.0",
    ("arch support", "long lasting"),
)  # fmt: skip
GOAL = Goal("", SHOES, ("arch support", "rubber sole"), ("grey", "9"), 40.0)
CORD = replace(SHOES, number="B2", name="Power Cord for Soundbar", query="cables", path="a › x › y")


def test_the_right_product_with_the_right_options_is_worth_one():
    found = reward(SHOES, {"color": "grey", "size": "9"}, GOAL)
    assert asdict(found) == {"score": 1.0, "type": 1.0, "attributes": 1.0, "options": 1.0, "price": 1.0}


@pytest.mark.parametrize(
    "chosen, score",
    [
        ({}, 3 / 5),
        ({"color": "grey"}, 4 / 5),
        ({"color": "dark grey"}, 4 / 5),  # alike: one's words are all in the other
        ({"color": "green"}, 3 / 5),
        ({"size": "9 wide"}, 3 / 5),  # a size must be the same
        ({"color": "grey", "style": "grey"}, 4 / 5),  # one option asked for counts once
    ],
)
def test_options_count_as_far_as_they_are_asked_for(chosen, score):
    assert reward(SHOES, chosen, GOAL).score == pytest.approx(score)


@pytest.mark.parametrize(
    "change, attributes",
    [
        ({}, 1.0),
        ({"description": ""}, 0.5),
        ({"attributes": ()}, 0.5),
        ({"attributes": (), "description": "RUBBER SOLE", "features": ("Arch Support",)}, 1.0),
        ({"attributes": ("arch supports",), "description": ""}, 0.5),
    ],
)
def test_attributes_are_found_by_likeness_or_in_the_texts(change, attributes):
    assert reward(replace(SHOES, **change), {}, GOAL).attributes == attributes


def test_a_price_over_the_limit_costs_one_part():
    assert reward(replace(SHOES, price=40.0), {}, GOAL).score == pytest.approx(3 / 5)
    assert reward(replace(SHOES, price=40.01), {}, GOAL).score == pytest.approx(2 / 5)


@pytest.mark.parametrize(
    "change, kind",
    [
        ({}, 0.0),  # no word of the title in common
        ({"name": "The power cord that is for 2 shelves"}, 0.0),  # nor are function words and numbers
        ({"name": "White power cord"}, 0.5),
        ({"name": "White power cord", "query": "sneakers"}, 1.0),
        ({"name": "White power cord", "path": "c › b › z"}, 1.0),
        ({"name": "White casual power cord"}, 1.0),
    ],
)
def test_the_type_is_judged_by_title_query_and_category(change, kind):
    assert reward(replace(CORD, **change), {}, GOAL).type == kind


def test_a_title_that_hardly_matches_is_worth_a_tenth():
    long = replace(SHOES, name=" ".join(f"word{chr(97 + i)}" for i in range(11)))
    assert reward(replace(CORD, name="worda cable"), {}, replace(GOAL, product=long)).type == 0.1


def test_function_words_and_numbers_are_no_words_of_a_title():
    assert title_words("The Power Cord for 2 Shelves") == {"power", "cord", "shelves"}


def test_a_goal_that_asks_for_no_options_has_them_all():
    found = reward(SHOES, {"color": "grey"}, replace(GOAL, options=()))
    assert (found.options, found.score) == (1.0, 1.0)


# The figures are thefuzz's token_set_ratio; on 20,000 random pairs of texts the two never differed.
@pytest.mark.parametrize(
    "one, other, percent",
    [
        ("essential oils", "essential oil", 96), ("light blue", "blue", 100), ("gluten free", "sugar free", 57),
        ("wash cold", "machine wash", 62), ("a01#black", "black", 100), ("", "black", 0), ("!", "?", 0),
    ],
)  # fmt: skip
def test_likeness_is_of_sets_of_words(one, other, percent):
    assert token_set_ratio(one, other) == token_set_ratio(other, one) == percent
    assert same_text(one, other) == (percent > 85)


@given(st.text(max_size=20), st.text(max_size=20))
def test_the_ratio_is_that_of_the_longest_common_subsequence(one, other):
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            table[i + 1][j + 1] = table[i][j] + 1 if a == b else max(table[i][j + 1], table[i + 1][j])
    whole = len(one) + len(other)
    assert ratio(one, other) == (2 * table[-1][-1] / whole if whole else 1.0)
