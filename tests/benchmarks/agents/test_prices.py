"""Cost: each role's tokens at the price of the model that serves it."""

import pytest

from benchmarks.agents.prices import Price, cost, read_prices
from constrained.errors import ConstrainedError

USAGE = {
    "explorer": {"prompt_tokens": 1_000_000, "completion_tokens": 100_000},
    "extractor": {"prompt_tokens": 2_000_000, "completion_tokens": 0},
    "policy": {"prompt_tokens": 100_000, "completion_tokens": 10_000},
}


def test_each_role_has_its_price_the_extractor_the_explorers_and_others_the_policys():
    prices = read_prices(["policy=20/20", "explorer=0.5/1.5"])
    assert prices == {"policy": Price(20, 20), "explorer": Price(0.5, 1.5)}
    assert cost(USAGE, prices) == pytest.approx(0.5 + 0.15 + 1.0 + 2.0 + 0.2)
    assert cost(USAGE, {**prices, "extractor": Price(0, 0)}) == pytest.approx(0.5 + 0.15 + 2.2)
    assert cost(USAGE, read_prices(["policy=1/10"])) == pytest.approx(3.1 + 1.1)
    assert cost({}, prices) == 0


@pytest.mark.parametrize(
    "text", ["policy", "policy=1", "policy=1/", "policy=-1/2", "policy=1/2/3", "butler=1/2", "=1/2", ""]
)
def test_what_is_no_price_is_named(text):
    with pytest.raises(ConstrainedError, match="not ROLE=IN/OUT"):
        read_prices([text])


def test_the_policy_needs_a_price_if_any_role_has_one():
    assert read_prices([]) == {}
    with pytest.raises(ConstrainedError, match="none for the role policy"):
        read_prices(["explorer=1/2"])
