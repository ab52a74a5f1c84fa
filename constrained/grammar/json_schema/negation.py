"""What a schema leaves out: its complement as alternatives, keyword by keyword (De Morgan's laws).

A value is not valid under a schema if it breaks one of the keywords. What breaks a keyword is a schema again, with one
of the keywords below where the standard has none for it.
"""

from __future__ import annotations

from constrained.grammar.json_schema.document import Subschema
from constrained.grammar.json_schema.keywords import (
    DENIED,
    NO_FORMAT,
    NO_MULTIPLE,
    SOME_ITEM,
    SOME_PROPERTY,
    TYPES,
    UNMATCHED,
    Options,
    dependencies,
    is_known,
)
from constrained.grammar.json_schema.settled import listed_by, only_lists

Alternative = list[Subschema]
"""Schemas that hold together."""

_NUMBERS = ["number"]
_BOUNDS = {
    "minimum": "exclusiveMaximum",
    "maximum": "exclusiveMinimum",
    "exclusiveMinimum": "maximum",
    "exclusiveMaximum": "minimum",
}
_COUNTS = {
    "Length": "string",
    "Items": "array",
    "Properties": "object",
}


class Negation:
    """The complements of schemas.

    Parameters
    ----------
    options : Options
    refer : callable
        Subschema, keyword -> the schema it refers to.
    """

    def __init__(self, options: Options, refer):
        self.options, self.refer = options, refer

    def __call__(self, part: Subschema) -> list[Alternative]:
        """The alternatives of not being valid under `part`."""
        if not isinstance(part.schema, dict):
            return [] if part.schema else [[]]
        out: list[Alternative] = []
        for keyword, value in part.keywords.items():
            if not is_known(keyword) and not (keyword == "format" and self.options.enforces(value)):
                continue
            found = self._broken(part, keyword, value)
            if found is None:
                what = f"what breaks this {keyword} can't be written down, and a not, oneOf or if asks for it"
                self.options.refuse(part, keyword, what, "say instead what there may be")
            else:
                out += found
        return self._apart(part, out)

    def _apart(self, part: Subschema, alternatives: list[Alternative]) -> list[Alternative]:
        """The alternatives, told apart by a property that must be there and lists its values, if there is one.

        Such a property is often a tag, and other schemas list other values of it. So where several of them are left
        out together, most combinations of alternatives contradict themselves.
        """
        named = part["properties"] or {}
        tag = next((k for k in part["required"] or () if k in named and _is_tag(part.below("properties", k))), None)
        if tag is None:
            return alternatives
        without = {f"{part.pointer}\0not {keyword} {tag}" for keyword in ("required", "properties")}
        fits = {"required": [tag], "properties": {tag: part.below("properties", tag)}}
        having = part.made(fits, f"not beside {tag}")
        return [
            one if one[0].pointer in without or one[0]["type"] not in (None, "object") else [*one, having]
            for one in alternatives
        ]

    def _broken(self, part: Subschema, keyword: str, value) -> list[Alternative] | None:
        """The alternatives of breaking one keyword; None if they can't be written down."""

        def made(schema: dict, name: str = "") -> Subschema:
            return part.made(schema, f"not {keyword} {name}".rstrip())

        def no(inner: Subschema) -> Subschema:
            return made({"not": inner}, inner.pointer)

        def no_part(inner: Subschema) -> Subschema:
            """The complement of a schema for a part of the value, which may well refer to the whole again."""
            found = no(inner)
            return Subschema(found.schema, found.pointer, found.base, found.draft)

        def no_value(inner: Subschema) -> Subschema | None:
            return None if inner.schema is False else no_part(inner)

        # A value breaks a keyword if it is of the type that the keyword is about and fits one of the alternatives.
        # Keywords that say nothing by themselves (`then`, `minContains`) are handled with the one they belong to.
        if keyword in _BOUNDS:
            return [[made({"type": _NUMBERS, _BOUNDS[keyword]: value})]]
        if keyword[3:] in _COUNTS:
            kind, what, count = _COUNTS[keyword[3:]], keyword[3:], int(value)
            if keyword.startswith("min"):
                return [[made({"type": kind, f"max{what}": count - 1})]] if count else []
            return [[made({"type": kind, f"min{what}": count + 1})]]
        match keyword:
            case "type":
                return self._other_types([value] if isinstance(value, str) else value, made)
            case "const" | "enum":
                values = value if keyword == "enum" else [value]
                inner = [v for v in values if isinstance(v, (list, dict))]
                plain = [v for v in values if not isinstance(v, (list, dict))]
                return [[made({DENIED: plain}), *(no(made(_only(v), f"{i}")) for i, v in enumerate(inner))]]
            case "multipleOf":
                return [[made({"type": _NUMBERS, NO_MULTIPLE: value})]]
            case "pattern":
                return [[made({"type": "string", UNMATCHED: value})]]
            case "format":
                return [[made({"type": "string", NO_FORMAT: value})]]
            case "$ref" | "$dynamicRef" | "$recursiveRef":
                return [[no(self.refer(part, keyword))]]
            case "allOf":
                return [[no(part.beside(keyword, i))] for i in range(len(value))]
            case "anyOf":
                return [[no(part.beside(keyword, i)) for i in range(len(value))]]
            case "oneOf":
                branches = [part.beside(keyword, i) for i in range(len(value))]
                pairs = [[a, b] for i, a in enumerate(branches) for b in branches[:i]]
                return [[no(branch) for branch in branches], *pairs]
            case "not":
                return [[part.beside("not")]]
            case "if":
                then = [[part.beside("if"), no(part.beside("then"))]] if "then" in part else []
                return then + ([[no(part.beside("if")), no(part.beside("else"))]] if "else" in part else [])
            case "then" | "else" | "minContains" | "maxContains":
                return []
            case "items" | "prefixItems" | "additionalItems":
                return self._items(part, keyword, value, made, no_part)
            case "contains":
                low, high = int(part.keywords.get("minContains", 1)), part["maxContains"]
                item = part.below("contains")
                fewer = made({"type": "array", "contains": item, "minContains": 0, "maxContains": low - 1}, "fewer")
                out = [[fewer]] if low else []
                if high is not None:
                    out.append([made({"type": "array", "contains": item, "minContains": int(high) + 1}, "more")])
                return out
            case "uniqueItems":
                return None if value else []
            case "required":
                return [[made({"type": "object", "properties": {name: False}}, name)] for name in value]
            case "properties":
                return [
                    [made({"type": "object", "required": [k], "properties": {k: no_part(part.below(keyword, k))}}, k)]
                    for k in value
                ]
            case "patternProperties":
                return [
                    [made({"type": "object", SOME_PROPERTY: ("pattern", part, k, no_value(part.below(keyword, k)))}, k)]
                    for k in value
                ]
            case "additionalProperties":
                return [[made({"type": "object", SOME_PROPERTY: ("other", part, None, no_value(part.below(keyword)))})]]
            case "propertyNames":
                return [[made({"type": "object", SOME_PROPERTY: ("name", no_part(part.below(keyword)), None, None)})]]
            case "dependentRequired" | "dependentSchemas" | "dependencies":
                out = []
                for name, names, schema in dependencies(part, keyword):
                    has = made({"type": "object", "required": [name]}, f"{name} has")
                    breaking = [made({"properties": {other: False}}, f"{name} {other}") for other in names]
                    out += [[has, one] for one in [*breaking, *([no(schema)] if schema else [])]]
                return out
        return None

    def _other_types(self, types: list[str], made) -> list[Alternative]:
        out = []
        if left := [t for t in TYPES if t not in types and t != "integer"]:
            if "integer" in types and "number" in left:
                left.remove("number")
                out.append([made({"type": _NUMBERS, NO_MULTIPLE: 1}, "fraction")])
            if left:
                out.append([made({"type": left})])
        return out

    def _items(self, part: Subschema, keyword: str, value, made, no) -> list[Alternative]:
        if isinstance(value, list):
            return [
                [
                    made(
                        {"type": "array", "minItems": i + 1, "prefixItems": [True] * i + [no(part.below(keyword, i))]},
                        str(i),
                    )
                ]
                for i in range(len(value))
            ]
        if keyword == "additionalItems" and not isinstance(part["items"], list):
            return []
        own = part["items"] if keyword == "additionalItems" else part["prefixItems"]
        first = len(own) if isinstance(own, list) else 0
        return [[made({"type": "array", SOME_ITEM: (first, no(part.below(keyword)))})]]


def _is_tag(part: Subschema) -> bool:
    """Whether a schema does no more than list values, none of them an array or object."""
    listed = listed_by(part) if only_lists(part) else None
    return listed is not None and not any(isinstance(value, (list, dict)) for value in part["enum"] or [part["const"]])


def _only(value) -> dict:
    """The schema that only this array or object fits."""
    if isinstance(value, list):
        count = len(value)
        items = {"prefixItems": [{"const": v} for v in value]} if value else {}
        return {"type": "array", "minItems": count, "maxItems": count, **items}
    named = {name: {"const": v} for name, v in value.items()}
    return {"type": "object", "properties": named, "required": list(value), "additionalProperties": False}
