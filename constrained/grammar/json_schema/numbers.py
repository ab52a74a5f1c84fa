"""Numbers within bounds, and multiples of whole numbers, exactly, as the digits that write them.

A bound is compared digit by digit: as long as a text agrees with it, the next digit is bounded too;
after that, none is. Whole numbers are written without fraction or exponent. Multiples are read by an automaton whose
states are remainders (Hopcroft, Motwani and Ullman, *Introduction to Automata Theory*, section 2.2), with how
many digits are still to come and what bounds them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from itertools import count, pairwise

from constrained.grammar.charset import charset
from constrained.grammar.nodes import EMPTY, NEVER, Chars, Node, alt, literal, repeat, seq

DIGITS = 100
"""Digits before the point, and after it, that a number may have."""

EXPONENT = 307
"""With one digit before the point, what every double can hold, and its inverse."""


Bound = tuple[Fraction, bool]
"""A bound, and whether the bound itself is left out."""

Defer = Callable[[str, Callable[[], Node]], Node]
"""Adds a rule of that name, whose body is written when it is looked up; returns a call of it."""


def whole(low: Bound | None, high: Bound | None) -> tuple[int | None, int | None]:
    """The least and the greatest whole number between two bounds."""
    least = None if low is None else math.floor(low[0]) + 1 if low[1] else math.ceil(low[0])
    return least, None if high is None else math.ceil(high[0]) - 1 if high[1] else math.floor(high[0])


def intervals(low: Bound | None, high: Bound | None, denied: tuple) -> list[tuple[Bound | None, Bound | None]]:
    """Lower and upper bounds between the numbers that are left out."""
    numbers = [value for value in denied if isinstance(value, (int, float)) and not isinstance(value, bool)]
    cuts = sorted({Fraction(value) if isinstance(value, int) else Fraction(repr(value)) for value in numbers})
    inside = [c for c in cuts if (low is None or c >= low[0]) and (high is None or c <= high[0])]
    return list(pairwise([low, *((cut, True) for cut in inside), high]))


def common_multiple(values: list[Fraction]) -> Fraction:
    """The least common multiple."""
    over = math.lcm(*(value.denominator for value in values))
    return Fraction(math.lcm(*(int(value * over) for value in values)), over)


def digit(low: int = 0, high: int = 9) -> Node:
    """One digit, `low` to `high`."""
    if low > high:
        return NEVER
    return literal(str(low)) if low == high else Chars(charset([(48 + low, 48 + high)]))


def digits(low: int, high: int) -> Node:
    """`low` to `high` digits."""
    return NEVER if high < low else repeat(digit(), low, high)


@lru_cache(maxsize=256)
def integer(low: int | None, high: int | None) -> Node:
    """The whole numbers from `low` to `high`, both included."""
    out = []
    if low is None or low < 0:
        least = 1 if high is None or high >= 0 else -high
        out.append(seq([literal("-"), natural(least, None if low is None else -low)]))
    if high is None or high >= 0:
        out.append(natural(max(low or 0, 0), high))
    return alt(out)


def natural(low: int, high: int | None) -> Node:
    """The whole numbers from `low` to `high`, neither negative."""
    if high is not None and high < low:
        return NEVER
    first, last = str(low), str(high) if high is not None else ""
    shortest, longest = len(first), len(last) if last else max(DIGITS, len(first) + 1)
    if shortest == longest:
        return _same_length(first, last)
    out = [_same_length(first, "9" * shortest)]
    whole = longest - 1 if last else longest  # lengths of which every number is admitted
    if whole > shortest:
        out.append(seq([digit(1), digits(shortest, whole - 1)]))
    if last:
        out.append(_same_length("1" + "0" * (longest - 1), last))
    return alt(out)


def _same_length(low: str, high: str) -> Node:
    """The numbers from `low` to `high`, which have the same number of digits."""
    if low == high:
        return literal(low)
    if not low.strip("0") and not high.strip("9"):
        return digits(len(low), len(low))
    a, b, rest = int(low[0]), int(high[0]), len(low) - 1
    if a == b:
        return seq([literal(low[0]), _same_length(low[1:], high[1:])])
    out = []
    if low[1:].strip("0"):
        out.append(seq([digit(a, a), _same_length(low[1:], "9" * rest)]))
        a += 1
    if high[1:].strip("9"):
        out.append(seq([digit(b, b), _same_length("0" * rest, high[1:])]))
        b -= 1
    if a <= b:
        out.append(seq([digit(a, b), digits(rest, rest)]))
    return alt(out)


@lru_cache(maxsize=256)
def number(low: Bound | None, high: Bound | None) -> Node:
    """The decimal numbers between two bounds, also with an exponent where any digits before it are within them.

    A validator reads the nearest double. A bound that is itself left out is therefore replaced by the next
    double: a decimal right beside it would be read as the bound.
    """
    low, high = _next_double(low, 1), _next_double(high, -1)
    out = []
    if low is None or low[0] < 0 or low[0] == 0 and not low[1]:
        beyond = None if low is None else (-low[0], low[1])
        from_zero = (Fraction(0), False) if high is None or high[0] > 0 else (-high[0], high[1])
        out.append(seq([literal("-"), _positive(from_zero, beyond)]))
    if high is None or high[0] > 0 or high[0] == 0 and not high[1]:
        out.append(_positive(low if low is not None and low[0] >= 0 else (Fraction(0), False), high))
    return alt(out)


def _next_double(bound: Bound | None, way: int) -> Bound | None:
    if bound is None or not bound[1] or bound[0] == 0:
        return bound
    return Fraction(repr(math.nextafter(float(bound[0]), way * math.inf))), False


def _positive(low: Bound, high: Bound | None) -> Node:
    """Decimal numbers without a sign."""
    low_whole, low_part = _split(low[0])
    if high is None:
        above = seq([natural(low_whole + 1, None), _fraction()])
        return alt([_beside(low_whole, low_part, low[1]), above, _scientific(low, high)])
    if high[0] < low[0]:
        return NEVER
    high_whole, high_part = _split(high[0])
    if low_whole == high_whole:
        part = _Digits((low_part, low[1]), (high_part, high[1]))
        return alt([seq([literal(str(low_whole)), part.fraction()]), _scientific(low, high)])
    between = seq([natural(low_whole + 1, high_whole - 1), _fraction()])
    below = seq([literal(str(high_whole)), _Digits(None, (high_part, high[1])).fraction()])
    return alt([_beside(low_whole, low_part, low[1]), between, below, _scientific(low, high)])


def _beside(whole: int, part: str, strict: bool) -> Node:
    """Numbers with that whole part, and a fraction from the bound `part` on."""
    return seq([literal(str(whole)), _Digits((part, strict), None).fraction()])


def _split(value: Fraction) -> tuple[int, str]:
    """The whole part, and the digits after the point."""
    whole, rest = divmod(value, 1)
    out = ""
    while rest:
        figure, rest = divmod(rest * 10, 1)
        out += str(figure)
    return whole, out


def _fraction() -> Node:
    return repeat(seq([literal("."), digits(1, DIGITS)]), 0, 1)


def _scientific(low: Bound, high: Bound | None) -> Node:
    """Numbers with one digit before the point, and exponents with which every number is within the bounds.

    Those are small ones of a range from 0, and large ones of a range without end, up to what a double can hold.
    """
    exponents = []
    if low[0] == 0:  # the least that brings every mantissa, which is below 10, to the bound or below it
        over, under = (1, 1) if high is None else high[0].as_integer_ratio()
        small = next((e for e in range(1, EXPONENT + 1) if over * 10 ** (e - 1) >= under), None)
        if small is not None:
            exponents.append(seq([literal("-"), _exponent(small)]))
    if high is None:
        large = len(str(math.floor(low[0]))) if low[0] >= 1 else 0
        exponents.append(seq([repeat(literal("+"), 0, 1), _exponent(large)]))
    mark = Chars(charset([(69, 69), (101, 101)]))
    return seq([digit(1 if low[0] or low[1] else 0), _fraction(), mark, alt(exponents)])


def _exponent(least: int) -> Node:
    """Exponents from `least` on, those of one digit also with a 0 before it."""
    return alt([natural(least, EXPONENT), seq([literal("0"), natural(least, 9)])])


class _Digits:
    """Digits after the point, between bounds: (digits, whether the bound itself is left out), or None."""

    def __init__(self, low: tuple[str, bool] | None, high: tuple[str, bool] | None):
        self.low, self.high = low or ("", False), high or ("", False)
        self.low_bound, self.high_bound = low is not None, high is not None

    def fraction(self) -> Node:
        """The point and digits, or neither where that is within the bounds."""
        more = seq([literal("."), self.after(0, self.low_bound, self.high_bound)])
        return alt([more, EMPTY if self.may_end(0, self.low_bound, self.high_bound) else NEVER])

    def may_end(self, at: int, low: bool, high: bool) -> bool:
        """Whether the number may end after `at` digits that agree with the bounds that still hold."""
        if low and (self.low[0][at:] or self.low[1]):
            return False
        return not high or bool(self.high[0][at:]) or not self.high[1]

    def rest(self, at: int, low: bool, high: bool) -> Node:
        more = self.after(at, low, high)
        return alt([more, EMPTY if self.may_end(at, low, high) else NEVER])

    def after(self, at: int, low: bool, high: bool) -> Node:
        """One digit or more, after `at` that agree with those bounds that, by `low` and `high`, still hold."""
        if not low and not high:
            return digits(1, DIGITS)
        if (not low or at >= len(self.low[0])) and (not high or at >= len(self.high[0])):
            # The text equals the bounds that hold so far, to their last digit: only zeros keep it there.
            if high:
                strict = self.high[1] or low and self.low[1]
                return NEVER if strict else repeat(literal("0"), 1, DIGITS)
            return (
                seq([repeat(literal("0"), 0, DIGITS), digit(1), digits(0, DIGITS)])
                if self.low[1]
                else digits(1, DIGITS)
            )
        # The next digit is one of the bounds' own, after which that bound still holds, or lies between: then none does.
        a = int((self.low[0] + "0")[at]) if low and at < len(self.low[0]) else 0
        b = int(self.high[0][at]) if high and at < len(self.high[0]) else 0 if high else 9
        if low and high and a == b:
            return seq([digit(a, a), self.rest(at + 1, True, True)])
        out = []
        if low:
            out.append(seq([digit(a, a), self.rest(at + 1, True, False)]))
        out.append(seq([digit(a + low, b - high), digits(0, DIGITS)]))
        if high:
            out.append(seq([digit(b, b), self.rest(at + 1, False, True)]))
        return alt(out)


LONGEST = 20
"""Digits before the point of a multiple that has no bound."""


@dataclass(frozen=True)
class Multiples:
    """Numbers that are multiples of one, and not of others, exactly as the digits say it.

    Attributes
    ----------
    of : Fraction or None
        None: any number.
    but_of : tuple of Fraction
    """

    of: Fraction | None
    but_of: tuple[Fraction, ...] = ()

    def whole(self) -> Multiples:
        """The multiples that are whole numbers."""
        return Multiples(common_multiple([self.of or Fraction(1), Fraction(1)]), self.but_of)

    def node(self, low: Bound | None, high: Bound | None, defer: Defer, name: str) -> Node | None:
        """The multiples between two bounds; None where they can't be written down.

        `defer` takes their rules, whose names begin with `name`.
        """
        # Scaled by a power of ten, all that they are multiples of, or not, are whole numbers, and so are they: the
        # digits are those of whole numbers, with a point so many places before their end.
        under = math.lcm(*(f.denominator for f in (self.of or 1, *self.but_of)))
        places = next(k for k in count() if 10**k % under == 0)
        least, most = whole(*(b and (b[0] * 10**places if places else b[0], b[1]) for b in (low, high)))
        remainders = _Remainders(self, places, defer, name)
        out: list[Node] = []
        if least is None or least < 0:
            nearest = 1 if most is None or most >= 0 else -most
            out.append(seq([literal("-"), remainders.natural(nearest, None if least is None else -least)]))
        if most is None or most >= 0:
            out.append(remainders.natural(max(least or 0, 0), most))
        if self.of is None:  # then numbers with more decimal places are no multiples, either
            if places and any(bound is not None and bound[0] != 0 for bound in (low, high)):
                return None
            zero, below = (Fraction(0), False), None if low is None else (-low[0], low[1])
            if high is None or high[0] > 0:
                out.append(_fractions(max(low or zero, zero), high, places))
            if low is None or low[0] < 0:
                above = zero if high is None or high[0] >= 0 else (-high[0], high[1])
                out.append(seq([literal("-"), _fractions(above, below, places)]))
        return alt(out)


def _fractions(low: Bound, high: Bound | None, places: int) -> Node:
    """Positive numbers with more than `places` decimal places; bounds are honoured only if `places` is 0."""
    first = math.ceil(low[0])
    last = None if high is None else math.floor(high[0]) - 1
    whole = 10**WHOLE - 1 if last is None else min(last, 10**WHOLE - 1)
    more = seq([literal("."), digits(places, places), _NOT_ZERO])
    out = [seq([natural(first, whole), more]) if whole >= first else NEVER]
    if high is not None and first > high[0]:  # between two whole numbers
        return _positive(low, high)
    if first != low[0]:
        out.append(_positive(low, (Fraction(first), True)))
    if high is not None and last is not None and high[0] != last + 1:
        out.append(_positive((Fraction(last + 1), True), high))
    return alt(out)


WHOLE, FRACTION = 7, 8
"""Digits before and after the point by which a double is told apart from all multiples: 15 of them it holds exactly."""

_NOT_ZERO = seq(
    [
        alt(seq([literal("0" * i), digit(1), digits(0, FRACTION - 1 - i)]) for i in range(FRACTION)),
        repeat(literal("0"), 0, DIGITS),
    ]
)


class _Remainders:
    """The digits of numbers of so many decimal places, scaled to whole numbers, by their remainders."""

    def __init__(self, wanted: Multiples, places: int, defer: Defer, name: str):
        scale = 10**places
        self.of = int((wanted.of or Fraction(1, scale)) * scale)
        self.but_of = [int(other * scale) for other in wanted.but_of]
        self.modulus = math.lcm(self.of, *self.but_of)
        self.some = self.fits(self.of)  # else all multiples of it are multiples of what none may be a multiple of
        self.places, self.defer, self.name = places, defer, name

    def natural(self, low: int, high: int | None) -> Node:
        """The numbers from `low` to `high`, neither negative."""
        first = str(low).zfill(self.places + 1)
        longest = WHOLE + FRACTION if self.but_of and self.places else LONGEST + self.places
        last = "9" * max(longest, len(first))
        if high is not None:
            if high < low:
                return NEVER
            last = str(high).zfill(self.places + 1)
        out = []
        for length in range(len(first), len(last) + 1):
            lowest = first if length == len(first) else "1" + "0" * (length - 1)
            highest = last if length == len(last) else "9" * length
            out.append(self.digits(length, 0, lowest, highest, False))
        return alt(out)

    def fits(self, value: int) -> bool:
        return value % self.of == 0 and all(value % other for other in self.but_of)

    def lives(self, left: int, remainder: int, low: str, high: str) -> bool:
        """Whether `left` more digits between `low` and `high` make a number that fits."""
        # Remainders repeat with the modulus, so that there is one in every period of it.
        if not self.some:
            return False
        first, last = remainder * 10**left + int(low or 0), remainder * 10**left + int(high or "9" * left or 0)
        first += -first % self.of
        return last - first >= self.modulus or any(map(self.fits, range(first, last + 1, self.of)))

    def digits(self, left: int, remainder: int, low: str, high: str, point: bool) -> Node:
        """`left` more digits between `low` and `high`; "" where a bound no longer matters.

        `point`: whether the decimal point is written.
        """
        low, high = low if low.strip("0") else "", high if high.strip("9") else ""
        if not self.lives(left, remainder, low, high):
            return NEVER
        if not left:
            return repeat(literal("0"), 0, DIGITS) if self.places else EMPTY
        name = f"{self.name}:{left}{'.' * point}:{remainder}:{low}:{high}"
        return self.defer(name, partial(self._written, left, remainder, low, high, point))

    def _written(self, left: int, remainder: int, low: str, high: str, point: bool) -> Node:
        # It may end where the whole part is complete and the digits that are left could all be zeros; a point that is
        # written wants a digit after it.
        complete = left < self.places if point else left == self.places
        may_end = complete and not low and self.fits(remainder * 10**left % self.modulus)
        if left == self.places and not point:
            after = [seq([literal("."), self.digits(left, remainder, low, high, True)])]
        else:
            after = self._next(left, remainder, low, high, point)
        return alt([*after, EMPTY] if may_end else after)

    def _next(self, left: int, remainder: int, low: str, high: str, point: bool) -> list[Node]:
        first, last = int(low[0]) if low else 0, int(high[0]) if high else 9
        after = []
        for figure in range(first, last + 1):
            rest = (low[1:] if low and figure == first else "", high[1:] if high and figure == last else "")
            then = self.digits(left - 1, (remainder * 10 + figure) % self.modulus, *rest, point)
            after.append(seq([digit(figure, figure), then]))
        return after
