"""Whether ScienceWorld can run here."""

import importlib.util
import shutil

import pytest


def needs_scienceworld() -> None:
    """Skip the calling test, and say why, without the package or Java."""
    for name in ("scienceworld", "py4j"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"needs the package {name}: pip install 'constrained-agents[scienceworld]'")
    if shutil.which("java") is None:
        pytest.skip("needs Java, 11 or later, on the path")
