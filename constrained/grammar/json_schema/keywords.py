"""The keywords: which draft has which, the form of each one's value, and what is not supported.

A document says its draft by `$schema`. Where it doesn't, or names a schema of its own, it is read as draft 2020-12 with
what older drafts wrote in another way. A keyword that its draft doesn't know is an annotation, as the standard says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from sys import float_info

from constrained.grammar.json_schema.document import LATEST, NOTING, Subschema, error, escaped
from constrained.grammar.json_schema.patterns import PATTERNS as FORMATS
from constrained.grammar.nodes import Distinct
from constrained.limits import Limits


@dataclass(frozen=True)
class Options:
    """See `Grammar.from_json_schema`.

    Attributes
    ----------
    left_out : dict
        Its keys are the pointers of keywords that are not honoured.
    unknown : dict
        Its keys are the pointers of annotations that are no keywords of the standard's.
    distinct : dict or None
        Rule -> what differs in what it reads (`nodes.Distinct`); None where that can't be remembered.
    closing : str
        What ends the text that the JSON stands in, such as ``</tool_call>``, and so may not stand literally in its
        strings; its first character occurs in it once. Empty if there is none.
    """

    limits: Limits
    any_order: bool = False
    closed: bool = False
    lenient: bool = False
    strict: bool = False
    formats: bool = True
    left_out: dict[str, None] = field(default_factory=dict)
    unknown: dict[str, None] = field(default_factory=dict)
    distinct: dict[str, Distinct] | None = None
    closing: str = ""

    def refuse(self, part: Subschema, keyword: str, what: str, hint: str) -> None:
        """Leave a keyword out if `lenient`; else raise GrammarError."""
        if not self.lenient:
            raise error(part, keyword, what, f"{hint}; or lenient=True leaves it out")
        self.left_out[f"{part.pointer}/{escaped(keyword)}"] = None

    def enforces(self, format_name) -> bool:
        """Whether a `format` of that name restricts strings."""
        return self.formats and isinstance(format_name, str) and format_name in FORMATS

    def note(self, part: Subschema, keyword: str) -> None:
        """Note a keyword that the standard doesn't know, and so takes for an annotation; if `strict`, raise."""
        if self.strict:
            raise error(
                part, keyword, f"{keyword[:80]!r} is no keyword that is known here", "correct it, or leave it out"
            )
        self.unknown[f"{part.pointer}/{escaped(keyword)}"] = None


TYPES = ("null", "boolean", "object", "array", "number", "integer", "string")
EVERY = frozenset(TYPES)

DESCRIBING = frozenset(
    "$schema $id id $anchor $dynamicAnchor $recursiveAnchor $comment $defs $vocabulary definitions title description "
    "default example "
    "examples deprecated readOnly writeOnly contentMediaType contentEncoding contentSchema discriminator externalDocs "
    "xml enumNames enumDescriptions markdownDescription format".split()
)
"""Keywords that don't restrict values; `format`, where it is not enforced."""


class Made:
    """A keyword that is made here of others; no document can contain it."""


DENIED = Made()
"""Values left out."""
UNMATCHED = Made()
"""A pattern that a string doesn't match."""
NO_FORMAT = Made()
"""A format that a string doesn't have."""
NO_MULTIPLE = Made()
"""What a number is no multiple of."""
SOME_ITEM = Made()
"""(first, schema): of the items from that index on, one at least fits the schema."""
SOME_PROPERTY = Made()
"""(kind, schema, pattern, value): there is a property whose value fits `value` (None: any), and whose name matches
the pattern ("pattern"), or is none that `schema` itself lists ("other"), or fits `schema` ("name")."""


PRESENT = Made()
"""A condition on which names an object has (`presence.py`)."""


_SURROGATE = re.compile("[\ud800-\udfff]")


def _is_count(value) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_json(value, depth: int = 0) -> bool:
    if isinstance(value, (list, dict)):
        inner = value if isinstance(value, list) else value.values()
        keys = are_texts(value) if isinstance(value, dict) else True
        return depth < 100 and keys and (are_texts(inner) or all(_is_json(v, depth + 1) for v in inner))
    return value is None or isinstance(value, bool) or _is_text(value) or _is_number(value)


def _is_text(value) -> bool:
    return isinstance(value, str) and (value.isascii() or not _SURROGATE.search(value))


def are_texts(values: Iterable) -> bool:
    """Whether all values are text that JSON can hold."""
    try:
        return "".join(values).isascii() or all(map(_is_text, values))
    except TypeError:  # one is no text
        return False


def _is_number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= float_info.max


def _is_schema(value) -> bool:
    return isinstance(value, (dict, bool))


def _is_schemas(value) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_schema, value))


def _is_named_schemas(value) -> bool:
    return isinstance(value, dict) and are_texts(value) and all(map(_is_schema, value.values()))


def _is_names(value) -> bool:
    return isinstance(value, list) and are_texts(value)


def _is_type(value) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return isinstance(value, list) and bool(value) and all(isinstance(t, str) and t in TYPES for t in value)


