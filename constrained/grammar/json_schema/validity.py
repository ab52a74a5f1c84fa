"""Whether one value is valid under schemas: `enum`, `const` and names that are listed ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from constrained.grammar.json_schema.constraints import Conjunction, Constraints, Witness, exact, identity
from constrained.grammar.json_schema.document import Document, Subschema
from constrained.grammar.json_schema.finite_automata import Nfa, nfa
from constrained.grammar.json_schema.presence import holds
from constrained.grammar.json_schema.strings import trees, unmatched
from constrained.limits import Limits


class Resolver(Protocol):
    """What resolves schemas into alternatives: `alternatives.Alternatives`."""

    document: Document
    limits: Limits
    listed: dict[str, frozenset | None]
    roughly: bool
    validator: Validator

    def check(self, part: Subschema) -> None: ...
    def of(self, parts: list[Subschema]) -> list[Conjunction]: ...
    def constraints(self, conjunction: Conjunction) -> Constraints: ...
    def constraints_of(self, parts: list[Subschema]) -> list[Constraints]: ...


def type_of(value) -> str:
    """A value's type; "integer" for whole numbers."""
    match value:
        case str():
            return "string"
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "integer" if value == value // 1 else "number"
    return "array" if isinstance(value, list) else "object"


def is_of(kind: str, constraints: Constraints) -> bool:
    """Whether values of a type, by :func:`type_of`, are among those that `constraints` speaks of."""
    return kind in constraints.types or kind == "integer" and "number" in constraints.types


class Validator:
    """Tells whether a value is valid under schemas of one document."""

    def __init__(self, alternatives: Resolver):
        self.alternatives = alternatives
        self._widely = False
        self._texts: dict[tuple[Constraints, bool], tuple[tuple[int, int | None], list[tuple[Nfa, bool]]]] = {}

    @contextmanager
    def widely(self) -> Iterator[None]:
        """Let a string count as valid here if some validator's reading of its pattern or format takes it."""
        before, self._widely = self._widely, True
        try:
            yield
        finally:
            self._widely = before

    def admits(self, value, parts: list[Subschema]) -> bool:
        """Whether `value` is valid under all `parts`."""
        return any(self.fits(value, one) for one in self.alternatives.constraints_of(parts))

    def fits(self, value, constraints: Constraints) -> bool:
        """Whether `value` is one of those that `constraints` admits."""
        kind = type_of(value)
        if not is_of(kind, constraints):
            return False
        if constraints.denied_values or constraints.listed_values:
            own = identity(value)
            if own in constraints.denied_values or not all(own in listed for listed in constraints.listed_values):
                return False
            if constraints.only_lists:
                return True
        match kind:
            case "string":
                return self._string(value, constraints)
            case "integer" | "number":
                return self._number(value, constraints)
            case "array":
                return self._array(value, constraints)
            case "object":
                return self._object(value, constraints)
        return True

    def _number(self, value, constraints: Constraints) -> bool:
        number, low, high, of = exact(value), constraints.bound(-1), constraints.bound(1), constraints.multiple()
        above = low is None or number > low[0] or number == low[0] and not low[1]
        below = high is None or number < high[0] or number == high[0] and not high[1]
        of_any = any(number % other == 0 for other in constraints.no_multiples())
        return above and below and (of is None or number % of == 0) and not of_any

    def _string(self, value: str, constraints: Constraints) -> bool:
        key = constraints, self._widely
        if key not in self._texts:
            fitting, without = trees(constraints, self._widely), unmatched(constraints, self._widely)
            every = [(tree, True) for tree in fitting] + [(tree, False) for tree in without]
            automata = [(nfa(tree, constraints.limits), wanted) for tree, wanted in every]
            self._texts[key] = constraints.counts("Length"), automata
        (low, high), automata = self._texts[key]
        if len(value) < low or high is not None and len(value) > high:
            return False
        return all(automaton.accepts(value) == wanted for automaton, wanted in automata)

    def _array(self, value: list, constraints: Constraints) -> bool:
        if not _counted(value, constraints, "Items") or not all(
            self.admits(v, constraints.item(i)) for i, v in enumerate(value)
        ):
            return False
        unique = any(wanted for _, wanted in constraints.all("uniqueItems"))
        if unique and len(set(map(identity, value))) < len(value):
            return False
        for wanted in constraints.wanted():
            fitting = sum(self.admits(v, [wanted.schema]) for v in value[wanted.first :])
            if fitting < wanted.low or wanted.high is not None and fitting > wanted.high:
                return False
        return True

    def _object(self, value: dict, constraints: Constraints) -> bool:
        return (
            _counted(value, constraints, "Properties")
            and all(name in value for name in constraints.required)
            and all(holds(condition, value) for condition in constraints.present)
            and all(self.admits(v, constraints.property(k)) for k, v in value.items())
            and all(
                self.admits(k, [part.below("propertyNames")])
                for part, _ in constraints.all("propertyNames")
                for k in value
            )
            and all(any(self._stands(k, v, w) for k, v in value.items()) for w in constraints.witnesses())
        )

    def _stands(self, name: str, value, witness: Witness) -> bool:
        """Whether a property is the one that there must be."""
        limits = self.alternatives.limits
        fits = witness.may_be(name, limits) and (witness.kind != "name" or self.admits(name, [witness.schema]))
        return fits and (witness.value is None or self.admits(value, [witness.value]))


def _counted(value, constraints: Constraints, what: str) -> bool:
    low, high = constraints.counts(what)
    return low <= len(value) and (high is None or len(value) <= high)
