"""Schemas as they are written: of what kind they are by their keywords, and what shows of the properties of objects."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from constrained.grammar.json_schema.alternatives import CONDITIONAL
from constrained.grammar.json_schema.document import DIFFERENT
from constrained.grammar.json_schema.keywords import DESCRIBING, EVERY, FORMS, TYPES, are_texts, types_named
from constrained.grammar.json_schema.plain import BOUNDS

OF_OBJECTS = frozenset(("properties", "required", "additionalProperties", "patternProperties"))
_SEVERAL = BOUNDS | OF_OBJECTS | CONDITIONAL | {"type", "items"}
_KINDS = dict.fromkeys(("$ref", "allOf", "anyOf", "oneOf"), "joined") | dict.fromkeys(("enum", "const"), "listed")
_KINDS["pattern"] = "pattern"
"""Keyword -> what kind of schema has it alone."""
OBJECT = frozenset(("object",))
_REFERENCE, _TYPE = frozenset(("$ref",)), frozenset(("type",))
_OTHERWISE = {draft: keywords - DESCRIBING for draft, keywords in DIFFERENT.items()}
_PAIRED = 16
"""Outlines that are compared two by two."""


class Sorted(NamedTuple):
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
    formatted : bool
        Whether it may have a format.
    """

    kind: str | None
    said: frozenset[str]
    forms: tuple
    unknown: tuple[str, ...]
    formatted: bool


@lru_cache(maxsize=4096)
def sorted_out(keywords: tuple, draft: int) -> Sorted:
    """The keywords of a schema of a draft sorted out: many schemas have the same ones."""
    forms = [(_FORMS[keyword], keyword) for keyword in keywords if keyword in _FORMS]
    others = [keyword for keyword in keywords if keyword not in _FORMS and keyword not in DESCRIBING]
    said = frozenset([keyword for _, keyword in forms])
    alone = "$ref" in said and draft in (4, 6, 7)  # nothing beside a reference holds
    if alone:
        said = _REFERENCE
        forms = [one for one in forms if one[1] in said]
    told = said.isdisjoint(_OTHERWISE[draft])
    if others:  # few schemas have any
        told = told and all(isinstance(keyword, str) for keyword in others)
        others = [keyword for keyword in others if isinstance(keyword, str) and not keyword.startswith("x-")]
    besides = said - _TYPE
    kind = None
    if not told:
        pass
    elif not besides:
        kind = "any"
    elif len(besides) == 1 and not besides.isdisjoint(_KINDS):
        (only,) = besides
        kind = _KINDS[only] if only != "$ref" or len(said) == 1 else None
    elif besides <= _SEVERAL:
        kind = "several"
    return Sorted(kind, said, tuple(forms), tuple(others), "format" in keywords and not alone)


_FORMS = {keyword: good for keyword, (good, _) in FORMS.items()} | {
    "type": lambda value: value.__class__ is str and value in TYPES or FORMS["type"][0](value),
    "properties": lambda value: isinstance(value, dict) and are_texts(value),  # the walk comes to each of them
}
"""Keyword -> a check of its value, where there is a quicker one than when it is written."""
_READ = [(keyword, _FORMS[keyword]) for keyword in ("type", "required", "properties")]
"""Keywords that an outline reads, and checks of their values."""


def is_readable(schema: dict) -> bool:
    """Whether keywords that an outline reads have the right form."""
    return all(good(schema[keyword]) for keyword, good in _READ if keyword in schema)


class Outline(NamedTuple):
    """What a schema, as it is written, plainly says of its values.

    Attributes
    ----------
    types : frozenset of str
        Their types, whole numbers being numbers.
    required : set of str
        The properties of every object.
    listed : dict of str to set of str
        The texts that an enum lists, for some of these.
    named : set of str or None
        Objects have no other properties than these.
    """

    types: frozenset[str]
    required: set[str]
    listed: dict[str, set[str]]
    named: set[str] | None

    def differs(self, other: Outline) -> bool:
        """Whether plainly no object fits both."""
        if any(self.listed[name].isdisjoint(other.listed[name]) for name in self.listed.keys() & other.listed):
            return True
        pairs = ((self, other), (other, self))
        return any(one.named is not None and not two.required <= one.named for one, two in pairs)


def outline(parts: list[dict], conjuncts: Callable[[dict], list[dict]]) -> Outline:
    """The outline of schemas that hold together; `conjuncts`: those that hold wherever another one does."""
    types = EVERY.intersection(*[types_named(part.get("type")) for part in parts])
    if types != OBJECT:
        return Outline(types - {"integer"} | {"number"} if "integer" in types else types, set(), {}, None)
    required = {name for part in parts for name in part.get("required", ())}
    listed: dict[str, set[str]] = {}
    named: set[str] | None = None
    for part in parts:
        own = part.get("properties", {})
        for name in required & own.keys():
            for said in conjuncts(own[name]) if isinstance(own[name], dict) else ():
                if isinstance(said.get("enum"), list) and are_texts(said["enum"]):
                    listed[name] = set(said["enum"])
        if part.get("additionalProperties") is False and "patternProperties" not in part:
            named = set(own)
    return Outline(types, required, listed, named)


def are_different(outlines: list[Outline]) -> bool:
    """Whether plainly no value fits two of some schemas: by their types, or by the properties of objects."""
    objects = [one for one in outlines if one.types == OBJECT]
    kinds = [kind for one in outlines if one.types != OBJECT for kind in one.types] + ["object"] * bool(objects)
    if len(kinds) > len(set(kinds)):
        return False
    for name in set.intersection(*(set(one.listed) for one in objects)) if objects else ():
        values = [value for one in objects for value in one.listed[name]]
        if len(values) == len(set(values)):
            return True
    return len(objects) <= _PAIRED and all(one.differs(other) for one, other in combinations(objects, 2))
