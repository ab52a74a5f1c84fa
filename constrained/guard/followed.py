"""The point that a conversation has reached, for programs that hold it or send it anew each time."""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from constrained.guard.conversation import Conversation, Guard
from constrained.guard.messages import message_events

KEPT = 256
"""Conversations whose last point is kept."""


class Followed:
    """Replays conversations; what was replayed before isn't again.

    A conversation is known by the digest of its messages, so nothing depends on what is kept: it only saves time.

    Parameters
    ----------
    guard : Guard
    kept : int
        Conversations whose last points are kept.
    """

    def __init__(self, guard: Guard, kept: int = KEPT):
        self.guard, self._most = guard, kept
        self._points: OrderedDict[bytes, Conversation] = OrderedDict()
        self._lock = threading.Lock()

    def at_end_of(self, messages: Sequence[Any]) -> Conversation:
        """The conversation after these messages. Raises KnowledgeError: one can't be read."""
        digests = _digests(messages)
        with self._lock:
            known = next((n for n in range(len(messages), 0, -1) if digests[n - 1] in self._points), 0)
            point = self._points[digests[known - 1]] if known else self.guard.start
        for number in range(known, len(messages)):
            for event in message_events(messages[number], f"messages[{number}]"):
                point = point.after(event)
        if messages:
            with self._lock:
                self._points[digests[-1]] = point
                self._points.move_to_end(digests[-1])
                while len(self._points) > self._most:
                    self._points.popitem(last=False)
        return point


def _digests(messages: Sequence[Any]) -> list[bytes]:
    """The digest of each beginning of a conversation."""
    running, found = hashlib.sha256(), []
    for message in messages:
        dump = getattr(message, "model_dump", None)
        data = json.dumps(dump() if callable(dump) else message, sort_keys=True, default=repr)
        running.update(data.encode("utf-8", "surrogatepass") + b"\n")
        found.append(running.digest())
    return found
