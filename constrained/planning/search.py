"""Greedy search for a plan by novelty."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from heapq import heappop, heappush
from operator import or_
from typing import NamedTuple

import numpy as np

from constrained.planning.facts import FactSet
from constrained.planning.packed import PackedTask, places
from constrained.planning.relaxed import Relaxed
from constrained.planning.task import GroundAction, PlanningTask

MAX_STATES = 500_000
"""States that a search keeps; in PlanBench's largest problems, half a minute and 400 MB."""

MAX_SHORTENED = 300
"""Actions of the longest plan that is searched for superfluous actions."""


class _Node(NamedTuple):
    """A state in a search."""

    state: int
    parent: int
    """The index of the node before it; -1: none."""
    action: int
    ready: list[int]
    """The operators whose preconditions hold; filled in when the node is expanded."""
    counted: int = 0
    """The parts of the goal that count as reached, a bit each."""
    premature: int = 0
    """The parts that hold, but must be undone to reach others."""
    planned: int = 0
    """The facts of a relaxed plan made when `counted` last grew."""
    achieved: int = 0
    """Those of them that have been true since."""


def find_plan(task: PlanningTask, state: FactSet, limit: int = MAX_STATES) -> tuple[list[GroundAction], bool | None]:
    """Search greedily for a plan, not a shortest one, by novelty alone (`WidthSearch`).

    For searches of a small number of states; `constrained.planning.planner` has more than one way to search.

    Parameters
    ----------
    task : PlanningTask
    state : FactSet
        Where the plan begins.
    limit : int
        How many states to keep.

    Returns
    -------
    actions : list of GroundAction
        A plan; if none was found within the limit, the path to the most promising state.
    found : bool or None
        Whether the goal can be reached; None: unknown, as the search passed the limit.
    """
    search = WidthSearch(state, Relaxed.of(task))
    for _ in search.run():
        if search.states >= limit:
            return search.path(search.best), None
    return (shortened(task, state, search.plan), True) if search.plan is not None else (search.path(search.best), False)


def shortened(task: PlanningTask, state: FactSet, plan: list[GroundAction]) -> list[GroundAction]:
    """A plan without superfluous actions: each action is tried to be left out with those that depend on it.

    Nakhost and Müller, "Action elimination and plan neighborhood graph search", 2010.
    """
    place = 0
    while place < len(plan) <= MAX_SHORTENED:
        here, rest = state, list[GroundAction]()
        for action in plan[place + 1 :]:
            if task.is_applicable(here, action):
                here = task.apply(here, action)
                rest.append(action)
        if task.reached_goal(here):
            plan = plan[:place] + rest
        else:
            state = task.apply(state, plan[place])
            place += 1
    return plan


