"""A planning task over integers: a state is one integer with a bit for each fact, which makes searching fast.

The bits are the numbers of the facts in a grounding. A condition is a pair of integers, `mask` and `flip`, and holds in
a state if ``(state ^ flip) & mask == mask``: `mask` has the facts it is about, `flip` those that must not hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from constrained.planning.facts import Fact, FactSet
from constrained.planning.grounding import TRUE, Grounding
from constrained.planning.task import GroundAction


class _Affected:
    """The operators whose preconditions mention one fact, indexed by a second fact that each of them needs."""

    __slots__ = ("by", "seconds")

    def __init__(self) -> None:
        self.seconds = 0
        self.by: dict[int, list[int]] = {}

    def add(self, operator: int, second: int) -> None:
        self.seconds |= 1 << second
        self.by.setdefault(1 << second, []).append(operator)

    def among(self, state: int) -> Iterator[int]:
        """The operators whose second fact is true."""
        seconds = self.seconds & state
        while seconds:
            low = seconds & -seconds
            seconds ^= low
            yield from self.by[low]


class PackedTask:
    """The operators of a grounding, with their deletes, as integers.

    Parameters
    ----------
    grounding : Grounding
    origin : FactSet
        All states agree with it on facts that no operator changes.

    Attributes
    ----------
    start : int
        The origin.
    goal : list of (int, int)
        The parts of the goal.
    changing : int
        The facts that operators change.
    adds, deletes : list of int
        Operator -> the facts that it adds, and those that it deletes.
    actions : list of GroundAction
        Operator -> its action.
    action_of : list of int
        Operator -> the number of its action, which is that of the action's first operator.
    """

    def __init__(self, grounding: Grounding, origin: FactSet):
        grounding.true_in(origin)  # numbers the origin's facts and adds the operators that they make possible
        self.origin, self._names = origin, grounding.names
        self._opposites = {opposite: fact for fact, opposite in grounding.opposites}
        self._axioms = [(*self._condition(needs), 1 << fact) for needs, fact in grounding.axioms]
        self._plain = ~_bits(grounding.derived)
        self.goal = [self._condition([number]) for number in grounding.goal]
        self.adds = [_bits(added) for added, _ in grounding.changes]
        self.deletes = [_bits(deleted) & ~_bits(added) for added, deleted in grounding.changes]
        self.actions = grounding.actions
        # Several operators may belong to one action (see `grounding`); its number is that of the first.
        first: dict[GroundAction, int] = {}
        self.action_of = [first.setdefault(action, number) for number, action in enumerate(self.actions)]
        self._needs = [self._condition(needs) for needs in grounding.needs]
        # Fact -> the operators that may become applicable when it changes. Each is found again by a second fact that it
        # needs, the rarest, so that `ready` looks at few operators in vain.
        self._needing, self._denying = ([_Affected() for _ in self._names] for _ in range(2))
        common = Counter(fact for mask, flip in self._needs for fact in places(mask & ~flip))
        for operator, (mask, flip) in enumerate(self._needs):
            rarest = sorted(places(mask & ~flip), key=common.__getitem__)[:2]
            for fact in places(mask):
                second = next((candidate for candidate in rarest if candidate != fact), TRUE)
                (self._denying if flip >> fact & 1 else self._needing)[fact].add(operator, second)
        self.changing = 0
        for changed in (*self.adds, *self.deletes):
            self.changing |= changed
        held = (grounding.numbers[fact] for fact in origin if fact in grounding.numbers)
        self.start = self._derive(_bits(held) | 1 << TRUE)

    def _condition(self, numbers: Sequence[int]) -> tuple[int, int]:
        flip = _bits(self._opposites[number] for number in numbers if number in self._opposites)
        return _bits(number for number in numbers if number not in self._opposites) | flip, flip

    def _derive(self, state: int) -> int:
        """A state with the facts that axioms derive; axioms are in the order of their dependencies."""
        for mask, flip, fact in self._axioms:
            if (state ^ flip) & mask == mask:
                state |= fact
        return state

    def unpacked(self, state: int) -> FactSet:
        """A state as facts."""
        gone, new = (
            [cast(Fact, self._names[place]) for place in places(bits & self.changing)]
            for bits in (self.start & ~state, state & ~self.start)
        )
        return self.origin.changed(gone, new)

    def ready(self, state: int, before: int | None = None, ready_before: Iterable[int] = ()) -> list[int]:
        """The operators whose preconditions hold; faster if those of a similar state `before` are given."""
        if before is None:
            before = (1 << len(self._names)) - 1 ^ state
        needs, operators = self._needs, list[int]()
        for operator in ready_before:
            mask, flip = needs[operator]
            if (state ^ flip) & mask == mask:
                operators.append(operator)
        more = set[int]()
        for changed, affected in ((state & ~before, self._needing), (before & ~state, self._denying)):
            while changed:
                low = changed & -changed
                changed ^= low
                for operator in affected[low.bit_length() - 1].among(state):
                    mask, flip = needs[operator]
                    if (state ^ flip) & mask == mask:
                        more.add(operator)
        return operators + sorted(more)

    def successors(self, state: int, ready: Iterable[int]) -> Iterator[tuple[int, int]]:
        """The number of each applicable action that changes something, and the state after it."""
        changes: dict[int, tuple[int, int]] = {}
        for operator in ready:
            action = self.action_of[operator]
            if action in changes:
                deleted, added = changes[action]
                changes[action] = deleted | self.deletes[operator], added | self.adds[operator]
            else:
                changes[action] = self.deletes[operator], self.adds[operator]
        for action, (deleted, added) in changes.items():
            after = state & ~deleted | added
            yield action, self._derive(after & self._plain) if self._axioms else after

    def reached(self, state: int) -> bool:
        """Whether the goal holds in a state."""
        return all((state ^ flip) & mask == mask for mask, flip in self.goal)


def places(bits: int) -> Iterator[int]:
    """The positions of the bits that are set, in ascending order."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def _bits(numbers: Iterable[int]) -> int:
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits
