"""Decode fields of JSON by the types that they are annotated with.

A field of a simple type is the JSON value itself, bytes are a string, tuples and dictionaries are lists. Any other
object is its index in a table; so are texts, as equal ones are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

Texts = tuple[bytes, ...]
"""Sorted texts; equal ones are one object of the table."""

Decoder = Callable[[list, Any], Any]
"""Takes the objects read so far and a field as JSON; returns the field, or raises ValueError for another type."""


def decoder(kind: Any) -> Decoder:
    """The decoder of fields of a type."""
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _union(args)
    if origin in (dict, Mapping):
        key, value = map(decoder, args)
        return lambda objects, data: {key(objects, k): value(objects, v) for k, v in _typed(list, data)}
    if _json_type(kind) is list:
        items = [decoder(arg) for arg in args if arg is not Ellipsis]
        if len(items) < len(args):
            return lambda objects, data: tuple([items[0](objects, part) for part in _typed(list, data)])
        return lambda objects, data: tuple([item(objects, part) for item, part in zip(items, data, strict=True)])
    if kind is bytes:
        return lambda objects, data: to_bytes(_typed(str, data))
    return reference(kind) if _json_type(kind) is None else lambda objects, data: _typed(kind, data)


def _union(kinds: Iterable[Any]) -> Decoder:
    """The decoder of fields of one of several types, each of which JSON writes in another way."""
    decoders = {_json_type(kind): decoder(kind) for kind in kinds}
    if None in decoders:
        decoders[int] = reference(*(kind for kind in kinds if _json_type(kind) is None))

    def decode(objects: list, data: Any) -> Any:
        check(type(data) in decoders, f"{data!r} in a field")
        return decoders[type(data)](objects, data)

    return decode


def _json_type(kind: Any) -> type | None:
    """The type of the JSON value that encodes a field of type `kind`; None for objects, encoded by their index."""
    if kind in (int, str, bool, NoneType):
        return kind
    if kind is bytes:
        return str
    return list if get_origin(kind) in (dict, Mapping, tuple) and kind != Texts else None


def reference(*kinds: Any) -> Decoder:
    """The decoder of references to objects of some types."""
    types = tuple(tuple if kind == Texts else kind for kind in kinds)

    def decode(objects: list, index: Any) -> Any:
        referent = objects[index] if type(index) is int and 0 <= index < len(objects) else None
        check(isinstance(referent, types), f"no such object among {len(objects)}: {index!r}")
        return referent

    return decode


def _typed(kind: type, data: Any) -> Any:
    check(type(data) is kind, f"{data!r} in a field")
    return data


def check(fine: Any, complaint: str) -> None:
    """Raise ValueError with `complaint` unless `fine`."""
    if not fine:
        raise ValueError(complaint)


def to_bytes(text: str) -> bytes:
    """The bytes that a JSON string encodes, one for each of its characters (U+0000 to U+00FF)."""
    return text.encode("latin-1")
