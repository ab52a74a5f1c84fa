"""The keywords of JSON Schema: what each must be, which only describe, which are refused."""

from __future__ import annotations

from constrained.grammar.json_schema.document import Part, error
from constrained.grammar.json_schema.options import Options

TYPES = ("null", "boolean", "object", "array", "number", "integer", "string")

DESCRIBING = frozenset(
    "$schema $id $anchor $dynamicAnchor $comment $defs $vocabulary definitions title description default example "
    "examples deprecated readOnly writeOnly contentMediaType contentEncoding contentSchema discriminator externalDocs "
    "xml enumNames enumDescriptions markdownDescription format".split()
)
"""Keywords that say nothing about which values are valid; `format`, where it is none of ours."""


DENIED = object()
"""A keyword that no document can hold: values left out, where a `not` was turned into what there may be."""


def _is_count(value) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_json(value, depth: int = 0) -> bool:
    if isinstance(value, (list, dict)):
        inner = value if isinstance(value, list) else value.values()
        keys = all(isinstance(k, str) and _is_text(k) for k in value) if isinstance(value, dict) else True
        return depth < 100 and keys and all(_is_json(v, depth + 1) for v in inner)
    return value is None or isinstance(value, bool) or _is_text(value) or _is_number(value)


def _is_text(value) -> bool:
    return isinstance(value, str) and not any(0xD800 <= ord(c) <= 0xDFFF for c in value)


def _is_number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value and abs(value) < 1e300


def _is_schema(value) -> bool:
    return isinstance(value, (dict, bool))


def _is_schemas(value) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_schema, value))


def _is_named_schemas(value) -> bool:
    return isinstance(value, dict) and all(_is_text(k) and _is_schema(v) for k, v in value.items())


def _is_names(value) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_type(value) -> bool:
    types = [value] if isinstance(value, str) else value
    return isinstance(types, list) and bool(types) and all(isinstance(t, str) and t in TYPES for t in types)


_COUNT = (_is_count, "a whole number, not negative")
_NUMBER = (_is_number, "a number (below 1e300)")
_SCHEMA = (_is_schema, "a schema: an object, true or false")
_SCHEMAS = (_is_schemas, "a list of schemas, not empty")
_NAMED = (_is_named_schemas, "an object of schemas")
_TEXT = (_is_text, "text")

FORMS = {
    "type": (_is_type, "one or several of " + ", ".join(TYPES)),
    "enum": (lambda value: isinstance(value, list) and _is_json(value), "a list of JSON values"),
    "const": (_is_json, "a JSON value"),
    "$ref": _TEXT,
    "allOf": _SCHEMAS,
    "anyOf": _SCHEMAS,
    "oneOf": _SCHEMAS,
    "not": _SCHEMA,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _NUMBER),
    "multipleOf": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _COUNT),
    **dict.fromkeys(("minProperties", "maxProperties", "minContains"), _COUNT),
    "pattern": _TEXT,
    "prefixItems": _SCHEMAS,
    "items": (lambda value: _is_schema(value) or _is_schemas(value), "a schema"),
    "additionalItems": _SCHEMA,
    "contains": _SCHEMA,
    "uniqueItems": (lambda value: isinstance(value, bool), "true or false"),
    "properties": _NAMED,
    "patternProperties": _NAMED,
    "additionalProperties": _SCHEMA,
    "unevaluatedProperties": _SCHEMA,
    "propertyNames": _SCHEMA,
    "required": (_is_names, "a list of names"),
    "dependentRequired": (
        lambda value: isinstance(value, dict) and all(map(_is_names, value.values())),
        "lists of names",
    ),
    "dependentSchemas": _NAMED,
    "dependencies": (lambda value: isinstance(value, dict), "an object"),
}
"""Keyword -> whether a value of it is one, and what it should be."""

_REFUSED = {
    "if": "write it as anyOf: what holds in the one case, and what in the other",
    "then": "write it as anyOf: what holds in the one case, and what in the other",
    "else": "write it as anyOf: what holds in the one case, and what in the other",
    "unevaluatedItems": "write prefixItems with items: false",
    "maxContains": "say with items and maxItems what there may be",
    "$dynamicRef": "write $ref: in one document it can mean one schema only",
    "$recursiveRef": "write $ref: in one document it can mean one schema only",
    "nullable": 'write "type": [..., "null"]',
    "id": "write $id",
}

_ALONE_MEANINGLESS = {"then": "if", "else": "if", "maxContains": "contains"}


def check(part: Part, options: Options) -> None:
    """Look at the keywords of one schema.

    Raises
    ------
    GrammarError
        A keyword has no value it can have, or is one that is refused.
    """
    if isinstance(part.schema, bool):
        return
    if not isinstance(part.schema, dict):
        raise error(part, "", f"{str(part.schema)[:80]!r} is not a schema", "a schema is an object, true or false")
    for keyword, value in part.schema.items():
        if keyword is DENIED:
            continue
        if not isinstance(keyword, str):
            raise error(part, "", f"{keyword!r} is not a keyword", "the keys of JSON objects are text")
        if keyword in FORMS:
            good, what = FORMS[keyword]
            if not good(value):
                raise error(part, keyword, f"{str(value)[:80]!r} is not {what}", _old_form(keyword, value))
        elif not _says_nothing(keyword, value, part):
            options.refuse(part, keyword, *_unknown(keyword))


def _says_nothing(keyword: str, value, part: Part) -> bool:
    if keyword in DESCRIBING or keyword.startswith("x-") or keyword == "nullable" and value is False:
        return True
    if keyword == "if":
        return "then" not in part and "else" not in part
    return keyword in _ALONE_MEANINGLESS and _ALONE_MEANINGLESS[keyword] not in part


def _unknown(keyword: str) -> tuple[str, str]:
    if keyword in _REFUSED:
        return f"{keyword} is not supported", _REFUSED[keyword]
    return f"{keyword[:80]!r} is no keyword that is known here", "correct it"


def _old_form(keyword: str, value) -> str | None:
    if keyword.startswith("exclusive") and isinstance(value, bool):
        return f'since draft 6 the bound itself stands here: "{keyword}": 5'
    if keyword == "required" and isinstance(value, bool):
        return "since draft 4 the object lists the names that are required"
    return "see what json-schema.org says of the keyword"
