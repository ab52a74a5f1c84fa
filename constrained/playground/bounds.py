"""The limits of the playground: a hostile text must cost little."""

from __future__ import annotations

PORT = 8750
"""The port that is tried first."""
PORTS = 20
"""Ports that are tried if none is given."""

TEXT = 200_000
"""Characters of a grammar."""
REQUEST = 8 << 20
"""Bytes of one request."""
PATH = 20_000
"""Characters of a path to explain."""
TASK = 2_000
"""Characters of a task."""
STEPS = 200
"""Steps of a run."""
RUN_TOKENS = 50_000
"""Tokens of a run."""
FINDINGS = 200
"""Findings that are sent to the page; the rest is counted."""
ACTIONS = 300
"""Actions of the largest graph that is drawn."""
TOKENS = 60
"""Allowed tokens that are listed."""
EXPECTED = 60
"""Expected items that are listed."""

CHECK_SECONDS = 10.0
"""Time limit of one check or explanation."""
TOKENIZER_SECONDS = 120.0
"""Time limit for reading a tokenizer."""
RUN_SECONDS = 900.0
"""Time limit of a run."""
MEMORY = 2 << 30
"""Bytes that the process of checks, or of explanations, may take beyond what its libraries take (Linux)."""
