"""Schemas as alternatives: `$ref`, allOf, anyOf, oneOf, not and dependencies are resolved.

A schema becomes alternatives. Each is a conjunction: schemas that hold together, of which only the
keywords about the value itself are still to be read. It is identified by their pointers, so that
the same one is written once, and recursion leads back to it.

On this depend two questions that `enum`, `const` and `oneOf` raise: whether one value is valid, and
whether no value fits two schemas.
"""

from __future__ import annotations

from math import prod

from constrained.grammar.json_schema.constraints import Constraints, exact, identity
from constrained.grammar.json_schema.document import (
    DENIED,
    DESCRIBING,
    TYPES,
    Document,
    Options,
    Subschema,
    check,
    error,
)
from constrained.grammar.json_schema.finite_automata import Nfa
from constrained.grammar.json_schema.patterns import PATTERNS
from constrained.grammar.json_schema.strings import some_in_both, trees

_FOLLOWED = frozenset("$ref allOf anyOf oneOf not dependentRequired dependentSchemas dependencies".split())

_TOO_MANY = "anyOf, oneOf and what else leaves a choice have too many combinations"
_SHARE = "put what the branches share beside them, once"

Conjunction = tuple[Subschema, ...]
"""Schemas that hold for the same value, with nothing in them still to be resolved."""


def key_of(conjunction: Conjunction) -> frozenset[str]:
    """Return what identifies a conjunction."""
    return frozenset(part.pointer for part in conjunction)


class Alternatives:
    """The alternatives of the schemas of one document."""

    def __init__(self, document: Document, options: Options):
        self.document, self.options, self.limits = document, options, options.limits
        self.validator = Validator(self)
        self.disjoint = Disjoint(self)
        self._steps = 0
        self._checked: set[str] = set()
        self._found: dict[tuple[str, ...], list[Conjunction]] = {}
        self._constraints: dict[frozenset[str], Constraints] = {}

    def constraints(self, conjunction: Conjunction) -> Constraints:
        """Return what a conjunction says."""
        key = key_of(conjunction)
        if key not in self._constraints:
            self._constraints[key] = Constraints(conjunction, self.options)
        return self._constraints[key]

    def constraints_of(self, parts: list[Subschema]) -> list[Constraints]:
        """Return what each alternative of schemas that hold together says."""
        return [self.constraints(one) for one in self.of(parts)]

    def of(self, parts: list[Subschema]) -> list[Conjunction]:
        """Return the alternatives of schemas that hold together, each once."""
        key = tuple(f"{p.pointer} {sorted(p.within)}" for p in parts)
        if key not in self._found:
            self._steps = 0
            every = self._follow(parts, {}, [])
            self._found[key] = list({key_of(one): one for one in every}.values())
        return self._found[key]

    def _follow(
        self, work: list[Subschema], flat: dict[str, Subschema], choices: list[list[list[Subschema]]]
    ) -> list[Conjunction]:
        flat, choices, work = dict(flat), list(choices), list(work)
        while work:
            part = work.pop(0)
            self._check(part)
            if part.schema is False:
                return []
            if part.schema is True or part.pointer in flat:
                continue
            flat[part.pointer] = part
            work += self._beside(part)
            choices += self._choices(part)
        self._steps += 1 + len(flat)
        self.limits.check("schema", self._steps, _TOO_MANY, _SHARE)
        if not choices:
            return [tuple(p for p in flat.values() if _says_something(p))]
        self.limits.check("schema", prod(map(len, choices)), _TOO_MANY, _SHARE)
        first, *others = choices
        out: list[Conjunction] = []
        for branch in first:
            out += self._follow(branch, flat, others)
        return out

    def _check(self, part: Subschema) -> None:
        if part.pointer in part.within:
            raise error(part, "", "the schema refers to itself for the same value", "let it describe something first")
        if part.pointer not in self._checked:
            self._checked.add(part.pointer)
            check(part, self.options)

    def _beside(self, part: Subschema) -> list[Subschema]:
        """Return the schemas that hold wherever `part` does."""
        out = [self.document.refer(part)] if "$ref" in part else []
        out += [part.beside("allOf", i) for i in range(len(part["allOf"] or ()))]
        denied = self._denied(part)
        return out + (denied[0] if denied and len(denied) == 1 else [])

    def _choices(self, part: Subschema) -> list[list[list[Subschema]]]:
        """Return lists of alternatives; of each list, one holds."""
        out = []
        if "anyOf" in part:
            out.append([[part.beside("anyOf", i)] for i in range(len(part["anyOf"]))])
        if "oneOf" in part:
            out.append(self._one_of(part))
        denied = self._denied(part)
        if denied is not None and len(denied) != 1:
            out.append(denied)
        for name, needs, at in self._dependencies(part):
            without = Subschema({"properties": {name: False}}, f"{at}/without", part.base)
            with_it = Subschema(
                {"required": [name, *(needs if isinstance(needs, list) else ())]}, f"{at}/with", part.base
            )
            out.append([[without], [with_it, *([] if isinstance(needs, list) else [needs])]])
        return out

    def _dependencies(self, part: Subschema):
        for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
            for name, needs in (part[keyword] or {}).items():
                at = f"{part.pointer}/{keyword}/{name}"
                yield name, needs if isinstance(needs, list) else part.beside(keyword, name), at

    def _one_of(self, part: Subschema) -> list[list[Subschema]]:
        branches = [part.beside("oneOf", i) for i in range(len(part["oneOf"]))]
        rest = {k: v for k, v in part.keywords.items() if k not in ("oneOf", "anyOf", "allOf", "not")}
        shared = Subschema(rest, f"{part.pointer}/oneOf/beside", part.base, part.within)
        if self.disjoint.told_apart([[shared, branch] for branch in branches]):
            return [[branch] for branch in branches]
        out = []
        for i, branch in enumerate(branches):
            out.append([branch])
            for j in range(len(branches)):
                if i == j or self.disjoint([shared, branch], [shared, branches[j]]):
                    continue
                denied = negation(branches[j])
                if denied is None or len(denied) != 1:
                    self.options.refuse(
                        part, "oneOf", f"a value may fit branch {min(i, j)} and branch {max(i, j)}: then neither holds",
                        "let them differ in a required property with a const, in type or in enum; or write anyOf",
                    )  # fmt: skip
                else:
                    out[-1] += denied[0]
        return out

    def _denied(self, part: Subschema) -> list[list[Subschema]] | None:
        if "not" not in part:
            return None
        denied = negation(part.beside("not"))
        if denied is None:
            self.options.refuse(
                part, "not", "what is not this schema can't be written down",
                "not takes type, const, enum, required and anyOf of these; say instead what there is",
            )  # fmt: skip
        return denied


