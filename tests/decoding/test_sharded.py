"""Models whose layers are on several devices, or on the disk: the texts of the whole model on one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import dispatch_model

from constrained import Grammar, compile_grammar
from constrained.decoding import custom_generate
from constrained.decoding.device import DeviceTables
from constrained.decoding.forward import devices
from constrained.decoding.generation import generate, generate_batch
from constrained.decoding.request import Request
from constrained.models import LoadedModel, load
from tests.decoding.tiny import tiny_llama, tiny_tokenizer
from tests.decoding.two_devices import two_devices

TOKENIZER = tiny_tokenizer()
GRAMMAR = Grammar.from_lark(
    'start: "Thought: " /[a-z ]{1,12}/ "\\nAction: go to " ("desk 1" | "desk 10" | "drawer 1")\n'
)
LAYERS = ["model.embed_tokens", "model.rotary_emb", "model.layers.0", "model.layers.1", "model.norm", "lm_head"]
PROMPTS = ["A room.", "You are in a room with a desk. ", "x"]


def spread(places: list[str], folder: Path | None = None, io_same_device: bool = True) -> LoadedModel:
    """The tiny model, its parts at these places."""
    model = tiny_llama(len(TOKENIZER))
    dispatch_model(model, dict(zip(LAYERS, places)), main_device=places[0].replace("disk", "cpu"), offload_dir=folder)
    model._hf_hook.io_same_device = io_same_device
    return load((model, TOKENIZER))


def texts(loaded: LoadedModel, temperature: float = 0.0) -> list[str]:
    compiled = compile_grammar(GRAMMAR, loaded.vocabulary)
    requests = [Request(p, compiled, 60, generator=torch.Generator().manual_seed(i)) for i, p in enumerate(PROMPTS)]
    alone = generate(loaded, PROMPTS[0], compiled, max_new_tokens=60)
    return [alone.text, *(one.text for one in generate_batch(loaded, requests, temperature=temperature))]


def by_generate(model: Any, device: str, tables: bool = False, **options: Any) -> list[list[int]]:
    prompts = torch.arange(10).reshape(2, 5) + 60
    compiled = compile_grammar(GRAMMAR, load((tiny_llama(len(TOKENIZER)), TOKENIZER)).vocabulary)
    grammar = DeviceTables.build(compiled, tokenizer=TOKENIZER, device=device) if tables else compiled
    out = model.generate(
        prompts.to(device), attention_mask=torch.ones_like(prompts).to(device), custom_generate=custom_generate,
        grammar=grammar, pad_token_id=1, do_sample=False, max_new_tokens=60, **options,
    )  # fmt: skip
    return out.tolist()


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    whole = load((tiny_llama(len(TOKENIZER)), TOKENIZER))
    return {
        "texts": texts(whole),
        "sampled": texts(whole, 1.0),
        "generate": by_generate(whole.model, "cpu"),
        "tables": by_generate(whole.model, "cpu", tables=True),
        "beams": by_generate(whole.model, "cpu", num_beams=2),
        "digest": whole.weights_digest(),
    }


SPLIT = ["two:0", "two:0", "two:0", "two:1", "two:1", "two:1"]


@pytest.mark.parametrize("brought_back", [True, False], ids=["logits brought back", "logits where the last layer is"])
def test_layers_on_two_devices(brought_back, expected):
    with two_devices():
        loaded = spread(SPLIT, io_same_device=brought_back)
        assert [str(device) for device in devices(loaded.model)] == ["two:0", "two:0" if brought_back else "two:1"]
        assert texts(loaded) == expected["texts"] and texts(loaded, 1.0) == expected["sampled"]


def test_generate_on_two_devices(expected):
    with two_devices():
        model = spread(SPLIT).model
        assert by_generate(model, "two:0") == expected["generate"]
        assert by_generate(model, "two:0", num_beams=2) == expected["beams"]
        for cache in ({}, {"cache_implementation": "static"}):
            assert by_generate(model, "two:0", tables=True, **cache) == expected["tables"]


@pytest.mark.parametrize("places", [["cpu"] * 3 + ["disk", "cpu", "disk"], ["disk"] * 6], ids=["some", "all"])
def test_layers_on_the_disk(places, expected, tmp_path):
    loaded = spread(places, tmp_path)
    assert loaded.device == torch.device("cpu") and any(weight.is_meta for weight in loaded.model.parameters())
    assert texts(loaded) == expected["texts"] and loaded.weights_digest() == expected["digest"]


def test_auto_spreads_what_is_read(expected, tmp_path):
    tiny_llama(len(TOKENIZER)).save_pretrained(tmp_path)
    TOKENIZER.save_pretrained(tmp_path)
    loaded = load(tmp_path, device="auto")
    assert loaded.device == torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    assert texts(loaded) == expected["texts"]
