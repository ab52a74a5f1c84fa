"""The members of an object: each of some names once at most, in any order, and others among them.

One node stands for every way to go on after some of them, so that an object of a hundred names takes no more rules than
one of two: which names are written is part of the node that is read next, made when a text comes there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, reduce
from math import inf
from operator import or_

from constrained.grammar import nodes
from constrained.grammar.nodes import EMPTY, NEVER, Inner, Node, Seq, alt, literal

Variants = tuple[tuple[Node, int], ...]
"""The ways to go on after a name, each with the demands that the member then meets, as bits (see `Names.shown`)."""


@dataclass(frozen=True, eq=False)
class Names:
    """What all members of one object have in common.

    Attributes
    ----------
    names : dict of bytes to int
        Each spelling of a name -> the name's index.
    values : tuple of Variants
        By index, what follows a name.
    required : int
        The names that must be there, as bits.
    others : Node
        Any other member; NEVER for none.
    last : Node
        Another member that meets all demands; unless it may stand `anywhere`, none of `others` can follow it.
    shown : int
        The demands on the object, as bits: each must be met by some member (see `shape.Witness`).
    between : Node
    low, high : int, int or None
        How many members there may be; those of `others` count once towards `low`, as they may share a name, unless
        their names are `apart`.
    condition : tuple of (int, int, int)
        Which names there must be, as the `rows` of a decision diagram (`bdd.py`) whose variables are the names'
        indices; empty for no condition. Where there is one, `low` is at most 1.
    apart : bool
        The names of `others` differ (`nodes.Distinct`).
    anywhere : bool
        Whether `last` may stand before some of `others`.
    """

    names: dict[bytes, int]
    values: tuple[Variants, ...]
    required: int
    others: Node
    last: Node
    shown: int
    between: Node
    low: int
    high: int | None
    condition: tuple[tuple[int, int, int], ...] = ()
    apart: bool = False
    anywhere: bool = False
    _made: dict = field(default_factory=dict, init=False, repr=False)  # what `at`, `rest` and `meets` have returned

    @cached_property
    def in_order(self) -> list[tuple[bytes, int]]:
        """The names, sorted, and their indices."""
        return sorted(self.names.items())

    def at(self, written: int, others: int, shown: int) -> MemberSequence:
        """The members that may still follow, one at least."""
        key = written, others, shown
        if key not in self._made:
            self._made[key] = MemberSequence(self, *key)
        return self._made[key]

    def start(self) -> Node:
        """All members, one at least; NEVER where there can't be any."""
        return self.at(0, 0, 0) if self.lives(0, 0, 0) and self.goes_on(0, 0, 0) else NEVER

    def may_end(self, written: int, others: int, shown: int) -> bool:
        """Whether no member need follow."""
        count = written.bit_count() + self._counted(others)
        met = not self.condition or self.meets(written, finally_so=True)
        return count >= self.low and not self.required & ~written and not self.shown & ~shown and met

    def _counted(self, others: int) -> int:
        """How many names there are at least in so many other members."""
        return others if self.apart else min(others, 1)

    @cached_property
    def condition_bits(self) -> int:
        """The names that the condition depends on, as bits."""
        return sum(1 << i for i in {i for i, then, other in self.condition if then != other})

    def meets(self, written: int, finally_so: bool = False) -> bool:
        """Whether the condition is met with those names, and others that may still come unless `finally_so`."""
        key = written & self.condition_bits, finally_so
        if key not in self._made:
            result = [False, True]
            for i, then, other in self.condition:
                result.append(result[then] if written >> i & 1 else result[other] or result[then] and not finally_so)
            self._made[key] = result[-1]
        return self._made[key]

    def _fewest(self, written: int) -> int | None:
        """The fewest names that must still come, by what is required and by the condition; None if it can't be met."""
        key = written, None
        if key not in self._made:
            more = self.least(written, lambda i: 1)
            self._made[key] = None if more == inf else int(more) + (self.required & ~written).bit_count()
        return self._made[key]

    def least(self, written: int, cost: Callable[[int], float]) -> float:
        """The least cost of names that meet the condition with those written, and with the required ones."""
        there = written | self.required
        result: list[float] = [inf, 0]  # for each row of the condition
        for i, then, other in self.condition:
            result.append(result[then] if there >> i & 1 else min(result[other], result[then] + cost(i)))
        return result[-1]

    def lives(self, written: int, others: int, shown: int) -> bool:
        """Whether the object can still be completed: what is missing fits into the members that may follow."""
        # What must still come: required names, and members up to `low`. What may: names, and one other member where
        # there was none, as others may all have the same name and then count once.
        asked = self._fewest(written)
        if asked is None:
            return False
        need = max(asked, self.low - written.bit_count() - self._counted(others))
        left = len(self.values) - written.bit_count() + (self.others is not NEVER and not others)
        if self.apart and self.others is not NEVER:
            left = max(left, need)
        room = max(len(self.values) + 1, need) if self.high is None else self.high - written.bit_count() - others
        return need <= min(left, room) and self._shows(written, self.shown & ~shown, room)

    def _shows(self, written: int, missing: int, room: int) -> bool:
        """Whether at most `room` members, the required ones among them, can meet the demands that are `missing`."""
        # With `last`, one more member meets them all. Else the first demand is given to each member that can meet it in
        # turn, and the others are looked for among the rest.
        if not missing or self.last is not NEVER:
            asked = self._fewest(written)
            fits = asked is not None and asked + bool(missing) <= room
            if fits or not missing:
                return fits
        ways = [
            (i, bits)
            for i, variants in enumerate(self.values)
            if not written >> i & 1
            for _, bits in variants
            if bits & missing
        ]
        first = missing & -missing
        return not missing & ~reduce(or_, (bits for _, bits in ways), 0) and any(
            bits & first and self._shows(written | 1 << i, missing & ~bits, room - 1) for i, bits in ways
        )

    def rest(self, written: int, others: int, shown: int) -> Node:
        """What may follow a member; NEVER where nothing comes to an end."""
        others = min(others, (self.low if self.apart else 1) if self.high is None else self.high)
        key = written, others, shown, None
        if key not in self._made:
            lives = self.lives(written, others, shown)
            ways = [EMPTY] if lives and self.may_end(written, others, shown) else []
            if lives and self.goes_on(written, others, shown):
                ways.append(Seq((self.between, self.at(written, others, shown))))
            self._made[key] = alt(ways)
        return self._made[key]

    def then(self, member: Node, written: int, others: int, shown: int) -> list[Node]:
        """A member and what may follow it then, as a list of at most one."""
        rest = self.rest(written, others, shown)
        return [] if NEVER in (member, rest) else [Seq((member, rest))]  # not flat: what reads a member is shared

    def goes_on(self, written: int, others: int, shown: int) -> bool:
        """Whether there may be another member."""
        if self.high is None or not self.condition:
            full = self.high is not None and written.bit_count() + others >= self.high
            return not full and (self.others is not NEVER or bool(self.left(written)))
        # a name may ask for others, for which there is no room
        left = [i for i in range(len(self.values)) if self.left(written) >> i & 1]
        ways = [(written | 1 << i, others, shown | bits) for i in left for _, bits in self.values[i]]
        ways += [(written, others + 1, shown)] if self.others is not NEVER and not shown & self.shown + 1 else []
        ways += [(written, others + 1, self.shown)] if self.last is not NEVER else []
        return any(self.lives(*way) for way in ways)

    def left(self, written: int) -> int:
        """The names that may come next, as bits: those not written with which the condition can still be met."""
        left = (1 << len(self.values)) - 1 & ~written
        for i in range(len(self.values)) if self.condition else ():
            if (left & self.condition_bits) >> i & 1 and not self.meets(written | self.required | 1 << i):
                left &= ~(1 << i)
        return left

    def fit(self, fits: Callable[[Node], bool]) -> bool:
        """Whether there are members of which each node is one that `fits`."""
        if self.shown or self.condition:
            return self.only(lambda node: node if fits(node) else NEVER) is not NEVER
        kept = sum(any(fits(node) for node, _ in given) << i for i, given in enumerate(self.values))
        free = self.others is not NEVER and fits(self.others)
        enough = free and self.apart or kept.bit_count() + free >= max(self.low, 1)
        return not self.required & ~kept and enough

    def only(self, keep: Callable[[Node], Node]) -> Node:
        """All members with each node replaced by what `keep` makes of it; NEVER where a required one is lost."""
        variants = [[(keep(node), bits) for node, bits in given] for given in self.values]
        kept = [tuple((node, bits) for node, bits in given if node is not NEVER) for given in variants]
        if any(self.required >> i & 1 and not given for i, given in enumerate(kept)):
            return NEVER
        new = {i: at for at, i in enumerate(i for i, given in enumerate(kept) if given)}
        names = {text: new[i] for text, i in self.names.items() if i in new}
        required = sum(1 << at for i, at in new.items() if self.required >> i & 1)
        condition = tuple((new.get(i, 0), then if i in new else other, other) for i, then, other in self.condition)
        parts = keep(self.others), keep(self.last), self.shown, keep(self.between)
        values = tuple(filter(None, kept))
        how = self.apart, self.anywhere
        return Names(names, values, required, *parts, self.low, self.high, condition, *how).start()


