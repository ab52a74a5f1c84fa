"""The document that a schema stands in: its subschemas, what `$ref` refers to, and the form of each keyword.

A subschema is named by its JSON pointer (RFC 6901) as a URI fragment, such as ``#/properties/city``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from constrained.errors import GrammarError
from constrained.limits import Limits

_NO_SCHEMAS = frozenset({"enum", "const", "default", "examples", "example"})


@dataclass(frozen=True)
class Subschema:
    """One schema, and where it stands.

    Attributes
    ----------
    schema : dict or bool
    pointer : str
        Its JSON pointer, which identifies it.
    base : str
        The URI that its references are relative to.
    within : frozenset of str
        The pointers of the schemas that it is part of and that hold for the same value.
    """

    schema: dict[Any, Any] | bool
    pointer: str
    base: str = ""
    within: frozenset[str] = frozenset()

    @property
    def keywords(self) -> dict[Any, Any]:
        """The keywords and their values; none for true and false."""
        return self.schema if isinstance(self.schema, dict) else {}

    def __getitem__(self, keyword) -> Any:
        return self.keywords.get(keyword)

    def __contains__(self, keyword) -> bool:
        return keyword in self.keywords

    def below(self, *keys) -> Subschema:
        """Return the schema at `keys` below this one, which holds for a part of the value."""
        schema: Any = self.schema
        pointer = self.pointer
        for key in keys:
            schema, pointer = schema[key], f"{pointer}/{escaped(key)}"
        return Subschema(schema, pointer, _base(schema, self.base))

    def beside(self, *keys) -> Subschema:
        """Return the schema at `keys` below this one, which holds for the same value."""
        inner = self.below(*keys)
        return Subschema(inner.schema, inner.pointer, inner.base, self.within | {self.pointer})


class Document:
    """A schema with everything that `$ref` can refer to in it.

    Raises
    ------
    GrammarError
        It is not a JSON Schema, or nested too deeply.
    """

    def __init__(self, schema: dict | bool, limits: Limits):
        self.limits = limits
        self.by_uri: dict[str, Subschema] = {}  # by `$id` and `$anchor`
        self.root = Subschema(schema, "#", _base(schema, ""))
        self.by_uri.update({"": self.root, self.root.base: self.root})
        self._collect()

    def _collect(self) -> None:
        work = [(self.root, 0)]
        while work:
            part, depth = work.pop()
            if depth > self.limits.depth:
                self.limits.check("depth", depth, f"{part.pointer[:60]}...: a schema {depth} levels deep")
            schema = part.schema
            if isinstance(schema, list):
                below = range(len(schema))
            elif isinstance(schema, dict):
                below = [key for key in schema if isinstance(key, str) and key not in _NO_SCHEMAS]
                self._name(part)
            else:
                continue
            work.extend((part.below(key), depth + 1) for key in below)

    def _name(self, part: Subschema) -> None:
        schema = part.keywords
        if isinstance(schema.get("$id"), str):
            self.by_uri.setdefault(urldefrag(part.base)[0], part)
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(schema.get(keyword), str):
                self.by_uri.setdefault(f"{urldefrag(part.base)[0]}#{schema[keyword]}", part)

    def refer(self, part: Subschema) -> Subschema:
        """Return the schema that `$ref` in `part` refers to."""
        reference = part["$ref"]
        if not isinstance(reference, str):
            raise error(part, "$ref", "is not text", "write a reference such as '#/$defs/name'")
        uri, fragment = urldefrag(urljoin(part.base, reference) if part.base else reference)
        found = self.by_uri.get(f"{uri}#{fragment}") or self.by_uri.get(uri)
        if found is None:
            raise error(part, "$ref", f"{reference!r} leaves the document", "copy what it refers to under $defs")
        if not fragment or f"{uri}#{fragment}" in self.by_uri:
            return _for_same_value(found, part)
        for key in unquote(fragment).split("/")[1:] if fragment.startswith("/") else [fragment]:
            key = key.replace("~1", "/").replace("~0", "~")
            try:
                found = found.below(int(key) if isinstance(found.schema, list) else key)
            except (KeyError, IndexError, ValueError, TypeError):
                known = ", ".join(f"#/$defs/{name}" for name in self.root["$defs"] or ())
                hint = f"what can be referred to: {known}" if known else "define it under $defs"
                raise error(part, "$ref", f"{reference!r} refers to nothing", hint) from None
        return _for_same_value(found, part)


def _for_same_value(found: Subschema, part: Subschema) -> Subschema:
    return Subschema(found.schema, found.pointer, found.base, part.within | {part.pointer})


def read_schema(schema, limits: Limits, what: str = "a JSON Schema"):
    """Return a schema, or other JSON, that is given as Python values, as JSON text, or as the path of a file.

    Raises
    ------
    GrammarError
        There is no such file, or it is not JSON.
    """
    if isinstance(schema, str) and schema.lstrip()[:1] in ("{", "[") or schema in ("true", "false"):
        text, name = schema, "JSON"
    elif isinstance(schema, (str, Path)):
        name = Path(schema).name
        try:
            if Path(schema).exists() and not Path(schema).is_file():  # a folder, or a pipe that might never end
                raise OSError("it is not a file")
            text = Path(schema).read_text(encoding="utf-8")
        except (OSError, ValueError) as problem:
            hint = f"give {what} as a dict, as JSON text, or as a path"
            raise GrammarError(f"can't read {str(schema)[:200]!r}: {problem}", hint=hint) from None
    else:
        return schema
    limits.check("characters", len(text), f"{name}: {what} of {len(text)} characters")
    try:
        return json.loads(text)
    except json.JSONDecodeError as problem:
        line = text.split("\n")[problem.lineno - 1]
        context = f"{line}\n{' ' * (problem.colno - 1)}^" if len(line) < 200 else ""
        raise GrammarError(
            f"does not parse: {problem.msg}", line=problem.lineno, column=problem.colno, context=context, source=name
        ) from None
    except (RecursionError, ValueError) as problem:
        raise GrammarError(f"{name} does not parse: {problem or 'nested too deeply'}") from None


def error(part: Subschema, keyword: str, what: str, hint: str | None = None) -> GrammarError:
    """Return a GrammarError about a keyword of a schema."""
    place = f"{part.pointer}/{escaped(keyword)}" if keyword else part.pointer
    return GrammarError(f"JSON Schema at {place}: {what}", hint=hint)


def escaped(key) -> str:
    """Return a key as it stands in a JSON pointer."""
    return str(key).replace("~", "~0").replace("/", "~1")


def _base(schema, base: str) -> str:
    name = schema.get("$id") if isinstance(schema, dict) else None
    return urljoin(base, name) if isinstance(name, str) else base


@dataclass(frozen=True)
class Options:
    """See `Grammar.from_json_schema`.

    Attributes
    ----------
    left_out : dict
        Its keys are the pointers of keywords that are not honoured.
    """

    limits: Limits
    any_order: bool = False
    closed: bool = False
    lenient: bool = False
    left_out: dict[str, None] = field(default_factory=dict)

    def refuse(self, part: Subschema, keyword: str, what: str, hint: str) -> None:
        """Leave a keyword out if `lenient`; else raise GrammarError."""
        if not self.lenient:
            raise error(part, keyword, what, f"{hint}; or lenient=True leaves it out")
        self.left_out[f"{part.pointer}/{escaped(keyword)}"] = None


TYPES = ("null", "boolean", "object", "array", "number", "integer", "string")

DESCRIBING = frozenset(
    "$schema $id $anchor $dynamicAnchor $comment $defs $vocabulary definitions title description default example "
    "examples deprecated readOnly writeOnly contentMediaType contentEncoding contentSchema discriminator externalDocs "
    "xml enumNames enumDescriptions markdownDescription format".split()
)
"""Keywords that don't restrict values; `format`, where it is not enforced."""


DENIED = object()
"""A keyword that no document can contain: the values that a `not` leaves out."""


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
"""Keyword -> a check of its value, and what the value should be."""

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


def check(part: Subschema, options: Options) -> None:
    """Check the keywords of one schema.

    Raises
    ------
    GrammarError
        A keyword's value has the wrong form, or the keyword is not supported.
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


def _says_nothing(keyword: str, value, part: Subschema) -> bool:
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
