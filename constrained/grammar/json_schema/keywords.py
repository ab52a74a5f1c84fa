"""The keywords of JSON Schema, a row each: which drafts have it, its form, and what it says, read into a `shape.Shape`.

This is the only module that reads keywords as they are written. A document says its draft by `$schema`. Where it
doesn't, or names a schema of its own, it is read as draft 2020-12 with what older drafts wrote in another way. A
keyword that its draft doesn't know is an annotation, as the standard says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from typing import Any, NamedTuple
from urllib.parse import urldefrag, urljoin

from constrained.grammar.json_schema import values
from constrained.grammar.json_schema.options import Options
from constrained.grammar.json_schema.shape import (
    ANYTHING,
    NOTHING,
    Items,
    Join,
    MemberGroup,
    Members,
    Numbers,
    Row,
    Schema,
    Shape,
    Strings,
    Wanted,
)
from constrained.grammar.json_schema.values import EVERY, TYPES, Listed, exact

UNSTATED, LATEST = 0, 2020
"""Drafts: 4, 6, 7, 2019, 2020; a document that doesn't say is read as the latest, with older spellings."""

_DRAFTS = {f"json-schema.org/draft-0{n}/schema": n for n in (4, 6, 7)} | {
    "json-schema.org/draft/2019-09/schema": 2019,
    "json-schema.org/draft/2020-12/schema": LATEST,
}
_REACHED = 10**9
"""A greater bound on a length or a count, such as 2,147,483,647, counts as none: no text comes to it."""

NOTING = frozenset("title description default example examples deprecated readOnly writeOnly $comment".split())
"""Keywords of every draft that say nothing of values."""
DESCRIBING = NOTING | frozenset(
    "$schema $id id $anchor $dynamicAnchor $recursiveAnchor $defs $vocabulary definitions contentMediaType "
    "contentEncoding contentSchema discriminator externalDocs xml enumNames enumDescriptions markdownDescription "
    "format".split()
)
"""Keywords that don't restrict values; `format`, where it is not enforced."""


# readers of values


class Reading:
    """One schema that is being read: what was found of it so far, by the name of its field in `Shape`.

    `keyword` is the one that is read now, and `at` where it stands among the schema's.
    """

    __slots__ = ("at", "context", "found", "inner", "joins", "keyword", "node", "options", "raw")

    def __init__(self, node: Schema, raw: dict, options: Options):
        self.node, self.raw, self.options, self.context = node, raw, options, node.context
        self.found: dict[str, Any] = {}
        self.inner: dict[str, dict[str, Any]] = {}  # of numbers, strings, items and members
        self.joins: list[Join] = []
        self.keyword, self.at = "", 0

    def schema(self, *keys) -> Schema:
        """The schema at these keys."""
        raw: Any = self.raw
        for key in keys:
            raw = raw[key]
        return self.context.schema(raw, self.node, keys)

    def named(self, keyword: str) -> dict[str, Schema]:
        """The schemas of a keyword, by their names."""
        if keyword not in self.raw:
            return {}
        schema, node = self.context.schema, self.node
        return {name: schema(raw, node, (keyword, name)) for name, raw in self.raw[keyword].items()}

    def say(self, record: str, what: str, value: Any) -> None:
        """Note a field of `Numbers`, `Strings`, `Items` or `Members`."""
        if record in self.inner:
            self.inner[record][what] = value
        else:
            self.inner[record] = {what: value}

    def join(self, how: str, schemas: Iterable[Schema], **said: Any) -> None:
        self.joins.append(Join(how, self.at, tuple(schemas), self.keyword, **said))


Reader = Callable[[Reading, Any], None]
"""What reads a keyword's value."""


def _types(one: Reading, value) -> None:
    named = [value] if isinstance(value, str) else value
    one.found["types"] = frozenset().union(*[_ALONE[kind] for kind in named])


def _enum(one: Reading, value) -> None:
    one.found["listed"] = (*one.found.get("listed", ()), Listed(value))


def _const(one: Reading, value) -> None:
    _enum(one, [value])


def _bound(side: str, strict: bool) -> Reader:
    def read(one: Reading, value) -> None:
        bound = exact(value), strict
        before = one.inner.get("numbers", {}).get(side)
        if before is not None and (
            before > bound if side == "low" else (before[0], not before[1]) < (bound[0], not strict)
        ):
            bound = before
        one.say("numbers", side, bound)

    return read


