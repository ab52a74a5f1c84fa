"""Logits of a few columns are those of all columns, or aren't offered."""

import pytest
import torch
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    CohereConfig,
    CohereForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    GraniteConfig,
    GraniteForCausalLM,
    OPTConfig,
    OPTForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
)

from constrained.decoding.forward import Forward
from tests.decoding.tiny import tiny_llama

IDS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
SMALL = {
    "vocab_size": 40, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 1, "initializer_range": 0.3, "pad_token_id": 0,
}  # fmt: skip
PLAIN = {
    "llama": lambda: tiny_llama(40),
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(vocab_size=40, n_embd=32, n_layer=1, n_head=2)),
    "phi3": lambda: Phi3ForCausalLM(Phi3Config(**SMALL)),
    "bloom": lambda: BloomForCausalLM(BloomConfig(vocab_size=40, hidden_size=32, n_layer=1, n_head=2)),
    "opt": lambda: OPTForCausalLM(
        OPTConfig(
            vocab_size=40,
            hidden_size=32,
            ffn_dim=64,
            num_hidden_layers=1,
            num_attention_heads=2,
            word_embed_proj_dim=32,
        )
    ),
}
CHANGED = {
    "soft capping": lambda: Gemma2ForCausalLM(Gemma2Config(**SMALL, head_dim=16)),
    "scaled": lambda: GraniteForCausalLM(GraniteConfig(**SMALL, logits_scaling=3.0)),
    "scaled otherwise": lambda: CohereForCausalLM(CohereConfig(**SMALL, logit_scale=0.5)),
}


@pytest.mark.parametrize("name", PLAIN)
@torch.no_grad()
def test_some_columns_are_those_of_all(name):
    torch.manual_seed(0)
    forward = Forward(PLAIN[name]().eval())
    everything, _ = forward(input_ids=IDS)
    assert forward.supports_partial_logits and everything.shape == (2, 40)
    columns = torch.tensor([0, 7, 39])
    few, past = forward(lambda hidden: columns, input_ids=IDS)
    assert torch.allclose(few, everything[:, columns], atol=1e-5)
    assert past.get_seq_length() == 5 and forward.passes == 2
    assert torch.allclose(forward(rows=torch.tensor([1]), input_ids=IDS)[0], everything[1:], atol=1e-5)
    both, _ = forward(lambda hidden: columns, torch.tensor([1, 0]), input_ids=IDS)
    assert torch.allclose(both, everything[[1, 0]][:, columns], atol=1e-5)


@torch.no_grad()
def test_a_head_with_a_bias():
    model = tiny_llama(40)
    model.lm_head.bias = torch.nn.Parameter(torch.randn(40))
    forward, columns = Forward(model), torch.tensor([2, 3])
    assert forward.supports_partial_logits
    assert torch.allclose(
        forward(lambda hidden: columns, input_ids=IDS)[0], forward(input_ids=IDS)[0][:, columns], atol=1e-5
    )


@pytest.mark.parametrize("name", CHANGED)
def test_logits_that_are_more_than_a_product_are_only_offered_whole(name):
    assert not Forward(CHANGED[name]().eval()).supports_partial_logits


def test_a_head_that_is_no_plain_matrix_is_only_used_whole():
    model = tiny_llama(40)
    assert Forward(model).supports_partial_logits
    model.lm_head = torch.nn.Sequential(model.lm_head)
    assert not Forward(model).supports_partial_logits


def test_what_is_hung_on_a_model_goes_on_being_called():
    hooked, compiled, seen = tiny_llama(40), tiny_llama(40), []
    hooked.lm_head.register_forward_hook(lambda *args: seen.append(1))
    compiled.forward = compiled.forward
    assert not Forward(hooked).supports_partial_logits and not Forward(compiled).supports_partial_logits
