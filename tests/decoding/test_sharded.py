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

from constrained.models import load
from tests.decoding.every_way import TOKENIZER, by_generate, of_the_whole, spread, texts
from tests.decoding.tiny import tiny_llama


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    return of_the_whole()


def test_layers_on_two_devices():
    """In a process of its own: torch can't forget a device that Python plays, and other tests would find it."""
    pytest.importorskip("torch.utils.backend_registration", reason="this torch lets Python play no device")
    file = Path(__file__).with_name("on_two_devices.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "passed" in done.stdout, done.stdout[-3000:]


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