def _said(record: str, field: str, of: Callable[[Any], Any]) -> Reader:
    """What says a field of a type's record: `of` the keyword's value."""

    def read(one: Reading, value) -> None:
        one.say(record, field, of(value))

    return read


def _count(record: str, side: str) -> Reader:
    def read(one: Reading, value) -> None:
        if side == "low" or value <= _REACHED:
            one.say(record, side, int(value))

    return read


def _format(one: Reading, value) -> None:
    if one.options.enforces(value):
        one.say("strings", "formats", (value,))


def _reference(one: Reading, value) -> None:
    one.join("ref", (), to=value)


def _several(how: str) -> Reader:
    def read(one: Reading, value) -> None:
        one.join(how, [one.schema(one.keyword, i) for i in range(len(value))])

    return read


def _not(one: Reading, value) -> None:
    one.join("not", [one.schema("not")])


def _if(one: Reading, value) -> None:
    then, other = (one.schema(k) if k in one.raw else ANYTHING for k in ("then", "else"))
    one.join("if", [one.schema("if"), then, other])


def _depends(one: Reading, value) -> None:
    for name, needs in value.items():
        names = (needs,) if isinstance(needs, str) else tuple(needs) if isinstance(needs, list) else None
        schemas = [one.schema(one.keyword, name)] if names is None else []
        one.join("depends", schemas, to=name, names=names or ())


def _row(one: Reading, value) -> None:
    """All that says of items what they are by their index."""
    raw, tuples = one.raw, "prefixItems" if "prefixItems" in one.raw else "items"
    own = raw.get(tuples)
    first = [one.schema(tuples, i) for i in range(len(own))] if isinstance(own, list) else []
    rest = None
    if isinstance(raw.get("items"), (dict, bool)):
        rest = one.schema("items")
    elif "additionalItems" in raw and isinstance(raw.get("items"), list):
        rest = one.schema("additionalItems")
    unevaluated = one.schema("unevaluatedItems") if "unevaluatedItems" in raw else None
    by_contains = "contains" in raw and one.context.draft != 2019
    one.say("items", "rows", (Row(tuple(first), rest, by_contains, unevaluated),))


def _contains(one: Reading, value) -> None:
    low, high = int(one.raw.get("minContains", 1)), one.raw.get("maxContains")
    if low or high is not None:
        wanted = Wanted(one.schema("contains"), 0, low, None if high is None else int(high))
        one.say("items", "wanted", (wanted,))
    if one.context.draft != 2019:
        _row(one, value)


def _unique(one: Reading, value) -> None:
    if value:
        one.say("items", "unique", True)


def _group(one: Reading, value) -> None:
    """All that says of members what they are by their name."""
    raw = one.raw
    named, patterns = one.named("properties"), one.named("patternProperties")
    rest = one.schema("additionalProperties") if "additionalProperties" in raw else None
    unevaluated = one.schema("unevaluatedProperties") if "unevaluatedProperties" in raw else None
    one.say("members", "groups", (MemberGroup(named, patterns, rest, unevaluated, one.node),))


def _names(one: Reading, value) -> None:
    one.say("members", "names", (one.schema("propertyNames"),))


def _nothing(one: Reading, value) -> None:
    """Another keyword reads it."""


class Keyword(NamedTuple):
    """A keyword.

    Attributes
    ----------
    form : Form
        What its value must be.
    read : Reader
    since, before : int
        The drafts that have it.
    once : str
        Keywords of one such name are read together.
    """

    form: values.Form
    read: Reader
    since: int = 0
    before: int = 9999
    once: str = ""


