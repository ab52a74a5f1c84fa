"""Every limit of the server: its requests may be anything, and a hostile one must cost little."""

from __future__ import annotations

PORT = 8000
"""Where it listens, unless told otherwise."""

BODY = 8 << 20
"""Bytes of one request."""
MESSAGES = 1_000
"""Messages of a conversation."""
TOOLS = 128
"""Tools of a request, as many as OpenAI's API takes."""
WAITING = 64
"""Requests that wait or are being answered; a further one is told to come later (status 429)."""
TOKENS = 8_192
"""Tokens of an answer, at most; as many as the model's context leaves, if a request doesn't say."""
CALLS = 16
"""Calls of an answer, and stop texts of a request."""
SECONDS = 300.0
"""From a request's arrival to the end of its answer."""

TOOL_LISTS = 32
"""Tool lists whose grammar is kept."""
CONVERSATIONS = 256
"""Conversations of which it is remembered where they stand."""
