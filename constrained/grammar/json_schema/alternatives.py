"""What holds for one value at once: `$ref`, allOf, anyOf, oneOf, not and dependencies, followed.

A schema becomes alternatives, each a list of schemas that hold together and of which only the
keywords about the value itself are still to be read. Its places name an alternative, so that
the same one is written once, and recursion comes back to it.
"""

from __future__ import annotations

from math import prod

from constrained.grammar.json_schema.document import Document, Part, error
from constrained.grammar.json_schema.formats import PATTERNS
from constrained.grammar.json_schema.keywords import DENIED, DESCRIBING, TYPES, check
from constrained.grammar.json_schema.options import Options

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
