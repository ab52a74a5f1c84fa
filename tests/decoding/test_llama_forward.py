"""Llama's layers without their modules give transformers' own numbers, or leave the pass to it."""

import pytest
import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM, StaticCache

from constrained.decoding.forward import Forward
from constrained.decoding.llama_forward import last_hidden_state
from constrained.decoding.ragged_forward import RaggedForward
from constrained.models import load
from tests.decoding.test_ragged_forward import Row, read_all

IDS = torch.tensor([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
SMALL = {
    "vocab_size": 40, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 128, "initializer_range": 0.3, "pad_token_id": 0,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 500000.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}  # fmt: skip


def llama(**settings) -> LlamaForCausalLM:
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**{**SMALL, "num_key_value_heads": 4, **settings})).eval()
    for name, weight in model.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(weight)
    return model


SAME = {
    "embedded": lambda: load().model,
    "plain": llama,
    "grouped queries": lambda: llama(num_key_value_heads=2),
    "wide heads": lambda: llama(head_dim=16),
    "biases": lambda: llama(attention_bias=True, mlp_bias=True),
    "tied": lambda: llama(tie_word_embeddings=True),
    "another activation": lambda: llama(hidden_act="gelu"),
    "another rotation": lambda: llama(rope_parameters=LLAMA3),
}


@pytest.mark.parametrize("name", SAME)
@torch.no_grad()
def test_the_numbers_are_transformers_own(name):
    model = SAME[name]()
    past = own_past = None
    for ids in (IDS, IDS[:, :1], IDS[:, 1:2]):  # a prompt, then token by token
        states, past = last_hidden_state(model, ids, past)
        own = model.model(input_ids=ids, past_key_values=own_past, use_cache=True)
        own_past = own.past_key_values
        assert torch.equal(states, own.last_hidden_state)
    assert past.get_seq_length() == own_past.get_seq_length() == 7
    # More tokens after a prompt need a mask: given one, in any order of positions, it is applied.
    mask, positions = torch.rand(2, 1, 3, 10) < 0.7, torch.tensor([[7, 8, 9], [3, 1, 2]])
    mask[..., 0] = True
    assert last_hidden_state(model, IDS[:, :3], past) is None
    states, _ = last_hidden_state(model, IDS[:, :3], past, mask, positions)
    own = model.model(input_ids=IDS[:, :3], past_key_values=own_past, attention_mask=mask, position_ids=positions)
    assert torch.equal(states, own.last_hidden_state)


@torch.no_grad()
def test_logits_of_uneven_rows_are_those_of_each_row_alone():
    model, generator = llama(num_key_value_heads=2), torch.Generator().manual_seed(0)
    assert last_hidden_state(model, IDS) is not None
    rows = [Row([1, 2, 3]), Row([4] * 9), Row([5])]
    forward = RaggedForward(model, rows, 8)
    for _ in range(5):
        for row, logits in zip(rows, read_all(forward, rows)):
            assert torch.allclose(logits, model(input_ids=torch.tensor([row.ids])).logits[0, -1], atol=1e-5)
            row.ids += torch.randint(40, (len(row.ids) % 4 + 1,), generator=generator).tolist()


def replaced(model):
    model.model.layers[1].mlp.up_proj = nn.Sequential(model.model.layers[1].mlp.up_proj)


def compiled(model):
    model.model.layers[0].self_attn.forward = model.model.layers[0].self_attn.forward


def eager(model):
    model.config._attn_implementation = "eager"


LEFT = {
    "replaced module": replaced,
    "hook": lambda model: model.model.layers[1].register_forward_hook(lambda *args: None),
    "hook before": lambda model: model.model.norm.register_forward_pre_hook(lambda *args: None),
    "compiled": compiled,
    "training": lambda model: model.train(),
    "eager attention": eager,
    "half precision": lambda model: model.bfloat16(),
}


@pytest.mark.parametrize("name", LEFT)
@torch.no_grad()
def test_what_is_not_as_transformers_made_it_is_left_to_the_model(name):
    model = llama()
    assert last_hidden_state(model, IDS) is not None
    LEFT[name](model)
    assert last_hidden_state(model, IDS) is None
    assert torch.equal(Forward(model)(input_ids=IDS)[0], model(input_ids=IDS, logits_to_keep=1).logits[:, -1].float())


@torch.no_grad()
def test_a_static_cache_holds_more_than_was_read():
    model = llama()
    past, own_past = (StaticCache(config=model.config, max_cache_len=16) for _ in range(2))
    forward = Forward(model)
    for ids in (IDS, IDS[:, :1], IDS[:, 1:2]):
        assert last_hidden_state(model, ids, past) is None
        own = model(input_ids=ids, past_key_values=own_past, logits_to_keep=1).logits[:, -1]
        assert torch.equal(forward(input_ids=ids, past_key_values=past)[0], own)


def test_gradients_and_other_models_are_left_to_the_model():
    model = llama()
    assert last_hidden_state(model, IDS) is None
    logits, _ = Forward(model)(input_ids=IDS)
    logits.sum().backward()
    assert model.model.layers[0].mlp.up_proj.weight.grad.abs().sum() > 0
    with torch.no_grad():
        at = torch.arange(5)
        assert last_hidden_state(model, IDS, cache_position=at) is None
        assert torch.equal(Forward(model)(input_ids=IDS, cache_position=at)[0], logits)
        assert last_hidden_state(MistralForCausalLM(MistralConfig(**SMALL, num_key_value_heads=2)), IDS) is None


@torch.no_grad()
def test_changed_weights_count_at_once():
    model = llama()
    forward = Forward(model)
    before, _ = forward(input_ids=IDS)
    model.model.layers[0].mlp.up_proj.weight.mul_(2)
    model.model.layers[1].self_attn.q_proj = nn.Linear(32, 32, bias=False)
    after, _ = forward(input_ids=IDS)
    assert not torch.allclose(before, after)
    assert torch.equal(after, model(input_ids=IDS, logits_to_keep=1).logits[:, -1])
