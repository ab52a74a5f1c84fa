"""Models whose layers are on several devices, or on the disk: the texts of the whole model on one."""

from __future__ import annotations

import json
import socket
from functools import partial
from typing import Any

import pytest
import torch

from constrained.models import load
from tests.decoding.every_way import TOKENIZER, by_generate, of_the_whole, shared_by_two, spread, texts
from tests.decoding.on_two_devices import check_two_devices
from tests.decoding.tiny import tiny_llama
from tests.forked import ended, forked


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    return of_the_whole()


def test_layers_on_two_devices(expected):
    """In a process of its own: torch can't forget a device that Python plays, and other tests would find it."""
    registration = pytest.importorskip("torch.utils.backend_registration")
    if not hasattr(registration, "_setup_privateuseone_for_python_backend"):
        pytest.skip("this torch lets Python play no device")
    assert ended(forked(lambda: check_two_devices(expected))) == 0


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_layers_on_two_gpus(expected):
    loaded = spread(["cuda:0"] * 3 + ["cuda:1"] * 3)
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


@pytest.mark.skipif(torch.cuda.is_available(), reason="transformers puts each process's share on a GPU of its own")
def test_tensor_parallel_in_two_processes(expected, tmp_path):
    tiny_llama(len(TOKENIZER)).save_pretrained(tmp_path)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    copies = [forked(partial(shared_by_two, tmp_path, rank, port)) for rank in range(2)]
    assert [ended(copy) for copy in copies] == [0, 0]
    for rank in range(2):
        found = json.loads((tmp_path / f"{rank}.json").read_text())
        assert found.pop("shard") == [16, 32], "each has half of a matrix"
        assert found == {name: expected[name] for name in found}
