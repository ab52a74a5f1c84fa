"""Multiples of a whole number: the digits read so far, as their remainder.

The states are remainders (Hopcroft, Motwani and Ullman, *Introduction to Automata Theory*,
section 2.2), with how many digits are still to come and what bounds them.
"""

from __future__ import annotations

from collections.abc import Callable

from constrained.grammar import nodes as n
from constrained.grammar.json_schema.numbers import digit
from constrained.grammar.nodes import Call, Node, Rule, literal, seq

LISTED = 1_000
"""Multiples between two bounds that are simply listed."""
LONGEST = 20
"""Digits of a multiple that has no bound."""


def multiples(of: int, low: int | None, high: int | None, add: Callable[[Rule], None], name: str) -> Node:
    """Multiples of `of` from `low` to `high`; `add` takes the rules it needs, whose names begin with `name`."""
    low = None if low is None else -(-low // of) * of
    high = None if high is None else high // of * of
    if low is not None and high is not None:
        if high < low:
            return n.NEVER
        if (high - low) // of < LISTED:
            return n.choices(str(value).encode() for value in range(low, high + 1, of))
    remainders = _Remainders(of, add, name)
    out = []
    if low is None or low < 0:
        least = of if high is None or high >= 0 else -high
        out.append(seq([literal("-"), remainders.natural(least, None if low is None else -low)]))
    if high is None or high >= 0:
        out.append(remainders.natural(max(low or 0, 0), high))
    return n.alt(out)


class _Remainders:
    def __init__(self, of: int, add: Callable[[Rule], None], name: str):
        self.of, self.add, self.name = of, add, name
        self.made: set[str] = set()

    def natural(self, low: int, high: int | None) -> Node:
        """Multiples from `low` to `high`, neither negative."""
        first = str(low)
        last = "9" * max(LONGEST, len(first)) if high is None else str(high)
        out = []
        for length in range(len(first), len(last) + 1):
            lowest = first if length == len(first) else "1" + "0" * (length - 1)
            highest = last if length == len(last) else "9" * length
            out.append(self.digits(length, 0, lowest, highest))
        return n.alt(out)

    def digits(self, left: int, remainder: int, low: str, high: str) -> Node:
        """`left` more digits, between `low` and `high`: those digits, or none where they bound nothing any more."""
        low, high = low if low.strip("0") else "", high if high.strip("9") else ""
        if not left:
            return n.NEVER if remainder else n.EMPTY
        name = f"{self.name}:{left}:{remainder}:{low}:{high}"
        if name not in self.made:
            self.made.add(name)
            first, last = int(low[0]) if low else 0, int(high[0]) if high else 9
            after = []
            for figure in range(first, last + 1):
                rest = (low[1:] if low and figure == first else "", high[1:] if high and figure == last else "")
                after.append(
                    seq([digit(figure, figure), self.digits(left - 1, (remainder * 10 + figure) % self.of, *rest)])
                )
            self.add(Rule(name, n.alt(after)))
        return Call(name)
