"""What `test_sharded` checks in a process of its own: a model's layers on two devices that Python plays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constrained.decoding.forward import devices
from tests.decoding.every_way import by_generate, spread, texts
from tests.decoding.two_devices import two_devices

SPLIT = ["two:0", "two:0", "two:0", "two:1", "two:1", "two:1"]


def check_two_devices(expected: Mapping[str, Any]) -> None:
    """AssertionError if the spread model writes otherwise than the whole one (`every_way.of_the_whole`)."""
    # The logits may be brought back to the first device, or stay where the last layer is.
    for brought_back in (True, False):
        with two_devices():
            loaded = spread(SPLIT, io_same_device=brought_back)
            assert [str(device) for device in devices(loaded.model)] == ["two:0", "two:0" if brought_back else "two:1"]
            assert texts(loaded) == expected["texts"] and texts(loaded, 1.0) == expected["sampled"]
    with two_devices():
        model = spread(SPLIT).model
        assert by_generate(model, "two:0") == expected["generate"]
        assert by_generate(model, "two:0", num_beams=2) == expected["beams"]
        for cache in ({}, {"cache_implementation": "static"}):
            assert by_generate(model, "two:0", tables=True, **cache) == expected["tables"]
