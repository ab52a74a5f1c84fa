"""Schemas as alternatives: `$ref`, allOf, anyOf, oneOf, not and dependencies are resolved.

A schema becomes alternatives. Each is a conjunction: schemas that hold together, of which only the
keywords about the value itself are still to be read. It is identified by their pointers, so that
the same one is written once, and recursion leads back to it.

On this depend two questions that `enum`, `const` and `oneOf` raise: whether one value is valid, and
whether no value fits two schemas.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import combinations

from constrained.grammar.json_schema.constraints import Constraints, Witness, exact, identity
from constrained.grammar.json_schema.document import Document, Subschema, error
from constrained.grammar.json_schema.finite_automata import nfa
from constrained.grammar.json_schema.keywords import PRESENT, TYPES, Options, check, is_known
from constrained.grammar.json_schema.negation import Negation
from constrained.grammar.json_schema.presence import holds, names_in, presence
from constrained.grammar.json_schema.strings import some_in_both, trees, unmatched

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_FOLLOWED = frozenset(
    "allOf anyOf oneOf not if then else dependentRequired dependentSchemas dependencies".split()
).union(_REFERENCES)

_UNCONDITIONAL = frozenset({*_REFERENCES, "allOf", "then", "else"})
"""Keywords that are followed, and leave no choice."""

_ABOUT = {
    keyword: frozenset(types.split())
    for types, keywords in {
        "number integer": "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf",
        "string": "minLength maxLength pattern",
        "array": "items prefixItems additionalItems minItems maxItems contains minContains maxContains uniqueItems",
        "object": "properties required additionalProperties patternProperties propertyNames minProperties "
        "maxProperties dependentRequired dependentSchemas dependencies",
    }.items()
    for keyword in keywords.split()
}
"""Keyword -> the types whose values it restricts."""

_TOO_MANY = "anyOf, oneOf and what else leaves a choice have too many combinations"
_SHARE = "put what the branches share beside them, once"

Order = tuple[int, ...]
"""Where a schema stands among those that hold together, in the order in which they are written."""

Conjunction = tuple[Subschema, ...]
"""Schemas that hold for the same value, with nothing in them still to be resolved."""


def key_of(conjunction: Conjunction) -> tuple[str, ...]:
    """Return what identifies a conjunction."""
    return tuple(part.pointer for part in conjunction)


class Alternatives:
    """The alternatives of the schemas of one document."""

    def __init__(self, document: Document, options: Options):
        self.document, self.options, self.limits = document, options, options.limits
        self.validator = Validator(self)
        self.disjoint = Disjoint(self)
        self.negation = Negation(options, document.refer)
        self.roughly = False  # each branch of oneOf without the complement of the others: enough to tell schemas apart
        self._steps = 0
        self._checked: set[str] = set()
        self._unevaluated: set[str] = set()
        self._found: dict[tuple, list[Conjunction]] = {}
        self._constraints: dict[tuple[str, ...], Constraints] = {}

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
        key = self.roughly, *(f"{p.pointer} {sorted(p.within)}" if p.within else p.pointer for p in parts)
        if key not in self._found:
            self._steps = 0
            every = self._follow([((i,), part) for i, part in enumerate(parts)], {}, [])
            self._found[key] = list({key_of(one): one for one in every}.values())
        return self._found[key]

    def _follow(
        self,
        work: list[tuple[Order, Subschema]],
        flat: dict[str, tuple[Order, Subschema]],
        choices: list[list[list[tuple[Order, Subschema]]]],
    ) -> list[Conjunction]:
        flat, choices, work = dict(flat), list(choices), list(work)
        types = set(TYPES)
        for _, part in flat.values():
            types &= types_of(part)
        while work:
            order, part = work.pop(0)
            self.check(part)
            if part.schema is False:
                return []
            if part.schema is True or part.pointer in flat:
                continue
            types &= types_of(part)
            if not types:
                return []
            flat[part.pointer] = order, part
            if not _FOLLOWED.isdisjoint(part.keywords):
                for at, keyword in enumerate(part.keywords):
                    if keyword in _FOLLOWED:
                        present = self._present(part, keyword)
                        if present is not None:
                            work.append(((*order, at, 0), present))
                            continue
                        work += [((*order, at, i), one) for i, one in enumerate(self._beside(part, keyword))]
                        choices += [
                            [[((*order, at, i), one) for i, one in enumerate(branch)] for branch in choice]
                            for choice in self._choices(part, keyword)
                        ]
        self._steps += 1 + len(flat) // 8  # most of what a combination costs does not depend on its size
        self.limits.check("schema", self._steps, _TOO_MANY, _SHARE)
        if choices and types == {"object"} and _contradict([part for _, part in flat.values()]):
            return []
        if not choices:
            saying = ((_at_properties(*one), one[1]) for one in flat.values() if self._says_something(one[1]))
            return [tuple(part for _, part in sorted(saying, key=lambda one: one[0]))]
        first, *others = sorted(choices, key=len)
        out: list[Conjunction] = []
        for branch in first:
            out += self._follow(branch, flat, others)
        return out

    def check(self, part: Subschema) -> None:
        """Check a schema's keywords, once."""
        if part.pointer in part.within:
            raise error(part, "", "the schema refers to itself for the same value", "let it describe something first")
        if part.pointer not in self._checked:
            self._checked.add(part.pointer)
            if "unevaluatedProperties" in part or "unevaluatedItems" in part:
                self._unevaluated.add(part.pointer)
            check(part, self.options)

    def _says_something(self, part: Subschema) -> bool:
        known = part.keywords
        return self.options.enforces(known.get("format")) or any(is_known(k) and k not in _FOLLOWED for k in known)

    def _beside(self, part: Subschema, keyword: str) -> list[Subschema]:
        """Return the schemas that hold wherever the keyword does."""
        if keyword in _REFERENCES:
            return [self.document.refer(part, keyword)]
        if keyword == "allOf":
            return [part.beside(keyword, i) for i in range(len(part[keyword]))]
        return []

    def _choices(self, part: Subschema, keyword: str) -> list[list[list[Subschema]]]:
        """Return lists of alternatives; of each list, one holds."""
        match keyword:
            case "anyOf":
                branches = [part.beside(keyword, i) for i in range(len(part[keyword]))]
                if not self._evaluated(part):
                    return [[[branch] for branch in branches]]
                sets = (s for size in range(1, len(branches) + 1) for s in combinations(branches, size))
                self.limits.check("schema", 1 << len(branches), _TOO_MANY, "leave unevaluated… out")
                return [[list(chosen) for chosen in sets]]  # what each branch that holds has evaluated counts
            case "oneOf":
                return [self._one_of(part)]
            case "not":
                there = part.beside(keyword)
                within = there.within | {f"{part.pointer}\0not"}  # nothing in it counts as evaluated
                return [self.negation(Subschema(there.schema, there.pointer, there.base, there.draft, within))]
            case "if" if "then" in part or "else" in part or self._evaluated(part):
                there = part.beside(keyword)
                holds = [there] + ([part.beside("then")] if "then" in part else [])
                without = part.made({"not": there}, "if not")
                return [[holds, [without] + ([part.beside("else")] if "else" in part else [])]]
            case "dependentRequired" | "dependentSchemas" | "dependencies":
                return [self._dependency(part, keyword, name, needs) for name, needs in part[keyword].items()]
        return []

    def _present(self, part: Subschema, keyword: str) -> Subschema | None:
        """Return a keyword as a condition on the names of an object, if it is one, and names are nowhere counted."""
        if keyword in _UNCONDITIONAL or not self.options.any_order or self._evaluated(part) or self._counts_names:
            return None
        found = presence(part, keyword, self.options, self.check)
        if found is None or not names_in(found.condition):
            return None
        of_objects = {} if found.of_others else {"type": "object"}
        return part.made({**of_objects, PRESENT: found.condition}, f"{keyword} present")

    @cached_property
    def _counts_names(self) -> bool:
        """Whether the document has a bound on how many properties there are, other than one at least."""
        work: list = [self.document.root.schema]
        for value in work:
            if isinstance(value, dict):
                if "maxProperties" in value or value.get("minProperties", 1) != 1:
                    return True
                work += value.values()
            elif isinstance(value, list):
                work += value
        return False

    def _evaluated(self, part: Subschema) -> bool:
        """Whether it matters which schemas at `part` hold, as an unevaluated… counts what they evaluate."""
        return not self._unevaluated.isdisjoint({part.pointer, *part.within})

    def _dependency(self, part: Subschema, keyword: str, name: str, needs) -> list[list[Subschema]]:
        at = f"{keyword} {name}"
        other = part.made({"type": [t for t in TYPES if t != "object"]}, f"{at} none")
        without = part.made({"type": "object", "properties": {name: False}}, f"{at} without")
        names = [needs] if isinstance(needs, str) else needs if isinstance(needs, list) else []
        with_it = part.made({"type": "object", "required": [name, *names]}, f"{at} with")
        return [
            [other],
            [without],
            [with_it, *([] if isinstance(needs, (list, str)) else [part.beside(keyword, name)])],
        ]

    def _one_of(self, part: Subschema) -> list[list[Subschema]]:
        branches = [part.beside("oneOf", i) for i in range(len(part["oneOf"]))]
        if self.roughly:
            return [[branch] for branch in branches]
        rest = {k: v for k, v in part.keywords.items() if k not in _FOLLOWED}
        free = [self._free_types(branch) for branch in branches]
        twice = {t for t in TYPES if sum(t in types for types in free) > 1}
        if twice - {"integer"}:  # whatever is of such a type is valid under two of them
            rest["type"] = [t for t in TYPES if t in types_of(part) and t not in twice] or "null"
            if not types_of(part) - twice:
                return []
        shared = Subschema(rest, f"{part.pointer}\0oneOf beside", part.base, part.draft, part.within)
        beside = [part.made({"type": rest["type"]}, "oneOf types")] if twice - {"integer"} else []
        if self.disjoint.told_apart([[shared, branch] for branch in branches]):
            return [[*beside, branch] for branch in branches]
        out = []
        for i, branch in enumerate(branches):
            others = [b for j, b in enumerate(branches) if j != i and not self.disjoint([shared, branch], [shared, b])]
            complements = (part.made({"not": other}, f"oneOf not {other.pointer}") for other in others)
            out.append([*beside, branch, *complements])
        return out

    def _free_types(self, part: Subschema, depth: int = 8) -> frozenset[str]:
        """Return types of which every value is valid, as far as it is plain."""
        types = types_of(part) if part.schema is not False and depth else frozenset()
        for keyword, value in part.keywords.items():
            if not types:
                break
            if keyword in _REFERENCES:
                types &= self._free_types(self.document.refer(part, keyword), depth - 1)
            elif keyword in ("allOf", "anyOf"):
                inner = [self._free_types(part.beside(keyword, i), depth - 1) for i in range(len(value))]
                types &= frozenset.intersection(*inner) if keyword == "allOf" else frozenset.union(*inner)
            elif keyword in _ABOUT:
                types -= _ABOUT[keyword]
            elif keyword != "type" and (is_known(keyword) or keyword == "format" and self.options.enforces(value)):
                return frozenset()
        return types


