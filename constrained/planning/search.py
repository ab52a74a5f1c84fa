"""Search for plans in a task's own simulator: greedily, to reach a goal; or for a shortest one, where that is cheap."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count

from constrained.planning.facts import State
from constrained.planning.model import Condition, Junction, Literal
from constrained.planning.relaxed import Relaxed
from constrained.planning.task import GroundAction, Task

MAX_EVALUATED = 2_000
"""States that `find_plan` evaluates for the whole goal, at a millisecond each."""

MAX_NOVEL = 20_000
"""States that the searches for parts of a goal keep, all together; half a minute."""

MAX_STATES = 20_000
"""States that `shortest_plan` looks at."""

_BOOST = 100
"""States by which helpful actions are preferred after each progress (Richter and Helmert, 2009, use 1,000)."""

_Node = tuple[State, "GroundAction | None", int]
"""A state, and the action that led there from the state at a place."""


def find_plan(
    task: Task, state: State, relaxed: Relaxed | None = None, limit: int = MAX_EVALUATED
) -> tuple[list[GroundAction], bool]:
    """Search greedily for a plan, not a shortest one.

    First by lazy best-first search with the length of relaxed plans, helpful actions first (Richter and Helmert,
    "Preferred operators and deferred evaluation in satisficing planning", 2009). Then the parts of the goal are reached
    one after the other, by breadth-first searches that keep only states with a new pair of facts (Lipovetzky and
    Geffner, "Width and serialization of classical planning problems", 2012), in any order that leads on.

    Parameters
    ----------
    task : Task
    state : State
        Where the plan begins.
    relaxed : Relaxed, optional
        The task's; made here by default.
    limit : int
        States to evaluate in the first search.

    Returns
    -------
    actions : list of GroundAction
        A plan; or, where none was found within the limits, the way to the most promising state.
    found : bool
        Whether the plan reaches the goal.
    """
    relaxed = relaxed or Relaxed.of(task)
    way, found = _best_first(task, state, relaxed, limit)
    if found:
        return way, True
    serial = _Serial(task, relaxed).plan(state)
    return (way, False) if serial is None else (serial, True)


class _Serial:
    """Reaches the parts of a task's goal one after the other."""

    def __init__(self, task: Task, relaxed: Relaxed):
        self.task, self.relaxed = task, relaxed
        self.parts = list(task.parts(task.goal)) if task.goal is not None else []
        self.known: dict[frozenset[int], Task] = {}
        self.left = MAX_NOVEL

    def plan(self, state: State, done: frozenset[int] = frozenset()) -> list[GroundAction] | None:
        """A plan from a state in which the parts `done` hold; None if none was found."""
        if self.task.reached_goal(state):
            return []
        for part, task in self._next(state, done):
            way, kept = _novel_first(task, state, self.relaxed, self.left)
            self.left -= kept
            if way is None:
                continue
            after = state
            for action in way:
                after = self.task.apply(after, action)
            if self._blocks(after, done | {part}):
                continue
            rest = self.plan(after, done | {part})
            if rest is not None:
                return way + rest
        return None

    def _next(self, state: State, done: frozenset[int]) -> list[tuple[int, Task]]:
        """The parts that may come next, the farthest first, with the task of reaching them and what is done."""
        tasks = {part: self._task(done | {part}) for part in range(len(self.parts)) if part not in done}
        plans = {part: Relaxed.of(task).plan(state) for part, task in tasks.items()}
        far = {part: len(plan.actions) for part, plan in plans.items() if plan is not None}
        return [(part, tasks[part]) for part in sorted(far, key=lambda part: (-far[part], part))]

    def _task(self, wanted: frozenset[int]) -> Task:
        """The task of reaching some parts of the goal."""
        if wanted not in self.known:
            goal: Condition = Junction("and", tuple(self.parts[number] for number in sorted(wanted)))
            self.known[wanted] = Task(self.task.domain, replace(self.task.problem, condition=goal))
        return self.known[wanted]

    def _blocks(self, state: State, done: frozenset[int]) -> bool:
        """Whether what is done stands in the way: without undoing it, another part is out of reach even if relaxed.

        As in ordering landmarks or goals: Koehler and Hoffmann, "On reasonable and forced goal orderings", 2000.
        """
        parts = [part for part in self.parts if isinstance(part, Literal) and part.positive]
        kept = {fact for n in done if (fact := _fact(self.parts[n]))}
        reached = state
        while True:
            added = set()
            for action in self.task.applicable(reached):
                deletes, adds = self.task.changes(reached, action)
                if kept.isdisjoint(deletes - adds):
                    added |= adds
            later = reached.changed(added=added)
            if len(later) == len(reached):
                return not all(_fact(part) in reached for part in parts)
            reached = later