KEYWORDS: dict[str, Keyword] = {
    "type": Keyword(values.TYPE, _types),
    "enum": Keyword(values.VALUES, _enum),
    "const": Keyword(values.VALUE, _const, since=6),
    "minimum": Keyword(values.NUMBER, _bound("low", False)),
    "maximum": Keyword(values.NUMBER, _bound("high", False)),
    "exclusiveMinimum": Keyword(values.NUMBER, _bound("low", True)),
    "exclusiveMaximum": Keyword(values.NUMBER, _bound("high", True)),
    "multipleOf": Keyword(values.DIVISOR, _said("numbers", "multiples", lambda value: (exact(value),))),
    "minLength": Keyword(values.COUNT, _count("strings", "low")),
    "maxLength": Keyword(values.COUNT, _count("strings", "high")),
    "pattern": Keyword(values.TEXT, _said("strings", "patterns", lambda value: (value,))),
    "format": Keyword(values.ANY, _format),
    "minItems": Keyword(values.COUNT, _count("items", "low")),
    "maxItems": Keyword(values.COUNT, _count("items", "high")),
    "items": Keyword(values.ITEMS, _row, once="row"),
    "prefixItems": Keyword(values.SCHEMAS, _row, since=2020, once="row"),
    "additionalItems": Keyword(values.SCHEMA, _row, before=2020, once="row"),
    "unevaluatedItems": Keyword(values.SCHEMA, _row, since=2019, once="row"),
    "contains": Keyword(values.SCHEMA, _contains, since=6),
    "minContains": Keyword(values.COUNT, _nothing, since=2019),
    "maxContains": Keyword(values.COUNT, _nothing, since=2019),
    "uniqueItems": Keyword(values.FLAG, _unique),
    "properties": Keyword(values.NAMED, _group, once="group"),
    "patternProperties": Keyword(values.NAMED, _group, once="group"),
    "additionalProperties": Keyword(values.SCHEMA, _group, once="group"),
    "unevaluatedProperties": Keyword(values.SCHEMA, _group, since=2019, once="group"),
    "propertyNames": Keyword(values.SCHEMA, _names, since=6),
    "required": Keyword(values.NAMES, _said("members", "required", tuple)),
    "minProperties": Keyword(values.COUNT, _count("members", "low")),
    "maxProperties": Keyword(values.COUNT, _count("members", "high")),
    "$ref": Keyword(values.TEXT, _reference),
    "$dynamicRef": Keyword(values.TEXT, _reference, since=2020),
    "$recursiveRef": Keyword(values.TEXT, _reference, since=2019, before=2020),
    "allOf": Keyword(values.SCHEMAS, _several("all")),
    "anyOf": Keyword(values.SCHEMAS, _several("any")),
    "oneOf": Keyword(values.SCHEMAS, _several("one")),
    "not": Keyword(values.SCHEMA, _not),
    "if": Keyword(values.SCHEMA, _if, since=7),
    "then": Keyword(values.SCHEMA, _nothing, since=7),
    "else": Keyword(values.SCHEMA, _nothing, since=7),
    "dependentRequired": Keyword(values.NAME_LISTS, _depends, since=2019),
    "dependentSchemas": Keyword(values.NAMED, _depends, since=2019),
    "dependencies": Keyword(values.OBJECT, _depends, before=2019),
}
"""The keywords that restrict values. A new one is a row here, and a line in what writes values of its type."""

_SINCE = {"$id": 6, "$anchor": 2019, "$recursiveAnchor": 2019, "$dynamicAnchor": 2020}
_BEFORE = {"id": 6, "$recursiveAnchor": 2020}
_BOOLEAN = frozenset(("exclusiveMinimum", "exclusiveMaximum"))
_RECORDS: dict[str, Any] = {"numbers": Numbers, "strings": Strings, "items": Items, "members": Members}


def _has(draft: int, keyword: str) -> bool:
    """Whether a draft has a keyword; one that isn't stated has all."""
    if draft == UNSTATED:
        return True
    row = KEYWORDS.get(keyword)
    since, before = (row.since, row.before) if row else (_SINCE.get(keyword, 0), _BEFORE.get(keyword, 9999))
    return since <= draft < before


class _Plan(NamedTuple):
    """How schemas of certain keywords are read: many have the same ones.

    Attributes
    ----------
    rows : tuple of (int, str, Reader)
        The keywords that are read, and where they stand.
    forms : tuple of (str, callable)
        The keywords whose values are checked.
    unknown : tuple of str
        Those that the standard doesn't know.
    known : frozenset of str
        Those that restrict values.
    order : int
        Where what names members stands.
    rewritten : bool
        Whether keywords of other drafts are to be left out first, or spelt as since draft 6.
    no_text : object
        A key that is no text; None: there is none.
    """

    rows: tuple[tuple[int, str, Reader], ...]
    forms: tuple[tuple[str, Callable[[Any], bool]], ...]
    unknown: tuple[str, ...]
    known: frozenset[str]
    order: int
    rewritten: bool
    no_text: Any = None


