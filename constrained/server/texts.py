"""Texts whose masks are computed in their request's process, as the writing thread sees them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait

import numpy as np

from constrained.automaton import Vocabulary
from constrained.decoding.loop import Text
from constrained.decoding.request import Token
from constrained.errors import ConstrainedError
from constrained.server import bounds
from constrained.server.chat_request import RequestError
from constrained.server.preparation import END, Continued


class FollowedText(Text):
    """A text that is followed in its request's process.

    Parameters
    ----------
    vocabulary : Vocabulary
    prompt : list of int
    connection : Connection
        To the process.
    first : Continued
    stops : sequence of str
        What is said ends before the first of these; once one of them stands in a call, the text ends with that call.
    call : str
        What a call begins with; empty if there is none.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        prompt: Sequence[int],
        connection: Connection,
        first: Continued,
        stops: Sequence[str] = (),
        call: str = "",
    ):
        super().__init__(vocabulary, prompt)
        self.connection, self.late = connection, False
        self.last: Continued | None = None
        self._first: Continued | None = first
        self._chosen: Token | None = None
        self._stops, self._call = [stop.encode() for stop in stops], call.encode()
        self._searched = self.start
        self._stopping = False

    @property
    def may_wait(self) -> bool:
        return False

    def prepare(self) -> None:
        step, self._first = self._received() if self.pending else self._first, None
        if step is None:
            return
        if self._chosen is not None:
            self.append(self._chosen)
            self._chosen = None
        for token in step.forced:
            self.append(Token(token, forced=True))
        if not step.mask:
            self.last, self.done = step, True
            return
        self.mask = np.frombuffer(step.mask, np.int32).copy()
        self._look_for_stops()
        if self.stop_at is not None:
            self.done = True
        elif self._stopping and step.complete:
            self._ask(END)

    def accept(self, token: Token) -> None:
        if token.id in self.vocabulary.eos_token_ids:
            self.end = token
            self._ask(END)
        else:
            self._chosen = token
            self._ask(token.id)

    def _ask(self, token: int) -> None:
        self.pending = True
        self.connection.send(token)

    def _received(self) -> Continued:
        self.pending = self.late = False
        try:
            message = self.connection.recv()
        except (EOFError, OSError):
            raise gone() from None
        if isinstance(message, ConstrainedError):
            raise message
        return message

    def _look_for_stops(self) -> None:
        """Set `stop_at` where a stop text stands in what is said; note one that stands in a call."""
        data, searched = self.data, self._searched
        self._searched = len(data)
        if not self._stops or self._stopping:
            return
        result = [data.find(stop, max(self.start, searched - len(stop) + 1)) for stop in self._stops]
        at = min((at for at in result if at >= 0), default=None)
        if at is None:
            return
        # Bare JSON is a call only at the beginning.
        call = data.find(self._call, self.start) if self._call else -1
        if self._call == b"{" and data[self.start : max(call, self.start)].strip():
            call = -1
        if call < 0 or at < call:
            self.stop_at = at
        else:
            self._stopping = True


def gone() -> RequestError:
    """The error for a request whose process was ended: it was deep in some computation, or took too much memory."""
    hint = "make its schema, its tools or its conversation smaller"
    return RequestError("the request takes more processor time or memory to work out than it may", hint)


def wait_for(pending: Sequence[FollowedText], others: bool) -> list[FollowedText]:
    """Wait for what follows some texts, and return those for which it is there.

    Each is waited for only `GRACE_SECONDS`; where `others` can go on, they then do so without it.
    """
    until = time.monotonic() + bounds.GRACE_SECONDS
    arrived: list[FollowedText] = []
    left = list(pending)
    while left:
        soon = not all(text.late for text in left) or not (others or arrived)
        seconds = max(0.0, until - time.monotonic()) if soon else 0.0
        there = set(wait([text.connection for text in left], seconds))
        arrived += [text for text in left if text.connection in there]
        left = [text for text in left if text.connection not in there]
        if not there or not seconds:
            break
    for text in left:
        text.late = True
    return arrived
