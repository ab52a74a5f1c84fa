"""Texts of different lengths, read side by side, give the logits that each gives alone."""

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    AttentionInterface,
    BloomConfig,
    BloomForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from constrained.decoding.forward import Forward, supports_ragged
from constrained.decoding.ragged_forward import CALL_COST, RaggedCache, RaggedForward, block_width
from tests.decoding.tiny import tiny_llama

SMALL = {
    "vocab_size": 40, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "initializer_range": 0.3, "pad_token_id": 0,
}  # fmt: skip


def eager() -> LlamaForCausalLM:
    return LlamaForCausalLM._from_config(tiny_llama(40).config, attn_implementation="eager")


MODELS = {
    "llama": lambda: tiny_llama(40),
    "eager attention": eager,
    "learned positions": lambda: GPT2LMHeadModel(
        GPT2Config(vocab_size=40, n_positions=128, n_embd=32, n_layer=2, n_head=4, initializer_range=0.3)
    ),
    "all layers slide": lambda: MistralForCausalLM(MistralConfig(**SMALL, sliding_window=4)),
    "some layers slide": lambda: Qwen2ForCausalLM(
        Qwen2Config(**SMALL, use_sliding_window=True, sliding_window=4, max_window_layers=1)
    ),
    "kinds by name": lambda: Gemma3ForCausalLM(
        Gemma3TextConfig(
            **SMALL, head_dim=8, sliding_window=4, query_pre_attn_scalar=8,
            layer_types=["sliding_attention", "full_attention"],
        )
    ),
}  # fmt: skip


@dataclass(eq=False)
class Row:
    ids: list[int]


def make(name):
    torch.manual_seed(0)
    return MODELS[name]().eval()


LLAMA = make("llama")


def alone(model, ids) -> torch.Tensor:
    return model(input_ids=torch.tensor([ids])).logits[0, -1].float()


@torch.no_grad()
def read_all(forward, rows):
    """Every row's logits at its end, over as many calls as it takes."""
    found = {}
    while len(found) < len(rows):
        asked, logits, _ = forward.next_logits(rows)
        found.update(zip(asked, logits))
    return [found[row] for row in rows]


@pytest.mark.parametrize("kind", ["growing", "growing, on a device", "static"])
@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_rows_that_grow_by_different_lengths(name, kind, monkeypatch):
    model, generator, static = make(name), torch.Generator().manual_seed(0), kind == "static"
    assert supports_ragged(model)
    if kind == "growing, on a device":
        monkeypatch.setattr(Forward, "asynchronous", property(lambda self: True))
    rows = [Row([1, 2, 3]), Row([4] * 9), Row([5])]
    forward = RaggedForward(model, rows, 128 if static else 1, static=static)
    for growth in ((0, 0, 0), (1, 7, 1), (1, 1, 1), (12, 1, 3), (0, 5, 0), (1, 1, 1)):
        for row, more in zip(rows, growth):
            row.ids += torch.randint(40, (more,), generator=generator).tolist()
        grown = [row for row, more in zip(rows, growth) if more or not any(growth)]
        for row, logits in zip(grown, read_all(forward, grown) if len(grown) == 3 else read_some(forward, rows, grown)):
            assert torch.allclose(logits, alone(model, row.ids), atol=1e-4)


def read_some(forward, rows, grown):
    asked, logits, _ = forward.next_logits(rows)
    assert asked == grown
    return logits


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(0, 12), min_size=3, max_size=3), min_size=1, max_size=5), st.integers(0, 99))
@torch.no_grad()
def test_any_growth_and_rows_that_end(growths, seed):
    generator = torch.Generator().manual_seed(seed)
    every = rows = [Row([1]), Row([2, 2]), Row([3] * 5)]
    forward = RaggedForward(LLAMA, rows, 4)
    for growth in growths:
        for row, more in zip(rows, growth):
            row.ids += torch.randint(40, (more + 1,), generator=generator).tolist()
        for row, logits in zip(rows, read_all(forward, rows)):
            assert torch.allclose(logits, alone(LLAMA, row.ids), atol=1e-4)
        if len(rows) > 1 and seed % 2:
            rows = rows[1:]  # the first one is over
    assert forward.tokens_run <= sum(len(row.ids) for row in every)


@torch.no_grad()
def test_rows_fork_and_go():
    rows = [Row([1, 2]), Row([3, 4, 5])]
    forward = RaggedForward(LLAMA, rows, 8)
    read_all(forward, rows)
    forks = [Row([3, 4, 5, 6]), Row([3, 4, 5, 7]), Row([1, 2, 9])]
    forward.reorder(forks, [1, 1, 0])
    for row, logits in zip(forks, read_all(forward, forks)):
        assert torch.allclose(logits, alone(LLAMA, row.ids), atol=1e-4)


