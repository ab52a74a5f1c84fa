"""What a construct begins with, on whatever stack: worked out once, then set on each stack that it comes to stand on.

Rules that nest are entered on ever new stacks, and what follows each is the same but for the frames below.
"""

from __future__ import annotations

from constrained.automaton import positions as p
from constrained.grammar.nodes import Node


class Opening:
    """The positions that a construct begins with, over a stack left open.

    Attributes
    ----------
    frames : list of (Node, Env, int)
        Pushed on the stack, each over the one of that number; -1: over the stack.
    positions : list of (Position, int)
        What is read, and over which of the frames.
    through : bool
        The construct may read nothing, so that what is below may come at once.
    is_plain : bool
        Nothing in it depends on the stack: no template parameters, whose values may be tied to what is below.
    """

    __slots__ = ("frames", "is_plain", "positions", "through")

    def __init__(self, entered, through: p.Accept):
        self.frames: list[tuple[Node, p.Env, int]] = []
        numbers = {through.rest: -1}
        self.through = through in entered
        self.positions = [(q, self._number(q.rest, numbers)) for q in entered if q is not through]
        self.is_plain = not any(env.values for _, env, _ in self.frames)

    def _number(self, frame: p.Frame, numbers: dict[p.Frame, int]) -> int:
        chain = []
        while frame not in numbers:
            chain.append(frame)
            frame = frame.next
        for part in reversed(chain):
            self.frames.append((part.node, part.env, numbers[part.next]))
            numbers[part] = len(self.frames) - 1
        return numbers[chain[0]] if chain else numbers[frame]

    def push(self, automaton, below: p.Frame | None) -> list[p.Frame | None]:
        """Its frames on the stack `below`; the last one is that stack, for the number -1."""
        made: list[p.Frame | None] = []
        for node, env, under in self.frames:
            made.append(automaton.frame(node, env, below if under < 0 else made[under]))
        made.append(below)
        return made
