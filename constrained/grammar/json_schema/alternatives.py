"""What holds for one value at once: `$ref`, allOf, anyOf, oneOf, not and dependencies, followed.

A schema becomes alternatives, each a list of schemas that hold together and of which only the
keywords about the value itself are still to be read. Its places name an alternative, so that
the same one is written once, and recursion comes back to it.
"""

from __future__ import annotations

from math import prod

from constrained.grammar.json_schema.constraints import Shape, exact, identity
from constrained.grammar.json_schema.document import DENIED, DESCRIBING, TYPES, Document, Options, Part, check, error
from constrained.grammar.json_schema.finite_automata import Nfa
from constrained.grammar.json_schema.patterns import PATTERNS
from constrained.grammar.json_schema.strings import some_in_both, trees

# MERGED DOC: """Whether one value is valid: for the values that enum and const list beside other keywords."""

# MERGED DOC: """Whether no value fits two schemas, as far as that can be told from what they say."""


_FOLLOWED = frozenset("$ref allOf anyOf oneOf not dependentRequired dependentSchemas dependencies".split())

_TOO_MANY = "anyOf, oneOf and what else leaves a choice have too many combinations"
_SHARE = "put what the branches share beside them, once"

Together = "tuple[Part, ...]"
"""Schemas that hold for the same value, with nothing left to follow."""


def places(together: Together) -> frozenset[str]:
    """What names an alternative."""
    return frozenset(part.at for part in together)


class Alternatives:
    """The alternatives of the schemas of one document."""

    def __init__(self, document: Document, options: Options):
        self.document, self.options, self.limits = document, options, options.limits
        self.disjoint = None  # told by who can look into values: see `disjoint`
        self._steps = 0
        self._checked: set[str] = set()
        self._found: dict[tuple[str, ...], list[Together]] = {}

    def of(self, parts: list[Part]) -> list[Together]:
        """The alternatives of schemas that hold together, each once."""
        key = tuple(f"{p.at} {sorted(p.within)}" for p in parts)
        if key not in self._found:
            self._steps = 0
            every = self._follow(parts, {}, [])
            self._found[key] = list({places(one): one for one in every}.values())
        return self._found[key]

    def _follow(self, work: list[Part], flat: dict[str, Part], choices: list[list[list[Part]]]) -> list[Together]:
        flat, choices, work = dict(flat), list(choices), list(work)
        while work:
            part = work.pop(0)
            self._check(part)
            if part.schema is False:
                return []
            if part.schema is True or part.at in flat:
                continue
            flat[part.at] = part
            work += self._beside(part)
            choices += self._choices(part)
        self._steps += 1 + len(flat)
        self.limits.check("schema", self._steps, _TOO_MANY, _SHARE)
        if not choices:
            return [tuple(p for p in flat.values() if _says_something(p))]
        self.limits.check("schema", prod(map(len, choices)), _TOO_MANY, _SHARE)
        first, *others = choices
        out: list[Together] = []
        for branch in first:
            out += self._follow(branch, flat, others)
        return out

    def _check(self, part: Part) -> None:
        if part.at in part.within:
            raise error(part, "", "the schema refers to itself for the same value", "let it describe something first")
        if part.at not in self._checked:
            self._checked.add(part.at)
            check(part, self.options)

    def _beside(self, part: Part) -> list[Part]:
        """Schemas that hold wherever `part` does."""
        out = [self.document.refer(part)] if "$ref" in part else []
        out += [part.beside("allOf", i) for i in range(len(part["allOf"] or ()))]
        denied = self._denied(part)
        return out + (denied[0] if denied and len(denied) == 1 else [])

    def _choices(self, part: Part) -> list[list[list[Part]]]:
        """Of each of these, one holds."""
        out = []
        if "anyOf" in part:
            out.append([[part.beside("anyOf", i)] for i in range(len(part["anyOf"]))])
        if "oneOf" in part:
            out.append(self._one_of(part))
        denied = self._denied(part)
        if denied is not None and len(denied) != 1:
            out.append(denied)
        for name, needs, at in self._dependencies(part):
            without = Part({"properties": {name: False}}, f"{at}/without", part.base)
            with_it = Part({"required": [name, *(needs if isinstance(needs, list) else ())]}, f"{at}/with", part.base)
            out.append([[without], [with_it, *([] if isinstance(needs, list) else [needs])]])
        return out

    def _dependencies(self, part: Part):
        for keyword in ("dependentRequired", "dependentSchemas", "dependencies"):
            for name, needs in (part[keyword] or {}).items():
                at = f"{part.at}/{keyword}/{name}"
                yield name, needs if isinstance(needs, list) else part.beside(keyword, name), at

    def _one_of(self, part: Part) -> list[list[Part]]:
        branches = [part.beside("oneOf", i) for i in range(len(part["oneOf"]))]
        rest = {k: v for k, v in part.schema.items() if k not in ("oneOf", "anyOf", "allOf", "not")}
        shared = Part(rest, f"{part.at}/oneOf/beside", part.base, part.within)
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

    def _denied(self, part: Part) -> list[list[Part]] | None:
        if "not" not in part:
            return None
        denied = negation(part.beside("not"))
        if denied is None:
            self.options.refuse(
                part, "not", "what is not this schema can't be written down",
                "not takes type, const, enum, required and anyOf of these; say instead what there is",
            )  # fmt: skip
        return denied


def negation(part: Part) -> list[list[Part]] | None:
    """The alternatives of not being `part`, where that is one of few keywords; else None."""
    at = f"{part.at}/denied"
    if isinstance(part.schema, bool):
        return [] if part.schema else [[]]
    keywords = {k for k in part.schema if k not in DESCRIBING}
    if not keywords:
        return []
    if keywords == {"type"}:
        types = [part["type"]] if isinstance(part["type"], str) else part["type"]
        if "integer" in types and "number" not in types:
            return None
        rest = [t for t in TYPES if t not in types and not (t == "integer" and "number" in types)]
        return [[Part({"type": [t for t in rest if t != "integer" or "number" not in rest]}, at)]] if rest else []
    if keywords in ({"const"}, {"enum"}):
        values = [part["const"]] if "const" in part else part["enum"]
        return [[Part({DENIED: values}, at)]]
    if keywords and keywords <= {"required", "type", "properties"} and part["type"] in (None, "object"):
        others = [t for t in TYPES if t not in ("object", "integer")]
        out = [[Part({"type": others}, f"{at}/type")]] if "type" in part else []
        for name in part["required"] or ():
            out.append([Part({"type": "object", "properties": {name: False}}, f"{at}/{name}")])
        for name in part["properties"] or ():
            denied = negation(part.below("properties", name))
            if denied is None:
                return None
            has = Part({"type": "object", "required": [name]}, f"{at}/has/{name}")
            for i, branch in enumerate(denied):
                inner = Part(
                    {"properties": {name: {"allOf": [p.schema for p in branch]}} if branch else {}}, f"{at}/{name}/{i}"
                )
                out.append([has, inner])
        return out
    if keywords == {"anyOf"}:
        every = [negation(part.beside("anyOf", i)) for i in range(len(part["anyOf"]))]
        if all(one is not None and len(one) == 1 for one in every):
            return [[p for one in every for p in one[0]]]
    return None


def _says_something(part: Part) -> bool:
    form = part["format"]
    return isinstance(form, str) and form in PATTERNS or any(k not in DESCRIBING | _FOLLOWED for k in part.schema)


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
