"""Python types as JSON Schemas: pydantic models and adapters, dataclasses, typed dictionaries, and type hints."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from constrained.errors import GrammarError

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_HINT = (
    "use str, int, float, bool, None, Literal, an Enum, list, dict, TypedDict, a dataclass, | of these, or a pydantic "
    "model"
)


def as_schema(given: Any) -> Any:
    """The JSON Schema of a Python type or of a pydantic `TypeAdapter`; anything else as it is.

    Raises
    ------
    GrammarError
        It is a type that has no JSON Schema.
    """
    if given is None or isinstance(given, (Mapping, bool, str, Path, int, float, list, tuple)):
        return given
    if hasattr(given, "model_json_schema") or callable(getattr(given, "json_schema", None)):
        return of_pydantic(given, f"JSON Schema of {_name(given)}")
    if not isinstance(given, type) and typing.get_origin(given) is None:
        return given
    defs: dict[str, Any] = {}
    schema = schema_of(given, _name(given), defs)
    return {**schema, "$defs": defs} if defs else schema


def of_pydantic(kind: Any, where: str) -> dict[str, Any]:
    """The JSON Schema that pydantic makes of a model, an adapter, or a dataclass of its own.

    Raises GrammarError: it makes none, as of a model with a field that JSON can't hold.
    """
    if not hasattr(kind, "model_json_schema") and not hasattr(kind, "json_schema"):
        from pydantic import TypeAdapter  # it is there: it made the class

        kind = TypeAdapter(kind)
    try:
        return kind.model_json_schema() if hasattr(kind, "model_json_schema") else kind.json_schema()
    except Exception as error:  # whatever the model's own code raises
        reason = " ".join(str(error).split("\n\n")[0].split())
        raise GrammarError(f"{where}: pydantic makes none: {reason:.300}", "use types that JSON can hold") from None


def schema_of(kind: Any, where: str, defs: dict[str, Any]) -> dict[str, Any]:
    """The JSON Schema of a type.

    Parameters
    ----------
    kind : type or type hint
    where : str
        What is of that type, for messages.
    defs : dict
        Definitions that the schema refers to are added to it.

    Raises
    ------
    GrammarError
        It has none.
    """
    return _Reader(where, defs).schema(kind)


class _Reader:
    """Reads type hints; `open` are the classes whose members are being read, so that recursion leads back to them."""

    def __init__(self, where: str, defs: dict[str, Any]):
        self.where, self.defs = where, defs
        self.open: dict[type, str] = {}
        self.recursive: set[str] = set()

    def schema(self, kind: Any) -> dict[str, Any]:
        origin, given = typing.get_origin(kind), typing.get_args(kind)
        # The order matters: `Annotated` hides the type in it, and enums and models are classes like `list`.
        if origin is typing.Annotated:
            notes = (note if isinstance(note, str) else getattr(note, "description", None) for note in given[1:])
            schema = self.schema(given[0])
            return {**schema, "description": text} if (text := next(filter(None, notes), None)) else schema
        if kind is Any:
            return {}
        if kind is None or kind in _PLAIN:
            return {"type": _PLAIN[type(None) if kind is None else kind]}
        if origin is typing.Literal:
            return {"enum": list(given)}
        if origin in (typing.Union, types.UnionType):
            return {"anyOf": [self.schema(member) for member in given]}
        if origin in (typing.Required, typing.NotRequired):
            return self.schema(given[0])
        if isinstance(kind, type) and issubclass(kind, Enum):
            return {"enum": [member.value for member in kind]}
        if hasattr(kind, "model_json_schema") or hasattr(kind, "__pydantic_core_schema__"):
            schema = dict(of_pydantic(kind, self.where))
            self.defs.update(schema.pop("$defs", {}))
            return schema
        if typing.is_typeddict(kind):
            return self._object(kind, kind.__required_keys__)
        if dataclasses.is_dataclass(kind):
            fields = [field for field in dataclasses.fields(kind) if field.init]
            missing = dataclasses.MISSING
            needed = {f.name for f in fields if f.default is missing and f.default_factory is missing}
            return self._object(kind, needed, {field.name for field in fields})
        if (origin or kind) in (list, set, frozenset, Sequence):
            return {"type": "array", "items": self.schema(given[0] if given else Any)}
        if (origin or kind) in (dict, Mapping):
            return {"type": "object", "additionalProperties": self.schema(given[1] if given else Any) or True}
        what = f"{self.where} is of type {getattr(kind, '__name__', kind)}, which has no JSON Schema"
        raise GrammarError(what, _HINT)

    def _object(self, kind: Any, required: set[str] | frozenset[str], among: set[str] | None = None) -> dict[str, Any]:
        """The schema of a class with hints for its members."""
        if kind in self.open:
            self.recursive.add(self.open[kind])
            return {"$ref": f"#/$defs/{self.open[kind]}"}
        name, number = kind.__name__, 1
        while name in self.defs or name in self.open.values():
            number += 1
            name = f"{kind.__name__}{number}"
        self.open[kind] = name
        try:
            hints = typing.get_type_hints(kind, include_extras=True)
        except (TypeError, NameError) as error:
            raise GrammarError(f"{self.where}: the types of {kind.__name__} can't be read: {error}", _HINT) from None
        properties = {name: self.schema(hint) for name, hint in hints.items() if among is None or name in among}
        del self.open[kind]
        schema = {"type": "object", "properties": properties, "required": sorted(required)}
        if name not in self.recursive:
            return schema
        self.defs[name] = schema
        return {"$ref": f"#/$defs/{name}"}


def _name(kind: Any) -> str:
    return str(getattr(kind, "__name__", None) or type(kind).__name__)
