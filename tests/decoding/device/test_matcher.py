"""A batch on the device: what it chooses, what finished rows do, forks, budgets, and that nothing asks the host."""

from __future__ import annotations

import math

import pytest
import torch

from constrained import Grammar, Vocabulary, compile_grammar
from constrained.decoding.device import (
    AsyncFlag,
    DeviceMatcher,
    DeviceTables,
    capture,
)
from constrained.decoding.device.kernel_torch import gumbel, philox
from constrained.errors import ConstrainedError, ModelError
from tests.decoding.device.walk import DEVICE, AsksTheHost, at, unpack

LETTERS = Vocabulary([b"a", b"b", b"c", b"d", b"ab", b"cd", b"<", b""], [7, 40], size=50)
PAD = 7


def tables(pattern: str, narrow: int = 256) -> DeviceTables:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("constrained.decoding.device.explore.NARROW", narrow)
        return DeviceTables.build(compile_grammar(Grammar.from_regex(pattern), LETTERS), device=DEVICE)


def logits(*rows: dict[int, float]) -> torch.Tensor:
    out = torch.full((len(rows), 50), -9.0, device=DEVICE)
    for i, row in enumerate(rows):
        for token, value in row.items():
            out[i, token] = value
    return out


def test_greedy_takes_the_likeliest_allowed_token_and_of_equals_the_lowest():
    matcher = DeviceMatcher(tables("[abcd]+"), 3)
    found = matcher.step(logits({6: 9.0, 2: 1.0}, {3: 1.0, 1: 1.0}, {49: 5.0, 4: 0.5}))
    assert found.tolist() == [2, 1, 4] and found.dtype == torch.int64


@pytest.mark.parametrize("narrow", [0, 256])
def test_a_finished_row_yields_padding_and_stays(narrow):
    table = tables("a", narrow)
    matcher = DeviceMatcher(table, 2, pad_token_id=3)
    other = DeviceMatcher(table, 2)
    ends = logits({0: 1.0, 40: 8.0, 7: 3.0}, {0: 1.0, 7: 8.0})
    found = [matcher.step(ends, pruned_mass=True).tolist() for _ in range(4)]
    assert found == [[0, 0], [40, 7], [3, 3], [3, 3]]
    assert matcher.finished.tolist() == [True, True] and matcher.pruned_mass.tolist() == [0, 0]
    assert [other.step(ends).tolist() for _ in range(3)][-1] == [PAD, PAD], "by default the first end-of-text token"
    assert unpack(matcher.mask()) == [[7, 40]] * 2, "as the host: after the end only the end"


def test_complete_says_where_the_text_could_end():
    matcher = DeviceMatcher(tables("ab?"), 2)
    assert matcher.complete.tolist() == [False, False]
    matcher.advance(torch.tensor([0, -1], device=DEVICE))
    assert matcher.complete.tolist() == [True, False]


def test_advance_reads_what_is_allowed_and_leaves_the_other_rows():
    matcher = DeviceMatcher(tables("abc"), 5, budget=3)
    taken = matcher.advance(torch.tensor([0, 4, 1, -1, 10**12], device=DEVICE))
    assert taken.tolist() == [True, True, False, True, False]
    assert matcher.left.tolist() == [2, 2, 3, 3, 3]
    assert unpack(matcher.mask()) == [[1], [2], [0, 4], [0, 4], [0, 4]]


def test_copies_and_forks_are_independent():
    matcher = DeviceMatcher(tables("[ab]{2}c"), 2, budget=5)
    matcher.advance(torch.tensor([0, -1], device=DEVICE))
    fork = matcher.gather(torch.tensor([0, 0, 1], device=DEVICE))
    copy = matcher.copy()
    fork.advance(torch.tensor([1, 0, 4], device=DEVICE))
    assert unpack(fork.mask()) == [[2]] * 3 and fork.left.tolist() == [3, 3, 4]
    assert torch.equal(copy.mask(), matcher.mask()) and torch.equal(copy.left, matcher.left)
    matcher.advance(torch.tensor([1, 1], device=DEVICE))
    assert not torch.equal(copy.state, matcher.state)