@pytest.mark.parametrize("static", [False, True])
@torch.no_grad()
def test_a_prompt_that_rows_share_is_read_once(static):
    long = list(range(30))
    rows = [Row(long), Row(list(long)), Row([*long, 7]), Row([5]), Row([5]), Row([5])]  # one has run ahead
    forward = RaggedForward(LLAMA, rows, 40, static=static, copies=3)
    for row, logits in zip(rows, read_all(forward, rows)):
        assert torch.allclose(logits, alone(LLAMA, row.ids), atol=1e-4)
    assert forward.tokens_run == 29 + 1 + 1 + 2 + 3
    rows[1].ids.append(3)
    assert torch.allclose(read_all(forward, [rows[1]])[0], alone(LLAMA, rows[1].ids), atol=1e-4)
    single = [Row([5]), Row([5])]  # nothing to share before the last token
    forward = RaggedForward(LLAMA, single, 40, static=static, copies=2)
    assert torch.allclose(forward.read_prompts()[1], alone(LLAMA, [5]), atol=1e-4)


@torch.no_grad()
def test_a_call_that_breaks_off_is_made_again(monkeypatch):
    rows = [Row([1, 2, 3]), Row([4])]
    forward = RaggedForward(LLAMA, rows, 8)
    read_all(forward, rows)
    rows[0].ids += [7, 8]
    rows[1].ids += [9, 9]

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(LLAMA.model.layers[1], "forward", interrupted)
    with pytest.raises(KeyboardInterrupt):
        forward.next_logits(rows)
    monkeypatch.undo()
    rows[0].ids[-1] = 5  # the broken call had left this one's keys in the first layer
    for row, logits in zip(rows, read_all(forward, rows)):
        assert torch.allclose(logits, alone(LLAMA, row.ids), atol=1e-4)


@torch.no_grad()
def test_static_buffers_keep_their_addresses_and_shapes():
    rows = [Row([1, 2, 3]), Row([4])]
    forward = RaggedForward(LLAMA, rows, 20, static=True)
    read_all(forward, rows)
    before = [(layer.keys.data_ptr(), layer.keys.shape) for layer in forward.cache.layers]
    for row in rows:
        row.ids += [5] * 6
    read_all(forward, rows)
    assert [(layer.keys.data_ptr(), layer.keys.shape) for layer in forward.cache.layers] == before
    assert forward.mask(torch.tensor([[8], [6]])).shape == (2, 1, 1, 20)
    with pytest.raises(ValueError, match="static cache has 20"):
        forward.cache.place(torch.tensor([[20], [3]]), 20, 21)


@torch.no_grad()
def test_on_a_device_the_slots_in_reach_are_a_few_numbers_and_no_reason_to_grow(monkeypatch):
    monkeypatch.setattr(Forward, "asynchronous", property(lambda self: True))
    rows = [Row([1, 2, 3]), Row([4])]
    forward, reached = RaggedForward(LLAMA, rows, 100), []
    for _ in range(97):
        read_all(forward, rows)
        reached.append(forward.cache.reach)
        for row in rows:
            row.ids.append(5)
    assert set(reached) == {64, 100} and forward.cache.capacity == 100


def test_growing_buffers_grow_seldom():
    cache, sizes = RaggedCache(1), []
    for reach in range(1, 2000):
        cache.place(torch.tensor([[reach - 1]]), reach - 1, reach)
        sizes.append(cache.capacity)
    assert len(set(sizes)) < 12 and all(size >= reach for reach, size in enumerate(sizes, 1))


def test_a_block_is_as_wide_as_pays():
    assert block_width([17]) == 17  # one row: whatever it has
    assert block_width([1] * 8) == 1
    assert block_width([0, 5, 5]) == 5  # rows that are over don't ask for anything
    assert block_width([3, 200]) == 200
    many = [1] * 63 + [20]
    assert block_width(many) == 1  # 63 rows don't carry 19 columns of padding for one
    assert block_width([1, 1 + CALL_COST // 8]) > 1
    assert block_width([1] * 7 + [20], call_cost=32) == 1 and block_width([1] * 7 + [20], call_cost=256) == 20


def test_models_that_must_read_each_text_alone():
    bloom = BloomForCausalLM(BloomConfig(vocab_size=40, hidden_size=32, n_layer=1, n_head=2))  # positions in the mask
    assert not supports_ragged(bloom)
    AttentionInterface.register("own", lambda *args, **kwargs: None)
    model = tiny_llama(40)
    model.config._attn_implementation = "own"
    assert not supports_ragged(model)
