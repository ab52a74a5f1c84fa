"""Whether no value fits two schemas, as far as that can be told from what they say."""

from __future__ import annotations

from constrained.grammar.json_schema.alternatives import Alternatives, places
from constrained.grammar.json_schema.document import Part
from constrained.grammar.json_schema.evaluate import Evaluator
from constrained.grammar.json_schema.shape import Shape
from constrained.grammar.json_schema.strings import some_in_both

DEPTH = 4
"""Levels of properties and items that are looked into."""


class Disjoint:
    """Pairs of schemas of one document."""

    def __init__(self, alternatives: Alternatives, shape_of, evaluator: Evaluator):
        self.alternatives, self.shape_of, self.evaluator = alternatives, shape_of, evaluator
        self._found: dict[tuple, bool] = {}

    def __call__(self, one: list[Part], other: list[Part], depth: int = DEPTH) -> bool:
        """True if no value fits both; False if one may."""
        if not depth:
            return False
        ones, others = self.alternatives.of(one), self.alternatives.of(other)
        return all(self._pair(a, b, depth) for a in ones for b in others)

    def told_apart(self, branches: list[list[Part]]) -> bool:
        """Whether one property, which all branches require, has other values in each: seen at a glance."""
        found: list[dict[str, set]] = []
        for branch in branches:
            together = self.alternatives.of(branch)
            if len(together) > 1:
                return False
            found += [self._values(self.shape_of(one)) for one in together]
        names = set.intersection(*map(set, found)) if found else set()
        return not found or any(
            len(set().union(*(f[n] for f in found))) == sum(len(f[n]) for f in found) for n in names
        )

    def _values(self, shape: Shape) -> dict[str, set]:
        """The values of the required properties that list them."""
        out = {}
        for name in shape.required if shape.types == {"object"} else ():
            inner = [self.shape_of(one) for one in self.alternatives.of(shape.property(name))]
            if all(one.listed for one in inner):
                out[name] = set().union(*(one.listed_values[0] for one in inner))
        return out

    def _pair(self, one, other, depth: int) -> bool:
        key = (places(one), places(other), depth)
        if key not in self._found:
            self._found[key] = self._shapes(self.shape_of(one), self.shape_of(other), depth)
        return self._found[key]

    def _shapes(self, one: Shape, other: Shape, depth: int) -> bool:
        for a, b in ((one, other), (other, one)):
            if a.listed:
                return not any(self.evaluator.fits(v, a) and self.evaluator.fits(v, b) for v in a.listed[1])
        kinds = {t if t != "integer" else "number" for t in one.types} & {
            t if t != "integer" else "number" for t in other.types
        }
        how = {"number": _numbers, "string": _strings, "array": self._arrays, "object": self._objects}
        return all(kind in how and how[kind](one, other, depth) for kind in kinds)

    def _arrays(self, one: Shape, other: Shape, depth: int) -> bool:
        (low, high), (low2, high2) = one.counts("Items"), other.counts("Items")
        if high is not None and high < low2 or high2 is not None and high2 < low:
            return True
        return any(self(one.item(i), other.item(i), depth - 1) for i in range(min(max(low, low2), 16)))

    def _objects(self, one: Shape, other: Shape, depth: int) -> bool:
        names = dict.fromkeys([*one.required, *other.required])
        return any(self(one.property(name), other.property(name), depth - 1) for name in names)


def _numbers(one: Shape, other: Shape, _depth: int) -> bool:
    for a, b in ((one, other), (other, one)):
        high, low = a.bound(1), b.bound(-1)
        if high and low and (high[0] < low[0] or high[0] == low[0] and (high[1] or low[1])):
            return True
    return False


def _strings(one: Shape, other: Shape, _depth: int) -> bool:
    return not some_in_both(one, other)
