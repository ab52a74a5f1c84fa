"""The point that a conversation has reached, for programs that hold it or send it anew each time."""

from __future__ import annotations

import hashlib
import json
import marshal
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from constrained.guard.conversation import Conversation, Guard
from constrained.guard.messages import message_events

KEPT = 256
"""Conversations whose last point is kept."""

KEPT_BYTES = 16 << 20
"""Bytes of all their messages together."""


class Followed:
    """Replays conversations; what was replayed before isn't again.

    A conversation is known by the digest of its messages, so nothing depends on what is kept: it only saves time.

    Parameters
    ----------
    guard : Guard
    kept : int
        Conversations whose last points are kept.

    Attributes
    ----------
    size : int
        Bytes of the messages of the conversations that are kept.
    """

    def __init__(self, guard: Guard, kept: int = KEPT):
        self.guard, self._most = guard, kept
        self._points: OrderedDict[bytes, tuple[Conversation, int]] = OrderedDict()
        self.size = 0
        self._lock = threading.Lock()

    def at_end_of(self, messages: Sequence[Any]) -> Conversation:
        """The conversation after these messages. Raises KnowledgeError: one can't be read."""
        digests, size = _digests(messages)
        with self._lock:
            known = next((n for n in range(len(messages), 0, -1) if digests[n - 1] in self._points), 0)
            point = self._points[digests[known - 1]][0] if known else self.guard.start
        for number in range(known, len(messages)):
            for event in message_events(messages[number], f"messages[{number}]"):
                point = point.after(event)
        if messages and size <= KEPT_BYTES:
            with self._lock:
                self.size += size - self._points.pop(digests[-1], (point, 0))[1]
                self._points[digests[-1]] = point, size
                while len(self._points) > self._most or self.size > KEPT_BYTES:
                    self.size -= self._points.popitem(last=False)[1][1]
        return point


def _digests(messages: Sequence[Any]) -> tuple[list[bytes], int]:
    """The digest of each beginning of a conversation, and the bytes of all of it."""
    running, found, size = hashlib.sha256(), [], 0
    for message in messages:
        dump = getattr(message, "model_dump", None)
        given = dump() if callable(dump) else message
        try:
            # The format 2 has no references, so that equal values are written alike; it takes a tenth of JSON's time.
            data = marshal.dumps(given, 2)
        except ValueError:  # an object, or nested too deeply
            data = json.dumps(given, sort_keys=True, default=repr).encode("utf-8", "surrogatepass") + b"\n"
        running.update(data)
        found.append(running.digest())
        size += len(data)
    return found, size
