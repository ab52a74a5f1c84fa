"""Whether one value is valid: for the values that enum and const list beside other keywords."""

from __future__ import annotations

from constrained.grammar.json_schema.alternatives import Alternatives
from constrained.grammar.json_schema.document import Part
from constrained.grammar.json_schema.regular import Nfa
from constrained.grammar.json_schema.shape import Shape, exact, identity
from constrained.grammar.json_schema.strings import trees


def type_of(value) -> str:
    """A value's type; "integer" for whole numbers."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "integer" if value == value // 1 else "number"
    return {str: "string", list: "array", dict: "object"}.get(type(value), "null")


class Evaluator:
    """Values held against the schemas of one document."""

    def __init__(self, alternatives: Alternatives, shape_of):
        self.alternatives, self.shape_of = alternatives, shape_of

    def admits(self, value, parts: list[Part]) -> bool:
        """Whether `value` is valid under all `parts`."""
        return any(self.fits(value, self.shape_of(one)) for one in self.alternatives.of(parts))

    def fits(self, value, shape: Shape) -> bool:
        """Whether `value` is one of those that `shape` admits."""
        kind = type_of(value)
        if kind not in shape.types and not (kind == "integer" and "number" in shape.types):
            return False
        own = identity(value)
        if own in shape.denied_values or not all(own in listed for listed in shape.listed_values):
            return False
        how = {"integer": self._number, "number": self._number, "string": self._string}
        return {**how, "array": self._array, "object": self._object}.get(kind, lambda *_: True)(value, shape)

    def _number(self, value, shape: Shape) -> bool:
        number, low, high, of = exact(value), shape.bound(-1), shape.bound(1), shape.multiple()
        above = low is None or number > low[0] or number == low[0] and not low[1]
        below = high is None or number < high[0] or number == high[0] and not high[1]
        return above and below and (of is None or number % of == 0)

    def _string(self, value: str, shape: Shape) -> bool:
        return _counted(value, shape, "Length") and all(Nfa(tree, shape.limits).accepts(value) for tree in trees(shape))

    def _array(self, value: list, shape: Shape) -> bool:
        if not _counted(value, shape, "Items") or not all(self.admits(v, shape.item(i)) for i, v in enumerate(value)):
            return False
        if any(unique for _, unique in shape.all("uniqueItems")):
            if len(set(map(identity, value))) < len(value):
                return False
        return all(
            sum(self.admits(v, [part.below("contains")]) for v in value) >= int(part.schema.get("minContains", 1))
            for part, _ in shape.all("contains")
        )

    def _object(self, value: dict, shape: Shape) -> bool:
        return (
            _counted(value, shape, "Properties")
            and all(name in value for name in shape.required)
            and all(self.admits(v, shape.property(k)) for k, v in value.items())
            and all(
                self.admits(k, [part.below("propertyNames")]) for part, _ in shape.all("propertyNames") for k in value
            )
        )


def _counted(value, shape: Shape, what: str) -> bool:
    low, high = shape.counts(what)
    return low <= len(value) and (high is None or len(value) <= high)
