"""Plain schemas of common keywords, told by one look at each: most schemas of most documents.

What is found of a schema is what `keywords.check` and `plain.plain` find. It is looked at as it is written, and by its
keywords first, as many schemas have the same ones.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from constrained.grammar.json_schema.alternatives import Alternatives
from constrained.grammar.json_schema.document import DIFFERENT, NOTING, Subschema, escaped
from constrained.grammar.json_schema.keywords import DESCRIBING, FORMS, TYPES, TYPING, types_of
from constrained.grammar.json_schema.plain import BRANCHES, CERTAIN, MODEST, Plain, is_certain
from constrained.grammar.json_schema.validity import type_of

_KINDS = {
    "type": "type",
    "enum": "type enum",
    "const": "type const",
    "pattern": "type pattern",
    "$ref": "$ref",
    "anyOf": "anyOf",
    "oneOf": "oneOf",
    "several": "type properties required additionalProperties items minItems maxItems minLength maxLength minimum "
    "maximum",
}
"""Kind -> the keywords that restrict values in schemas of that kind."""
_KNOWN = [(kind, frozenset(keywords.split())) for kind, keywords in _KINDS.items()]
_BOUNDS = frozenset("minItems maxItems minLength maxLength minimum maximum".split())
_OF_ROOT = frozenset(("$id", "id"))
_NAMES = frozenset(("$anchor", "$dynamicAnchor", "$recursiveAnchor"))
_MOST = 30
"""Keywords of a schema that is looked at here."""


class _Shape(NamedTuple):
    """What the keywords of a schema tell of it.

    Attributes
    ----------
    kind : str
        One of `_KINDS`.
    unknown : tuple of str
        Annotations that the standard doesn't know.
    is_type, refers : bool
        There is no more than a type, or than a `$ref`, and notes.
    bounded, of_root : bool
        There are bounds; there is a name that only the root may have.
    """

    kind: str
    unknown: tuple[str, ...]
    is_type: bool
    refers: bool
    bounded: bool
    of_root: bool


def _shape(schema: dict, draft: int) -> _Shape | None:
    """Return what its keywords tell of a schema; None if more must be known."""
    return _shape_of(tuple(schema), draft) if len(schema) <= _MOST else None


@lru_cache(maxsize=4096)
def _shape_of(keywords: tuple, draft: int) -> _Shape | None:
    names = frozenset(keywords)
    if not all(isinstance(name, str) for name in names) or not names.isdisjoint(_NAMES | DIFFERENT[draft] - _OF_ROOT):
        return None
    said = frozenset(("$ref",)) if "$ref" in names and draft in (4, 6, 7) else names & FORMS.keys()
    for kind, known in _KNOWN:
        if said <= known:
            unknown = (k for k in keywords if k not in DESCRIBING and k not in FORMS and not k.startswith("x-"))
            refers, bounded = names - NOTING == {"$ref"}, not said.isdisjoint(_BOUNDS)
            return _Shape(kind, tuple(unknown), names <= TYPING, refers, bounded, not names.isdisjoint(_OF_ROOT))
    return None


class Outlines:
    """What is found of the schemas of one document."""

    def __init__(self, alternatives: Alternatives):
        self.document, self.options, self._checked = alternatives.document, alternatives.options, alternatives.checked
        self._places: dict[int, str] = {}  # the same Python value can stand in many places
        self._targets: dict[tuple[str, str], Subschema] = {}

    def __call__(self, part: Subschema) -> Plain | None:
        """Return what is known of a schema, which then needs no other check; None if more must be known."""
        schema, pointer = part.schema, part.pointer
        shape = _shape(schema, part.draft) if isinstance(schema, dict) else None
        if shape is None or shape.of_root and pointer != "#" or not _has_types(schema) or not _is_standard(schema):
            return None
        if pointer.count("/") // 2 > self.options.limits.depth or pointer in part.within:
            return None
        if self._places.setdefault(id(schema), pointer) != pointer:
            return None
        found = self._found(part, schema, shape)
        if found:
            self._checked.add(pointer)
            for keyword in shape.unknown:
                self.options.note(part, keyword)
        return found

    def _found(self, part: Subschema, schema: dict, shape: _Shape) -> Plain | None:
        kind = shape.kind
        if "format" in schema and self.options.enforces(schema["format"]):
            return _ANY if kind == "type" and schema.get("type", "string") == "string" else None
        if kind == "several":
            in_order = not shape.bounded or _are_in_order(schema, self.options.limits.repeat)
            return self._several(part, schema) if in_order and not self.options.closed else None
        if kind == "type":
            return _ANY
        value = schema[kind]
        if not FORMS[kind][0](value):
            return None
        match kind:
            case "anyOf" | "oneOf":
                return self._branches(part, kind, value)
            case "$ref":
                found = self.document.refer(part)
                return Plain([found], [[found.pointer]], [found.pointer])
            case "pattern":
                certain = schema.get("type", "string") == "string" and is_certain(part, kind, value, self.options)
            case _:
                types = types_of(part)
                certain = any(type_of(v) in types for v in (value if kind == "enum" else [value]))
        return _ANY if certain else None

    def _below(self, part: Subschema, schema: dict, *keys) -> Subschema | None:
        """Return the schema at `keys`, or the one that it refers to; None if it is no more than a type."""
        shape = _shape(schema, part.draft)
        if shape is None or shape.of_root:
            return self.document.meant(part.below(*keys))
        if shape.is_type and schema.get("type", "null") in TYPES:
            return None
        if not shape.refers or not isinstance(schema["$ref"], str):
            return Subschema(schema, "/".join((part.pointer, *map(escaped, keys))), part.base, part.draft)
        key = part.base, schema["$ref"]
        if key not in self._targets:
            self._targets[key] = self.document.meant(part.below(*keys))
        return self._targets[key]

    def _branches(self, part: Subschema, keyword: str, branches: list) -> Plain | None:
        if len(branches) > BRANCHES or not all(isinstance(branch, dict) for branch in branches):
            return None
        found = [self._below(part, branch, keyword, i) for i, branch in enumerate(branches)]
        if keyword == "oneOf" and not _differ([own or Subschema(one, "") for own, one in zip(found, branches)]):
            return None
        parts = [one for one in found if one]
        needs = [[one.pointer] for one in parts] if len(parts) == len(found) else CERTAIN
        same = [one.pointer if one else f"{part.pointer}/{keyword}/{i}" for i, one in enumerate(found)]
        return Plain(parts, needs, same)

    def _several(self, part: Subschema, schema: dict) -> Plain | None:
        named, free = schema.get("properties", {}), schema.get("additionalProperties", True)
        required, items = schema.get("required", []), schema.get("items", {})
        if not FORMS["properties"][0](named) or not FORMS["required"][0](required) or not isinstance(items, dict):
            return None
        if not isinstance(free, (dict, bool)) or any(named.get(name, free) is False for name in required):
            return None
        values = {k: self._below(part, one, "properties", k) for k, one in named.items() if isinstance(one, dict)}
        others = self._below(part, free, "additionalProperties") if isinstance(free, dict) else None
        item = self._below(part, items, "items")
        parts = [one for one in (*values.values(), others, item) if one]
        own = schema.get("type")
        if not parts or own not in ("object", "array"):
            others_too = isinstance(own, list) and not _CONTAINERS.issuperset(own)
            return Plain(parts, CERTAIN) if not parts or own is None or isinstance(own, str) or others_too else None
        if own == "object":
            needed = [values.get(name) if name in named else others for name in required]
        else:
            needed = [item] if schema.get("minItems") else []
        return Plain(parts, [[one.pointer for one in needed if one]])


_ANY = Plain([], CERTAIN)
_CONTAINERS = frozenset(("object", "array"))


def _is_standard(schema: dict) -> bool:
    dialect = schema.get("$schema")
    return not isinstance(dialect, str) or "json-schema.org/" in dialect


def _has_types(schema: dict) -> bool:
    own = schema.get("type", "null")
    return own in TYPES if isinstance(own, str) else FORMS["type"][0](own)


def _are_in_order(schema: dict, most: int) -> bool:
    """Whether bounds have the right form, and there are lengths and numbers between them."""
    for what in ("Length", "Items"):
        low = schema.get(f"min{what}", 0)
        high = schema.get(f"max{what}", low)
        if type(low) is not int or type(high) is not int or not 0 <= low <= high <= most:
            return False
    bounds = [schema[keyword] for keyword in ("minimum", "maximum") if keyword in schema]
    if not all(type(bound) in (int, float) and abs(bound) <= MODEST for bound in bounds):
        return False
    return len(bounds) < 2 or bounds[0] + (0 if schema.get("type") == "number" else 2) < bounds[1]


def _differ(branches: list[Subschema]) -> bool:
    """Whether no value fits two branches of a oneOf, by their types or by the texts of one property."""
    if not all(_has_types(branch.keywords) for branch in branches):
        return False
    types = [types_of(branch) for branch in branches]
    if sum(map(len, types)) == len(frozenset().union(*types)):
        return True
    each = [_texts(branch) for branch in branches]
    for name in set(each[0]).intersection(*each[1:]):
        texts = [text for one in each for text in one[name]]
        if len(set(texts)) == len(texts):
            return True
    return False


def _texts(branch: Subschema) -> dict[str, list[str]]:
    """Return the properties that each object of a branch has, if each is one of a few texts, with these."""
    named, required = branch["properties"], branch["required"]
    shape = _shape(branch.schema, branch.draft) if branch["type"] == "object" else None
    if not shape or shape.kind != "several":
        return {}
    if not FORMS["properties"][0](named) or not FORMS["required"][0](required):
        return {}
    found = ((name, _listed(named.get(name), branch.draft)) for name in required)
    return {name: texts for name, texts in found if texts}


def _listed(schema, draft: int) -> list[str] | None:
    shape = _shape(schema, draft) if isinstance(schema, dict) else None
    if not shape or shape.kind not in ("enum", "const") or schema.get("type", "string") != "string":
        return None
    texts = schema["enum"] if shape.kind == "enum" else [schema["const"]]
    return texts if FORMS["required"][0](texts) else None
