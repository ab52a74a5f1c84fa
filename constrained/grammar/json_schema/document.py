"""The document that a schema stands in: its subschemas, what `$ref` refers to, and the form of each keyword.

A subschema is named by its JSON pointer (RFC 6901) as a URI fragment, such as ``#/properties/city``.
"""

from __future__ import annotations

import json
import pickle
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from constrained.errors import GrammarError
from constrained.grammar.source import Source
from constrained.limits import Limits

UNSTATED, LATEST = 0, 2020
"""Drafts: 4, 6, 7, 2019, 2020; a document that doesn't say is read as the latest, with older spellings."""

_DRAFTS = {f"json-schema.org/draft-0{n}/schema": n for n in (4, 6, 7)} | {
    "json-schema.org/draft/2019-09/schema": 2019,
    "json-schema.org/draft/2020-12/schema": LATEST,
}
_ADDED = {
    6: "const contains propertyNames $id",
    7: "if then else",
    2019: "dependentRequired dependentSchemas unevaluatedItems unevaluatedProperties minContains maxContains "
    "$anchor $recursiveRef $recursiveAnchor",
    2020: "prefixItems $dynamicRef $dynamicAnchor",
}
_REMOVED = {6: "id", 2019: "dependencies", 2020: "additionalItems $recursiveRef $recursiveAnchor"}
_ABSENT = {
    draft: frozenset(
        [k for since, names in _ADDED.items() if since > draft for k in names.split()]
        + [k for until, names in _REMOVED.items() if until <= draft for k in names.split()]
    )
    for draft in (4, 6, 7, 2019, 2020)
} | {UNSTATED: frozenset()}
"""Draft -> keywords of other drafts, which are annotations in it."""
_BOOLEAN = frozenset(("exclusiveMinimum", "exclusiveMaximum"))
DIFFERENT = {draft: absent | _BOOLEAN if draft <= 4 else absent for draft, absent in _ABSENT.items()}
"""Draft -> keywords that mean something else in it, or nothing."""
_READ_OTHERWISE = {draft: words | {"$ref"} if draft in (4, 6, 7) else words for draft, words in DIFFERENT.items()}
"""Draft -> these, and `$ref` where nothing beside it holds."""

_ONE, _SEVERAL, _NAMED = 1, 2, 3
_SCHEMAS = {
    **dict.fromkeys(("not", "if", "then", "else", "contains", "additionalItems", "additionalProperties"), _ONE),
    **dict.fromkeys(("propertyNames", "unevaluatedItems", "unevaluatedProperties", "contentSchema"), _ONE),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), _SEVERAL),
    "items": _ONE | _SEVERAL,
    **dict.fromkeys(("properties", "patternProperties", "$defs", "definitions"), _NAMED),
    **dict.fromkeys(("dependentSchemas", "dependencies"), _NAMED),
}
"""Where a schema has schemas: at the keyword, in a list, under names."""

NOTING = frozenset("title description default example examples deprecated readOnly writeOnly $comment".split())
"""Keywords of every draft that say nothing of values."""


UNPICKLED = (TypeError, AttributeError, RecursionError, pickle.PicklingError)
"""What is raised where a Python value can't be pickled."""

_NOTED = 10
"""Keywords of one schema that are noted, at most on average."""


