"""Compare two records of the same play: texts and counts exactly, other figures up to the order of summing."""

import pytest


def assert_alike(found, expected):
    """Equal except for seconds; float32 sums depend on the rest of the batch."""
    texts, figures = _parted(found)
    others, numbers = _parted(expected)
    assert texts == others
    assert figures == pytest.approx(numbers, abs=1e-4)


def _parted(data):
    figures = []

    def without(data):
        if isinstance(data, float):
            figures.append(data)
            return "a figure"
        if isinstance(data, dict):
            return {key: without(value) for key, value in data.items() if key != "seconds"}
        return [without(value) for value in data] if isinstance(data, list | tuple) else data

    return without(data), figures
