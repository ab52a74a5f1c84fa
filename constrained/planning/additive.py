"""The heuristic of relaxed plans for packed states, with additive costs: how far the goal seems, and what to do first.

A fact costs the sum of what its cheapest operator needs, plus one (h_add; Bonet and Geffner, "Planning as heuristic
search", 2001). From the goal back, the cheapest operators make a relaxed plan, whose length is the estimate (Keyder and
Geffner, "Heuristics for planning with action costs revisited", 2008), and whose applicable actions are preferred (the
helpful actions of Hoffmann and Nebel, "The FF planning system", 2001).
"""

from __future__ import annotations

import numpy as np

from constrained.planning.grounding import Grounding
from constrained.planning.packed import PackedTask

FAR = 1 << 20
"""The cost of what is out of reach; above any sum of costs that is within reach."""

MORE = 3
"""Sweeps over all operators after the goal is within reach: costs may still fall, but seldom by much."""


class AdditiveHeuristic:
    """Estimates of the distance to the goal.

    Parameters
    ----------
    grounding : Grounding
    packed : PackedTask
        Made from it.
    """

    def __init__(self, grounding: Grounding, packed: PackedTask):
        # Axioms are operators that cost nothing.
        self._needs = [*grounding.needs, *(needs for needs, _ in grounding.axioms)]
        adds = [*grounding.adds, *((fact,) for _, fact in grounding.axioms)]
        self._operators = len(grounding.needs)
        self._action_of = packed.action_of
        self._goal = list(dict.fromkeys(grounding.goal))
        self._goal_array = np.array(self._goal, dtype=np.intp)
        self._facts = len(grounding.names)
        self._bytes = (self._facts + 7) // 8
        pairs = np.array(grounding.opposites, dtype=np.intp).reshape(-1, 2)
        self._positive, self._negative = pairs[:, 0], pairs[:, 1]
        lengths = np.array([len(needs) for needs in self._needs], dtype=np.intp)
        self._flat = np.fromiter((fact for needs in self._needs for fact in needs), dtype=np.intp, count=lengths.sum())
        self._starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.intp)
        self._base = np.ones(len(self._needs), dtype=np.int64)
        self._base[self._operators :] = 0
        # Effects, sorted by fact: the cheapest operator of each is found by one reduction.
        made = np.fromiter((fact for facts in adds for fact in facts), dtype=np.intp)
        makers = np.repeat(np.arange(len(adds)), [len(facts) for facts in adds])
        order = np.argsort(made, kind="stable")
        self._makers = makers[order]
        self._made, self._first = np.unique(made[order], return_index=True)
        ends = np.append(self._first[1:], len(order))
        self._supporters = {int(f): self._makers[a:b] for f, a, b in zip(self._made, self._first, ends)}

    def __call__(self, state: int) -> tuple[int, set[int]] | None:
        """The length of a relaxed plan from a state, and its applicable actions; None: the goal is out of reach."""
        bits = np.frombuffer(state.to_bytes(self._bytes, "little"), dtype=np.uint8)
        true = np.unpackbits(bits, count=self._facts, bitorder="little").astype(bool)
        true[self._negative] = ~true[self._positive]
        cost = np.where(true, 0, FAR)
        operators, more = self._base, MORE
        while len(self._made):
            operators = np.add.reduceat(cost[self._flat], self._starts) + self._base
            cheapest = np.minimum(cost[self._made], np.minimum.reduceat(operators[self._makers], self._first))
            if (cheapest == cost[self._made]).all():
                break
            cost[self._made] = cheapest
            if cost[self._goal_array].max() < FAR:
                more -= 1
                if not more:
                    break
        if len(self._goal) and cost[self._goal_array].max() >= FAR:
            return None
        return self._plan(cost, operators)

    def _plan(self, cost: np.ndarray, operators: np.ndarray) -> tuple[int, set[int]]:
        """The length of the relaxed plan of the cheapest operators, and its applicable actions."""
        chosen, preferred, seen = set[int](), set[int](), set[int]()
        work = [fact for fact in self._goal if cost[fact]]
        while work:
            fact = work.pop()
            if fact in seen:
                continue
            seen.add(fact)
            among = self._supporters[fact]
            best = int(among[operators[among].argmin()]) if len(among) > 1 else int(among[0])
            if best < self._operators:
                chosen.add(self._action_of[best])
                if operators[best] == 1:
                    preferred.add(self._action_of[best])
            work += [need for need in self._needs[best] if cost[need] and need not in seen]
        return len(chosen), preferred
