"""A few rows of a large output matrix are enough, and never the wrong ones."""

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import nn

from constrained import Vocabulary, compile_grammar
from constrained.decoding import custom_generate, forward, int8_prefilter
from constrained.decoding.forward import Forward, PartialLogits
from constrained.decoding.int8_prefilter import Int8Prefilter
from tests.chance import times
from tests.decoding.grammars import GRAMMARS
from tests.decoding.hf_generate.oracle import padding_tokenizer
from tests.decoding.tiny import tiny_llama


def has_kernel() -> bool:
    try:
        Int8Prefilter(torch.ones(4, 32), None).product(torch.ones(1, 32))
    except (RuntimeError, AttributeError, NotImplementedError):
        return False
    return True


pytestmark = pytest.mark.skipif(not has_kernel(), reason="this torch has no kernel for 8-bit matrices on the CPU")
TOKENIZER = padding_tokenizer()
WIDTH = int8_prefilter.MIN_ROWS + 100
VOCABULARY = Vocabulary.from_tokenizer(TOKENIZER, size=WIDTH)
FREE = compile_grammar(GRAMMARS["free"], VOCABULARY)


@settings(max_examples=150)
@given(
    st.integers(0, 10**6), st.integers(1, 4), st.sampled_from([1, 3, 50]), st.sampled_from([1e-4, 1.0, 1e3]),
    st.sampled_from(["even", "outliers", "equal rows", "zeros"]), st.booleans(),
)  # fmt: skip
def test_the_largest_are_always_among_those_found(seed, rows, count, size, kind, biased):
    generator = torch.Generator().manual_seed(seed)
    weight, hidden = torch.randn(700, 64, generator=generator) * 0.05, torch.randn(rows, 64, generator=generator) * size
    if kind == "outliers":
        weight[:, 3] *= 40
        hidden[:, 5] *= 300
    elif kind == "equal rows":
        weight[100:400] = weight[0]
    elif kind == "zeros":
        weight[::2] = 0
        hidden[:, ::3] = 0
    bias = torch.randn(700, generator=generator) * size if biased else None
    allowed = torch.rand(rows, 700, generator=generator) < 0.9
    assume(bool((allowed.sum(1) >= count).all()))
    found = Int8Prefilter(weight, bias).best(hidden, allowed, count).tolist()
    logits = nn.functional.linear(hidden, weight, bias).masked_fill(~allowed, -torch.inf)
    assert found == sorted(set(found)) and bool(allowed.any(0)[found].all())
    for row in logits:
        assert set(torch.nonzero(row > row.topk(count).values[-1]).flatten().tolist()) <= set(found)
        assert float(row[found].topk(count).values[-1]) == float(row.topk(count).values[-1])


def test_few_are_found_where_the_logits_are_apart():
    generator = torch.Generator().manual_seed(0)
    weight, hidden = torch.randn(20_000, 128, generator=generator), torch.randn(1, 128, generator=generator)
    assert len(Int8Prefilter(weight, None).best(hidden, torch.ones(1, 20_000, dtype=torch.bool), 1)) < 20


@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("biased", [False, True])
def test_tokens_are_drawn_as_often_as_softmax_says(temperature, biased):
    generator = torch.Generator().manual_seed(1)
    weight, hidden = torch.randn(50, 16, generator=generator) * 0.3, torch.randn(1, 16, generator=generator)
    bias = torch.randn(50, generator=generator) if biased else None
    allowed = torch.arange(50).unsqueeze(0) % 3 != 0
    made, draws = Int8Prefilter(weight, bias), times(2000, 20_000)
    drawn = [made.draw(hidden, allowed, weight, temperature, generator) for _ in range(draws)]
    logits = nn.functional.linear(hidden.double(), weight.double(), None if bias is None else bias.double())
    expected = (logits / temperature).masked_fill(~allowed, -torch.inf).softmax(1)[0] * draws
    counts = torch.bincount(torch.tensor([token for token in drawn if token is not None]), minlength=50)
    assert drawn.count(None) == 0 and not counts[~allowed[0]].any()
    often = expected > 5
    seen = torch.cat((counts[often], counts[~often].sum()[None]))
    hoped = torch.cat((expected[often], expected[~often].sum()[None]))
    chi_squared = ((seen - hoped) ** 2 / hoped)[hoped > 0].sum()
    assert float(torch.special.gammaincc((often.sum().double()) / 2, chi_squared / 2)) > 1e-6


