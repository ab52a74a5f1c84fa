"""Delete relaxation: what can be reached if nothing true ever becomes false again.

What is out of reach in the relaxation is really out of reach, so `dead_end` and `without_dead_ends` are sound. A plan
for the relaxed task is easy to find. Its first actions are the ones that FF calls helpful (Hoffmann and Nebel, "The FF
planning system", 2001): a heuristic, which may miss all actions that lead to the goal. Facts that may hold, but aren't
known to, are given as `possible` and assumed to hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from constrained.errors import PddlError
from constrained.planning.facts import Fact, FactSet
from constrained.planning.grounding import Block, Grounding
from constrained.planning.ordering import in_order
from constrained.planning.task import GroundAction, PlanningTask

NEVER = 1 << 30
"""The layer of facts and operators that are out of reach."""


@dataclass(frozen=True)
class RelaxedPlan:
    """A plan of the relaxed task.

    Attributes
    ----------
    actions : frozenset of GroundAction
    alternatives : frozenset of GroundAction
        The actions of all equally cheap relaxed plans.
    beginning : frozenset of GroundAction
        The applicable actions that add a fact of the first layer of some cheapest plan: FF's helpful actions, but with
        all equally cheap supporters instead of one.
    needed, denied : frozenset of tuple of str
        The facts of the state that the plan relies on, and the facts that must not hold there.
    task : PlanningTask
    state : FactSet
        The state in which it begins, with the facts that are assumed.
    """

    actions: frozenset[GroundAction]
    alternatives: frozenset[GroundAction]
    beginning: frozenset[GroundAction]
    needed: frozenset[Fact]
    denied: frozenset[Fact]
    task: PlanningTask
    state: FactSet

    @cached_property
    def helpful(self) -> frozenset[GroundAction]:
        """The beginning without actions whose effect the plan would undo before using it (see `ordering`)."""
        return in_order(self.task, self.state, self.beginning, self.actions, self.alternatives)


@dataclass(frozen=True)
class _Layers:
    """The first layer in which each fact is true and each operator applicable; `NEVER`: in none.

    `assumed`: the facts that hold or may hold at the beginning.
    """

    facts: np.ndarray
    operators: np.ndarray
    assumed: np.ndarray


class Relaxed:
    """The relaxation of a task, grounded once for all states.

    Parameters
    ----------
    task : PlanningTask

    Attributes
    ----------
    grounding : Grounding
        Its operators.

    Raises
    ------
    PddlError
        The task has more than `constrained.planning.grounding.MAX_OPERATORS` ground actions.

    Examples
    --------
    >>> from constrained.planning import PlanningTask, read_domain, read_problem_of
    >>> domain = read_domain(
    ...     "(define (domain d) (:predicates (at ?x) (road ?x ?y)) (:action go :parameters (?x ?y)"
    ...     " :precondition (and (at ?x) (road ?x ?y)) :effect (and (at ?y) (not (at ?x)))))"
    ... )
    >>> text = "(define (problem p) (:domain d) (:objects a b c) (:init (at a) (road a b) (road a c)) (:goal (at c)))"
    >>> task = PlanningTask(domain, read_problem_of(domain, text))
    >>> relaxed = Relaxed(task)
    >>> relaxed.distance(task.initial), relaxed.without_dead_ends(task.initial, task.applicable(task.initial))
    (1, [GroundAction(action='go', arguments=('a', 'c'))])
    """

    def __init__(self, task: PlanningTask):
        self.task = task
        self.grounding = Grounding(task)

    @classmethod
    def of(cls, task: PlanningTask) -> Relaxed:
        """The relaxation of a task, cached with the task; so is the error if the task is too large."""
        cache = vars(task)
        if "relaxed" not in cache:
            try:
                cache["relaxed"] = cls(task)
            except PddlError as error:
                cache["relaxed"] = error.with_traceback(None)
        if isinstance(cache["relaxed"], PddlError):
            raise cache["relaxed"]
        return cache["relaxed"]

    def distance(self, state: FactSet, possible: Iterable[Fact] = ()) -> int | None:
        """A lower bound on the number of actions to the goal; None if not even the relaxed goal can be reached."""
        if self.task.goal is None:
            return 0
        layers = self._layers(state, possible)
        last = max((int(layers.facts[fact]) for fact in self.grounding.goal), default=0)
        return None if last == NEVER else last

    def dead_end(self, state: FactSet, possible: Iterable[Fact] = ()) -> bool:
        """Whether not even the relaxed goal can be reached; False does not mean that the goal can."""
        return self.distance(state, possible) is None

    def reached(self, state: FactSet) -> frozenset[object]:
        """What becomes true before the goal does, or ever: facts, and (False, fact) for facts that become false."""
        layers = self._layers(state, ())
        return frozenset(name for name, layer in zip(self.grounding.names, layers.facts) if layer != NEVER)

    def without_dead_ends(
        self, state: FactSet, actions: Sequence[GroundAction], possible: Collection[Fact] = ()
    ) -> list[GroundAction]:
        """The actions that don't lead to a dead end; none if the state is one.

        Only actions that undo something the relaxed plan relies on need a closer look.
        """
        plan = self.plan(state, possible)
        if plan is None:
            return []

        def is_safe(action: GroundAction) -> bool:
            deleted, added = self.task.changes(state, action)
            if plan.needed.isdisjoint(deleted - added) and plan.denied.isdisjoint(added):
                return True
            return not self.dead_end(self.task.apply(state, action), possible)

        return [action for action in actions if is_safe(action)]

    def helpful(self, state: FactSet, possible: Iterable[Fact] = ()) -> frozenset[GroundAction]:
        """The actions that look useful in a state, a heuristic; none at the goal or at a dead end."""
        plan = self.plan(state, possible)
        return frozenset() if plan is None else plan.helpful

    def plan(self, state: FactSet, possible: Iterable[Fact] = ()) -> RelaxedPlan | None:
        """A plan of the relaxed task, cached with the state; None if the goal is out of reach.

        Facts that may hold are assumed only if the known facts don't suffice.
        """
        key = self, frozenset(possible)
        if key not in state.known:
            state.known[key] = self._plan(state, key[1])
        return cast("RelaxedPlan | None", state.known[key])

    def _plan(self, state: FactSet, possible: Collection[Fact]) -> RelaxedPlan | None:
        grounding, layers = self.grounding, self._layers(state, possible, late=True)
        if any(layers.facts[fact] == NEVER for fact in grounding.goal):
            return None
        # One plan with one supporter for each fact; once more with all cheapest supporters, for what may come first.
        search = _Extraction(grounding, layers)
        chosen, _, base = search.run(all_cheapest=False)
        all_chosen, first, _ = search.run(all_cheapest=True)
        operators = grounding.blocks[0]
        helpful = {
            int(number) for fact in first for number in operators.supporters[fact] if layers.operators[number] == 0
        }
        # The facts of the state that the plan relies on: true ones by their tuple, false ones as (False, fact).
        names = [grounding.names[fact] for fact in base]
        actions, alternatives, beginning = (
            frozenset(grounding.actions[number] for number in numbers) for numbers in (chosen, all_chosen, helpful)
        )
        return RelaxedPlan(
            actions,
            alternatives,
            beginning,
            frozenset(cast(Fact, name) for name in names if isinstance(name, tuple) and name[0] is not False),
            frozenset(cast(Fact, name[1]) for name in names if isinstance(name, tuple) and name[0] is False),
            self.task,
            state.changed(added=possible),
        )

    def operators(self, state: FactSet, barred: np.ndarray) -> set[int] | None:
        """The operators of a relaxed plan without those that are `barred` (a bool each); None if there is none."""
        layers = self._layers(state, (), barred=barred)
        if any(layers.facts[fact] == NEVER for fact in self.grounding.goal):
            return None
        return _Extraction(self.grounding, layers).run(all_cheapest=False)[0]

    def _layers(
        self, state: FactSet, possible: Iterable[Fact], late: bool = False, barred: np.ndarray | None = None
    ) -> _Layers:
        """Compute the layers until the goal is true or nothing changes.

        With `late`, `possible` facts are assumed only when nothing more becomes true without them.
        """
        grounding = self.grounding
        true = hoped = grounding.true_in(state, possible)
        if late and possible:
            true = grounding.true_in(state)
        # `waiting`: possible facts that have not been assumed yet.
        waiting = hoped & ~true
        assumed = true | waiting
        operators, axioms = grounding.blocks
        goal = np.array(grounding.goal, dtype=np.intp)
        facts = np.full(len(true), NEVER)
        possible_from = np.full(len(operators.starts), NEVER)
        facts[true] = layer = 0
        done = np.zeros(len(operators.starts), dtype=bool)
        _derive(axioms, true, facts, layer)
        while not true[goal].all():
            ready = operators.ready(true)
            if barred is not None:
                ready &= ~barred
            new = ready & ~done
            possible_from[new] = layer
            # The next layer: what the operators that have become applicable add.
            added = operators.adds[new[operators.adders]]
            added = added[~true[added]]
            # Nothing new: assume the facts that may hold, if they wait; else the fixed point is reached.
            if not len(added):
                added = np.flatnonzero(waiting & ~true)
                if not len(added):
                    break
            layer += 1
            true[added], facts[added], done = True, layer, ready
            _derive(axioms, true, facts, layer)
        return _Layers(facts, possible_from, assumed)


def _derive(axioms: Block, true: np.ndarray, facts: np.ndarray, layer: int) -> None:
    """Add the facts that axioms derive to a layer."""
    while len(axioms.starts):
        added = axioms.adds[axioms.ready(true)[axioms.adders]]
        added = added[~true[added]]
        if not len(added):
            return
        true[added], facts[added] = True, layer


class _Extraction:
    """Finds a relaxed plan backwards from the goal."""

    def __init__(self, grounding: Grounding, layers: _Layers):
        self.grounding, self.layers = grounding, layers
        self.operators, self.axioms = grounding.blocks
        effort = layers.facts.copy()  # a derived fact costs the sum of the facts that it is derived from
        while len(self.axioms.starts):
            cheapest = effort.copy()
            cheapest[self.axioms.adds] = np.iinfo(effort.dtype).max
            np.minimum.at(cheapest, self.axioms.adds, _costs(self.axioms, effort)[self.axioms.adders])
            if (cheapest == effort).all():
                break
            effort = cheapest
        self.costs = [_costs(block, effort) for block in (self.operators, self.axioms)]
        of = layers.facts[self.axioms.needs]
        self.derived_in = np.maximum.reduceat(of, self.axioms.starts) if len(of) else of  # axiom -> its layer

    def run(self, *, all_cheapest: bool) -> tuple[set[int], set[int], set[int]]:
        """The operators of a plan, the facts of layer 1 that it makes true, and the facts of layer 0 that it needs.

        `all_cheapest`: take all of the cheapest operators for a fact, instead of one.
        """
        layers, chosen, first, base = self.layers, set[int](), set[int](), set[int]()
        seen: set[int] = set()
        work = list(self.grounding.goal)
        while work:
            # Each fact is supported once, by operators of the layer before it: these need only facts of lower layers.
            fact = work.pop()
            if fact in seen:
                continue
            seen.add(fact)
            layer = int(layers.facts[fact])
            # A derived fact is supported by axioms of its own layer.
            if fact in self.grounding.derived:
                block, costs, among = self.axioms, self.costs[1], self.axioms.supporters[fact]
                among = among[self.derived_in[among] <= layer]
            elif layers.assumed[fact]:
                base.add(fact)
                continue
            else:
                block, costs, among = self.operators, self.costs[0], self.operators.supporters[fact]
                among = among[layers.operators[among] == layer - 1]
            # The supporters with the easiest preconditions (FF's difficulty heuristic).
            cost = costs[among]
            best = among[cost == cost.min()] if all_cheapest else among[[int(cost.argmin())]]
            if block is self.operators:
                chosen.update(map(int, best))
                if layer == 1:
                    first.add(fact)
            for number in map(int, best):
                start = block.starts[number]
                end = block.starts[number + 1] if number + 1 < len(block.starts) else len(block.needs)
                work += block.needs[start:end].tolist()
        return chosen, first, base


def _costs(block: Block, effort: np.ndarray) -> np.ndarray:
    """The difficulty of each operator, as in FF: the sum of the efforts of its preconditions."""
    return np.add.reduceat(effort[block.needs], block.starts) if len(block.starts) else block.starts
