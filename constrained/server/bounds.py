"""The limits of the server: a hostile request must cost little."""

from __future__ import annotations

PORT = 8000
"""The default port."""

BODY = 8 << 20
"""Bytes of one request."""
MESSAGES = 1_000
"""Messages of a conversation."""
TOOLS = 128
"""Tools of a request, as many as OpenAI's API takes."""
WAITING = 64
"""Requests that wait or are being answered; more are refused with status 429."""
TOKENS = 8_192
"""Most tokens of an answer, and the default, as far as the model's context leaves room."""
CALLS = 16
"""Calls of an answer, and stop texts of a request."""
SECONDS = 300.0
"""From a request's arrival to the end of its answer."""

TOOL_LISTS = 32
"""Tool lists whose grammars are kept."""
CONVERSATIONS = 256
"""Points of conversations that are kept, so that they aren't followed again."""
