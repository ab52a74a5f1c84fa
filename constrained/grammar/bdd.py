"""Boolean formulas as reduced ordered binary decision diagrams: equal formulas are one number.

Bryant, "Graph-based algorithms for Boolean function manipulation", 1986.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

FALSE, TRUE = 0, 1


class Formulas:
    """Formulas over variables, which are any hashable values; `count` is called for each step."""

    def __init__(self, count: Callable[[int], None]):
        self.count = count
        self.variables: list = []
        self._orders: dict = {}
        self._parts: list[tuple[int, int, int]] = [(1 << 60, 0, 0), (1 << 60, 1, 1)]
        self._numbers: dict[tuple[int, int, int], int] = {}
        self._chosen: dict[tuple[int, int, int], int] = {}

    def variable(self, value) -> int:
        """The formula that `value` holds."""
        order = self._orders.get(value)
        if order is None:
            order = self._orders[value] = len(self.variables)
            self.variables.append(value)
        return self._formula(order, TRUE, FALSE)

    def choose(self, test: int, then: int, other: int) -> int:
        """`then` where `test` holds, else `other`."""
        if test <= TRUE:
            return then if test else other
        if then == other:
            return then
        if then == TRUE and other == FALSE:
            return test
        key = test, then, other
        cached = self._chosen.get(key)
        if cached is None:
            self.count(1)
            a, b, c = self._parts[test], self._parts[then], self._parts[other]
            order = min(a[0], b[0], c[0])
            if b[0] != order:  # its cofactors are the formula itself
                b = order, then, then
            if c[0] != order:
                c = order, other, other
            if a[0] != order:
                a = order, test, test
            high, low = self.choose(a[1], b[1], c[1]), self.choose(a[2], b[2], c[2])
            cached = self._chosen[key] = self._formula(order, high, low)
        return cached

    def both(self, first: int, second: int) -> int:
        return self.choose(first, second, FALSE)

    def either(self, first: int, second: int) -> int:
        return self.choose(first, TRUE, second)

    def negation(self, formula: int) -> int:
        return self.choose(formula, FALSE, TRUE)

    def replace(self, formula: int, by: Callable) -> int:
        """`formula` with each variable `v` replaced by the formula ``by(v)``."""
        done = {FALSE: FALSE, TRUE: TRUE}

        def go(f: int) -> int:
            if f not in done:
                self.count(1)
                order, high, low = self._parts[f]
                done[f] = self.choose(by(self.variables[order]), go(high), go(low))
            return done[f]

        return go(formula)

    def variables_of(self, formula: int) -> set:
        """The variables that `formula` depends on."""
        result: set = set()
        seen, work = {FALSE, TRUE}, [formula]
        while work:
            f = work.pop()
            if f not in seen:
                seen.add(f)
                order, high, low = self._parts[f]
                result.add(self.variables[order])
                work += (high, low)
        return result

    def alternatives(self, formula: int) -> list | None:
        """The variables one of which must hold, if that is all that `formula` says."""
        out = []
        while formula > TRUE:
            order, high, formula = self._parts[formula]
            if high != TRUE:
                return None
            out.append(self.variables[order])
        return out if formula == FALSE else None

    def rows(self, formula: int) -> tuple[tuple[Any, int, int], ...]:
        """A diagram as rows (variable, row where it holds, row where not), each below those it leads to.

        Rows count from 2; 0 and 1 are false and true. The last row is the formula, which is neither.
        """
        numbers, rows = {FALSE: 0, TRUE: 1}, []
        work = [formula]
        while work:
            order, high, low = self._parts[work[-1]]
            missing = [f for f in (high, low) if f not in numbers]
            if missing:
                work += missing
            elif (f := work.pop()) not in numbers:
                numbers[f] = len(numbers)
                rows.append((self.variables[order], numbers[high], numbers[low]))
        return tuple(rows)

    def _formula(self, order: int, high: int, low: int) -> int:
        if high == low:
            return high
        key = order, high, low
        cached = self._numbers.get(key)
        if cached is None:
            cached = self._numbers[key] = len(self._parts)
            self._parts.append(key)
        return cached
