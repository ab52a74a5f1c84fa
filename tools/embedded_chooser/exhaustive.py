"""All states of a small task, and which actions are best in each: what the embedded chooser learns from first."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from constrained.planning import Fact, FactSet, PlanningTask
from constrained.planning.packed import PackedTask
from constrained.planning.relaxed import Relaxed


class Space:
    """The states that can be reached in a task, as integers (see `PackedTask`), in breadth-first order.

    Parameters
    ----------
    task : PlanningTask
    limit : int
        States; `complete` says whether that was enough.
    """

    def __init__(self, task: PlanningTask, limit: int):
        self.task, self.numbers = task, Relaxed.of(task).grounding.numbers
        self.packed = PackedTask(Relaxed.of(task).grounding, task.initial)
        self.actions = self.packed.actions
        self.states = [self.packed.start]
        self.next: list[list[tuple[int, int]]] = []  # by state: its actions, and the places of the states after them
        known = {self.packed.start: 0}
        while len(self.next) < len(self.states) <= limit:
            state = self.states[len(self.next)]
            successors = []
            for number, after in self.packed.successors(state, self.packed.ready(state)):
                if after not in known:
                    known[after] = len(self.states)
                    self.states.append(after)
                successors.append((number, known[after]))
            self.next.append(successors)
        self.complete = len(self.next) == len(self.states)
        self.before: list[list[int]] = [[] for _ in self.states]
        for place, successors in enumerate(self.next):
            for _, after in successors:
                self.before[after].append(place)

    def changing(self, place: int) -> list[Fact]:
        """The facts of a state that can change."""
        return sorted(fact for fact in self.state(place) if fact[0] in self.task.domain.fluents)

    def state(self, place: int) -> FactSet:
        """A state with all its facts."""
        return self.packed.unpacked(self.states[place])

    def distances(self, goal: Sequence[Fact]) -> list[int]:
        """The fewest steps from each state to one where all facts of the goal hold; -1: there is no way."""
        wanted = sum(1 << self.numbers[fact] for fact in set(goal))
        out = [0 if state & wanted == wanted else -1 for state in self.states]
        # Breadth first, backwards from all states that reach the goal.
        queue = deque(place for place, steps in enumerate(out) if steps == 0)
        while queue:
            place = queue.popleft()
            for before in self.before[place]:
                if out[before] < 0:
                    out[before] = out[place] + 1
                    queue.append(before)
        return out
