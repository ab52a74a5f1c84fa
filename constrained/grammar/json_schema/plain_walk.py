"""Plain schemas, told from a walk over the document as it is written.

A mask must not lead to where nothing can follow, and a refusal belongs to loading, not to the middle of a text. So a
schema may wait until a text reaches it if it has only keywords that are always honoured, and if it is certain that some
value fits it. All other schemas are written while the document is loaded.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from constrained.errors import GrammarError
from constrained.grammar.json_schema.alternatives import CONDITIONAL, Alternatives
from constrained.grammar.json_schema.as_written import (
    OBJECT,
    OF_OBJECTS,
    Outline,
    are_different,
    is_readable,
    outline,
    sorted_out,
)
from constrained.grammar.json_schema.constraints import Constraints
from constrained.grammar.json_schema.document import NOTING, UNPICKLED, Subschema, base_of, digest, draft_of
from constrained.grammar.json_schema.keywords import FORMS, PRESENT, is_type, types_named
from constrained.grammar.json_schema.plain import BOUNDS, MODEST, are_apart, are_in_order, has_format, is_certain
from constrained.grammar.json_schema.presence import names_in, satisfiable
from constrained.grammar.json_schema.validity import type_of

_LOWS, _HIGHS = ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")
_EXCLUSIVE = frozenset((_LOWS[1], _HIGHS[1]))
_NUMBERS = frozenset((*_LOWS, *_HIGHS))
_COUNTED = (("minLength", "maxLength"), ("minItems", "maxItems"))
_COUNTS = BOUNDS - _NUMBERS
_DEPTH = 64
"""Schemas joined in one another that the walk follows."""
_PASSES = 8
"""Times that all schemas are asked whether those that they need have a value, before equations are solved."""
BRANCHES = 100
"""Alternatives of a plain schema: so few never pass a limit."""
_NO, _UNTOLD = 0, -1
"""In place of a number of alternatives: the schema isn't plain; nor is what joins it."""
_REFERRING, _WRAPPING = NOTING | {"$ref"}, NOTING | {"allOf"}
_CHAIN = 8
"""References to references that are followed."""
_MEANING_OTHERS = frozenset(("$ref", "allOf", "$id", "id"))
"""Without these, a schema stands for itself, in the context that it is in."""
_TYPED_ELSEWHERE = frozenset(("type", "$ref", "$id", "id"))
"""Without these, a schema has the types that stand beside it."""
_TOO_MANY = "a JSON Schema of too many schemas"

Place = tuple
"""Where a schema stands: (place above, keys from there), (None, schema) or (None, keys from the root)."""

Context = tuple[str, int]
"""The URI that references are relative to, and the draft."""

Standing = tuple[dict, Place, Context, int]
"""A schema as it is written, where it stands, its own context, and how deep it is."""


class Full(Exception):
    """There are more schemas than the limit."""


