"""The limits of the server, so that a hostile request costs little and doesn't delay others."""

from __future__ import annotations

PORT = 8000
"""The default port."""

BODY = 8 << 20
"""Bytes of one request."""
HELD = 64 << 20
"""Bytes of all requests that are being received, or wait."""
MESSAGES = 1_000
"""Messages of a conversation."""
PASSED_MESSAGES = 4_000
"""Messages of a conversation that the proxy passes on."""
TOOLS = 128
"""Tools of a request, as many as OpenAI's API takes."""
WAITING = 256
"""Requests that wait or are being answered; more are refused with status 429."""
TOKENS = 8_192
"""Most tokens of an answer, and the default, as far as the model's context leaves room."""
CALLS = 16
"""Calls of an answer, and stop texts of a request."""
SECONDS = 300.0
"""From a request's arrival to the end of its answer."""

CONNECTIONS = 512
"""Open connections; a new one takes the place of the oldest that has sent no whole request."""
SPARE_FILES = 128
"""File descriptors that connections leave to everything else: the system's limit may allow fewer connections."""
HEAD_SECONDS = 10.0
"""From a connection, or a request's first byte, to the end of its header."""
IDLE_SECONDS = 75.0
"""From an answer to the next request's first byte, at the proxy: more than load balancers keep a connection for."""
BODY_SECONDS = 30.0
"""From there to the end of its body."""
READING_SECONDS = 30.0
"""Time that a client takes to read what is left of its answer."""

PREPARED = 32
"""Requests that are prepared at the same time, each in a process of its own."""
WORK_SECONDS = 2.0
"""Processor time to prepare a request, and to work out one step of its answer."""
YIELD_SECONDS = 0.25
"""Processor time after which such work lets all other work go first."""
MEMORY = 512 << 20
"""Bytes that a request's process takes beyond what it begins with."""
GRACE_SECONDS = 0.01
"""Time that the writing thread waits for an answer's next step; then the others go on without it."""
CALL_SECONDS = 0.1
"""Time that a call of the model should take while it reads a long prompt beside answers that are being written."""
