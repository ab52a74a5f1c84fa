"""Reusing keys and values changes what is computed, never what comes out."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import GPT2Config, GPT2LMHeadModel, MistralConfig, MistralForCausalLM

from constrained.decoding import PrefixCache
from tests.decoding.tiny import tiny_llama

LLAMA = tiny_llama(40)
TEXTS = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=12), min_size=1, max_size=6)


def plain(model, tokens) -> torch.Tensor:
    with torch.inference_mode():
        return model(input_ids=torch.tensor([tokens])).logits[0, -1].float()


@settings(max_examples=60)
@given(TEXTS)
def test_logits_are_those_of_reading_everything_again(texts):
    cache = PrefixCache()
    for tokens in texts:
        assert torch.allclose(cache.next_logits(LLAMA, tokens), plain(LLAMA, tokens), atol=1e-4)
        assert cache.tokens == tokens


def test_only_what_differs_is_run():
    cache = PrefixCache()
    cache.next_logits(LLAMA, [1, 2, 3, 4, 5])
    cache.next_logits(LLAMA, [1, 2, 3, 4, 5, 6])
    assert cache.tokens_run == 6
    cache.next_logits(LLAMA, [1, 2, 3, 9])
    assert cache.tokens_run == 7
    cache.next_logits(LLAMA, [1, 2, 3, 9])  # the last token runs again: its logits were not kept
    assert cache.tokens_run == 8
    assert cache.forward_passes == 4


def test_another_model_starts_afresh():
    cache, other = PrefixCache(), tiny_llama(40, seed=1)
    cache.next_logits(LLAMA, [1, 2, 3])
    assert torch.allclose(cache.next_logits(other, [1, 2, 3]), plain(other, [1, 2, 3]), atol=1e-4)


def test_a_call_that_breaks_off_leaves_a_usable_cache():
    cache = PrefixCache()
    cache.next_logits(LLAMA, [1, 2, 3])
    with pytest.raises(IndexError):
        cache.next_logits(LLAMA, [1, 2, 3, 40])  # beyond the embeddings
    assert torch.allclose(cache.next_logits(LLAMA, [1, 2, 4]), plain(LLAMA, [1, 2, 4]), atol=1e-4)


def sliding_window() -> MistralForCausalLM:
    torch.manual_seed(0)
    return MistralForCausalLM(
        MistralConfig(
            vocab_size=40,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            sliding_window=4,
            max_position_embeddings=64,
            initializer_range=0.3,
        )
    ).eval()


def gpt2() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    return GPT2LMHeadModel(
        GPT2Config(vocab_size=40, n_positions=64, n_embd=32, n_layer=2, n_head=4, initializer_range=0.3)
    ).eval()


@pytest.mark.parametrize("make", [sliding_window, gpt2])
def test_other_kinds_of_model(make):
    """A sliding window forgets, so that it can't go back: it reads again instead."""
    model, cache = make(), PrefixCache()
    for tokens in ([*range(10)], [*range(11)], [0, 1, 2, 3, 4, 5, 9, 9], [0, 1, 7], [7, 7], [7, 7, 8]):
        assert torch.allclose(cache.next_logits(model, tokens), plain(model, tokens), atol=1e-4)