class Subschema:
    """One schema, and where it stands.

    Attributes
    ----------
    schema : dict or bool
        As it is written. In one that is made here, schemas below can be Subschema themselves.
    pointer : str
        Its JSON pointer, which identifies it.
    base : str
        The URI that its references are relative to.
    draft : int
    within : frozenset of str
        The pointers of the schemas that it is part of and that hold for the same value.
    keywords : dict
        The keywords that its draft knows, spelt as since draft 6, and their values; none for true and false.
    """

    __slots__ = ("_inner", "_said", "base", "draft", "keywords", "meant", "pointer", "schema", "within")

    def __init__(
        self,
        schema,
        pointer: str,
        base: str = "",
        draft: int = LATEST,
        within: frozenset[str] = frozenset(),
        keywords: dict[Any, Any] | None = None,
    ):
        self.schema, self.pointer, self.base, self.draft, self.within = schema, pointer, base, draft, within
        if keywords is None:
            keywords = _known(schema, draft) if isinstance(schema, dict) else {}
        self.keywords = keywords
        self._inner: dict[tuple, Subschema] | None = None
        self._said: str | None = None
        self.meant: Subschema | None = None  # kept by `Document.meant`

    @property
    def said(self) -> str:
        """What its keywords say, apart from what describes; it tells 1, 1.0 and true apart."""
        if self._said is None:
            self._said = repr([(keyword, value) for keyword, value in self.keywords.items() if keyword not in NOTING])
        return self._said

    def __getitem__(self, keyword) -> Any:
        return self.keywords.get(keyword)

    def __contains__(self, keyword) -> bool:
        return keyword in self.keywords

    def below(self, *keys) -> Subschema:
        """The schema at `keys` below this one, which holds for a part of the value."""
        if self._inner is None:
            self._inner = {}
        found = self._inner.get(keys)
        if found is None:
            found = self._inner[keys] = self._below(*keys)
        return found

    def _below(self, *keys) -> Subschema:
        schema, base, draft = self.schema, self.base, self.draft
        for key in keys:
            schema = schema[key]
        if isinstance(schema, Subschema):
            return schema
        if isinstance(schema, dict) and ("$id" in schema or "id" in schema):
            base, draft = base_of(schema, base, draft), draft_of(schema, draft)
        return Subschema(schema, "/".join((self.pointer, *map(escaped, keys))), base, draft)

    def beside(self, *keys) -> Subschema:
        """The schema at `keys` below this one, which holds for the same value."""
        return self.holding(self.below(*keys))

    def holding(self, other: Subschema) -> Subschema:
        """Another schema as one that holds for the same value as this one."""
        if self._inner is None:
            self._inner = {}
        key = ("", other.pointer)
        found = self._inner.get(key)
        if found is None:
            within = self.within | {self.pointer}
            found = Subschema(other.schema, other.pointer, other.base, other.draft, within, other.keywords)
            self._inner[key] = found
        return found

    def made(self, schema: dict | bool, name: str) -> Subschema:
        """A schema that is made of this one, under a name that no document can give it."""
        return Subschema(schema, f"{self.pointer}\0{name}", self.base, LATEST, self.within)


