"""Every bound of the playground, by name: what is typed may be anything, and a hostile text must cost little."""

from __future__ import annotations

PORT = 8750
"""The port that is tried first."""
PORTS = 20
"""How many are tried, where none is asked for."""

TEXT = 200_000
"""Characters of a grammar."""
REQUEST = 8 << 20
"""Bytes of one request."""
PATH = 20_000
"""Characters of a path to be explained."""
TASK = 2_000
"""Characters of a task."""
STEPS = 200
"""Steps of a run."""
RUN_TOKENS = 50_000
"""Tokens of a run."""
FINDINGS = 200
"""Findings that are sent; of more, how many there are."""
ACTIONS = 300
"""Actions up to which a graph is drawn."""
TOKENS = 60
"""Allowed tokens that are listed."""
EXPECTED = 60
"""Expected things that are listed."""

CHECK_SECONDS = 10.0
"""Time of one check, or one explanation; the process that takes longer is ended."""
TOKENIZER_SECONDS = 120.0
"""Time to read a tokenizer."""
START_SECONDS = 120.0
"""Time for a process to start."""
RUN_SECONDS = 900.0
"""Time of a run."""
MEMORY = 2 << 30
"""Bytes that the process of checks, or of explanations, may take beyond what its libraries take (Linux)."""