class WidthSearch:
    """A search that is advanced a little at a time.

    Best-first width search (Lipovetzky and Geffner, "Best-first width search: exploration and exploitation in classical
    planning", 2017): states with a new fact come first, then states with a new pair of facts; new among the states with
    as many parts of the goal left and as many facts of a relaxed plan achieved. Among equals, states with fewer parts
    left come first. A part that holds doesn't count if it must be undone to reach another (Koehler and Hoffmann, "On
    reasonable and forced goal orderings", 2000). The search is complete: no state is dropped.

    Parameters
    ----------
    state : FactSet
        Where the search begins.
    relaxed : Relaxed

    Attributes
    ----------
    plan : list of GroundAction or None
        The plan, once one is found.
    best : int
        The most promising state, for `path`.
    expanded : int
        The states whose successors were looked at.
    """

    def __init__(self, state: FactSet, relaxed: Relaxed):
        self.relaxed, self.packed = relaxed, PackedTask(relaxed.grounding, state)
        changes = list(zip(self.packed.adds, self.packed.deletes))
        self.undoing = [
            np.array([bool(added & flip | deleted & mask & ~flip) for added, deleted in changes], dtype=bool)
            for mask, flip in self.packed.goal
        ]  # part of the goal -> the operators that undo it
        self.facts: dict[tuple[int, int], int] = {}  # (parts counted, facts achieved) -> the facts that have been true
        self.pairs: dict[tuple[int, int], dict[int, int]] = {}  # the same -> fact -> those that were true with it
        self.nodes: list[_Node] = []
        self.best = self.expanded = self._relaxed_plans = 0
        self.plan: list[GroundAction] | None = None

    @property
    def states(self) -> int:
        """The states that are kept."""
        return len(self.nodes)

    @property
    def work(self) -> int:
        """What the search has cost, in kept states; a relaxed plan costs as much as twenty."""
        return len(self.nodes) + 20 * self._relaxed_plans

    def run(self) -> Iterator[None]:
        """Search; yields before each expanded state. At the end, `plan` is set, or there is none."""
        packed, nodes, seen = self.packed, self.nodes, {self.packed.start}
        start = self._node(packed.start, _Node(packed.start, -1, -1, []), -1, -1)
        if start is None:
            return
        nodes.append(start)
        if packed.reached(packed.start):
            self.plan = []
            return
        # The queue's order: novelty, parts of the goal left, age.
        queue = [(0, 0, 0)]
        while queue:
            yield
            self.expanded += 1
            *_, place = heappop(queue)
            here = nodes[place]
            before = nodes[here.parent]  # a similar state, whose applicable actions are known
            similar = (before.state, before.ready) if place else ()
            here.ready.extend(packed.ready(here.state, *similar))
            for action, after in packed.successors(here.state, here.ready):
                if after in seen:
                    continue
                seen.add(after)
                node = self._node(after, here, place, action)
                if node is None:
                    continue
                nodes.append(node)
                if packed.reached(after):
                    self.plan = self.path(len(nodes) - 1)
                    return
                # The most promising state is the first with the most parts counted.
                left = len(packed.goal) - node.counted.bit_count()
                if node.counted.bit_count() > nodes[self.best].counted.bit_count():
                    self.best = len(nodes) - 1
                heappush(queue, (self._novelty(node, here.state), left, len(nodes) - 1))

    def path(self, place: int) -> list[GroundAction]:
        """The actions that lead to a state."""
        actions = []
        while place > 0:
            actions.append(self.packed.actions[self.nodes[place].action])
            place = self.nodes[place].parent
        return actions[::-1]

    def _node(self, state: int, before: _Node, place: int, action: int) -> _Node | None:
        """The node of a state that follows another; None if the goal is out of reach from it."""
        reached = self._reached(state)
        # A part found to be premature stays so until it is undone.
        premature = before.premature & reached
        counted = reached & ~premature
        planned, achieved = before.planned, before.achieved | state & before.planned
        new = counted & ~before.counted
        # A part of the goal has just been reached: can the others be reached without undoing it?
        if new or place < 0:
            plan = self._planned_facts(state, counted)
            if plan is None:
                # No: the new parts that can't be kept even alone are premature; if each can, all of them are.
                plan = self._planned_facts(state, 0)
                if plan is None:
                    return None
                not_even_alone = (part for part in places(new) if self._planned_facts(state, 1 << part) is None)
                premature |= sum(1 << part for part in not_even_alone) or new
                counted &= ~premature
            if counted.bit_count() > before.counted.bit_count() or place < 0:
                planned, achieved = plan, 0
        return _Node(state, place, action, [], counted, premature, planned, achieved)

    def _reached(self, state: int) -> int:
        """The parts of the goal that hold in a state, a bit each."""
        reached = 0
        for place, (mask, flip) in enumerate(self.packed.goal):
            if (state ^ flip) & mask == mask:
                reached |= 1 << place
        return reached

    def _planned_facts(self, state: int, kept: int) -> int | None:
        """The facts made true by a relaxed plan that keeps some parts of the goal; None: there is none."""
        self._relaxed_plans += 1
        barred = np.zeros(len(self.packed.adds), dtype=bool)
        for place in places(kept):
            barred |= self.undoing[place]
        operators = self.relaxed.operators(self.packed.unpacked(state), barred)
        if operators is None:
            return None
        return reduce(or_, (self.packed.adds[operator] for operator in operators), 0) & ~state

    def _novelty(self, node: _Node, before: int) -> int:
        """The novelty of a state: 1, it has a new fact; 2, a new pair of facts; 3, neither."""
        # Novelty is judged among the states with the same numbers of goal parts and of facts of the relaxed plan.
        key = node.counted.bit_count(), node.achieved.bit_count()
        state, seen = node.state & self.packed.changing, self.facts.get(key, 0)
        new = state & ~before
        width = 1 if state & ~seen else 3
        self.facts[key] = seen | state
        # Only pairs with a fact that the action has just made true are looked at. `fresh`: the facts that have never
        # been true together with `fact`; the table is symmetric.
        pairs = self.pairs.setdefault(key, {})
        while new:
            fact = new & -new
            new ^= fact
            fresh = state & ~pairs.get(fact, 0)
            if fresh:
                width = min(width, 2)
                pairs[fact] = pairs.get(fact, 0) | state
                while fresh:
                    second = fresh & -fresh
                    fresh ^= second
                    pairs[second] = pairs.get(second, 0) | fact
        return width
