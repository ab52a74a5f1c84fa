"""Choosing among allowed tokens: greedy, by chance, and what the mask took away."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from constrained import ConstrainedError
from constrained.decoding import Sampler, Token, sampling
from constrained.errors import ModelError
from tests.chance import times


def pack(ids, width) -> np.ndarray:
    bits = np.zeros(-(-width // 32) * 32, np.uint8)
    bits[list(ids)] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)


CASES = st.integers(2, 80).flatmap(
    lambda width: st.tuples(
        st.lists(st.floats(-30, 30, width=32), min_size=width, max_size=width),
        st.sets(st.integers(0, width - 1), min_size=1),
    )
)


@given(CASES)
def test_greedy_takes_the_likeliest_allowed_token_and_measures_the_rest(case):
    logits, allowed = case
    logits = torch.tensor(logits)
    ids = sorted(allowed)
    choice = Sampler().choose(logits, pack(ids, len(logits)))
    probabilities = torch.softmax(logits.double(), 0)
    assert logits[choice.id] == logits[ids].max()
    assert choice.id in allowed
    inside = float(probabilities[ids].sum())
    assert choice.pruned_mass == pytest.approx(1 - inside, abs=1e-5)
    expected = torch.softmax(logits[ids].double(), 0).max()
    assert choice.probability == pytest.approx(float(expected), rel=1e-4)


@given(CASES)
def test_gathering_a_few_and_masking_the_row_choose_alike(case):
    logits, allowed = case
    row = pack(allowed, len(logits))
    found = []
    for narrow in (0, 10_000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sampling, "NARROW", narrow)
            found.append(Sampler().choose(torch.tensor(logits), row))
    assert logits[found[0].id] == logits[found[1].id]
    assert found[0].probability == pytest.approx(found[1].probability, rel=1e-5)
    assert found[0].pruned_mass == pytest.approx(found[1].pruned_mass, abs=1e-5)


@pytest.mark.parametrize("narrow", [0, 10_000])
@pytest.mark.parametrize(
    "options, expected",
    [
        ({"temperature": 1.0}, [0.4, 0.3, 0.2, 0.1]),
        ({"temperature": 0.5}, [16 / 30, 9 / 30, 4 / 30, 1 / 30]),
        ({"temperature": 1.0, "top_k": 2}, [4 / 7, 3 / 7, 0, 0]),
        ({"temperature": 1.0, "top_p": 0.7}, [4 / 7, 3 / 7, 0, 0]),
        ({"temperature": 1.0, "top_p": 0.71}, [4 / 9, 3 / 9, 2 / 9, 0]),
        ({"temperature": 1.0, "top_k": 3, "top_p": 0.75}, [4 / 7, 3 / 7, 0, 0]),
    ],
)
def test_frequencies_are_the_renormalised_distribution(options, expected, narrow, monkeypatch):
    monkeypatch.setattr(sampling, "NARROW", narrow)
    # Six tokens, of which 1 and 4 (the likeliest) are not allowed.
    logits = torch.log(torch.tensor([0.2, 0.15, 0.1, 0.15, 0.35, 0.05])).float()
    by_chance = [0, 3, 2, 5]  # in falling order: 0.2, 0.15, 0.1, 0.05
    sampler = Sampler(**options, generator=torch.Generator().manual_seed(5))
    draws, mask = times(1500, 40_000), pack(by_chance, 6)
    counts = np.zeros(6)
    for _ in range(draws):
        choice = sampler.choose(logits, mask)
        counts[choice.id] += 1
        assert abs(choice.pruned_mass - 0.5) <= 1e-5
    for token, chance in zip(by_chance, expected):
        spread = 4.5 * math.sqrt(chance * (1 - chance) / draws)
        assert abs(counts[token] / draws - chance) <= spread
    assert counts[1] == counts[4] == 0


@pytest.mark.parametrize("options", [{"temperature": 1e-30}, {"temperature": 1.0, "top_p": 1e-30}])
def test_a_tiny_temperature_or_top_p_is_greedy_and_does_not_overflow(options):
    sampler = Sampler(**options, generator=torch.Generator().manual_seed(0))
    assert sampler.choose(torch.tensor([10.0, 900.0, 899.0]), pack([0, 2], 3)).id == 2


def test_logits_wider_than_the_mask_are_never_chosen():
    logits = torch.zeros(100)
    logits[70:] = 50.0
    for narrow in (0, 10_000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sampling, "NARROW", narrow)
            choice = Sampler().choose(logits, pack([3, 40], 64))
        assert choice.id in (3, 40)
        assert choice.pruned_mass == pytest.approx(1.0)


def test_allowed_tokens_that_the_model_excludes_are_all_alike():
    logits = torch.tensor([0.0, -torch.inf, -torch.inf])
    assert Sampler().choose(logits, pack([1, 2], 3)) == Token(1, 0.5, 1.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_broken_logits_are_an_error(bad):
    with pytest.raises(ModelError, match="NaN or infinite.*\n.*float32"):
        Sampler().choose(torch.tensor([0.0, bad]), pack([0], 2))


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -1},
        {"temperature": math.inf},
        {"temperature": 1e-46},
        {"temperature": 1e39},
        {"top_k": 0},
        {"top_p": 0.0},
        {"top_p": 1e-46},
        {"top_p": 1.5},
    ],
)
def test_numbers_out_of_range_are_an_error(options):
    with pytest.raises(ConstrainedError, match=next(iter(options))):
        Sampler(**options)


@given(CASES)
def test_the_likeliest_excluded_token_is_shown_on_request(case):
    logits, allowed = case
    row = pack(allowed, len(logits))
    choice = Sampler(show_forbidden=True).choose(torch.tensor(logits), row)
    assert choice[:3] == Sampler().choose(torch.tensor(logits), row)[:3]
    rest = sorted(set(range(len(logits))) - allowed)
    if not rest:
        assert choice.forbidden is None
        return
    probabilities = torch.softmax(torch.tensor(logits).double(), 0)
    assert logits[choice.forbidden.id] == max(logits[i] for i in rest) and choice.forbidden.id in rest
    assert choice.forbidden.probability == pytest.approx(float(probabilities[rest].max()), rel=1e-4)


def test_logits_wider_than_the_mask_are_not_shown_as_forbidden():
    choice = Sampler(show_forbidden=True).choose(torch.tensor([1.0, 0.5] + [0.0] * 62 + [9.0]), pack([0], 64))
    assert choice.forbidden.id == 1


@given(st.lists(CASES, min_size=1, max_size=4), st.sampled_from([0.0, 0.7, 3.0]), st.integers(0, 99))
def test_rows_chosen_together_are_those_chosen_alone(cases, temperature, seed):
    width = max(len(logits) for logits, _ in cases)
    rows = torch.tensor([[*logits, *[-40.0] * (width - len(logits))] for logits, _ in cases])
    masks = [pack(allowed, width) for _, allowed in cases]
    samplers = [Sampler(temperature, generator=torch.Generator().manual_seed(seed)) for _ in cases]
    together = sampling.choose_together(samplers, rows, masks)
    for sampler in samplers:
        sampler.generator.manual_seed(seed)
    for token, sampler, row, mask in zip(together, samplers, rows, masks):
        alone = sampler.choose(row, mask)
        assert token.id == alone.id
        assert (token.probability, token.pruned_mass) == pytest.approx((alone.probability, alone.pruned_mass), abs=1e-5)


def test_together_too_what_the_model_excludes_is_all_alike_and_broken_logits_are_an_error():
    rows = torch.full((2, 40), -math.inf)
    rows[0, 3], rows[1, :3] = 0.0, 1.0
    tokens = sampling.choose_together([Sampler()] * 2, rows, [pack({7, 9}, 40), pack({1, 2}, 40)])
    assert tokens == [Token(7, 0.5, 1.0), Token(1, pytest.approx(0.5), pytest.approx(1 / 3))]
    rows[0, 3] = math.nan
    with pytest.raises(ModelError, match="NaN or infinite"):
        sampling.choose_together([Sampler()] * 2, rows, [pack({7, 9}, 40), pack({1, 2}, 40)])
