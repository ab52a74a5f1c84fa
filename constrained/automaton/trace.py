"""A text read so that each position still knows the pieces of grammar it reads: for explaining, not for masks.

The automaton joins what reads on alike, whatever wrote it. Here every position keeps the frames
that were entered to come to it along this very text.
"""

from __future__ import annotations

from constrained.automaton import positions as p
from constrained.automaton.automaton import Automaton


class Trace:
    """One text, followed from the start.

    Attributes
    ----------
    at : dict of Position to list of Frame
        The positions after the text so far, each with the frames whose node it is in.
    """

    def __init__(self, automaton: Automaton):
        self.automaton = automaton
        self._entered: dict[int, dict] = {}
        self.at = {q: [frame] for q, frame in self._enter(automaton.root).items()}

    def read(self, data: bytes) -> int:
        """Read as much of `data` as fits; how many bytes that is."""
        for count, byte in enumerate(data):
            after = self._step(byte)
            if not after:
                return count
            self.at = after
        return len(data)

    def _step(self, byte: int) -> dict[p.Position, list]:
        found: dict[p.Position, dict] = {}
        for q, frames in self.at.items():
            for after in q.step(self.automaton, byte):
                origins = found.setdefault(after, {})
                if _goes_on(q, after):
                    origins.update(dict.fromkeys(frames))
                else:
                    entered = self._enter(self._next(q, byte))
                    # where stacks are joined, of all that read the same
                    alike = (after,) if after in entered else (r for r in entered if r.reads()[0] is after.reads()[0])
                    origins.update((entered[r], None) for r in alike)
        return {q: list(origins) for q, origins in found.items()}

    def _enter(self, frame: p.Frame | None) -> dict:
        if frame is None:
            return {self.automaton.accept: None}
        if frame.number not in self._entered:
            self._entered[frame.number] = self.automaton.entered_by(frame)
        return self._entered[frame.number]

    def _next(self, q: p.Position, byte: int) -> p.Frame | None:
        """What comes after the text of `q`, whose last byte this is."""
        if isinstance(q, p.InChoices) and q.bind is not None:
            value = q.values[q.low][: q.depth] + bytes((byte,))
            return self.automaton.rebind(q.rest, q.rest.env, q.bind, value)
        return q.rest


def _goes_on(q: p.Position, after: p.Position) -> bool:
    """Whether `after` is further on in what `q` reads, rather than in what comes next."""
    if type(q) is not type(after) or q.rest is not after.rest:
        return False
    if isinstance(q, p.InLiteral):
        return after.at == q.at + 1 and after.data == q.data
    if isinstance(q, p.InChoices):
        return after.depth == q.depth + 1 and after.values is q.values
    if after.chars is not q.chars or after.inside is not None:
        return after.chars is q.chars
    return (after.low, after.high) == (max(q.low - 1, 0), None if q.high is None else q.high - 1)