@lru_cache(maxsize=4096)
def _plan(keywords: tuple, draft: int) -> _Plan:
    rows, forms, unknown, once = [], [], [], set()
    alone = "$ref" in keywords and draft in (4, 6, 7)  # nothing beside a reference holds
    rewritten = draft <= 4 and not _BOOLEAN.isdisjoint(keywords)
    of_draft = _rows_of(draft)
    for at, keyword in enumerate(keywords):
        if not isinstance(keyword, str):
            return _Plan((), (), (), frozenset(), 0, False, keyword)
        if keyword not in of_draft or alone and keyword != "$ref":
            rewritten = rewritten or keyword in KEYWORDS
            if keyword not in KEYWORDS and keyword not in DESCRIBING and not keyword.startswith("x-"):
                unknown.append(keyword)
            continue
        row = of_draft[keyword]
        forms.append((keyword, row.form.good))
        if not row.once or row.once not in once:
            once.add(row.once)
            rows.append((at, keyword, row.read))
    known = frozenset([keyword for keyword, _ in forms if keyword != "format"])
    order = keywords.index("properties") if "properties" in known else len(keywords)
    return _Plan(tuple(rows), tuple(forms), tuple(unknown), known, order, rewritten)


@cache
def _rows_of(draft: int) -> dict[str, Keyword]:
    """The keywords that a draft has."""
    return {keyword: row for keyword, row in KEYWORDS.items() if _has(draft, keyword)}


def _as_since_draft_6(raw: dict, draft: int) -> dict:
    """The keywords that a draft knows, with numbers as exclusive bounds."""
    if draft in (4, 6, 7) and "$ref" in raw:
        return {"$ref": raw["$ref"]}
    old = [k for k in _BOOLEAN if isinstance(raw.get(k), bool) and draft <= 4]
    known = {k: v for k, v in raw.items() if k not in old and _has(draft, k)}
    for keyword in old:
        plain = keyword.replace("exclusiveM", "m")
        if raw[keyword] and plain in known:
            known[keyword] = known.pop(plain)
    return known


def read(node: Schema, options: Options) -> Shape:
    """What one schema of the document says.

    Raises
    ------
    GrammarError
        A keyword's value has the wrong form, or the keyword is not supported.
    """
    raw, limits, draft = node.source, options.limits, node.context.draft
    if not isinstance(raw, dict):
        raise node.error("", f"{str(raw)[:80]!r} is not a schema", "a schema is an object, true or false")
    if node.depth > limits.depth:
        limits.check("depth", node.depth, f"{node.pointer[:60]}...: a schema too deep")
    plan = _plan(tuple(raw), draft)
    if "$schema" in raw:
        _check_dialect(node, raw["$schema"], options)
    if plan.no_text is not None:
        raise node.error("", f"{plan.no_text!r} is not a keyword", "the keys of JSON objects are text")
    for keyword in plan.unknown:
        options.note(node, keyword)
    if plan.rewritten:
        raw = _as_since_draft_6(raw, draft)
        plan = _plan(tuple(raw), draft)
    for keyword, good in plan.forms:
        if not good(raw[keyword]):
            form = KEYWORDS[keyword].form
            raise node.error(
                keyword, f"{str(raw[keyword])[:80]!r} is not {form.what}", _old_form(keyword, raw[keyword])
            )
    if draft == LATEST and isinstance(raw.get("items"), list):
        what = "a list of schemas is not a schema"
        raise node.error("items", what, "since draft 2020-12 it is written prefixItems")
    one = Reading(node, raw, options)
    for at, keyword, reader in plan.rows:
        one.keyword, one.at = keyword, at
        reader(one, raw[keyword])
    said = one.found
    for record, found in one.inner.items():
        if record == "members":
            found["limits"] = limits
            if options.closed and "properties" in raw:
                found["closed"] = True
        said[record] = _RECORDS[record](**found)
    if one.joins:
        said["joins"] = tuple(one.joins)
    said["keywords"], said["parts"], said["order"] = plan.known, (node,), plan.order
    return Shape(**said)


def _check_dialect(node: Schema, dialect: Any, options: Options) -> None:
    if isinstance(dialect, str) and "json-schema.org/" not in dialect:
        what = f"{dialect[:80]!r} may define other keywords than the standard"
        options.refuse(node, "$schema", what, "name a draft of json-schema.org, or leave it out")


def _old_form(keyword: str, value) -> str | None:
    if keyword.startswith("exclusive") and isinstance(value, bool):
        return f'since draft 6 the bound itself stands here: "{keyword}": 5'
    if keyword == "required" and isinstance(value, bool):
        return "since draft 4 the object lists the names that are required"
    return "see what json-schema.org says of the keyword"


_ALONE = {kind: frozenset((kind, "integer") if kind == "number" else (kind,)) for kind in TYPES}
_TYPING, _REFERRING = NOTING | {"type"}, NOTING | {"$ref"}


