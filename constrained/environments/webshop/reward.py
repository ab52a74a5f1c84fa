"""The reward of a purchase (Yao et al., *WebShop*, 2022, section 3.2 and appendix A.5).

    r = r_type · (|U_att ∩ Y_att| + |U_opt ∩ Y_opt| + [y_price ≤ u_price]) / (|U_att| + |U_opt| + 1)

U are the attributes, options and price that the instruction asks for, Y those of the product bought. An attribute
counts if the product has a similar one or names it in its texts; an option counts if a chosen one is similar (a size
must be the same).

Two things differ from the released program. It also counts options that were chosen but not asked for if they occur in
the product's texts, so that its reward can exceed 1; here only options that were asked for count, as in the formula.
And it compares the nouns of two titles, found by a tagger of half a gigabyte; here `title_words` takes all words
except function words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from constrained.environments.similarity import token_set_ratio, word_set
from constrained.environments.text_search import STOP_WORDS
from constrained.environments.webshop.catalogue import Goal, Product

SAME_PERCENT = 85
"""`token_set_ratio` in percent above which two texts count as the same: WebShop's own threshold."""


@dataclass(frozen=True)
class Reward:
    """A reward and its parts, all from 0 to 1."""

    score: float = 0.0  # the reward
    type: float = 0.0  # 1 for the kind of product asked for; 0.5, 0.1 and 0 for less and less similar kinds
    # the share of those asked for that the purchase has; 1 if none is asked for
    attributes: float = 0.0
    options: float = 0.0
    price: float = 0.0  # 1 if the price is within the limit


def title_words(title: str) -> set[str]:
    """The words of a title, without numbers and function words."""
    return {word for word in word_set(title) - STOP_WORDS if any(map(str.isalpha, word))}


def reward(product: Product, chosen: Mapping[str, str], goal: Goal) -> Reward:
    """The reward of buying a product; `chosen` is the value chosen for each option."""
    attributes = sum(_has_attribute(product, attribute) for attribute in goal.attributes)
    options = sum(any(_same_option(*pair, wanted) for pair in chosen.items()) for wanted in goal.options)
    price = product.price <= goal.price_upper
    kind = _type(product, goal.product)
    asked = len(goal.attributes) + len(goal.options) + 1
    return Reward(
        score=kind * (attributes + options + price) / asked,
        type=kind,
        attributes=attributes / len(goal.attributes) if goal.attributes else 1.0,
        options=options / len(goal.options) if goal.options else 1.0,
        price=float(price),
    )


def same_text(left: str, right: str) -> bool:
    """Whether two texts count as the same attribute or option."""
    return token_set_ratio(left, right) > SAME_PERCENT


def _has_attribute(product: Product, attribute: str) -> bool:
    if any(same_text(known, attribute) for known in product.attributes):
        return True
    texts = (product.name, " ".join(product.features), product.description)
    return any(attribute.lower() in text.lower() for text in texts)


def _same_option(name: str, value: str, wanted: str) -> bool:
    return value == wanted.lower() if name == "size" else same_text(value, wanted)


def _type(product: Product, wanted: Product) -> float:
    """How similar a product's kind is to the one asked for, by title, query and category."""
    if product.number == wanted.number:
        return 1.0
    words, asked = title_words(product.name), title_words(wanted.name)
    match = len(words & asked) / len(asked) if asked else 0.2
    if match == 0.0:
        return 0.0
    if match < 0.1:
        return 0.1
    same_category = len(_category(product) & _category(wanted)) >= 2
    return 1.0 if match > 0.2 or product.query == wanted.query or same_category else 0.5


def _category(product: Product) -> set[str]:
    return {part.strip() for part in product.path.split("›")}
