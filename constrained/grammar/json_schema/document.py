"""The document a schema stands in: its text, its places, and what `$ref` refers to.

A place is named by its JSON pointer (RFC 6901) as a URI fragment, such as ``#/properties/city``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

from constrained.errors import GrammarError
from constrained.limits import Limits

_NO_SCHEMAS = frozenset({"enum", "const", "default", "examples", "example"})


@dataclass(frozen=True)
class Part:
    """One schema, and where it stands.

    Attributes
    ----------
    schema : dict or bool
    at : str
        Its JSON pointer; names it among all schemas.
    base : str
        The URI that its references are relative to.
    within : frozenset of str
        The places of the schemas that it is a part of, and that hold for the same value.
    """

    schema: dict | bool
    at: str
    base: str = ""
    within: frozenset[str] = frozenset()

    def __getitem__(self, keyword: str):
        return self.schema.get(keyword) if isinstance(self.schema, dict) else None

    def __contains__(self, keyword: str) -> bool:
        return isinstance(self.schema, dict) and keyword in self.schema

    def below(self, *keys) -> Part:
        """The schema at `keys` below this one, which holds for a part of the value."""
        schema, at = self.schema, self.at
        for key in keys:
            schema, at = schema[key], f"{at}/{escaped(key)}"
        return Part(schema, at, _base(schema, self.base))

    def beside(self, *keys) -> Part:
        """The schema at `keys` below this one, which holds for the same value."""
        inner = self.below(*keys)
        return Part(inner.schema, inner.at, inner.base, self.within | {self.at})


class Document:
    """A schema with all that `$ref` may refer to in it.

    Raises
    ------
    GrammarError
        It is no JSON Schema, or nested too deeply.
    """

    def __init__(self, schema: dict | bool, limits: Limits):
        self.limits = limits
        self.places: dict[str, Part] = {}  # URI -> the schema with that `$id`, `$anchor` or pointer
        self.root = Part(schema, "#", _base(schema, ""))
        self.places.update({"": self.root, self.root.base: self.root})
        self._collect()

    def _collect(self) -> None:
        work = [(self.root, 0)]
        while work:
            part, depth = work.pop()
            if depth > self.limits.depth:
                self.limits.check("depth", depth, f"{part.at[:60]}...: a schema {depth} levels deep")
            schema = part.schema
            if isinstance(schema, list):
                below = range(len(schema))
            elif isinstance(schema, dict):
                below = [key for key in schema if isinstance(key, str) and key not in _NO_SCHEMAS]
                self._name(part)
            else:
                continue
            work.extend((part.below(key), depth + 1) for key in below)

    def _name(self, part: Part) -> None:
        schema = part.schema
        if isinstance(schema.get("$id"), str):
            self.places.setdefault(urldefrag(part.base)[0], part)
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(schema.get(keyword), str):
                self.places.setdefault(f"{urldefrag(part.base)[0]}#{schema[keyword]}", part)

    def refer(self, part: Part) -> Part:
        """The schema that `$ref` in `part` means."""
        reference = part["$ref"]
        if not isinstance(reference, str):
            raise error(part, "$ref", "is not text", "write a reference such as '#/$defs/name'")
        uri, fragment = urldefrag(urljoin(part.base, reference) if part.base else reference)
        found = self.places.get(f"{uri}#{fragment}") or self.places.get(uri)
        if found is None:
            raise error(part, "$ref", f"{reference!r} leaves the document", "copy what it refers to under $defs")
        if not fragment or f"{uri}#{fragment}" in self.places:
            return self._for_same_value(found, part)
        for key in unquote(fragment).split("/")[1:] if fragment.startswith("/") else [fragment]:
            key = key.replace("~1", "/").replace("~0", "~")
            try:
                found = found.below(int(key) if isinstance(found.schema, list) else key)
            except (KeyError, IndexError, ValueError, TypeError):
                known = ", ".join(f"#/$defs/{name}" for name in self.root["$defs"] or ())
                hint = f"what can be referred to: {known}" if known else "define it under $defs"
                raise error(part, "$ref", f"{reference!r} refers to nothing", hint) from None
        return self._for_same_value(found, part)

    def _for_same_value(self, found: Part, part: Part) -> Part:
        return Part(found.schema, found.at, found.base, part.within | {part.at})


def read_schema(schema, limits: Limits, what: str = "a JSON Schema"):
    """A schema, or other JSON, given as Python values, as JSON text, or as the path of a file.

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


def error(part: Part, keyword: str, what: str, hint: str | None = None) -> GrammarError:
    """A GrammarError about a keyword of a schema."""
    place = f"{part.at}/{escaped(keyword)}" if keyword else part.at
    return GrammarError(f"JSON Schema at {place}: {what}", hint=hint)


def escaped(key) -> str:
    """A key as it stands in a JSON pointer."""
    return str(key).replace("~", "~0").replace("/", "~1")


def _base(schema, base: str) -> str:
    name = schema.get("$id") if isinstance(schema, dict) else None
    return urljoin(base, name) if isinstance(name, str) else base