@dataclass(eq=False)
class MemberSequence(Inner):
    """The members that may follow some that are written, one at least.

    Attributes
    ----------
    of : Names
    written, others, shown : int
        The names written and the demands met, as bits, and how many other members there were, as far as it matters.
    """

    of: Names
    written: int
    others: int
    shown: int

    @cached_property
    def parts(self) -> tuple[Node, ...]:  # type: ignore[override]
        of = self.of
        result = [of.between, of.others, of.last, *(node for variants in of.values for node, _ in variants)]
        return tuple(dict.fromkeys(node for node in result if node is not NEVER))

    @cached_property
    def key(self) -> tuple:  # type: ignore[override]
        return id(self.of), self.written, self.others, self.shown

    @cached_property
    def names(self) -> tuple[bytes, ...]:
        """The names that may come next, sorted."""
        of = self.of
        if not of.goes_on(self.written, self.others, self.shown):
            return ()
        free = of.left(self.written)
        left = [(text, i) for text, i in of.in_order if free >> i & 1]
        if of.high is not None or of.shown:  # else what was possible at first is possible after any of them
            left = [(text, i) for text, i in left if self.after(text) is not NEVER]
        return tuple(text for text, _ in left)

    @cached_property
    def _after(self) -> dict[int, Node]:
        return {}

    def after(self, name: bytes) -> Node:
        """What may follow a name that comes next."""
        i = self.of.names[name]
        if i not in self._after:
            written, then = self.written | 1 << i, self.of.then
            ways = (then(n, written, self.others, self.shown | bits) for n, bits in self.of.values[i])
            self._after[i] = alt([one for way in ways for one in way])
        return self._after[i]

    @cached_property
    def free(self) -> Node:
        """The members of other names that may come next, and what may follow them."""
        # One bit above the demands says that `last` was written, after which no other member may follow.
        of, closed = self.of, self.of.shown + 1
        if of.others is NEVER or self.shown & closed or not of.goes_on(self.written, self.others, self.shown):
            return NEVER
        ways = of.then(of.others, self.written, self.others + 1, self.shown)
        if of.shown & ~self.shown:
            ways += of.then(of.last, self.written, self.others + 1, of.shown if of.anywhere else of.shown | closed)
        return alt(ways)

    @cached_property
    def written_out(self) -> Node:
        """The same in other nodes: the first member, and what may follow it."""
        return alt([*(nodes.seq([literal(name), self.after(name)]) for name in self.names), self.free])