class PlainWalk:
    """Tells which schemas of one document are plain: never refused, with a value that is certain, or so if others have.

    Parameters
    ----------
    once : bool
        Whether schemas that say the same count once.

    Raises
    ------
    Full
        There are more schemas than the limit, counted where they stand.
    """

    def __init__(self, alternatives: Alternatives, once: bool = False):
        self._alternatives, self._document = alternatives, alternatives.document
        self._options, self._limits = alternatives.options, alternatives.limits
        root = self._document.root
        self._root = self._context = root.base, root.draft
        self._contexts: dict[int, Context] = {}  # where it is not the root's
        # all by the id of a schema as it is written
        self._ways: dict[int, int] = {}  # of how many alternatives a schema is
        self._needs: dict[int, list[list[int]]] = {}  # in one of these lists, all must have a value
        self._places: dict[int, Place] = {}
        self._work: list[Standing] = []  # schemas to be told
        self._left: dict[int, tuple[int, Place]] = {}  # plain schemas lead there, and they aren't plain
        self._targets: dict[tuple[str, str], Standing | None] = {}
        self._meanings: dict[tuple[Context, Any], Standing] = {}  # what references in a context stand for
        self._outlines: dict[tuple[Context, int], Outline] = {}
        self._alike: dict[tuple[Context, bytes], dict] | None = {} if once else None
        self._firsts: dict[int, int] = {}  # of schemas that say the same
        self._made: list[dict] = []  # which must not get the id of another one

    def __call__(self, part: Subschema) -> bool:
        """Whether a schema is plain; what it leads to is told, too."""
        if not isinstance(part.schema, dict):
            return part.schema is True
        context = part.base, part.draft
        self._context = self._root if context == self._root else context
        ways = self._known(part.schema, (None, part), part.pointer.count("/") // 2, 0)
        for schema, place, context, depth in self._work:  # which grows meanwhile
            self._context = context
            if self._known(schema, place, depth, 0) <= _NO:
                self._leave(schema, place, depth)
        self._work = []
        return ways > _NO

    def left(self) -> list[Subschema]:
        """The schemas that plain ones lead to, and that aren't plain, each once; those outside first."""
        found, self._left = sorted(self._left.values(), key=itemgetter(0)), {}
        return [self._document.meant(self._at(place)) for _, place in found]

    def needs(self) -> dict[int, list[list[int | Subschema]]]:
        """Plain schemas of which no value is certain yet, and in which lists of others all must have one.

        The others are such schemas, or are to be written.
        """
        unsure = dict(self._needs)
        if self._firsts:
            unsure = {key: [[*map(self._key, others)] for others in needs] for key, needs in unsure.items()}
        for _ in range(_PASSES):
            before = len(unsure)
            for key, needs in reversed(list(unsure.items())):  # what a schema leads to mostly comes after it
                for others in needs:
                    if unsure.keys().isdisjoint(others) and all(self._ways.get(other, _NO) > _NO for other in others):
                        del unsure[key]
                        break
            if len(unsure) == before:
                break
        return {
            key: [[other if other in unsure else self._meant(other) for other in others] for others in needs]
            for key, needs in unsure.items()
        }

    def give_up(self, key: int) -> Subschema:
        """Count a schema as one that isn't plain."""
        self._ways[key] = _NO
        del self._needs[key]
        return self._meant(key)

    def _key(self, key: int) -> int:
        while key in self._firsts:
            key = self._firsts[key]
        return key

    def _meant(self, key: int) -> Subschema:
        return self._document.meant(self._at(self._places[key]))

    def _at(self, place: Place) -> Subschema:
        above, *keys = place
        if above is not None:
            return self._at(above).below(*keys)
        return self._document.root.below(*keys[0]) if isinstance(keys[0], tuple) else keys[0]

    def _known(self, schema: dict, place: Place, depth: int, joined: int) -> int:
        """Of how many alternatives a plain schema is, in the context that is its own.

        `_UNTOLD` where it leads back to what joins it, is too deep, or also stands in another context. `joined`: how
        many schemas that join others it is in.
        """
        if self._alike is not None:
            schema = self._first(schema, place)
        key, context = id(schema), self._context
        if (self._contexts or context is not self._root) and self._stands_elsewhere(key, context):
            return _UNTOLD
        found = self._ways.get(key)
        if found is not None:
            return found
        if joined > _DEPTH or depth > self._limits.depth:
            return _UNTOLD
        if len(self._ways) >= self._limits.schema:
            if self._alike is None:
                raise Full
            self._limits.check("schema", len(self._ways) + 1, _TOO_MANY)
        if key not in self._places:
            self._stand(key, place, context)
        self._ways[key] = _UNTOLD  # as long as it is open
        self._ways[key] = found = self._look(schema, place, depth, joined + 1)
        return found

    def _stand(self, key: int, place: Place, context: Context) -> None:
        self._places[key] = place
        if context != self._root:
            self._contexts[key] = context

    def _stands_elsewhere(self, key: int, context: Context) -> bool:
        """Whether a Python value also stands where references are relative to another URI, or of another draft."""
        return key in self._places and self._contexts.get(key, self._root) != context

    def _first(self, schema: dict, place: Place) -> dict:
        """The first schema that says the same as another one."""
        assert self._alike is not None
        try:
            first = self._alike.setdefault((self._context, digest(schema)), schema)
        except UNPICKLED:
            return schema
        if first is not schema:
            self._firsts[id(schema)] = id(first)
            self._repeated(first, place)
        return first

    def _leave(self, schema: dict, place: Place, depth: int) -> None:
        self._left.setdefault(self._key(id(schema)), (depth, place))

    def _repeated(self, schema: dict, place: Place) -> None:
        """Note where a Python value stands a second time."""
        before, now = self._at(self._places[id(schema)]), self._at(place)
        if before.pointer != now.pointer:
            self._document.note_repeat(before, now)

    def _inside(self, schema: dict, outside: Context) -> Context:
        """The context of a schema that stands in one of another context."""
        if "$id" in schema or "id" in schema:
            base, draft = outside
            return base_of(schema, base, draft), draft_of(schema, draft)
        return outside

    def _meant_by(self, one: Standing) -> Standing:
        """What a schema stands for that only refers to another one, or is an allOf of one (as `Document.meant`)."""
        schema, place, context, depth = one
        reference = schema.get("$ref")
        if reference.__class__ is not str or schema.keys() - _REFERRING:
            return self._end_of_chain(schema, place, context, depth) or one
        found = self._meanings.get((context, reference))
        if found is None:
            found = self._end_of_chain(schema, place, context, depth) or one
            self._meanings[context, reference] = found
        return found

    def _end_of_chain(self, schema: dict, place: Place, context: Context, depth: int) -> Standing | None:
        """Where such a chain ends; None if it may go in a circle."""
        for _ in range(_CHAIN):
            if "$ref" in schema:
                target = self._target(schema["$ref"], context) if schema.keys() <= _REFERRING else None
                if target is None or target[2] != context:
                    break
                schema, place, context, depth = target
            elif "allOf" in schema and schema.keys() <= _WRAPPING and FORMS["allOf"][0](schema["allOf"]):
                inner, *others = schema["allOf"]
                if others or not isinstance(inner, dict) or self._inside(inner, context) != context:
                    break
                schema, place, depth = inner, (place, "allOf", 0), depth + 1
            else:
                break
        else:  # perhaps in a circle
            return None
        return schema, place, context, depth

    def _leads_to(self, parts: list[tuple[Any, Place]], depth: int) -> bool:
        """Whether a plain schema may have others for parts of its value; they are told later."""
        work = []
        for part, there in parts:
            if part is False:
                continue
            if not isinstance(part, dict):
                return False
            one = self._meaning_of(part, there, depth)
            inner, place, context, _ = one
            key = id(inner)
            if key not in self._places:
                self._stand(key, place, context)
                work.append(one)
            elif (self._contexts or context is not self._root) and self._stands_elsewhere(key, context):
                return False
            elif place[0] is not None:
                self._repeated(inner, place)
        self._work += work
        return True

    def _meaning_of(self, schema: dict, place: Place, depth: int) -> Standing:
        """What a schema that stands in the one that is told stands for."""
        if _MEANING_OTHERS.isdisjoint(schema):
            return schema, place, self._context, depth
        return self._meant_by((schema, place, self._inside(schema, self._context), depth))

    def _look(self, schema: dict, place: Place, depth: int, joined: int) -> int:
        kind, said, forms, unknown, formatted = sorted_out(tuple(schema), self._context[1])
        if kind is None or "$schema" in schema and "json-schema.org/" not in str(schema["$schema"]):
            return _NO
        for good, keyword in forms:
            if not good(schema[keyword]):
                return _NO
        if formatted and self._options.enforces(schema["format"]):
            ways = int(has_format(self._constraints(schema)))
        elif kind == "several":
            ways = self._several(schema, said, place, depth + 1)
        elif kind == "joined":
            ways = self._joined(schema, next(iter(said - {"type"})), place, depth, joined)
        elif kind == "listed":
            values = schema["enum"] if "enum" in said else [schema["const"]]
            types = types_named(schema["type"]) if "type" in said else None
            ways = int(bool(values) if types is None else any(type_of(value) in types for value in values))
        elif kind == "pattern":
            ways = int(self._has_texts(schema))
        else:
            ways = 1
        if ways:
            for keyword in unknown:
                self._options.note(self._at(place), keyword)
        return ways

    def _constraints(self, schema: dict, *others: Subschema) -> Constraints:
        return Constraints((Subschema(schema, "", *self._context), *others), self._options)

    def _has_texts(self, schema: dict) -> bool:
        """Whether it is certain that some text has the pattern of a schema."""
        if schema.get("type", "string") != "string":
            return False
        try:
            return is_certain(Subschema({}, ""), "pattern", schema["pattern"], self._options)
        except GrammarError:  # raised again where it is written
            return False

    def _joined(self, schema: dict, keyword: str, place: Place, depth: int, joined: int) -> int:
        """The number of alternatives of what only joins other schemas."""
        if keyword == "$ref":
            target = self._target(schema["$ref"], self._context)
            if target is None:
                return _NO
            return self._branches(schema, [target], joined)
        branches = schema[keyword]
        if len(branches) > (1 if keyword == "allOf" else BRANCHES) or not all(isinstance(b, dict) for b in branches):
            return _NO
        if keyword == "oneOf" and not self._apart(branches, place):
            return _NO
        inside = []
        for i, branch in enumerate(branches):
            there = place, keyword, i
            # each branch and the types beside it are an alternative of their own
            if "type" in schema and not self._is_within(branch, types_named(schema["type"])):
                branch = self._typed(branch, schema["type"], there, depth + 1, joined)
                if branch is None:
                    return _NO
            inside.append((branch, there, self._inside(branch, self._context), depth + 1))
            if id(branch) in self._places:
                self._repeated(branch, there)
        return self._branches(schema, inside, joined)

    def _typed(self, branch: dict, kind, place: Place, depth: int, joined: int) -> dict | None:
        """A branch with the types that stand beside it, if it names none and is plain so."""
        if not _TYPED_ELSEWHERE.isdisjoint(branch):
            return None
        typed = {**branch, "type": kind}
        self._made.append(typed)
        return typed if self._known(typed, place, depth, joined) > _NO else None

    def _branches(self, schema: dict, branches: list[Standing], joined: int) -> int:
        ways, certain = 0, False
        keys, others = [], []
        before = self._context
        for branch in branches:
            inner, place, self._context, depth = self._meant_by(branch)
            own = self._known(inner, place, depth, joined)
            if own == _UNTOLD:
                self._context = before
                return _UNTOLD
            key = self._key(id(inner))
            keys.append(key)
            if own == _NO:
                others.append((inner, place, depth))
            certain = certain or own > _NO and key not in self._needs
            ways += max(own, 1)
        self._context = before
        if ways > BRANCHES:
            return _NO
        for one in others:
            self._leave(*one)
        if not certain:
            self._needs[id(schema)] = [[key] for key in keys]
        return ways

    def _is_within(self, branch: dict, types: frozenset[str]) -> bool:
        """Whether `types` beside a branch plainly change nothing."""
        target = self._meaning(branch["$ref"]) if "$ref" in branch else branch
        if target is None or "$ref" in target:
            return False
        return FORMS["type"][0](target.get("type")) and types_named(target["type"]) <= types

    def _target(self, reference, context: Context) -> Standing | None:
        """What a reference means, as it is written; None if it means no schema, or true or false."""
        if not FORMS["$ref"][0](reference):
            return None
        key = context[0], reference
        if key not in self._targets:
            pointed = self._document.pointed_at(reference) if context == self._root else None
            if pointed is not None:
                found, keys = pointed
                self._targets[key] = found, (None, keys), self._root, len(keys) // 2
            else:
                self._targets[key] = self._find_by_name(reference, context)
        return self._targets[key]

    def _find_by_name(self, reference: str, context: Context) -> Standing | None:
        try:
            found = self._document.target(Subschema({"$ref": reference}, "", *context))
        except GrammarError:  # raised again where it is written
            return None
        if not isinstance(found.schema, dict):
            return None
        return found.schema, (None, found), (found.base, found.draft), found.pointer.count("/") // 2

    def _meaning(self, reference) -> dict | None:
        """What a reference means, if it is of the same context."""
        target = self._target(reference, self._context)
        return target[0] if target is not None and target[2] == self._context else None

    def _apart(self, branches: list, place: Place) -> bool:
        """Whether no value fits two branches of a oneOf, as their outlines show, or all that is said of them."""
        if are_different([self._outline(branch) for branch in branches]):
            self._alternatives.tell_apart(branches, *self._context)
            return True
        return self._alternatives.are_disjoint(self._document.meant(self._at(place)))

    def _outline(self, branch: dict) -> Outline:
        """What a branch, as it is written, plainly says of its values."""
        refers = "$ref" in branch and self._inside(branch, self._context) == self._context
        start = refers and self._meaning(branch["$ref"]) or branch  # what many branches refer to is looked into once
        key = self._context, id(start)
        if key not in self._outlines:
            self._outlines[key] = outline(self._conjuncts(start), self._conjuncts)
        return self._outlines[key]

    def _conjuncts(self, schema: dict) -> list[dict]:
        """Schemas of this context, as they are written, that hold wherever one does; not always all of them."""
        work, out = [schema], []
        for one in work:  # which grows meanwhile
            if len(work) > _DEPTH or self._inside(one, self._context) != self._context:
                continue
            inner = [self._meaning(one["$ref"])] if "$ref" in one else one.get("allOf")
            if "$ref" not in one and is_readable(one):
                out.append(one)
            work += [part for part in inner if isinstance(part, dict)] if isinstance(inner, list) else ()
        return out

    def _several(self, schema: dict, said: frozenset[str], place: Place, depth: int) -> bool:
        """Whether a schema of types, bounds, properties, items, and conditions on names is plain."""
        if not said.isdisjoint(BOUNDS) and not self._in_order(schema, said):
            return False
        if self._options.closed and not said.isdisjoint(OF_OBJECTS):
            return False
        properties, free = schema.get("properties", {}), schema.get("additionalProperties", True)
        names, of_others = schema.get("required", ()), True
        if not said.isdisjoint(CONDITIONAL):
            told = self._names(schema, said, place)
            if told is None:
                return False
            names, of_others = told
            if not of_others and "type" in said and "object" not in types_named(schema["type"]):
                return False
        parts: list[tuple[Any, Place]] = [
            (inner, (place, "properties", name)) for name, inner in properties.items() if not is_type(inner)
        ]
        if "patternProperties" in said:
            matched = self._matched(schema, names, place)
            if matched is None:
                return False
            parts += [one for one in (*matched[0], *matched[1].values()) if not is_type(one[0])]
            properties = properties | {name: inner for name, (inner, _) in matched[1].items()}
        if not is_type(free):
            parts.append((free, (place, "additionalProperties")))
        items = schema.get("items", True)
        if "items" in said:
            if not isinstance(items, dict):
                return False
            if not is_type(items):
                parts.append((items, (place, "items")))
        if parts and not self._leads_to(parts, depth):
            return False
        # Some value is certain, or so is an object if all that is required has one, or an array if its items have:
        # these are among `parts`.
        if names or schema.get("minItems"):
            kinds = types_named(schema.get("type")) if of_others else OBJECT
            needed = {"object": [properties.get(name, free) for name in names]}
            needed["array"] = [items] if schema.get("minItems") else []
            unsure = [[inner for inner in needed.get(kind, ()) if not is_type(inner)] for kind in kinds]
            if all(unsure):
                if any(inner is False for some in unsure for inner in some):
                    return False
                self._needs[id(schema)] = [[id(self._meaning_of(inner, (), 0)[0]) for inner in some] for some in unsure]
        return True

    def _names(self, schema: dict, said: frozenset[str], place: Place) -> tuple[list[str], bool] | None:
        """The names that are required, or asked for by conditions, and whether other values than objects meet these.

        None if no names surely meet them.
        """
        part = self._at(place)
        present = [self._alternatives.present(part, keyword) for keyword in said & CONDITIONAL]
        known = [one for one in present if one is not None]
        conditions = [one[PRESENT] for one in known]
        required = schema.get("required", ())
        if len(known) < len(present) or not satisfiable(("and", *conditions, *required), self._limits):
            return None
        names = list(dict.fromkeys([*required, *(name for one in conditions for name in names_in(one))]))
        return names, not any("type" in one for one in known)

    def _matched(self, schema: dict, names, place: Place) -> tuple[list, dict[str, tuple[Any, Place]]] | None:
        """The schemas of patterns of names, and of the names that match one; None if one schema isn't enough."""
        own = self._constraints(schema)
        try:
            patterns = own.key_patterns
            if not own.has_small_patterns():
                return None
        except GrammarError:  # raised again where it is written
            return None
        if not are_apart(patterns):
            return None
        inside = [(schema["patternProperties"][pattern], (place, "patternProperties", pattern)) for pattern in patterns]
        properties, out = schema.get("properties", {}), {}
        for name in dict.fromkeys([*properties, *names]):
            if any(any(own.matches(pattern, name)) for pattern in patterns):
                found = own.property(name)
                if len(found) > 1:  # what the pattern says is something else
                    return None
                if not found or name not in properties or found[0].schema is not properties[name]:
                    out[name] = next((one for one in inside if found and one[0] is found[0].schema), (True, place))
        return inside, out

    def _in_order(self, schema: dict, said: frozenset[str]) -> bool:
        """Whether there are lengths and numbers between the bounds."""
        most = self._limits.repeat
        numbers = [schema[keyword] for keyword in said & _NUMBERS]
        counts = [schema[keyword] for keyword in said & _COUNTS]
        if all(-MODEST < number < MODEST for number in numbers) and all(
            type(count) is int and count < most for count in counts
        ):
            lows = [schema[keyword] for keyword in _LOWS if keyword in said]
            highs = [schema[keyword] for keyword in _HIGHS if keyword in said]
            # between numbers that are so far apart there is a whole one, even if they are left out themselves
            apart = 1 if said.isdisjoint(_EXCLUSIVE) and all(type(number) is int for number in numbers) else 2
            if (not lows or not highs or max(lows) + apart <= min(highs)) and all(
                schema[low] <= schema[high] for low, high in _COUNTED if low in said and high in said
            ):
                return True
        return are_in_order(self._constraints(schema))
