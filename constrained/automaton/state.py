"""What may follow a text so far: a prefix, and the kind that an automaton has, a state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from typing import Any

from constrained.automaton.graph_stack import alternatives
from constrained.automaton.positions import Accept, InText, Reached, Stack, StepEnd
from constrained.automaton.shortest import shortest

MAX_FORCED = 4096
"""Most bytes that `State.forced_text` looks ahead."""


class Prefix(ABC):
    """A text so far, for what may follow it: a state of the automaton, or a `memory.DistinctMemory` beside one.

    Attributes
    ----------
    automaton : Automaton
    positions : tuple of Position
        Every way to read the text so far.
    accepting : bool
        Whether the text (or the action, where one ends) is complete.
    """

    __slots__ = ()
    automaton: Any
    positions: Reached
    accepting: bool

    @abstractmethod
    def step(self, byte: int) -> Prefix | None:
        """The prefix with `byte` after it; None if no text of the language continues so."""

    @abstractmethod
    def read(self, data: bytes) -> Prefix | None:
        """The prefix with all of `data` after it; None if no text of the language continues so."""

    @abstractmethod
    def first(self) -> set[int]:
        """The bytes that may come next."""

    @abstractmethod
    def forced_text(self, limit: int = MAX_FORCED) -> bytes:
        """The bytes that must come next; empty if there is a choice or the text is complete."""

    @abstractmethod
    def completion(self) -> bytes:
        """A short text that completes the prefix.

        Raises
        ------
        LimitError
            The search takes more than `search_positions` or `search_milliseconds`.
        """

    @abstractmethod
    def texts(self, limit: int) -> list[bytes] | None:
        """Every text that completes the prefix, sorted; None if there are more than `limit`."""

    def ends(self) -> list[Stack]:
        """The frames that may follow the action that is complete here (see `StepEnd`); None is the end."""
        return list(alternatives(q.rest for q in self.positions if isinstance(q, (Accept, StepEnd))))


class State(Prefix):
    """A set of positions."""

    __slots__ = ("_steps", "accepting", "automaton", "positions")

    def __init__(self, automaton: Any, positions: Reached):
        self.automaton = automaton
        self.positions = positions
        self.accepting = any(isinstance(q, (Accept, StepEnd)) for q in positions)
        self._steps: dict[int, State | None] = {}

    def step(self, byte: int) -> State | None:
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
        state: State | None = self
        for byte in data:
            if state is None:
                return None
            state = state.step(byte)
        return state

    def forced_text(self, limit: int = MAX_FORCED) -> bytes:
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

    def completion(self) -> bytes:
        return b"".join(data for _, data in shortest(self.automaton, self.positions))

    def texts(self, limit: int) -> list[bytes] | None:
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
        return {byte for q in self.positions for byte in q.first()}