@pytest.mark.parametrize("narrow", [0, 256])
def test_a_budget_ends_every_text_whole(narrow):
    """With logits that never want to end."""
    table = tables("([abcd]{2})*<", narrow)
    for budget in range(1, 8):
        matcher = DeviceMatcher(table, 4, budget=budget)
        torch.manual_seed(budget)
        written = torch.stack(
            [matcher.step(torch.randn(4, 50, device=DEVICE) - logits({6: 99.0, 7: 99.0})[0]) for _ in range(budget)]
        )
        assert matcher.complete.all() and (matcher.left >= 0).all()
        assert (written == 6).sum(0).tolist() == [1] * 4
    matcher.set_budget(None)
    assert (matcher.left > 10**8).all()


@pytest.mark.parametrize("narrow", [0, 256])
def test_a_grammar_of_the_empty_text_only_ends(narrow):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("constrained.decoding.device.explore.NARROW", narrow)
        table = DeviceTables.build(compile_grammar(Grammar.from_choices([""]), LETTERS), device=DEVICE)
    matcher = DeviceMatcher(table, 2, budget=0)
    assert unpack(matcher.mask()) == [[7, 40]] * 2 and matcher.complete.all()
    assert matcher.step(logits({40: 2.0}, {})).tolist() == [40, 7] and matcher.finished.all()


def test_a_budget_cut_behind_its_back_ends_the_row():
    for backend in ("torch", None):
        matcher = at(tables("abc"), [1, 1], [0, 3], backend)
        assert matcher.step(logits({0: 1.0}, {0: 1.0})).tolist() == [PAD, 0]
        assert matcher.finished.tolist() == [True, False]


CASES = [
    ({"temperature": 1.0}, [0.4, 0.3, 0.2, 0.1]),
    ({"temperature": 0.5}, [16 / 30, 9 / 30, 4 / 30, 1 / 30]),
    ({"temperature": 1.0, "top_k": 2}, [4 / 7, 3 / 7, 0, 0]),
    ({"temperature": 1.0, "top_p": 0.71}, [4 / 9, 3 / 9, 2 / 9, 0]),
    ({"temperature": 1.0, "top_k": 3, "top_p": 0.75}, [4 / 7, 3 / 7, 0, 0]),
]


@pytest.mark.parametrize("options, expected", CASES)
@pytest.mark.parametrize("narrow", [0, 256])
def test_frequencies_are_the_models_conditioned_on_the_mask(options, expected, narrow):
    """Half of the probability is on tokens not allowed; what is left is drawn in the model's own proportions."""
    draws = 4000
    chances = torch.zeros(50, device=DEVICE)
    chances[[0, 1, 2, 3, 6, 7]] = torch.tensor([0.2, 0.15, 0.1, 0.05, 0.4, 0.1], device=DEVICE)
    generator = torch.Generator(DEVICE).manual_seed(3)
    matcher = DeviceMatcher(tables("[abcd]x|[abcd]", narrow).to(DEVICE), draws, generator=generator)
    found = matcher.step(chances.log().expand(draws, 50), pruned_mass=True, **options)
    counts = torch.bincount(found, minlength=50) / draws
    for token, chance in enumerate(expected):
        assert abs(float(counts[token]) - chance) <= 4.5 * math.sqrt(chance * (1 - chance) / draws)
    assert counts[4:].sum() == 0
    assert torch.allclose(matcher.pruned_mass, torch.tensor(0.5, device=DEVICE), atol=1e-5)


def test_equal_seeds_give_equal_tokens():
    table, values = tables("[abcd]{9}"), torch.randn(3, 50, device=DEVICE)
    first, again, other = (at(table, [1] * 3, seed=seed) for seed in (5, 5, 6))
    drawn = [first.step(values, temperature=1.0).tolist() for _ in range(5)]
    assert drawn == [again.step(values, temperature=1.0).tolist() for _ in range(5)]
    assert drawn != [other.step(values, temperature=1.0).tolist() for _ in range(5)]
    assert first.draws.tolist() == [5] * 3
    rows = torch.tensor([1.0, 0.0, 1.0], device=DEVICE)
    mixed = at(table, [1] * 3, seed=5).step(values, temperature=rows)
    greedy = DeviceMatcher(table, 3).step(values)
    assert mixed.tolist() == [drawn[0][0], greedy[1], drawn[0][2]]