class Document:
    """A schema with everything that `$ref` can refer to in it.

    Raises
    ------
    GrammarError
        It is not a JSON Schema.
    """

    def __init__(self, schema: dict | bool, limits: Limits):
        self.limits = limits
        self._alike: dict[tuple, Subschema | dict[bytes, Subschema]] = {}  # by what is compared first, then by digest
        self._firsts: dict[str, Subschema] = {}
        self._repeats: dict[str, list[str]] = {}  # of a schema, those that say the same, by their pointers
        draft = draft_of(schema, UNSTATED) if isinstance(schema, dict) else LATEST
        self.root = Subschema(schema, "#", base_of(schema, "", draft), draft)
        self._found: dict[tuple, Subschema] = {}
        self._pointed: dict[str, tuple[dict, tuple] | None] = {}
        self.named: dict[str, dict[str, list[Subschema]]] = {}  # for `plain.members`, by pointer

    @cached_property
    def _root_names(self) -> list[str]:
        return _names(self.root)

    @cached_property
    def by_uri(self) -> dict[str, list[Subschema]]:
        """The schemas with `$id`, `id`, `$anchor` or `$dynamicAnchor`, by their URI."""
        found: dict[str, list[Subschema]] = {"": [self.root], self.root.base: [self.root]}
        work = [self.root]
        while work:
            part = work.pop()
            self.limits.check("depth", part.pointer.count("/") // 2, f"{part.pointer[:60]}...: a schema too deep")
            for uri in _names(part):
                found.setdefault(uri, []).append(part)
            for keyword, kind in _SCHEMAS.items():
                value = part[keyword]
                if isinstance(value, list) and kind & _SEVERAL:
                    work += [part.below(keyword, i) for i in range(len(value))]
                elif isinstance(value, dict):
                    work += [part.below(keyword, k) for k in value] if kind == _NAMED else [part.below(keyword)]
        return found

    def refer(self, part: Subschema, keyword: str = "$ref") -> Subschema:
        """The schema that a reference in `part` refers to, as one that holds for the same value."""
        return part.holding(self.target(part, keyword))

    def meant(self, part: Subschema) -> Subschema:
        """The schema that `part` stands for: what it refers to, the first one that says the same.

        It refers to another one where it is no more than a `$ref`, or an allOf of one schema.
        """
        if part.meant is None:
            part.meant = self._meant(part)
        return part.meant

    def _meant(self, part: Subschema) -> Subschema:
        found = part
        if "$ref" in part.keywords or "allOf" in part.keywords:
            seen = {part.pointer}
            while (inner := self._inner(found)) is not None:
                if inner.pointer in seen:  # in a circle
                    return part
                seen.add(inner.pointer)
                found = inner
        if found.within or not found.keywords or "\0" in found.pointer:
            return found
        if found.pointer not in self._firsts:
            self._firsts[found.pointer] = self._first(found)
        return self._firsts[found.pointer]

    def _first(self, part: Subschema) -> Subschema:
        """The first schema that was asked for of those written alike; generated documents repeat many."""
        said = part.keywords
        named = said.get("properties")
        texts = [value for value in said.values() if value.__class__ is str]  # a title, a type, a reference
        rough = part.base, part.draft, *said, *texts, tuple(named) if isinstance(named, dict) else None
        alike = self._alike.setdefault(rough, part)
        if alike is part:  # most are like no other
            return part
        try:
            if isinstance(alike, Subschema):
                alike = self._alike[rough] = {digest(alike.schema): alike}
            first = alike.setdefault(digest(part.schema), part)
        except UNPICKLED:
            return part
        if first is not part:
            self.note_repeat(first, part)
        return first

    def note_repeat(self, first: Subschema, part: Subschema) -> None:
        """Note that a schema says the same as one that was found before."""
        if part.pointer.startswith(f"{first.pointer}/"):
            what = "the schema is a Python value that contains itself"
            raise GrammarError(f"JSON Schema at {part.pointer}: {what}", hint="write $ref instead")
        self._repeats.setdefault(first.pointer, []).append(part.pointer)

    def add_repeats(self, places: dict[str, None]) -> None:
        """Add to pointers of keywords those of the same keywords in schemas that :meth:`meant` found to be repeats."""
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

    def _inner(self, part: Subschema) -> Subschema | None:
        schema = part.schema
        if not isinstance(schema, dict) or "$ref" not in schema and "allOf" not in schema:
            return None
        (keyword, *others) = schema.keys() - NOTING
        if others:
            return None
        if keyword == "$ref":
            return self.target(part, keyword)
        return part.below(keyword, 0) if isinstance(schema[keyword], list) and len(schema[keyword]) == 1 else None

    def target(self, part: Subschema, keyword: str = "$ref") -> Subschema:
        """The schema that a reference in `part` refers to."""
        reference = part.keywords[keyword]
        if not isinstance(reference, str):
            raise error(part, keyword, "is not text", "write a reference such as '#/$defs/name'")
        key = keyword, part.base, reference
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._refer(part, keyword)
        return found

    def pointed_at(self, reference: str) -> tuple[dict, tuple] | None:
        """The object that a JSON pointer leads to from the root, and its keys; None if one on the way has a name."""
        if reference not in self._pointed:
            self._pointed[reference] = self._find(reference)
        return self._pointed[reference]

    def _find(self, reference: str) -> tuple[dict, tuple] | None:
        if not reference.startswith("#/") or self._has_pointers_as_names:
            return None
        found: Any = self.root.schema
        keys: list[str | int] = []
        try:
            for key in pointer_keys(reference[1:]):
                keys.append(int(key) if isinstance(found, list) else key)
                found = found[keys[-1]]
                if isinstance(found, dict) and ("$id" in found or "id" in found):
                    return None
        except (KeyError, IndexError, ValueError, TypeError):
            return None
        return (found, tuple(keys)) if isinstance(found, dict) else None

    @cached_property
    def _has_pointers_as_names(self) -> bool:
        """Whether what looks like a JSON pointer may be the name of the root."""
        written = self.root.schema if isinstance(self.root.schema, dict) else {}
        anchored = "$anchor" in written or "$dynamicAnchor" in written
        return anchored or any("#/" in str(written.get(name)) for name in ("id", "$id"))

    def _refer(self, part: Subschema, keyword: str) -> Subschema:
        reference = part[keyword]
        if keyword == "$ref" and part.base == self.root.base:
            pointed = self.pointed_at(reference)
            if pointed is not None:  # most
                return self.root.below(*pointed[1])
        uri, fragment = urldefrag(urljoin(part.base, reference) if part.base else reference)
        if uri == self.root.base and (not fragment or fragment.startswith("/")):
            known = [self.root]
        else:
            known = self.by_uri.get(f"{uri}#{fragment}") or self.by_uri.get(uri, [])
        if not known:
            raise error(part, keyword, f"{reference!r} leaves the document", "copy what it refers to under $defs")
        found = known[0]
        if fragment and f"{uri}#{fragment}" not in (self._root_names if found is self.root else _names(found)):
            found = self._at(part, keyword, found, fragment)
        if keyword != "$ref" and self._depends_on_the_way(keyword, found, fragment):
            raise error(
                part, keyword, f"{reference!r} may mean one of several schemas", "write $ref to the one that is meant"
            )
        return found

    def _at(self, part: Subschema, keyword: str, found: Subschema, fragment: str) -> Subschema:
        try:
            schema, keys = found.schema, []
            for key in pointer_keys(fragment) if fragment.startswith("/") else [fragment]:
                keys.append(int(key) if isinstance(schema, list) else key)
                schema = schema[keys[-1]]
                if isinstance(schema, dict) and ("$id" in schema or "id" in schema):  # perhaps another base
                    found, keys = found.below(*keys), []
            return found.below(*keys) if keys else found
        except (KeyError, IndexError, ValueError, TypeError):
            names = ", ".join(f"#/$defs/{name}" for name in self.root["$defs"] or ())
            hint = f"what can be referred to: {names}" if names else "define it under $defs"
            raise error(part, keyword, f"{part[keyword]!r} refers to nothing", hint) from None

    def _depends_on_the_way(self, keyword: str, found: Subschema, fragment: str) -> bool:
        """Whether what a dynamic reference means depends on the references that led to it."""
        if keyword == "$recursiveRef":
            several = [p for parts in self.by_uri.values() for p in parts if p["$recursiveAnchor"] is True]
            return found["$recursiveAnchor"] is True and len({p.pointer for p in several}) > 1
        if found["$dynamicAnchor"] != fragment:
            return False
        several = [p for parts in self.by_uri.values() for p in parts if p["$dynamicAnchor"] == fragment]
        return len({p.pointer for p in several}) > 1


def digest(schema: dict) -> bytes:
    """A key that is equal for schemas that say the same with values of equal types."""
    return blake2b(pickle.dumps(schema, 4), digest_size=16).digest()


def _names(part: Subschema) -> list[str]:
    """The URIs that name a schema."""
    uri = urldefrag(part.base)[0]
    out = [f"{uri}#{part[k]}" for k in ("$anchor", "$dynamicAnchor") if isinstance(part[k], str)]
    for keyword in ("$id", "id"):
        name = part[keyword]
        if isinstance(name, str):
            out.append(urljoin(part.base, name) if name.startswith("#") or part.draft == UNSTATED else uri)
    return out


def _known(schema: dict, draft: int) -> dict:
    """The keywords of a schema that its draft knows, with numbers as exclusive bounds."""
    if _READ_OTHERWISE[draft].isdisjoint(schema):
        return schema
    if draft in (4, 6, 7) and "$ref" in schema:
        return {"$ref": schema["$ref"]}
    absent = _ABSENT[draft]
    old = [k for k in _BOOLEAN if isinstance(schema.get(k), bool) and draft <= 4]
    known = {k: v for k, v in schema.items() if k not in absent and k not in old}
    for keyword in old:
        plain = keyword.replace("exclusiveM", "m")
        if schema[keyword] and plain in known:
            known[keyword] = known.pop(plain)
    return known


def draft_of(schema: dict, before: int) -> int:
    """The draft that a schema says it is of."""
    name = schema.get("$schema")
    if not isinstance(name, str):
        return before
    return _DRAFTS.get(name.split("://")[-1].rstrip("#"), UNSTATED)


def base_of(schema, base: str, draft: int) -> str:
    if not isinstance(schema, dict) or draft in (4, 6, 7) and "$ref" in schema:
        return base
    name = schema.get("id" if draft == 4 else "$id")
    return urljoin(base, name) if isinstance(name, str) and not name.startswith("#") else base


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


def error(part: Subschema, keyword: str, what: str, hint: str | None = None) -> GrammarError:
    """A GrammarError about a keyword of a schema."""
    pointer, *made = part.pointer.split("\0", 1)
    place = f"{pointer}/{escaped(keyword)}" if isinstance(keyword, str) and keyword and not made else pointer
    return GrammarError(f"JSON Schema at {place}: {what}", hint=hint)


def pointer_keys(fragment: str) -> list[str]:
    """The keys of a JSON pointer that stands in a URI's fragment (RFC 6901, section 6)."""
    pointer = unquote(fragment) if "%" in fragment else fragment
    keys = pointer.split("/")[1:]
    return [key.replace("~1", "/").replace("~0", "~") for key in keys] if "~" in pointer else keys


def escaped(key) -> str:
    """A key as it stands in a JSON pointer."""
    if key.__class__ is str and key.isidentifier():  # most
        return key
    return str(key).replace("~", "~0").replace("/", "~1").replace("\0", "\\0")  # \0 marks what is made here
