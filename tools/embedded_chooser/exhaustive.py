"""All states of a small task, and which actions are best in each: what the embedded chooser learns from first."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from constrained.planning import Fact, GroundAction, State, Task
from constrained.planning.model import Junction, Literal


class Space:
    """The states that can be reached in a task whose actions need facts to be true, without conditional effects.

    States are integers, with a bit for each fact that can change.

    Parameters
    ----------
    task : Task
    limit : int
        States; `complete` says whether that was enough.
    """

    def __init__(self, task: Task, limit: int):
        self.task = task
        self.actions = _reachable_actions(task)
        found = [task.changes(task.initial, action) for action in self.actions]
        fluents = task.domain.fluents
        facts = {fact for deleted, added in found for fact in deleted | added}
        facts |= {fact for fact in task.initial if fact[0] in fluents}
        self.facts = sorted(facts)
        self.bit = {fact: 1 << n for n, fact in enumerate(self.facts)}
        self.rows = []
        for number, (action, (deleted, added)) in enumerate(zip(self.actions, found)):
            needs = sum(self.bit[fact] for fact in set(_needs(task, action)) if fact in self.bit)
            self.rows.append((number, needs, ~self.of(deleted), self.of(added)))
        self.static = [fact for fact in task.initial if fact not in self.bit]
        start = self.of(fact for fact in task.initial if fact in self.bit)
        self.states = [start]
        self.next: list[list[tuple[int, int]]] = []
        known = {start: 0}
        while len(self.next) < len(self.states) <= limit:
            state = self.states[len(self.next)]
            successors = []
            for number, needs, keep, added in self.rows:
                if state & needs == needs:
                    after = state & keep | added
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

    def of(self, facts) -> int:
        """Facts as bits."""
        return sum(self.bit[fact] for fact in set(facts))

    def changing(self, place: int) -> list[Fact]:
        """The facts of a state that can change."""
        return [fact for fact, bit in self.bit.items() if self.states[place] & bit]

    def state(self, place: int) -> State:
        """A state with all its facts."""
        return State([*self.static, *self.changing(place)])

    def distances(self, goal: Sequence[Fact]) -> list[int]:
        """The fewest steps from each state to one where all facts of the goal hold; -1: there is no way."""
        wanted = self.of(goal)
        out = [0 if state & wanted == wanted else -1 for state in self.states]
        queue = deque(place for place, steps in enumerate(out) if steps == 0)
        while queue:
            place = queue.popleft()
            for before in self.before[place]:
                if out[before] < 0:
                    out[before] = out[place] + 1
                    queue.append(before)
        return out


def _reachable_actions(task: Task) -> list[GroundAction]:
    """The actions that are applicable in some state when nothing is ever deleted."""
    state, actions = task.initial, task.applicable(task.initial)
    while True:
        state = state.changed(added=[fact for action in actions for fact in task.changes(state, action)[1]])
        more = task.applicable(state)
        if len(more) == len(actions):
            return actions
        actions = more


def _needs(task: Task, action: GroundAction) -> list[Fact]:
    schema = task.schemas[action.action].action
    names = {p.name: value for p, value in zip(schema.parameters, action.arguments)}
    parts = schema.precondition.parts if isinstance(schema.precondition, Junction) else (schema.precondition,)
    facts = []
    for part in parts:
        assert isinstance(part, Literal) and part.positive, "STRIPS only"
        facts.append((part.predicate, *(names.get(term, term) for term in part.terms)))
    return facts
