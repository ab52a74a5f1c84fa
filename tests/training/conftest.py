"""What the tests of training tune, and on what."""

from __future__ import annotations

import pytest

from constrained.models import LoadedModel
from constrained.training.encoding import Span, TrainingText
from tests.training.tiny import tiny_model


@pytest.fixture(scope="session")
def tiny() -> LoadedModel:
    return tiny_model()


@pytest.fixture(scope="session")
def texts() -> list[TrainingText]:
    """Twenty of different lengths."""
    prompts = [f"Goal: a mug in cabinet {n}.\n" + "Seen: desk 1.\n" * (n % 7) for n in range(1, 21)]
    return [
        TrainingText((Span(prompt, False), Span(f"go to cabinet {n}", True))) for n, prompt in enumerate(prompts, 1)
    ]
