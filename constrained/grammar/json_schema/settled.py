"""Choices that are already decided, by what other schemas say of the same property.

A row of `if` on one property, such as a `type`, would else have as many combinations as there are subsets of the row.
"""

from __future__ import annotations

from typing import NamedTuple

from constrained.errors import GrammarError
from constrained.grammar.json_schema.constraints import identity
from constrained.grammar.json_schema.document import Subschema
from constrained.grammar.json_schema.keywords import is_known, types_of
from constrained.grammar.json_schema.patterns import literal_ends
from constrained.grammar.json_schema.validity import Resolver, type_of


class _Property(NamedTuple):
    """What schemas that hold together say of one property.

    Attributes
    ----------
    schemas : list of Subschema
    required, absent : bool
        Whether it must be there, and whether it plainly can't be.
    allowed : set or None
        The values that it may have, by their identity; None where they aren't listed.
    """

    schemas: list[Subschema]
    required: bool
    absent: bool
    allowed: set | None


_UNTOLD = _Property([], False, False, None)
_CONDITION = frozenset(("type", "required", "properties"))


class Known:
    """Schemas that hold together for an object: some that do not contradict (`before`), and others."""

    def __init__(self, parts: list[Subschema], resolver: Resolver, before: Known | None = None):
        self.parts, self._resolver, self._before = parts, resolver, before
        self._properties: dict[str, _Property] = {}
        self._naming = [(part, part.keywords["properties"]) for part in parts if "properties" in part.keywords]
        self._closed = [part for part in parts if part.keywords.get("additionalProperties") is False]
        required = {name for part in parts for name in part.keywords.get("required", ())}
        self._told = required.union(*[named for _, named in self._naming])
        self.required: set[str] = before.required | required if before is not None else required

    def contradict(self) -> bool:
        """Whether it is plain that no object fits all of them: a required property has no value left."""
        for name in self.required if self._closed else self._told & self.required:
            found = self.property(name)
            if found.absent or found.allowed == set():
                return True
        return False

    def left(self, choice: list) -> list | None:
        """The branches of a choice that may hold, each as (..., schema) tuples; None where one surely does."""
        out = []
        for branch in choice:
            first = branch[0][-1] if branch else None
            # only what is made here, of a complement or a dependency, can be a condition on one property
            settled = first is None or (self._settled(first) if "\0" in first.pointer else None)
            if settled and len(branch) < 2:
                return None
            if settled is not False:
                out.append(branch)
        return out

    def property(self, name: str) -> _Property:
        """What is said of one property."""
        if name not in self._properties:
            found = self._before.property(name) if self._before is not None else _UNTOLD
            if self._closed or name in self._told:
                inner = [part.below("properties", name) for part, named in self._naming if name in named]
                schemas = [*found.schemas, *(one for one in map(self._meant, inner) if one is not None)]
                absent = found.absent or any(one.schema is False for one in schemas)
                found = _Property(
                    schemas,
                    name in self.required,
                    absent or any(_excludes(part, name) for part in self._closed),
                    self.allowed(schemas) if inner else found.allowed,
                )
            self._properties[name] = found
        return self._properties[name]

    def _settled(self, part: Subschema) -> bool | None:
        """Whether a condition on one property is sure to hold, or sure not to; None if that isn't plain."""
        # One property must not be there (its schema is false), or must be there and not fit a schema (`not`).
        said = part.keywords
        if len(said.get("properties", ())) != 1:
            return None
        if not said.keys() <= _CONDITION or said.get("type", "object") != "object":
            return None
        ((name, value),) = said["properties"].items()
        known = self.property(name)
        if value is False and "required" not in said:
            return True if known.absent else False if known.required else None
        if known.absent or value is False:
            return False
        denied = value["not"] if isinstance(value, Subschema) and len(value.keywords) == 1 else None
        denied = self._meant(denied) if isinstance(denied, Subschema) else None
        if denied is None:
            return None
        if any(_same(one, denied) for one in known.schemas):
            return False
        others = self._values(denied)
        if known.allowed is None or others is None:
            return None
        if known.allowed.isdisjoint(others):
            return True if known.required else None
        return False if known.allowed <= others and only_lists(denied) else None

    def allowed(self, parts: list[Subschema]) -> set | None:
        """The values that are in all lists of schemas that hold together; None without a list."""
        lists = [values for part in parts if (values := self._values(part)) is not None]
        if not lists:
            return None
        nots = [n for part in parts if isinstance(n := part.keywords.get("not"), Subschema)]
        return set(lists[0]).intersection(*lists).difference(*(self._values(n) or () for n in nots if only_lists(n)))

    def _values(self, part: Subschema) -> frozenset | None:
        """`listed_by(part)`, computed once."""
        if part.pointer not in self._resolver.listed:
            self._resolver.listed[part.pointer] = listed_by(part)
        return self._resolver.listed[part.pointer]

    def _meant(self, part: Subschema) -> Subschema | None:
        """The schema of a property; None if it has an error, which is raised where it is written."""
        try:
            found = self._resolver.document.meant(part)
            self._resolver.check(found)
        except GrammarError:
            return None
        return found


def _excludes(closed: Subschema, name: str) -> bool:
    """Whether a schema without other properties than it says plainly doesn't have one of that name."""
    if name in closed.keywords.get("properties", ()):
        return False
    return not any(may_have(name, pattern) for pattern in closed.keywords.get("patternProperties", ()))


def may_have(text: str, pattern: str) -> bool:
    """Whether a text may have a pattern, by what all texts that have it begin and end with."""
    first, last = literal_ends(pattern)
    # a validator's $ may also stand before a last line break
    return text.startswith(first) and text.endswith((last, f"{last}\n"))


def listed_by(part: Subschema) -> frozenset | None:
    """The values by enum and const, by their identity; None where they aren't listed."""
    said = part.keywords
    if "enum" not in said and "const" not in said:  # most
        return None
    lists = [*([said["enum"]] if "enum" in said else []), *([[said["const"]]] if "const" in said else [])]
    types = types_of(part)
    return frozenset.intersection(*[frozenset([identity(v) for v in one if type_of(v) in types]) for one in lists])


def _same(one: Subschema, other: Subschema) -> bool:
    same = (one.base, one.draft) == (other.base, other.draft) and one.schema == other.schema
    return same and identity(one.schema) == identity(other.schema)  # which tells true from 1


def only_lists(part: Subschema) -> bool:
    """Whether a schema says no more than which values there are."""
    return all(
        keyword in ("enum", "const", "type") for keyword in part.keywords if is_known(keyword) or keyword == "format"
    )
