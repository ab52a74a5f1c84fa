"""A state of an automaton: a set of positions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from constrained.automaton.graph_stack import alternatives
from constrained.automaton.positions import Accept, InText, Reached, Stack, StepEnd

MAX_FORCED = 4096
"""Most bytes that `State.forced_text` looks ahead."""


class State:
    """A set of positions: every way to read the text so far.

    Attributes
    ----------
    positions : tuple of Position
    accepting : bool
        Whether the text (or the action, where one ends) is complete.
    """

    __slots__ = ("_steps", "accepting", "automaton", "positions")

    def __init__(self, automaton: Any, positions: Reached):
        self.automaton = automaton
        self.positions = positions
        self.accepting = any(isinstance(q, (Accept, StepEnd)) for q in positions)
        self._steps: dict[int, State | None] = {}

    def step(self, byte: int) -> State | None:
        """The state after `byte`; None if no text of the language continues with it."""
        try:
            return self._steps[byte]
        except KeyError:
            pass
        closure = self.automaton.closure
        if len(self.positions) == 1:
            found = self.positions[0].step(closure, byte)
        else:
            found = tuple(after for q in self.positions for after in q.step(closure, byte))
        state = self._steps[byte] = self.automaton.state(found) if found else None
        return state

    def read(self, data: bytes) -> State | None:
        """The state after all of `data`; None if no text of the language continues with it."""
        state: State | None = self
        for byte in data:
            if state is None:
                return None
            state = state.step(byte)
        return state

    def forced_text(self, limit: int = MAX_FORCED) -> bytes:
        """The bytes that must come next; empty if there is a choice or the text is complete."""
        out = bytearray()
        state: State | None = self
        while state is not None and not state.accepting and len(out) < limit:
            first = state.first()
            if len(first) != 1:
                break
            byte = first.pop()
            out.append(byte)
            state = state.step(byte)
        return bytes(out)

    def texts(self, limit: int) -> list[bytes] | None:
        """Every text that completes the state, sorted; None if there are more than `limit`."""
        out: set[bytes] = set()
        work: list[tuple[State, bytes]] = [(self, b"")]
        steps = 0
        while work:
            state, text = work.pop()
            if any(isinstance(q, InText) and q.has_more_texts_than(limit) for q in state.positions):
                return None
            if state.accepting:
                out.add(text)
            for piece, after in state._branches():
                work.append((after, text + piece))
                steps += 1
                # Each prefix in `work` has a completion, and at most two prefixes have the same one.
                if len(out) + len(work) > 2 * limit or steps > 64 * (limit + 1):
                    return None
        return sorted(out) if len(out) <= limit else None

    def _branches(self) -> Iterator[tuple[bytes, State]]:
        """Yield (text, state after it) for each way to continue; a text is one byte where several positions read it."""
        closure, state = self.automaton.closure, self.automaton.state
        count = Counter(byte for q in self.positions for byte in q.first())
        shared: set[int] = set()
        for q in self.positions:
            first = set(q.first())
            if any(count[byte] > 1 for byte in first):
                shared |= first
            else:
                yield from ((data, state(after)) for data, after in q.branches(closure))
        for byte in shared:
            if (after := self.step(byte)) is not None:
                yield bytes((byte,)), after

    def first(self) -> set[int]:
        """The bytes that may come next."""
        return {byte for q in self.positions for byte in q.first()}

    def ends(self) -> list[Stack]:
        """The frames that may follow the action that is complete here (see `StepEnd`); None if the text may end."""
        return list(alternatives(q.rest for q in self.positions if isinstance(q, (Accept, StepEnd))))
