"""Landmarks: facts that hold at some time in every plan, and how many of them are still to come.

All landmarks of the delete relaxation are found, by propagating through the operators which facts each fact can't do
without (Keyder, Richter and Helmert, "Sound and complete landmarks for and/or graphs", 2010). The count of those that
are still to be reached, or reached again, guides the search of LAMA (Richter and Westphal, "The LAMA planner", 2010).
"""

from __future__ import annotations

from collections.abc import Sequence

from constrained.planning.grounding import TRUE, Grounding
from constrained.planning.packed import PackedTask, places


class Landmarks:
    """The landmarks of a task from its origin; a set of facts is one integer, with a bit for each.

    Parameters
    ----------
    grounding : Grounding
    packed : PackedTask
        Made from it.

    Attributes
    ----------
    all : int
        The facts that are landmarks.
    goal : int
        Those that the goal consists of.
    before : dict of int to int
        Landmark -> those that come before it in every plan.
    needed_by : dict of int to int
        Landmark -> those that hold right before it comes true for the first time.
    """

    def __init__(self, grounding: Grounding, packed: PackedTask):
        needs = [*grounding.needs, *(needs for needs, _ in grounding.axioms)]
        adds = [*grounding.adds, *((fact,) for _, fact in grounding.axioms)]
        held = packed.start
        for fact, opposite in grounding.opposites:
            if not held >> fact & 1:
                held |= 1 << opposite
        of, of_operator = _propagated(needs, adds, held, len(grounding.names))
        self.goal = self.all = 0
        for fact in grounding.goal:
            self.goal |= 1 << fact
            self.all |= of.get(fact, 0)
        self.all &= ~(1 << TRUE)
        self._negated = [
            (1 << fact, 1 << opposite) for fact, opposite in grounding.opposites if self.all >> opposite & 1
        ]
        self.before = {fact: of[fact] & self.all & ~(1 << fact) for fact in places(self.all)}
        # Greedy-necessary orders: what every operator needs that may be the first to make a landmark true.
        self.needed_by: dict[int, int] = {}
        for operator, facts in enumerate(adds):
            for fact in facts:
                bit = 1 << fact
                if self.all & bit and not held & bit and operator in of_operator and not of_operator[operator] & bit:
                    own = 0
                    for need in needs[operator]:
                        own |= 1 << need
                    self.needed_by[fact] = self.needed_by.get(fact, own) & own & self.all
        self._needed: dict[int, int] = {}  # accepted -> what is needed for the others

    def held(self, state: int) -> int:
        """The landmarks that hold in a state."""
        held = state & self.all
        for fact, opposite in self._negated:
            if not state & fact:
                held |= opposite
        return held

    def after(self, reached: int, state: int) -> tuple[int, int]:
        """The landmarks reached on a path that now leads to `state`, and the number still to come or to come again."""
        held = self.held(state)
        new = held & ~reached
        while new:
            low = new & -new
            new ^= low
            if not self.before[low.bit_length() - 1] & ~reached:
                reached |= low
        needed = self._needed.get(reached)
        if needed is None:
            needed = self.goal
            for fact in places(self.all & ~reached):
                needed |= self.needed_by.get(fact, 0)
            self._needed[reached] = needed
        return reached, (self.all & ~reached).bit_count() + (reached & ~held & needed).bit_count()


def _propagated(
    needs: Sequence[Sequence[int]], adds: Sequence[Sequence[int]], held: int, facts: int
) -> tuple[dict[int, int], dict[int, int]]:
    """Reachable fact -> its landmarks, with itself; reachable operator -> the landmarks of all that it needs."""
    of = {fact: 1 << fact for fact in places(held)}
    of_operator: dict[int, int] = {}
    waiting = [len(set(facts)) for facts in needs]
    needing: list[list[int]] = [[] for _ in range(facts)]
    for operator, needed in enumerate(needs):
        for fact in set(needed):
            needing[fact].append(operator)
    work: dict[int, None] = dict.fromkeys(of)  # facts whose landmarks have changed
    known = set[int]()
    while work:
        # All operators that need a changed fact are looked at once, then the facts that they add.
        touched: dict[int, None] = {}
        for fact in work:
            if fact not in known:
                known.add(fact)
                for operator in needing[fact]:
                    waiting[operator] -= 1
            touched.update(dict.fromkeys(needing[fact]))
        work = {}
        for operator in touched:
            if waiting[operator]:
                continue
            own = 0
            for fact in needs[operator]:
                own |= of[fact]
            if of_operator.get(operator) == own:
                continue
            of_operator[operator] = own
            for fact in adds[operator]:
                before = of.get(fact)
                now = (own if before is None else own & before) | 1 << fact
                if now != before:
                    of[fact] = now
                    work[fact] = None
    return of, of_operator
