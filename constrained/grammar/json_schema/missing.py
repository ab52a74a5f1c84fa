"""Why no value fits a schema, where that is a property that is required and may not be there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from constrained.errors import GrammarError
from constrained.grammar.json_schema.alternatives import Alternatives
from constrained.grammar.json_schema.constraints import Constraints
from constrained.grammar.json_schema.document import Document, Subschema, error
from constrained.grammar.json_schema.keywords import Options


def missing_property(schema: Any, options: Options) -> GrammarError | None:
    """An error that names the required property that no object may have; None if that isn't what is wrong.

    Parameters
    ----------
    schema : dict or bool
        A schema that no value fits.
    options : Options
    """
    document = Document(schema, options.limits)
    return _missing([document.root], Alternatives(document, options), {})


def _missing(parts: list[Subschema], alternatives: Alternatives, seen: dict) -> GrammarError | None:
    """Of schemas that hold together, the first such property, in the object itself or in what it must have inside."""
    key = tuple(part.pointer for part in parts)
    if key in seen:
        return None
    seen[key] = None
    for constraints in alternatives.constraints_of(parts):
        inside = []
        for part, names in constraints.all("required"):
            for name in names:
                below = constraints.property(name)
                if any(one.schema is False for one in below):
                    return _named(constraints, part, name)
                inside.append(below)
        for below in inside:
            if below and (found := _missing(below, alternatives, seen)) is not None:
                return found
    return None


def _named(constraints: Constraints, part: Subschema, name: str) -> GrammarError:
    listed: Iterable[str] = [known for _, properties in constraints.all("properties") for known in properties]
    if name in listed:
        return error(part, "required", f"{name!r} is required, and its schema admits no value", "correct its schema")
    what = f"{name!r} is required, but properties lacks it, and no others may be there"
    return error(part, "required", what, f"add {name!r} to properties, or leave it out of required")
