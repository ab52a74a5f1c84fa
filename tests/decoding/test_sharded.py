"""Models whose layers are on several devices, or on the disk: the texts of the whole model on one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import dispatch_model

from constrained.decoding.forward import devices
from constrained.models import LoadedModel, load
from tests.decoding.every_way import TOKENIZER, by_generate, every_way, texts
from tests.decoding.tiny import tiny_llama
from tests.decoding.two_devices import two_devices

LAYERS = ["model.embed_tokens", "model.rotary_emb", "model.layers.0", "model.layers.1", "model.norm", "lm_head"]


def spread(places: list[str], folder: Path | None = None, io_same_device: bool = True) -> LoadedModel:
    """The tiny model, its parts at these places."""
    model = tiny_llama(len(TOKENIZER))
    dispatch_model(model, dict(zip(LAYERS, places)), main_device=places[0].replace("disk", "cpu"), offload_dir=folder)
    model._hf_hook.io_same_device = io_same_device
    return load((model, TOKENIZER))


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    whole = load((tiny_llama(len(TOKENIZER)), TOKENIZER))
    return every_way(whole) | {"beams": by_generate(whole.model, "cpu", num_beams=2)}


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


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_layers_on_two_gpus(expected):
    loaded = spread([place.replace("two", "cuda") for place in SPLIT])
    assert texts(loaded) == expected["texts"]
    assert by_generate(loaded.model, "cuda:0") == expected["generate"]
    assert by_generate(loaded.model, "cuda:0", tables=True) == expected["tables"]


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


def test_tensor_parallel_in_two_processes(expected, tmp_path):
    tiny_llama(len(TOKENIZER)).save_pretrained(tmp_path)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone"]
    done = subprocess.run(
        [*command, "-m", "tests.decoding.every_way", str(tmp_path)],
        capture_output=True, text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    assert found.pop("shard") == [16, 32], "each has half of a matrix"
    assert found == {name: expected[name] for name in found}
