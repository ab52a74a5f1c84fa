"""Tests that `test_sharded` runs in a process of its own: a model's layers on two devices that Python plays."""

from __future__ import annotations

from typing import Any

import pytest

from constrained.decoding.forward import devices
from tests.decoding.every_way import by_generate, of_the_whole, spread, texts
from tests.decoding.two_devices import two_devices


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    return of_the_whole()


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
