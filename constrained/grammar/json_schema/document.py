"""The document that a schema stands in: its subschemas, what `$ref` refers to, and which schemas say the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from constrained.errors import GrammarError
from constrained.grammar.json_schema import keywords
from constrained.grammar.json_schema.keywords import LATEST, UNSTATED
from constrained.grammar.json_schema.options import Options
from constrained.grammar.json_schema.shape import Join, Schema, Shape
from constrained.grammar.json_schema.values import escaped
from constrained.grammar.source import Source
from constrained.limits import Limits

_NOTED = 10
"""Keywords of one schema that are noted, at most on average."""


class Context:
    """What the meaning of a schema depends on besides itself: the URI of its references, and its draft."""

    def __init__(self, document: Document, base: str, draft: int):
        self.document, self.base, self.draft = document, base, draft
        self._schemas: dict[int, Schema] = {}  # by the identity of what is written
        self._references: dict[str, Schema] = {}  # those that are no more than a `$ref`, by its text

    def schema(self, raw: Any, above: Schema | None, keys: tuple) -> Schema:
        """The schema that stands at `keys` below another one; each Python value, and each reference, is one schema."""
        found = keywords.common(raw)
        if found is not None:
            return found
        text = keywords.only_refers(raw)
        if text is not None and above is not None:
            found = self._references.get(text)
            if found is None:
                found = self._references[text] = Schema(None, above, keys, raw, self.document.read, self)
            return found
        if raw.__class__ is dict and keywords.has_own_uri(raw):
            inner = self.document.context(
                keywords.base_of(raw, self.base, self.draft), keywords.draft_of(raw, self.draft)
            )
            return inner._schema(raw, above, keys)
        return self._schema(raw, above, keys)

    def _schema(self, raw: Any, above: Schema | None, keys: tuple) -> Schema:
        found = self._schemas.get(id(raw))
        if found is None:
            found = self._schemas[id(raw)] = Schema(None, above, keys, raw, self.document.read, self)
        elif (found.above is not above or found.keys != keys) and above is not None:
            self.document.note_repeat(found, "/".join((above.pointer, *map(escaped, keys))))
        return found


class Document:
    """A schema with everything that `$ref` can refer to in it.

    Raises
    ------
    GrammarError
        It is not a JSON Schema.
    """

    def __init__(self, schema: Any, options: Options):
        self.options, self.limits = options, options.limits
        self._alike: dict[tuple, Schema | dict[bytes, Schema]] = {}  # by what is compared first, then by digest
        self._firsts: dict[Schema, Schema] = {}
        self._repeats: dict[str, list[str]] = {}  # of a schema, those that say the same, by their pointers
        draft = keywords.draft_of(schema, UNSTATED) if isinstance(schema, dict) else LATEST
        self._contexts: dict[tuple[str, int], Context] = {}
        self._home = self.context(keywords.base_of(schema, "", draft), draft)
        boolean = keywords.common(schema) if schema.__class__ is bool else None
        self.root: Schema = boolean or self._home._schema(schema, None, ())
        self._source = schema
        self._found: dict[tuple, Schema] = {}

    def context(self, base: str, draft: int) -> Context:
        key = base, draft
        if key not in self._contexts:
            self._contexts[key] = Context(self, base, draft)
        return self._contexts[key]

    def read(self, node: Schema) -> Shape:
        """What a schema says: see `keywords.read`."""
        return keywords.read(node, self.options)

    # what stands for a schema

    def resolved(self, node: Schema) -> Schema:
        """The schema that one stands for: what it refers to, if it is no more than a `$ref`, or an allOf of one."""
        if node.resolved is None:
            found = node
            if node.shape.joins:
                seen = {node}
                while (inner := self._inner(found)) is not None:
                    if inner in seen:  # in a circle
                        found = node
                        break
                    seen.add(inner)
                    found = inner
            node.resolved = found
        return node.resolved

    def first(self, node: Schema) -> Schema:
        """The first schema that was asked for of those that say what a schema stands for."""
        found = self.resolved(node)
        if found.made or found.context is None:
            return found
        if found not in self._firsts:
            self._firsts[found] = self._first(found)
        return self._firsts[found]

    def _inner(self, node: Schema) -> Schema | None:
        shape = node.shape
        if len(shape.joins) != 1 or len(shape.keywords) != 1 or shape.own:
            return None
        join = shape.joins[0]
        if join.how == "ref":
            return self.target(node, join) if join.keyword == "$ref" else None
        return join.schemas[0] if join.how == "all" and len(join.schemas) == 1 else None

    def _first(self, node: Schema) -> Schema:
        rough = (node.context, *keywords.rough(node.source))
        alike = self._alike.setdefault(rough, node)
        if alike is node:  # most are like no other
            return node
        try:
            if isinstance(alike, Schema):
                alike = self._alike[rough] = {digest(alike.source): alike}
            first = alike.setdefault(digest(node.source), node)
        except RecursionError:  # too deep for `repr`
            return node
        if first is not node:
            self.note_repeat(first, node.pointer)
        return first

    # repeats

    def note_repeat(self, first: Schema, pointer: str) -> None:
        """Note that a schema says the same as one that was found before."""
        if first.pointer == pointer:
            return
        if pointer.startswith(f"{first.pointer}/"):
            what = "the schema is a Python value that contains itself"
            raise GrammarError(f"JSON Schema at {pointer}: {what}", hint="write $ref instead")
        self._repeats.setdefault(first.pointer, []).append(pointer)

    def add_repeats(self, places: dict[str, None]) -> None:
        """Add to pointers of keywords those of the same keywords in schemas that were found to be repeats."""
        work = list(places)
        while work:
            place = work.pop()
            what = "a JSON Schema of Python values that repeat too often"
            self.limits.check("schema", len(places) // _NOTED, what)
            self.limits.check("depth", place.count("/") // 2, f"{place[:60]}...: a schema too deep")
            end = place.rfind("/")
            while end > 0:
                for pointer in self._repeats.get(place[:end], ()):
                    other = pointer + place[end:]
                    if other not in places:
                        places[other] = None
                        work.append(other)
                end = place.rfind("/", 0, end)

    # references

    def target(self, node: Schema, join: Join) -> Schema:
        """The schema that a reference of a schema refers to."""
        context = node.context or self._home
        key = join.keyword, context, join.to
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._target(node, context, join)
        return found

    def _target(self, node: Schema, context: Context, join: Join) -> Schema:
        keyword, reference = join.keyword, join.to
        if reference.startswith("#"):  # most; not every URI can be joined
            uri, fragment = context.base, reference[1:]
        else:
            uri, fragment = urldefrag(urljoin(context.base, reference))
        if uri == self._home.base and (not fragment or fragment.startswith("/")):
            known = [self.root]
        else:
            known = self._by_uri.get(f"{uri}#{fragment}") or self._by_uri.get(uri, [])
        if not known:
            raise node.error(keyword, f"{reference!r} leaves the document", "copy what it refers to under $defs")
        found = known[0]
        if fragment and f"{uri}#{fragment}" not in self._uris(found):
            found = self._at(node, join, found, fragment)
        if keyword != "$ref" and self._depends_on_the_way(keyword, found, fragment):
            what = f"{reference!r} may mean one of several schemas"
            raise node.error(keyword, what, "write $ref to the one that is meant")
        return found

    def _at(self, node: Schema, join: Join, found: Schema, fragment: str) -> Schema:
        with suppress(KeyError, IndexError, ValueError, TypeError):
            raw, keys = found.source, []
            for key in pointer_keys(fragment) if fragment.startswith("/") else [fragment]:
                keys.append(int(key) if isinstance(raw, list) else key)
                raw = raw[keys[-1]]
                if isinstance(raw, dict) and keywords.has_own_uri(raw):  # perhaps another base
                    found, keys = (found.context or self._home).schema(raw, found, tuple(keys)), []
            return (found.context or self._home).schema(raw, found, tuple(keys)) if keys else found
        names = ", ".join(f"#/$defs/{name}" for name in keywords.definitions(self._source))
        hint = f"what can be referred to: {names}" if names else "define it under $defs"
        raise node.error(join.keyword, f"{join.to!r} refers to nothing", hint)

    @cached_property
    def _by_uri(self) -> dict[str, list[Schema]]:
        """The schemas with `$id`, `id`, `$anchor` or `$dynamicAnchor`, by their URI."""
        found: dict[str, list[Schema]] = {"": [self.root], self._home.base: [self.root]}
        for node in self._every():
            for uri in self._uris(node):
                found.setdefault(uri, []).append(node)
        return found

    def _every(self) -> Iterator[Schema]:
        """Yield all schemas of the document that have keywords."""
        work = [self.root]
        for node in work:  # which grows meanwhile
            if node.context is None:
                continue
            self.limits.check("depth", node.depth, f"{node.pointer[:60]}...: a schema too deep")
            yield node
            for keys in keywords.inside(node.source, node.context.draft):
                raw = node.source
                for key in keys:
                    raw = raw[key]
                work.append(node.context.schema(raw, node, keys))

    def _uris(self, node: Schema) -> list[str]:
        return keywords.uris_of(node.source, node.context.base, node.context.draft) if node.context else []

    def _depends_on_the_way(self, keyword: str, found: Schema, fragment: str) -> bool:
        """Whether what a dynamic reference means depends on the references that led to it."""
        if not keywords.dynamic(found.source, keyword, fragment):
            return False
        every = {node for nodes in self._by_uri.values() for node in nodes}
        return sum(keywords.dynamic(node.source, keyword, fragment) for node in every) > 1


def digest(schema: dict) -> bytes:
    """A key that is equal for schemas that say the same, apart from what describes; it tells 1, 1.0 and true apart."""
    return blake2b(repr(keywords.described(schema)).encode(), digest_size=16).digest()


def read_schema(schema, limits: Limits, what: str = "a JSON Schema"):
    """A schema, or other JSON, that is given as Python values, as JSON text, or as the path of a file.

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
        what = f"does not parse: {problem.msg}"
        raise Source(text, name, None).error(what, None, problem.lineno, problem.colno) from None
    except (RecursionError, ValueError) as problem:
        raise GrammarError(f"{name} does not parse: {problem or 'nested too deeply'}") from None


def pointer_keys(fragment: str) -> list[str]:
    """The keys of a JSON pointer that stands in a URI's fragment (RFC 6901, section 6)."""
    pointer = unquote(fragment) if "%" in fragment else fragment
    keys = pointer.split("/")[1:]
    return [key.replace("~1", "/").replace("~0", "~") for key in keys] if "~" in pointer else keys
