"""Plain schemas, told from a walk over the document as it is written.

Most schemas of most documents have only common keywords in their common forms. The walk tells these without what a
closer look takes (`plain.plain`), and goes on to what they lead to.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from operator import itemgetter
from typing import Any, NamedTuple

from constrained.errors import GrammarError
from constrained.grammar.json_schema.constraints import Constraints, identity
from constrained.grammar.json_schema.disjoint import Values, differ, tells_all_apart
from constrained.grammar.json_schema.document import (
    DIFFERENT,
    NOTING,
    Document,
    Subschema,
    base_of,
    draft_of,
    pointer_keys,
)
from constrained.grammar.json_schema.keywords import DESCRIBING, FORMS, TYPES, Options, are_texts, types_of
from constrained.grammar.json_schema.plain import (
    BOUNDS,
    BRANCHES,
    JOINING,
    MODEST,
    are_apart,
    are_in_order,
    has_format,
    is_certain,
)
from constrained.grammar.json_schema.validity import type_of

_SEVERAL = BOUNDS | {"type", "properties", "required", "additionalProperties", "patternProperties", "items"}
_JOINING = frozenset(("$ref", "allOf", "anyOf", "oneOf"))
_PATTERN, _LISTED = frozenset(("pattern",)), (frozenset(("enum",)), frozenset(("const",)))
_TYPING = NOTING | {"type"}
_CONTAINERS = frozenset(("array", "object"))
_DEPTH = 64
"""Schemas in one another that the walk follows; a closer look takes no deeper Python stack for more."""
_PAIRS = 16
"""Branches of a oneOf that are compared two by two."""
_OPEN, _NO = -1, 0
_REFERENCE = frozenset(("$ref",))

Place = tuple
"""Where a schema stands: (place above, keys from there), (None, schema) or (None, reference)."""


class PlainWalk:
    """Tells which schemas of one document are plain, with a value that is certain.

    Attributes
    ----------
    full : bool
        Whether there are more schemas than the limit. Some may be repeats of others, so none counts as told then.
    """

    def __init__(self, document: Document, options: Options, apart: set[int]):
        self._document, self._options, self._told_apart = document, options, apart
        self._different = DIFFERENT[document.root.draft] - DESCRIBING
        self._alone = document.root.draft in (4, 6, 7)  # drafts in which a reference stands alone
        self._ways: dict[int, int] = {}  # by the id of a schema as it is written
        self._places: dict[int, Place] = {}
        self._asked: set[int] = set()  # schemas that a plain one leads to, while they are looked at
        self._targets: dict[str, dict | None] = {}
        self._left: list[tuple[int, Place]] = []  # and how deep they are
        self._deepest = 0
        self.full = False

    def __call__(self, part: Subschema) -> int:
        """Of how many alternatives a schema is; 0 if it needs a closer look."""
        root = self._document.root
        here = (part.base, part.draft) == (root.base, root.draft) and "\0" not in part.pointer
        if not here or self._options.closed or not isinstance(part.schema, dict):
            return _NO
        depth = part.pointer.count("/") // 2
        self._deepest = min(depth + _DEPTH, self._options.limits.depth)
        return self._known(part.schema, (None, part), depth)

    def left(self) -> list[Subschema]:
        """The schemas that plain ones lead to, and that need a closer look, each once; those outside first."""
        found, self._left = sorted(self._left, key=itemgetter(0)), []
        return [self._document.meant(self._at(place)) for _, place in found]

    def _at(self, place: Place) -> Subschema:
        above, *keys = place
        if above is not None:
            return self._at(above).below(*keys)
        return self._referred(keys[0]) if isinstance(keys[0], str) else keys[0]

    def _known(self, schema: dict, place: Place, depth: int) -> int:
        key = id(schema)
        found = self._ways.get(key)
        if found is None:
            self.full = self.full or len(self._ways) >= self._options.limits.schema
            if self.full or depth > self._deepest:
                return _NO
            self._ways[key], self._places[key] = _OPEN, place
            found = self._ways[key] = self._look(schema, _sorted_out(tuple(schema)), place, depth + 1)
            if found == _NO and key in self._asked:
                self._left.append((depth, place))
        return found

    def _leads_to(self, inner, place: Place, depth: int, needed: bool) -> bool:
        """Whether a plain schema may have another one for a part of its value; `needed`: the part must be there."""
        if not isinstance(inner, dict):
            return inner is True or inner is False and not needed
        if inner.keys() <= _TYPING and inner.get("type", "null") in TYPES:  # no more than a type
            return True
        if id(inner) in self._ways:
            self._repeated(inner, place)
        ways = self._known(inner, place, depth)
        if ways > _NO:
            return True
        if not needed:
            if ways == _OPEN:
                self._asked.add(id(inner))
            else:
                self._left.append((depth, place))
        return not needed

    def _repeated(self, schema: dict, place: Place) -> None:
        """Note where a Python value stands a second time."""
        before, now = self._at(self._places[id(schema)]), self._at(place)
        if before.pointer != now.pointer:
            self._document.note_repeat(before, now)

    def _look(self, schema: dict, sorted_out: _Sorted, place: Place, depth: int) -> int:
        said, kind, forms = sorted_out.said, sorted_out.kind, sorted_out.forms
        if self._alone and "$ref" in said:  # nothing beside it holds
            said, kind, forms = _REFERENCE, "joined", ()
            if not isinstance(schema["$ref"], str):
                return _NO
        if kind is None or not self._different.isdisjoint(said):
            return _NO
        if sorted_out.named:
            if place[0] is not None and not self._stays_here(schema):
                return _NO
            if "$schema" in schema and "json-schema.org/" not in str(schema["$schema"]):
                return _NO
        for good, keyword in forms:
            if not good(schema[keyword]):
                return _NO
        if sorted_out.formatted and said is not _REFERENCE and self._options.enforces(schema["format"]):
            ways = int(has_format(Constraints((Subschema(schema, "", "", self._document.root.draft),), self._options)))
        elif kind == "several":
            ways = int(self._several(schema, said, place, depth))
        elif kind == "joined":
            ways = self._joined(schema, next(iter(said - {"type"})), place, depth)
        elif kind == "listed":
            values = schema["enum"] if "enum" in said else [schema["const"]]
            types = types_of(Subschema(schema, "")) if "type" in said else None
            ways = int(bool(values) if types is None else any(type_of(value) in types for value in values))
        elif kind == "pattern":
            ways = int(self._has_texts(schema))
        else:
            ways = 1
        if ways and sorted_out.unknown:
            for keyword in sorted_out.unknown:
                self._options.note(self._at(place), keyword)
        return ways

    def _stays_here(self, schema: dict) -> bool:
        """Whether a schema that may have a name is of the same draft, and its references relative to the same URI."""
        root = self._document.root
        return draft_of(schema, root.draft) == root.draft and base_of(schema, root.base, root.draft) == root.base

    def _has_texts(self, schema: dict) -> bool:
        """Whether it is certain that some text has the pattern of a schema."""
        if schema.get("type", "string") != "string":
            return False
        try:
            return is_certain(Subschema({}, ""), "pattern", schema["pattern"], self._options)
        except GrammarError:  # raised again by the closer look
            return False

    def _joined(self, schema: dict, keyword: str, place: Place, depth: int) -> int:
        """The number of alternatives of what only joins other schemas."""
        if keyword == "$ref":
            target = self._target(schema["$ref"])
            return _NO if target is None else max(self._known(target, (None, schema["$ref"]), depth), _NO)
        branches = schema[keyword]
        if len(branches) > (1 if keyword == "allOf" else BRANCHES):
            return _NO
        if keyword == "oneOf":
            if not self._apart(branches):
                return _NO
            self._told_apart.add(id(schema))
        if "type" in schema and not all(
            self._is_within(branch, types_of(Subschema(schema, ""))) for branch in branches
        ):
            return _NO
        ways = 0
        for i, branch in enumerate(branches):
            if not isinstance(branch, dict):
                return _NO
            if id(branch) in self._ways:
                self._repeated(branch, (place, keyword, i))
            own = self._known(branch, (place, keyword, i), depth)
            if own <= _NO:
                return _NO
            ways += own
        return ways if ways <= BRANCHES else _NO

    def _is_within(self, branch, types: frozenset[str]) -> bool:
        """Whether `types` beside a branch plainly change nothing."""
        target = self._target(branch["$ref"]) if isinstance(branch, dict) and "$ref" in branch else branch
        if not isinstance(target, dict) or not JOINING.isdisjoint(target):
            return False
        return FORMS["type"][0](target.get("type")) and types_of(Subschema(target, "")) <= types

    def _target(self, reference: str) -> dict | None:
        """What a reference means, as it is written; None if that takes a closer look."""
        if reference not in self._targets:
            self._targets[reference] = self._find(reference)
        return self._targets[reference]

    def _find(self, reference: str) -> dict | None:
        root = self._document.root
        found: Any = root.schema
        if not reference.startswith("#/") or any(name in found for name in ("$anchor", "$dynamicAnchor", "id", "$id")):
            return self._find_by_name(reference)
        try:
            for key in pointer_keys(reference[1:]):
                found = found[int(key) if isinstance(found, list) else key]
                if isinstance(found, dict) and ("$id" in found or "id" in found):
                    return self._find_by_name(reference)
        except (KeyError, IndexError, ValueError, TypeError):  # told by the closer look
            return None
        return found if isinstance(found, dict) else None

    def _find_by_name(self, reference: str) -> dict | None:
        root = self._document.root
        try:
            found = self._referred(reference)
        except GrammarError:  # raised again by the closer look
            return None
        here = (found.base, found.draft) == (root.base, root.draft)
        return found.schema if here and isinstance(found.schema, dict) else None

    def _referred(self, reference: str) -> Subschema:
        root = self._document.root
        return self._document.target(Subschema({"$ref": reference}, "", root.base, root.draft))

    def _apart(self, branches: list) -> bool:
        """Whether it is plain that no value fits two branches of a oneOf."""
        shown = [self._shown(branch) for branch in branches]
        kinds = [kind for types, _ in shown for kind in types]
        if len(kinds) == len(set(kinds)):
            return True
        if tells_all_apart([values for _, values in shown]):
            return True
        return len(shown) <= _PAIRS and all(
            types.isdisjoint(others) or differ(mine, theirs)
            for (types, mine), (others, theirs) in combinations(shown, 2)
        )

    def _shown(self, branch) -> tuple[frozenset[str], dict[str | None, Values]]:
        """The types of a branch, and what texts it admits for itself (None) and for required properties."""
        schema: Any = branch
        for _ in range(4):
            if not isinstance(schema, dict) or schema.keys() & FORMS.keys() != {"$ref"}:
                break
            schema = self._target(schema["$ref"]) if isinstance(schema["$ref"], str) else None
        if not isinstance(schema, dict) or "$ref" in schema or not FORMS["type"][0](schema.get("type", "null")):
            return _EVERY, {}
        types = types_of(Subschema(schema, "")) - {"integer"} if "type" in schema else _EVERY
        types = frozenset("number" if kind == "integer" else kind for kind in types)
        values: dict[str | None, Values] = {}
        if (own := self._texts(schema)) is not None:
            values[None] = own
        named, required = schema.get("properties"), schema.get("required")
        if types == {"object"} and isinstance(named, dict) and isinstance(required, list):
            for name in required:
                inner = named.get(name) if isinstance(name, str) else None
                if isinstance(inner, dict) and (own := self._texts(inner)) is not None:
                    values[name] = own
        return types, values

    def _texts(self, schema: dict) -> Values | None:
        """The values of a schema that lists texts, or the pattern of texts; None where it has neither."""
        values = schema.get("enum")
        if values is None and "const" in schema and "const" not in self._different:
            values = [schema["const"]]
        if "$ref" in schema:
            return None
        if values is None and schema.get("type") == "string" and isinstance(schema.get("pattern"), str):
            return Values(frozenset(), (schema["pattern"],))
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            return None
        return Values(frozenset(map(identity, values)))

    def _several(self, schema: dict, said: frozenset[str], place: Place, depth: int) -> bool:
        """Whether a schema of types, bounds, properties and items is plain, with a value that is certain."""
        if not said.isdisjoint(BOUNDS) and not self._in_order(schema, said):
            return False
        kinds = schema.get("type", "null")
        kinds = {kinds} if isinstance(kinds, str) else set(kinds)
        bound = kinds <= _CONTAINERS
        properties, free = schema.get("properties", {}), schema.get("additionalProperties", True)
        required = set(schema.get("required", ())) if bound and "object" in kinds else ()
        if "patternProperties" in said and not self._matched(schema, place, depth):
            return False
        for name, inner in properties.items():
            if not self._leads_to(inner, (place, "properties", name), depth, name in required):
                return False
        beyond = bool(required) and not properties.keys() >= required
        if not self._leads_to(free, (place, "additionalProperties"), depth, beyond):
            return False
        if "items" not in said:
            return True
        needed = bound and "array" in kinds and bool(schema.get("minItems", 0))
        return isinstance(schema["items"], dict) and self._leads_to(schema["items"], (place, "items"), depth, needed)

    def _matched(self, schema: dict, place: Place, depth: int) -> bool:
        """Whether the patterns of names in a schema tell names apart, and match none that it lists."""
        own = Constraints((Subschema(schema, "", "", self._document.root.draft),), self._options)
        try:
            patterns = own.key_patterns
            own.check_patterns()
        except GrammarError:  # raised again by the closer look
            return False
        if not are_apart(patterns):
            return False
        names = [*schema.get("properties", ()), *schema.get("required", ())]
        if any(any(own.matches(pattern, name)) for pattern in patterns for name in names):
            return False
        inner = schema["patternProperties"]
        return all(self._leads_to(inner[p], (place, "patternProperties", p), depth, False) for p in patterns)

    def _in_order(self, schema: dict, said: frozenset[str]) -> bool:
        """Whether there are lengths and numbers between the bounds."""
        bounds = {keyword: schema[keyword] for keyword in said & BOUNDS}
        most = min(MODEST, self._options.limits.repeat)
        if all(type(bound) is int and -most < bound < most for bound in bounds.values()):
            pairs = (("minLength", "maxLength"), ("minItems", "maxItems"), ("minimum", "maximum"))
            if bounds.keys() <= {*pairs[0], *pairs[1], *pairs[2]} and all(
                low not in bounds or high not in bounds or bounds[low] < bounds[high] for low, high in pairs
            ):
                return True
        return are_in_order(Constraints((Subschema(schema, "", "", self._document.root.draft),), self._options))


_EVERY = types_of(Subschema({}, "")) - {"integer"}


class _Sorted(NamedTuple):
    """The keywords of a schema.

    Attributes
    ----------
    kind : str or None
        What kind of schema it is, if the walk knows all of them.
    said : frozenset of str
        Those that restrict values.
    forms : tuple of (callable, str)
        What tells whether the value of each of these has the right form.
    unknown : tuple of str
        Those that the standard doesn't know.
    named, formatted : bool
        Whether it may have a URI or a draft of its own, and a format.
    """

    kind: str | None
    said: frozenset[str]
    forms: tuple
    unknown: tuple[str, ...]
    named: bool
    formatted: bool


@lru_cache(maxsize=4096)
def _sorted_out(keywords: tuple) -> _Sorted:
    """The keywords of a schema sorted out: many schemas have the same ones."""
    texts = [keyword for keyword in keywords if isinstance(keyword, str)]
    said = frozenset(texts) & FORMS.keys()
    unknown = tuple(k for k in texts if k not in FORMS and k not in DESCRIBING and not k.startswith("x-"))
    besides = said - {"type"}
    kinds = {
        "any": not besides,
        "several": besides <= _SEVERAL,
        "joined": len(besides) == 1 and besides <= _JOINING and ("$ref" not in said or len(said) == 1),
        "listed": besides in _LISTED,
        "pattern": besides == _PATTERN,
    }
    kind = next((kind for kind, told in kinds.items() if told), None) if len(texts) == len(keywords) else None
    forms = tuple((_FORMS.get(keyword) or FORMS[keyword][0], keyword) for keyword in keywords if keyword in said)
    named = not {"$id", "id", "$schema"}.isdisjoint(texts)
    return _Sorted(kind, said, forms, unknown, named, "format" in texts)


_FORMS = {
    "type": lambda value: value.__class__ is str and value in TYPES or FORMS["type"][0](value),
    "properties": lambda value: isinstance(value, dict) and are_texts(value),  # the walk comes to each of them
}
"""Keyword -> a check of its value, where there is a quicker one."""
