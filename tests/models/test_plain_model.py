"""The embedded model without transformers: the same ids and logits to the last bit, and its objects on demand."""

import json
import random
import shutil
from importlib import import_module

import pytest
import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerBase

from constrained import Grammar
from constrained.decoding.generation import generate, generate_batch
from constrained.decoding.plain_llama import PlainLlama
from constrained.decoding.prefix_cache import PrefixCache
from constrained.decoding.request import Request
from constrained.errors import ModelError
from constrained.models import load, reading
from constrained.models.plain_model import PlainModel
from constrained.models.source import EMBEDDED

ACTIONS = Grammar.from_lark('start: ("go to" | "take") " the " /[a-z ]{1,20}/ " " /[0-9]/\n')


@pytest.fixture(scope="module")
def whole():
    """The same model in transformers."""
    return reading.embedded(torch.float32)


def test_what_generation_asks_of_it_is_the_same(whole):
    plain = load()
    assert isinstance(plain, PlainModel) and "model" not in vars(plain) and "tokenizer" not in vars(plain)
    assert plain.vocabulary.fingerprint == whole.vocabulary.fingerprint
    for name in ("name", "device", "is_embedded", "eos_token_ids", "logits_width", "parameters", "max_context"):
        assert getattr(plain, name) == getattr(whole, name), name
    for text in ("put egg 1 in/on fridge 1", " \n\tÜnï 😀<|end|>", "", "Action 3: go to"):
        assert plain.encode(text) == whole.encode(text)


def test_the_logits_are_the_same_to_the_last_bit_in_any_order_of_texts(whole):
    plain, rng = load(), random.Random(0)
    ids = [rng.randrange(plain.logits_width) for _ in range(40)]
    one, other = PrefixCache(), PrefixCache()
    for _ in range(20):  # keep a part of the last text, and read one or more tokens after it
        kept = ids[: rng.randrange(len(ids) - 9, len(ids))]
        ids = kept + rng.choices(range(plain.logits_width), k=rng.choice((1, 9)))
        assert torch.equal(one.next_logits(plain.runs, ids), other.next_logits(whole.model, ids))
    assert "model" not in vars(plain)


def test_texts_are_the_same_alone_and_side_by_side(whole):
    plain = load()
    requests = [Request(f"Number {i} is {'x' * i}", ACTIONS if i % 2 else None, 20 + i) for i in range(5)]
    expected = [one.text for one in generate_batch(whole, requests)]
    assert [one.text for one in generate_batch(plain, requests)] == expected
    assert [generate(plain, r.prompt, r.grammar, max_new_tokens=r.max_new_tokens).text for r in requests] == expected


def test_transformers_objects_are_there_when_they_are_asked_for_and_then_hold():
    plain, ids = load(), [5, 6, 7]
    before = PrefixCache().next_logits(plain.runs, ids)
    assert isinstance(plain.model, LlamaForCausalLM) and isinstance(plain.tokenizer, PreTrainedTokenizerBase)
    assert torch.equal(PrefixCache().next_logits(plain.runs, ids), before)
    with torch.no_grad():
        plain.model.model.norm.weight.mul_(2)
    assert not torch.equal(PrefixCache().next_logits(plain.runs, ids), before)
    assert load(plain, dtype="bfloat16").model.dtype == torch.bfloat16


def test_a_model_of_another_kind_is_refused(whole):
    settings, weights = json.loads((EMBEDDED / "config.json").read_text()), whole.model.state_dict()
    assert PlainLlama(settings, weights)
    for change in ({"model_type": "mistral"}, {"hidden_act": "gelu"}, {"num_key_value_heads": 3},
                   {"rope_parameters": {"rope_type": "llama3", "rope_theta": 1e4}}):  # fmt: skip
        with pytest.raises(ValueError):
            PlainLlama({**settings, **change}, weights)
    with pytest.raises(ValueError, match="missing"):
        PlainLlama({**settings, "num_hidden_layers": 5}, weights)


def test_a_damaged_file_is_left_to_transformers_which_says_what_is_wrong(tmp_path, monkeypatch):
    folder = shutil.copytree(EMBEDDED, tmp_path / "embedded")
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:1000])
    for module in (import_module("constrained.models.load"), reading):
        monkeypatch.setattr(module, "EMBEDDED", folder)
    with pytest.raises(ModelError, match="can't be loaded"):
        load()