def negation(part: Subschema) -> list[list[Subschema]] | None:
    """Return the alternatives of not fitting `part`, where it has only a few simple keywords; else None."""
    at = f"{part.pointer}/denied"
    if isinstance(part.schema, bool):
        return [] if part.schema else [[]]
    keywords = {k for k in part.keywords if k not in DESCRIBING}
    if not keywords:
        return []
    if keywords == {"type"}:
        types = [part["type"]] if isinstance(part["type"], str) else part["type"]
        if "integer" in types and "number" not in types:
            return None
        rest = [t for t in TYPES if t not in types and not (t == "integer" and "number" in types)]
        return [[Subschema({"type": [t for t in rest if t != "integer" or "number" not in rest]}, at)]] if rest else []
    if keywords in ({"const"}, {"enum"}):
        values = [part["const"]] if "const" in part else part["enum"]
        return [[Subschema({DENIED: values}, at)]]
    if keywords and keywords <= {"required", "type", "properties"} and part["type"] in (None, "object"):
        others = [t for t in TYPES if t not in ("object", "integer")]
        out = [[Subschema({"type": others}, f"{at}/type")]] if "type" in part else []
        for name in part["required"] or ():
            out.append([Subschema({"type": "object", "properties": {name: False}}, f"{at}/{name}")])
        for name in part["properties"] or ():
            denied = negation(part.below("properties", name))
            if denied is None:
                return None
            has = Subschema({"type": "object", "required": [name]}, f"{at}/has/{name}")
            for i, branch in enumerate(denied):
                inner = Subschema(
                    {"properties": {name: {"allOf": [p.schema for p in branch]}} if branch else {}}, f"{at}/{name}/{i}"
                )
                out.append([has, inner])
        return out
    if keywords == {"anyOf"}:
        branches = [negation(part.beside("anyOf", i)) for i in range(len(part["anyOf"]))]
        single = [branch[0] for branch in branches if branch is not None and len(branch) == 1]
        if len(single) == len(branches):
            return [[p for one in single for p in one]]
    return None


def _says_something(part: Subschema) -> bool:
    form = part["format"]
    return isinstance(form, str) and form in PATTERNS or any(k not in DESCRIBING | _FOLLOWED for k in part.keywords)