def test_nothing_is_drawn_from_what_is_no_number():
    made = Int8Prefilter(torch.ones(50, 16), None)
    assert (
        made.draw(torch.full((1, 16), torch.nan), torch.ones(1, 50, dtype=torch.bool), torch.ones(50, 16), 1.0) is None
    )


def test_equal_seeds_draw_equal_texts(model):
    def drawn(seed):
        return write(
            model, ["A room. "], do_sample=True, top_k=0, generator=torch.Generator().manual_seed(seed)
        ).tolist()

    assert drawn(1) == drawn(1) != drawn(2)


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setattr(int8_prefilter, "_pays", lambda made, head: True)  # however fast it is here
    monkeypatch.setattr(forward, "NARROW", 3)
    return tiny_llama(WIDTH, seed=4)


def write(model, prompts=("A room. ", "x"), **options):
    given = TOKENIZER(list(prompts), return_tensors="pt", padding=True)
    options = {"max_new_tokens": 25, "do_sample": False} | options
    return model.generate(**given, custom_generate=custom_generate, grammar=FREE, **options)


@pytest.mark.parametrize(
    "options",
    [{}, {"do_sample": True, "top_k": 7, "temperature": 0.8}, {"do_sample": True, "top_k": 30, "top_p": 0.9}],
    ids=str,
)
@pytest.mark.parametrize("prompts", [["A room. "], ["A room. ", "x", "yy"]], ids=len)
def test_texts_are_those_written_from_all_logits(model, monkeypatch, prompts, options):
    found = []
    whole = PartialLogits._prefiltered
    monkeypatch.setattr(PartialLogits, "_prefiltered", lambda *given: found.append(whole(*given)) or found[-1])
    torch.manual_seed(0)
    prefiltered = write(model, prompts, **options)
    assert sum(ids is not None for ids in found) >= 3  # an end of text may be drawn early
    monkeypatch.setattr(PartialLogits, "_prefiltered", lambda *given: None)
    torch.manual_seed(0)
    assert torch.equal(write(model, prompts, **options), prefiltered)


def test_weights_that_have_changed_are_read_again(model):
    before = write(model)
    first = Forward(model).prefilter
    assert Forward(model).prefilter is first
    model.lm_head.weight.data[77] *= 1.001  # one row, without leaving a trace on the tensor
    second = Forward(model).prefilter
    assert second is not first and Forward(model).prefilter is second
    model.lm_head.weight.data.mul_(-1)  # as merging an adapter does
    assert Forward(model).prefilter is not second
    fresh = tiny_llama(WIDTH, seed=4)
    fresh.lm_head.weight.data[77] *= 1.001
    fresh.lm_head.weight.data.mul_(-1)
    assert torch.equal(write(model), write(fresh)) and not torch.equal(write(model), before)


def test_small_matrices_other_types_and_slow_machines_are_left_alone(monkeypatch):
    assert int8_prefilter.int8_prefilter(nn.Linear(8, int8_prefilter.MIN_ROWS - 1)) is None
    assert int8_prefilter.int8_prefilter(nn.Linear(8, int8_prefilter.MIN_ROWS).bfloat16()) is None
    monkeypatch.setattr(int8_prefilter, "MAX_BYTES", 8 * int8_prefilter.MIN_ROWS - 1)
    assert int8_prefilter.int8_prefilter(nn.Linear(8, int8_prefilter.MIN_ROWS)) is None
    monkeypatch.undo()
    monkeypatch.setattr(int8_prefilter, "_pays", lambda made, head: False)
    assert int8_prefilter.int8_prefilter(nn.Linear(8, int8_prefilter.MIN_ROWS)) is None