_COUNT = (_is_count, "a whole number, not negative")
_NUMBER = (_is_number, "a number that a double holds")
_SCHEMA = (_is_schema, "a schema: an object, true or false")
_SCHEMAS = (_is_schemas, "a list of schemas, not empty")
_NAMED = (_is_named_schemas, "an object of schemas")
_TEXT = (_is_text, "text")

FORMS = {
    "type": (_is_type, "one or several of " + ", ".join(TYPES)),
    "enum": (lambda value: isinstance(value, list) and _is_json(value), "a list of JSON values"),
    "const": (_is_json, "a JSON value"),
    **dict.fromkeys(("$ref", "$dynamicRef", "$recursiveRef"), _TEXT),
    **dict.fromkeys(("if", "then", "else"), _SCHEMA),
    "allOf": _SCHEMAS,
    "anyOf": _SCHEMAS,
    "oneOf": _SCHEMAS,
    "not": _SCHEMA,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _NUMBER),
    "multipleOf": (lambda value: _is_number(value) and value > 0, "a number above 0"),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _COUNT),
    **dict.fromkeys(("minProperties", "maxProperties", "minContains", "maxContains"), _COUNT),
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
    "unevaluatedItems": _SCHEMA,
    "propertyNames": _SCHEMA,
    "required": (_is_names, "a list of names"),
    "dependentRequired": (
        lambda value: isinstance(value, dict) and all(map(_is_names, value.values())),
        "lists of names",
    ),
    "dependentSchemas": _NAMED,
    "dependencies": (lambda value: isinstance(value, dict), "an object"),
}
"""Keyword -> a check of its value, and what the value should be."""


def check(part: Subschema, options: Options) -> None:
    """Check the keywords of one schema.

    Raises
    ------
    GrammarError
        A keyword's value has the wrong form, or the keyword is not supported.
    """
    schema = part.schema
    if isinstance(schema, bool) or "\0" in part.pointer:  # what is made here is well formed
        return
    if not isinstance(schema, dict):
        raise error(part, "", f"{str(schema)[:80]!r} is not a schema", "a schema is an object, true or false")
    if part.pointer.count("/") // 2 > options.limits.depth:
        options.limits.check("depth", part.pointer.count("/") // 2, f"{part.pointer[:60]}...: a schema too deep")
    known = part.keywords
    dialect = schema.get("$schema")
    if isinstance(dialect, str) and "json-schema.org/" not in dialect:
        what = f"{dialect[:80]!r} may define other keywords than the standard"
        options.refuse(part, "$schema", what, "name a draft of json-schema.org, or leave it out")
    for keyword in schema:
        if not isinstance(keyword, str):
            raise error(part, "", f"{keyword!r} is not a keyword", "the keys of JSON objects are text")
        if keyword in FORMS and keyword in known:
            good, what = FORMS[keyword]
            value = known[keyword]
            if not good(value):
                raise error(part, keyword, f"{str(value)[:80]!r} is not {what}", _old_form(keyword, value))
            if keyword == "items" and isinstance(value, list) and part.draft == LATEST:
                raise error(
                    part, keyword, "a list of schemas is not a schema", "since draft 2020-12 it is written prefixItems"
                )
        elif keyword not in DESCRIBING and keyword not in FORMS and not keyword.startswith("x-"):
            options.note(part, keyword)


_ALONE = {kind: frozenset((kind, "integer") if kind == "number" else (kind,)) for kind in TYPES}
_TYPING = NOTING | {"type"}
_FREEING = ("additionalProperties", "additionalItems")


def is_type(schema) -> bool:
    """Whether a schema names no more than a type, and so needs no check."""
    if schema is True:
        return True
    return isinstance(schema, dict) and schema.keys() <= _TYPING and schema.get("type", "null") in TYPES


def types_of(part: Subschema) -> frozenset[str]:
    """The types that a schema's own `type` admits."""
    return types_named(part.keywords.get("type"))


def types_named(value: str | list[str] | None) -> frozenset[str]:
    """The types that a `type` of that value admits; None: there is none."""
    if value.__class__ is str and value in _ALONE:  # most
        return _ALONE[value]
    if value is None:
        return EVERY
    types = frozenset([value] if isinstance(value, str) else value)
    return types | {"integer"} if "number" in types else types


def says_nothing(schema) -> bool:
    """Whether it is plain that every value fits a schema."""
    if not isinstance(schema, dict):
        return schema is True
    return all(k in NOTING or k in _FREEING and v is True for k, v in schema.items())


def dependencies(part: Subschema, keyword: str) -> list[tuple[str, list[str], Subschema | None]]:
    """Each name, the names that an object with it needs, and the schema that it must fit then."""
    out = []
    for name, needs in part[keyword].items():
        names = [needs] if isinstance(needs, str) else needs if isinstance(needs, list) else None
        out.append((name, names or [], part.beside(keyword, name) if names is None else None))
    return out


def is_known(keyword) -> bool:
    """Whether a keyword restricts values."""
    return keyword in FORMS or isinstance(keyword, Made)


def _old_form(keyword: str, value) -> str | None:
    if keyword.startswith("exclusive") and isinstance(value, bool):
        return f'since draft 6 the bound itself stands here: "{keyword}": 5'
    if keyword == "required" and isinstance(value, bool):
        return "since draft 4 the object lists the names that are required"
    return "see what json-schema.org says of the keyword"