def type_of(value) -> str:
    """Return a value's type; "integer" for whole numbers."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "integer" if value == value // 1 else "number"
        case str():
            return "string"
    return "array" if isinstance(value, list) else "object"


class Validator:
    """Tells whether a value is valid under schemas of one document."""

    def __init__(self, alternatives: Alternatives):
        self.alternatives = alternatives

    def admits(self, value, parts: list[Subschema]) -> bool:
        """Whether `value` is valid under all `parts`."""
        return any(self.fits(value, one) for one in self.alternatives.constraints_of(parts))

    def fits(self, value, constraints: Constraints) -> bool:
        """Whether `value` is one of those that `constraints` admits."""
        kind = type_of(value)
        if kind not in constraints.types and not (kind == "integer" and "number" in constraints.types):
            return False
        own = identity(value)
        if own in constraints.denied_values or not all(own in listed for listed in constraints.listed_values):
            return False
        how = {"integer": self._number, "number": self._number, "string": self._string}
        return {**how, "array": self._array, "object": self._object}.get(kind, lambda *_: True)(value, constraints)

    def _number(self, value, constraints: Constraints) -> bool:
        number, low, high, of = exact(value), constraints.bound(-1), constraints.bound(1), constraints.multiple()
        above = low is None or number > low[0] or number == low[0] and not low[1]
        below = high is None or number < high[0] or number == high[0] and not high[1]
        return above and below and (of is None or number % of == 0)

    def _string(self, value: str, constraints: Constraints) -> bool:
        return _counted(value, constraints, "Length") and all(
            Nfa(tree, constraints.limits).accepts(value) for tree in trees(constraints)
        )

    def _array(self, value: list, constraints: Constraints) -> bool:
        if not _counted(value, constraints, "Items") or not all(
            self.admits(v, constraints.item(i)) for i, v in enumerate(value)
        ):
            return False
        unique = any(wanted for _, wanted in constraints.all("uniqueItems"))
        if unique and len(set(map(identity, value))) < len(value):
            return False
        return all(
            sum(self.admits(v, [part.below("contains")]) for v in value) >= int(part.keywords.get("minContains", 1))
            for part, _ in constraints.all("contains")
        )

    def _object(self, value: dict, constraints: Constraints) -> bool:
        return (
            _counted(value, constraints, "Properties")
            and all(name in value for name in constraints.required)
            and all(self.admits(v, constraints.property(k)) for k, v in value.items())
            and all(
                self.admits(k, [part.below("propertyNames")])
                for part, _ in constraints.all("propertyNames")
                for k in value
            )
        )


def _counted(value, constraints: Constraints, what: str) -> bool:
    low, high = constraints.counts(what)
    return low <= len(value) and (high is None or len(value) <= high)


DEPTH = 4
"""Levels of properties and items that are looked into."""


class Disjoint:
    """Tells whether no value fits two schemas of one document, as far as their keywords show it."""

    def __init__(self, alternatives: Alternatives):
        self.alternatives = alternatives
        self._found: dict[tuple, bool] = {}

    def __call__(self, one: list[Subschema], other: list[Subschema], depth: int = DEPTH) -> bool:
        """Return True if no value fits both; False if one may."""
        if not depth:
            return False
        ones, others = self.alternatives.of(one), self.alternatives.of(other)
        return all(self._pair(a, b, depth) for a in ones for b in others)

    def told_apart(self, branches: list[list[Subschema]]) -> bool:
        """Whether all branches require one property and list different values for it: the quick way."""
        found: list[dict[str, set]] = []
        for branch in branches:
            alternatives = self.alternatives.constraints_of(branch)
            if len(alternatives) > 1:
                return False
            found += map(self._values, alternatives)
        names = set.intersection(*map(set, found)) if found else set()
        return not found or any(
            len(set().union(*(f[n] for f in found))) == sum(len(f[n]) for f in found) for n in names
        )

    def _values(self, constraints: Constraints) -> dict[str, set]:
        """Return the values of the required properties that list them."""
        out = {}
        for name in constraints.required if constraints.types == {"object"} else ():
            inner = self.alternatives.constraints_of(constraints.property(name))
            if all(one.listed for one in inner):
                out[name] = set().union(*(one.listed_values[0] for one in inner))
        return out

    def _pair(self, one: Conjunction, other: Conjunction, depth: int) -> bool:
        key = (key_of(one), key_of(other), depth)
        if key not in self._found:
            constraints = self.alternatives.constraints
            self._found[key] = self._apart(constraints(one), constraints(other), depth)
        return self._found[key]

    def _apart(self, one: Constraints, other: Constraints, depth: int) -> bool:
        fits = self.alternatives.validator.fits
        for a, b in ((one, other), (other, one)):
            if a.listed:
                return not any(fits(v, a) and fits(v, b) for v in a.listed[1])
        kinds = {"number" if t == "integer" else t for t in one.types}
        kinds &= {"number" if t == "integer" else t for t in other.types}
        how = {"number": _numbers, "string": _strings, "array": self._arrays, "object": self._objects}
        return all(kind in how and how[kind](one, other, depth) for kind in kinds)

    def _arrays(self, one: Constraints, other: Constraints, depth: int) -> bool:
        (low, high), (low2, high2) = one.counts("Items"), other.counts("Items")
        if high is not None and high < low2 or high2 is not None and high2 < low:
            return True
        return any(self(one.item(i), other.item(i), depth - 1) for i in range(min(max(low, low2), 16)))

    def _objects(self, one: Constraints, other: Constraints, depth: int) -> bool:
        names = dict.fromkeys([*one.required, *other.required])
        return any(self(one.property(name), other.property(name), depth - 1) for name in names)


def _numbers(one: Constraints, other: Constraints, _depth: int) -> bool:
    for a, b in ((one, other), (other, one)):
        high, low = a.bound(1), b.bound(-1)
        if high and low and (high[0] < low[0] or high[0] == low[0] and (high[1] or low[1])):
            return True
    return False


def _strings(one: Constraints, other: Constraints, _depth: int) -> bool:
    return not some_in_both(one, other)
