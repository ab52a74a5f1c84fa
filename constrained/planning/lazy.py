"""A lazy greedy best-first search, guided by relaxed plans and by landmarks, that prefers helpful actions.

The search of LAMA (Richter and Westphal, "The LAMA planner: guiding cost-based anytime planning with landmarks", 2010):
each heuristic has a queue of all successors and one of those that preferred actions lead to; a state is evaluated when
it is taken from a queue, and its successors enter the queues with its estimates. The queues of preferred successors are
used more often after progress.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from constrained.planning.additive import AdditiveHeuristic
from constrained.planning.grounding import Grounding
from constrained.planning.landmarks import Landmarks
from constrained.planning.packed import PackedTask
from constrained.planning.task import GroundAction

BOOST = 1_000
"""By how many uses the queues of preferred successors come first after progress, as in LAMA."""


_FAR = 1 << 30
"""More than any estimate."""

_Entry = tuple[int, int, int, int]
"""A state in a queue, the state before it, the action between them, and the landmarks reached before it."""


class LazySearch:
    """A search that is advanced a little at a time.

    Parameters
    ----------
    grounding : Grounding
    packed : PackedTask
        Made from it; its origin is where the search begins.

    Attributes
    ----------
    evaluated : int
        The states whose distance was estimated.
    expanded : int
        The states whose successors were looked at.
    states : int
        The successors that are or were in queues.
    plan : list of GroundAction or None
        The plan, once one is found.
    """

    def __init__(self, grounding: Grounding, packed: PackedTask):
        self.packed, self.heuristic = packed, AdditiveHeuristic(grounding, packed)
        self.landmarks = Landmarks(grounding, packed)
        self.evaluated = self.expanded = self.states = 0
        self.plan: list[GroundAction] | None = None

    @property
    def work(self) -> int:
        """What the search has cost: an evaluation is like keeping twenty states in a search by novelty."""
        return 20 * self.evaluated

    def run(self) -> Iterator[None]:
        """Search; yields after each evaluated state. The end: a plan is found, or there is none."""
        packed, heuristic, landmarks = self.packed, self.heuristic, self.landmarks
        closed: dict[int, tuple[int, int]] = {}  # state -> the state before it (-1: none), and the action
        # Queues by distance and by landmarks, each of all successors and of the preferred ones.
        queues: list[list[tuple[int, int, _Entry]]] = [[], [], [], []]
        uses = [0, 0, 0, 0]
        best = [_FAR, _FAR]
        # State -> the best estimate with which it has entered the queues.
        everything: dict[int, int] = {}
        helpful: dict[int, int] = {}
        ready_of: dict[int, list[int]] = {}  # state -> the operators that are ready there
        entry: _Entry = packed.start, -1, -1, landmarks.held(packed.start)
        while True:
            state, before, action, reached = entry
            if state not in closed:
                reached, count = landmarks.after(reached, state)
                closed[state] = before, action
                if packed.reached(state):
                    self.plan = self._path(closed, state)
                    return
                estimate = heuristic(state)
                self.evaluated += 1
                if estimate is not None:
                    distance, preferred = estimate
                    for number, value in enumerate((distance, count)):
                        if value < best[number]:
                            best[number] = value
                            uses[1] -= BOOST
                            uses[3] -= BOOST
                    self.expanded += 1
                    similar = ready_of.get(before)
                    ready = packed.ready(state) if similar is None else packed.ready(state, before, similar)
                    ready_of[state] = ready
                    for next_action, after in packed.successors(state, ready):
                        if after in closed:
                            continue
                        # A state enters a queue again only with a better estimate.
                        for entered, first in ((everything, 0), (helpful, 1)):
                            if first and next_action not in preferred:
                                break
                            if distance >= entered.get(after, _FAR):
                                continue
                            again = after in entered
                            entered[after] = distance
                            self.states += 1
                            one = after, state, next_action, reached
                            heappush(queues[first], (distance, self.states, one))
                            if not again:
                                heappush(queues[first + 2], (landmarks.after(reached, after)[1], self.states, one))
                yield
            order = [number for number in range(4) if queues[number]]
            if not order:
                return
            chosen = min(order, key=lambda number: (uses[number], number))
            uses[chosen] += 1
            entry = heappop(queues[chosen])[2]

    def _path(self, closed: dict[int, tuple[int, int]], state: int) -> list[GroundAction]:
        actions = []
        while closed[state][0] >= 0:
            state, action = closed[state]
            actions.append(self.packed.actions[action])
        return actions[::-1]