def test_philox_gives_the_words_that_its_authors_publish():
    """Of Random123's known answers: 7 rounds of Philox4x32, counter and key zero, and all ones."""
    for word, expected in (
        (0, (0x5F6FB709, 0x0D893F64, 0x4F121F81, 0x4F730A48)),
        (0xFFFFFFFF, (0x5207DDC2, 0x45165E59, 0x4D8EE751, 0x8C52F662)),
    ):
        found = philox(torch.tensor([word | word << 32 if word == 0 else -1]), *[torch.tensor([word])] * 4)
        assert tuple(int(one) for one in found) == expected


def test_noise_is_gumbels():
    """Mean and variance (Euler's constant and pi^2 / 6), and independent in tokens, rows and draws."""
    draws = torch.tensor([0, 0, 1, 7], dtype=torch.int32)
    noise = gumbel(torch.tensor([2**62 - 3]), draws, 100_003)
    assert torch.isfinite(noise).all() and noise.shape == (4, 100_003)
    assert (noise.mean(1) - 0.57722).abs().max() < 0.02 and (noise.var(1) - math.pi**2 / 6).abs().max() < 0.04
    assert (torch.corrcoef(noise) - torch.eye(4)).abs().max() < 0.015
    assert torch.corrcoef(torch.stack((noise[0, 1:], noise[0, :-1])))[0, 1].abs() < 0.015


@pytest.mark.parametrize(
    "options, says",
    [
        ({"temperature": -1.0}, "temperature is -1"),
        ({"temperature": math.nan}, "temperature is nan"),
        ({"temperature": torch.ones(3)}, "temperature of shape"),
        ({"temperature": 1.0, "top_k": 0}, "top_k is 0"),
        ({"temperature": 1.0, "top_p": 1.5}, "top_p is 1.5"),
    ],
)
def test_numbers_out_of_range_are_an_error(options, says):
    with pytest.raises(ConstrainedError, match=says):
        DeviceMatcher(tables("a"), 2).step(logits({}, {}), **options)


def test_shapes_and_rows_that_do_not_fit_are_an_error():
    matcher = DeviceMatcher(tables("a"), 2)
    with pytest.raises(ModelError, match=r"logits of shape \(2, 49\); needs \[2, 50 or more\]"):
        matcher.step(torch.zeros(2, 49, device=DEVICE))
    with pytest.raises(ConstrainedError, match="asks for grammar 1.*\n.*0 to 0"):
        DeviceMatcher(matcher.tables, [0, 1])
    with pytest.raises(ConstrainedError, match="at least one row"):
        DeviceMatcher(matcher.tables, 0)
    with pytest.raises(ConstrainedError, match="1 budgets for 2 rows"):
        matcher.set_budget([3])


@pytest.mark.parametrize("narrow", [0, 256])
@pytest.mark.parametrize("options", [{}, {"temperature": 0.8}, {"temperature": 0.8, "top_k": 4, "top_p": 0.9}])
def test_nothing_in_the_loop_asks_the_host(narrow, options):
    matcher = DeviceMatcher(tables("[abcd]{3,9}<", narrow), 3, budget=9, backend="torch")
    order = torch.tensor([2, 0, 0], device=DEVICE)
    with AsksTheHost() as watched:
        for _ in range(3):
            tokens = matcher.step(torch.randn(3, 50, device=DEVICE), pruned_mass=True, **options)
            matcher.apply(torch.randn(3, 50, device=DEVICE))
            fork = matcher.gather(order)
            fork.advance(tokens)
            fork.copy().finished.all()
    assert watched.found == []
    with AsksTheHost() as watched:
        assert tokens.sum().item() >= 0 and len(tokens[tokens > 1]) <= 3
    assert len(watched.found) == 2, "the watch sees what does ask"


def test_a_loop_learns_of_its_end_through_the_flag():
    matcher = DeviceMatcher(tables("[ab]{2,6}"), 2, budget=6)
    flag, steps = AsyncFlag(DEVICE), 0
    torch.manual_seed(0)
    while not flag.look(matcher.finished.all()):
        matcher.step(torch.randn(2, 50, device=DEVICE))
        steps += 1
        assert steps < 5_000
    assert matcher.finished.all() and flag.look(torch.tensor(False, device=DEVICE)), "once true, always true"


def test_capture_without_cuda_says_so():
    if DEVICE == "cuda":
        pytest.skip("there is a CUDA device: see test_cuda")
    matcher = DeviceMatcher(tables("a"), 1)
    with pytest.raises(ConstrainedError, match="CUDA graphs need a CUDA device"):
        capture(lambda: matcher.step(logits({})), [matcher.state])