_OF_A_TYPE = {kind: Schema(Shape(types=types)) for kind, types in _ALONE.items()}


def common(raw: Any) -> Schema | None:
    """The schema of any document that says the same, if one says no more than a type."""
    if raw.__class__ is dict:
        if not raw.keys() <= _TYPING:
            return None
        kind = raw.get("type", EVERY)
        return ANYTHING if kind is EVERY else _OF_A_TYPE.get(kind) if kind.__class__ is str else None
    return ANYTHING if raw is True else NOTHING if raw is False else None


def only_refers(raw: Any) -> str | None:
    """What a schema refers to, if it is no more than a `$ref`."""
    if raw.__class__ is not dict or "$ref" not in raw or len(raw) > 1 and not raw.keys() <= _REFERRING:
        return None
    text = raw["$ref"]
    return text if text.__class__ is str and text.isascii() else None


# where schemas are, and what names them


def draft_of(raw: dict, before: int) -> int:
    """The draft that a schema says it is of."""
    name = raw.get("$schema")
    if not isinstance(name, str):
        return before
    return _DRAFTS.get(name.split("://")[-1].rstrip("#"), UNSTATED)


def base_of(raw: Any, base: str, draft: int) -> str:
    """The URI that references in a schema are relative to."""
    if not isinstance(raw, dict) or draft in (4, 6, 7) and "$ref" in raw:
        return base
    name = raw.get("id" if draft == 4 else "$id")
    return urldefrag(urljoin(base, name))[0] if isinstance(name, str) and not name.startswith("#") else base


def has_own_uri(raw: dict) -> bool:
    """Whether references in a schema may be relative to a URI of its own."""
    return "$id" in raw or "id" in raw


def uris_of(raw: Any, base: str, draft: int) -> list[str]:
    """The URIs that name a schema; `base` is its own."""
    if not isinstance(raw, dict) or "$ref" in raw and draft in (4, 6, 7):
        return []
    named = {k: raw[k] for k in (*_ANCHORS, "$id", "id") if isinstance(raw.get(k), str) and _has(draft, k)}
    out = [f"{base}#{named.pop(keyword)}" for keyword in _ANCHORS if keyword in named]
    joined = (name.startswith("#") or draft == UNSTATED for name in named.values())
    return out + [urljoin(base, name) if join else base for name, join in zip(named.values(), joined)]


_ANCHORS = ("$anchor", "$dynamicAnchor")
_FORMS = {keyword: row.form for keyword, row in KEYWORDS.items()} | {"contentSchema": values.SCHEMA}
_BY_NAME = {"$defs", "definitions", "dependencies", *(k for k, form in _FORMS.items() if form is values.NAMED)}
_HOLDING = {*_BY_NAME, *(k for k, form in _FORMS.items() if form in (values.SCHEMA, values.SCHEMAS, values.ITEMS))}
"""Keywords with schemas in their values."""


def inside(raw: Any, draft: int) -> Iterator[tuple]:
    """Yield the keys of the schemas in a schema."""
    if not isinstance(raw, dict) or "$ref" in raw and draft in (4, 6, 7):
        return
    for keyword, value in raw.items():
        if keyword not in _HOLDING or not isinstance(value, (dict, list)) or not _has(draft, keyword):
            continue
        if keyword not in _BY_NAME and isinstance(value, dict):
            yield (keyword,)
        elif (keyword in _BY_NAME) == isinstance(value, dict):
            yield from ((keyword, key) for key in (value if isinstance(value, dict) else range(len(value))))


def definitions(raw: Any) -> list[str]:
    """The names of what a schema defines."""
    return [*(raw.get("$defs") or ())] if isinstance(raw, dict) else []


def dynamic(raw: Any, keyword: str, fragment: str) -> bool:
    """Whether a schema is one that a dynamic reference may come to mean."""
    if not isinstance(raw, dict):
        return False
    return raw.get("$recursiveAnchor") is True if keyword == "$recursiveRef" else raw.get("$dynamicAnchor") == fragment


def described(raw: dict) -> list[tuple[str, Any]]:
    """What a schema says apart from what describes it."""
    return [(keyword, value) for keyword, value in raw.items() if keyword not in NOTING]


def rough(raw: dict) -> tuple:
    """A key that is equal for schemas that say the same; for most others it is another one."""
    said, named = described(raw), raw.get("properties")
    texts = [value for _, value in said if value.__class__ is str]  # a type, a reference
    return (*(keyword for keyword, _ in said), *texts, tuple(named) if isinstance(named, dict) else None)
