"""JSON values: their types, which are equal, and the forms that a keyword's value may have."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cached_property
from sys import float_info
from typing import Any, NamedTuple

TYPES = ("null", "boolean", "object", "array", "number", "integer", "string")
EVERY = frozenset(TYPES)
"""All types; whole numbers are of "integer", and of "number", too."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def exact(value: int | float) -> Any:
    """The number exactly as it is written: an integer, or a Fraction."""
    return value if isinstance(value, int) else Fraction(repr(value))


def identity(value):
    """A key that is equal for equal JSON values: 1 is 1.0 but not true."""
    if isinstance(value, str):  # most
        return (False, value)
    if isinstance(value, list):
        return ("array", *map(identity, value))
    if isinstance(value, dict):
        return frozenset((k, identity(v)) for k, v in value.items())
    return (isinstance(value, bool), value)


def type_of(value) -> str:
    """A value's type; "integer" for whole numbers."""
    match value:
        case str():
            return "string"
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "integer" if value == value // 1 else "number"
    return "array" if isinstance(value, list) else "object"


class Listed:
    """A list of values (enum, const), and their identities."""

    def __init__(self, values: list):
        self.values = values

    @cached_property
    def identities(self) -> frozenset:
        return frozenset(map(identity, self.values))


def escaped(key) -> str:
    """A key as it stands in a JSON pointer."""
    if key.__class__ is str and key.isidentifier():  # most
        return key
    return str(key).replace("~", "~0").replace("/", "~1")


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
        return value in EVERY
    return isinstance(value, list) and bool(value) and all(isinstance(t, str) and t in TYPES for t in value)


class Form(NamedTuple):
    """A check of a keyword's value, and what the value should be."""

    good: Callable[[Any], bool]
    what: str


COUNT = Form(_is_count, "a whole number, not negative")
NUMBER = Form(_is_number, "a number that a double holds")
SCHEMA = Form(_is_schema, "a schema: an object, true or false")
SCHEMAS = Form(_is_schemas, "a list of schemas, not empty")
NAMED = Form(_is_named_schemas, "an object of schemas")
TEXT = Form(_is_text, "text")
TYPE = Form(_is_type, "one or several of " + ", ".join(TYPES))
VALUES = Form(lambda value: isinstance(value, list) and _is_json(value), "a list of JSON values")
VALUE = Form(_is_json, "a JSON value")
DIVISOR = Form(lambda value: _is_number(value) and value > 0, "a number above 0")
ITEMS = Form(lambda value: _is_schema(value) or _is_schemas(value), "a schema")
FLAG = Form(lambda value: isinstance(value, bool), "true or false")
NAMES = Form(_is_names, "a list of names")
NAME_LISTS = Form(lambda value: isinstance(value, dict) and all(map(_is_names, value.values())), "lists of names")
OBJECT = Form(lambda value: isinstance(value, dict), "an object")
ANY = Form(lambda value: True, "anything")