def _fact(part: Condition) -> tuple[str, ...] | None:
    return (part.predicate, *part.terms) if isinstance(part, Literal) and part.positive else None


def _novel_first(task: Task, state: State, whole: Relaxed, limit: int) -> tuple[list[GroundAction] | None, int]:
    """A plan by breadth-first search among states that have a pair of facts which no state before them had.

    It ends where the whole goal isn't out of reach; None if there is none. Also the number of states that were kept,
    about `limit` at most.
    """
    numbers: dict[tuple[str, ...], int] = {}
    fluents = sorted(task.domain.fluents)

    def facts(of: State) -> list[int]:
        return [numbers.setdefault(fact, len(numbers)) for name in fluents for fact in of.of(name)]

    first = facts(state)
    pairs = {(a, b) for a in first for b in first if a <= b}
    nodes: list[_Node] = [(state, None, -1)]
    seen, place = {state}, 0
    while place < len(nodes) < limit:
        here = nodes[place][0]
        for action in task.applicable(here):
            after = task.apply(here, action)
            if after in seen:
                continue
            seen.add(after)
            new = [numbers.setdefault(fact, len(numbers)) for fact in after.difference(here)]
            fresh = {(min(a, b), max(a, b)) for a in new for b in facts(after)} - pairs
            if fresh:
                pairs |= fresh
                nodes.append((after, action, place))
                if task.reached_goal(after) and not whole.dead_end(after):
                    return _way(nodes, len(nodes) - 1), len(nodes)
        place += 1
    return None, len(nodes)


def _best_first(task: Task, state: State, relaxed: Relaxed, limit: int) -> tuple[list[GroundAction], bool]:
    """A plan and True, or the way to the most promising state and False."""
    nodes: list[_Node] = []
    queues: tuple[list, list] = ([], [])  # helpful actions, all others
    tickets, credit = count(), [0, 0]
    best, best_place = None, 0
    closed: set[State] = set()
    waiting: _Node | None = (state, None, -1)
    while waiting is not None and len(nodes) < limit:
        here = waiting[0]
        if here not in closed:
            closed.add(here)
            nodes.append(waiting)
            place = len(nodes) - 1
            if task.reached_goal(here):
                return _way(nodes, place), True
            plan = relaxed.plan(here)
            if plan is not None:
                left = len(plan.actions)
                if best is None or left < best:
                    best, best_place = left, place
                    credit[0] += _BOOST
                for action in task.applicable(here):
                    heappush(queues[action not in plan.beginning], (left, next(tickets), place, action))
        waiting = None
        if queues[0] or queues[1]:
            chosen = 0 if queues[0] and (credit[0] >= credit[1] or not queues[1]) else 1
            credit[chosen] -= 1
            _, _, parent, action = heappop(queues[chosen])
            waiting = task.apply(nodes[parent][0], action), action, parent
    return _way(nodes, best_place), False


def shortest_plan(task: Task, limit: int = MAX_STATES) -> list[GroundAction] | None:
    """A plan with the fewest actions, by breadth-first search; None if there is none within so many states."""
    nodes: list[_Node] = [(task.initial, None, -1)]
    if task.reached_goal(task.initial):
        return []
    seen, queue = {task.initial}, deque([0])
    while queue:
        place = queue.popleft()
        for action in task.applicable(nodes[place][0]):
            after = task.apply(nodes[place][0], action)
            if after in seen:
                continue
            nodes.append((after, action, place))
            if task.reached_goal(after):
                return _way(nodes, len(nodes) - 1)
            if len(nodes) >= limit:
                return None
            seen.add(after)
            queue.append(len(nodes) - 1)
    return None


def _way(nodes: list[_Node], place: int) -> list[GroundAction]:
    """The actions that lead to a node."""
    actions: list[GroundAction] = []
    _, action, place = nodes[place]
    while action is not None:
        actions.append(action)
        _, action, place = nodes[place]
    return actions[::-1]