def types_of(part: Subschema) -> frozenset[str]:
    """Return the types that a schema's own `type` admits."""
    value = part["type"]
    if value is None:
        return _EVERY
    types = frozenset([value] if isinstance(value, str) else value)
    return types | {"integer"} if "number" in types else types


def _contradict(parts: list[Subschema]) -> bool:
    """Whether it is plain that no object fits all of them: a required property has no value left."""
    for name in {name for part in parts for name in part["required"] or ()}:
        allowed: set | None = None
        denied: set = set()
        for part in parts:
            if name in (part["properties"] or ()):
                inner = part.below("properties", name)
                if inner.schema is False:
                    return True
                allowed = _both(allowed, _listed(inner))
                if isinstance(inner["not"], Subschema) and inner["not"].keywords.keys() <= {"const", "enum", "type"}:
                    denied |= _listed(inner["not"]) or set()
        if allowed is not None and allowed <= denied:
            return True
    return False


def _both(one: set | None, other: set | None) -> set | None:
    return other if one is None else one if other is None else one & other


def _listed(part: Subschema) -> set | None:
    """Return the values by enum and const, by their identity; None where they aren't listed."""
    enum = set(map(identity, part["enum"])) if "enum" in part else None
    return _both(enum, {identity(part["const"])} if "const" in part else None)


