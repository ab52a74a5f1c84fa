"""Values of slots, as the command line gives them: `SLOT=JSON`."""

from __future__ import annotations

import json

from constrained.errors import KnowledgeError


def binding(text: str) -> tuple[str, object]:
    """Slot and value; KnowledgeError if `text` is none."""
    name, equals, value = text.partition("=")
    try:
        parsed = json.loads(value) if equals else None
    except json.JSONDecodeError:
        parsed = None
    if not isinstance(parsed, (list, dict, str)):
        raise KnowledgeError(f"--bind {text!r} is not SLOT=JSON", "for example --bind 'RECEPTACLE=[\"desk 1\"]'")
    return name, parsed
