"""SmolLM2-135M-Instruct, a small general model: tests of it skip where its package isn't installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from constrained.errors import ModelError
from constrained.gguf_file import gguf_path


def smollm2_file() -> Path:
    """The model's ``.gguf`` file."""
    pytest.importorskip("gguf", reason="needs the extra gguf")
    try:
        return gguf_path("smollm2")
    except ModelError as error:
        pytest.skip(f"{error.message}: {error.hint}")