_EVERY = frozenset(TYPES)


def _at_properties(order: Order, part: Subschema) -> Order:
    """Return where the properties of a schema stand."""
    keywords = list(part.keywords)
    return (*order, keywords.index("properties") if "properties" in part else len(keywords))


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
        of_any = any(number % other == 0 for other in constraints.no_multiples())
        return above and below and (of is None or number % of == 0) and not of_any

    def _string(self, value: str, constraints: Constraints) -> bool:
        return _counted(value, constraints, "Length") and all(
            nfa(tree, constraints.limits).accepts(value) == wanted
            for found, wanted in ((trees(constraints), True), (unmatched(constraints), False))
            for tree in found
        )

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
        fitting, without = (
            any(nfa(tree, self.alternatives.limits).accepts(name) for tree in trees)
            for trees in witness.names(self.alternatives.limits)
        )
        fits = fitting if witness.kind == "pattern" else not without
        fits = fits and (witness.kind != "name" or self.admits(name, [witness.schema]))
        return fits and (witness.value is None or self.admits(value, [witness.value]))


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
        with self._roughly():
            ones, others = self.alternatives.of(one), self.alternatives.of(other)
            return all(self._pair(a, b, depth) for a in ones for b in others)

    @contextmanager
    def _roughly(self) -> Iterator[None]:
        before, self.alternatives.roughly = self.alternatives.roughly, True
        try:
            yield
        finally:
            self.alternatives.roughly = before

    def told_apart(self, branches: list[list[Subschema]]) -> bool:
        """Whether all branches require one property and list different values for it: the quick way."""
        found: list[dict[str, set]] = []
        with self._roughly():
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
