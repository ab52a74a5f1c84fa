"""States: sets of positions, stepped byte by byte."""

from __future__ import annotations

from constrained.automaton import positions as p
from constrained.automaton.stacks import alternatives

MAX_FORCED = 4096
"""Bytes that `State.forced_text` looks ahead at most."""


class State:
    """A set of positions: every way to read what has been read so far.

    Attributes
    ----------
    positions : tuple of Position
    accepting : bool
        The text, or (where an action ends) the action, is complete.
    """

    __slots__ = ("_steps", "accepting", "automaton", "positions")

    def __init__(self, automaton, positions: tuple):
        self.automaton = automaton
        self.positions = positions
        self.accepting = any(isinstance(q, (p.Accept, p.StepEnd)) for q in positions)
        self._steps: dict[int, State | None] = {}

    def step(self, byte: int) -> State | None:
        """The state after `byte`; None if no text of the language goes on so."""
        try:
            return self._steps[byte]
        except KeyError:
            pass
        automaton = self.automaton
        if len(self.positions) == 1:
            found = self.positions[0].step(automaton, byte)
        else:
            found = tuple(t for q in self.positions for t in q.step(automaton, byte))
        state = self._steps[byte] = automaton.state(found) if found else None
        return state

    def read(self, data: bytes) -> State | None:
        """The state after all of `data`."""
        state = self
        for byte in data:
            state = state.step(byte)
            if state is None:
                return None
        return state

    def forced_text(self, limit: int = MAX_FORCED) -> bytes:
        """The bytes that must come next; empty where there is a choice or the text is complete."""
        out = bytearray()
        state = self
        while not state.accepting and len(out) < limit:
            byte = None
            for position in state.positions:
                for other in position.first():
                    if byte is not None and other != byte:
                        return bytes(out)
                    byte = other
            out.append(byte)
            state = state.step(byte)
        return bytes(out)

    def texts(self, limit: int) -> list[bytes] | None:
        """Every text that completes the state, sorted; None if they are more than `limit`."""
        out: list[bytes] = []
        work: list[tuple[State, bytes]] = [(self, b"")]
        steps = 0
        while work:
            state, text = work.pop()
            if state.accepting:
                out.append(text)
            work.extend((after, text + piece) for piece, after in state._onward())
            steps += 1
            # what is begun has a completion of its own each
            if len(out) + len(work) > limit or steps > 64 * (limit + 1):
                return None
        return sorted(out)

    def _onward(self) -> list[tuple[bytes, State]]:
        """Every way to go on, by a byte or by all that must come next, and the state after it."""
        run = self.positions[0].run(self.automaton) if len(self.positions) == 1 else None
        if run:  # most of a text has no choice in it
            return [(run[0], self.automaton.state(run[1]))]
        return [(bytes((byte,)), self.step(byte)) for byte in self.first()]

    def first(self) -> set[int]:
        """The bytes that may come next."""
        return {b for q in self.positions for b in q.first()}

    def ends(self) -> list[p.Frame | None]:
        """What may follow the action that is complete here (see `StepEnd`); None: nothing."""
        return list(alternatives(q.rest for q in self.positions if isinstance(q, (p.Accept, p.StepEnd))))
