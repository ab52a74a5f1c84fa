"""The calls of one tool that are admitted now, as a grammar that is expanded lazily, argument by argument.

What may be written next depends on the arguments so far, on what is known, and on whether the rest of the call can
still meet every condition. It is worked out when the text gets there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple, NoReturn

from constrained.automaton import Grammar
from constrained.errors import KnowledgeError
from constrained.grammar import nodes
from constrained.grammar.json_schema import validator, write_schema
from constrained.grammar.json_schema.strings import guarded
from constrained.grammar.nodes import LazyText, Node
from constrained.knowledge.lines.expression import Expression, Unknown
from constrained.knowledge.tool_calls import call_literal
from constrained.knowledge.tool_policy.calls import NESTED, Agenda, Calls, Path, listed, onto, pattern_of, schema_type
from constrained.knowledge.tool_policy.memory import Memory
from constrained.knowledge.tool_policy.narrowing import schema_of


class _Free:
    """Stands for a value in a call that may be anything: a condition that looks at it is an error."""

    def __init__(self, tool: str):
        self.tool = tool

    def _looked_at(self, *_: Any) -> NoReturn:
        what = f"tool {self.tool!r}: a condition looks at a value that may still be anything"
        raise KnowledgeError(what, "say which values it may have, such as `x[i].name in [...]`")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = __len__ = __iter__ = __getitem__ = _looked_at
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __mod__ = _looked_at
    __neg__ = __abs__ = __round__ = __bool__ = __contains__ = lower = values = _looked_at


MAX_ITEMS = 12
"""Elements of a list, where conditions look at its elements or its length."""

MAX_CASES = 20_000
"""Values tried to find one way to complete a call."""

MAX_RANGE = 2_000
"""Whole numbers offered between two bounds."""

_CACHED_VALUES = 10_000
"""Values of one argument whose validity is cached."""

_LONGEST = 4_000
"""An upper bound, for token budgets, on the bytes of the rest of a call."""


def call_grammar(calls: Calls, memory: Memory) -> Grammar | None:
    """The calls that are admitted now; None if there are none.

    Cached in the memory until something changes that the conditions look at.
    """
    if not all(condition.holds(memory, memory.evaluation(calls.functions)) for condition in calls.static):
        return None

    def build(memory: Memory) -> Grammar | None:
        writer = CallWriter(calls, memory)
        if not writer.can_finish(calls.agenda, {}):
            return None
        return Grammar(writer.rules, writer.write(calls.agenda, {}), limits=calls.options.limits, name=calls.name)

    return memory.cached(calls, calls.looks_at, build)


class Branch(NamedTuple):
    """One alternative at a choice: its text, and what is still to be written after it."""

    key: tuple  # branches with the same key continue in the same way
    text: str
    agenda: Agenda
    args: dict


class CallWriter:
    """Writes the calls of one tool in one memory, and caches which branches lead to a whole call."""

    def __init__(self, calls: Calls, memory: Memory):
        self.calls, self.evaluation = calls, memory.evaluation(calls.functions)
        self.known, self.free = dict(memory), _Free(calls.name)
        self.rules, self._texts = ({}, {}) if calls.narrows else (calls.rules, calls.texts)
        self._cases = 0
        self._found: dict[tuple, Any] = {}

    def _json(self, value: Any) -> str:
        """A value as it is written in a call."""
        return guarded(_dumped(value), self.calls.options.closing)

    def _place(self, item: tuple, args: dict) -> tuple:
        """What the rest of a call depends on: the position, and the earlier arguments that conditions still use."""
        kind, path, _, *count = item
        given = [args[name] for name in self.calls.relevant(path) if name in args]
        return kind, path, *count, json.dumps(given, default=lambda free: None)

    def _options(self, item: tuple, args: dict) -> tuple[str, Any]:
        """How a value is written.

        ("values", list): one of these; ("free", None): by its schema; ("members", agenda items): an object, member by
        member; ("items", None): a list, item by item.
        """
        _, path, schema = item
        calls = self.calls
        # No condition looks at this argument.
        if path[0] not in calls.governed:
            return "free", None
        # Its values can be listed: by conditions, or by a schema with few values. They may depend on earlier arguments.
        if pattern_of(path) in calls.domains or (len(path) == 1 and schema_type(schema) not in NESTED):
            key = self._place(item, args)
            if key not in self._found:
                self._found[key] = self._candidates(path, schema, args)
            if self._found[key] is not None:
                return "values", self._found[key]
        # Conditions only look at the value as a whole, or inside it: then it is written part by part.
        if schema_type(schema) not in NESTED or not (calls.opens(path) or len(path) == 1):
            return "free", None
        calls.check_keywords(path, schema)
        if schema_type(schema) == "array":
            return "items", None
        required, members = schema.get("required", ()), schema.get("properties", {})
        inner = [("member", (*path, name), member, name in required) for name, member in members.items()]
        return "members", [*inner, ("text", "}")]

    def _candidates(self, path: Path, schema: Any, args: dict) -> list[Any] | None:
        """The values that the conditions on a path and its schema leave; None if they can't be listed."""
        # The values that the schema lists and that every `in` and `==` condition lists, too.
        index = next((part for part in path if isinstance(part, int)), None)
        candidates: list[Any] | None = listed(schema) or None
        for condition in self.calls.domains.get(pattern_of(path), ()):
            if condition.sign:
                try:
                    values = condition.listed(self._names(condition.values, args, index), self.evaluation)
                except (Unknown, TypeError):
                    return []
                candidates = values if candidates is None else [choice for choice in candidates if choice in values]
        # Whole numbers between two bounds can be listed as well.
        narrowed = self._narrowed(path, schema, args)
        if candidates is None and self.calls.matters(path) and schema_type(schema) == "integer":
            candidates = self._between(path, narrowed["allOf"])
        if candidates is None:
            return None
        # Equal texts once; then those that the narrowed schema admits.
        texts = {_dumped(choice): choice for choice in (_shaped(choice, schema) for choice in candidates)}
        key = "valid", self._key(path, narrowed)
        if key not in self._texts:
            valid = validator(narrowed, self.calls.options)
            self._texts[key] = lru_cache(_CACHED_VALUES)(lambda text: valid(json.loads(text)))
        return [choice for text, choice in texts.items() if self._texts[key](text)]

    def _between(self, path: Path, parts: list[Any]) -> list[int]:
        """The whole numbers between the bounds of some schemas."""
        kept = [part for part in parts if isinstance(part, dict)]
        low = [math.ceil(part[key]) for part in kept for key in ("minimum", "exclusiveMinimum") if key in part]
        high = [math.floor(part[key]) for part in kept for key in ("maximum", "exclusiveMaximum") if key in part]
        if False in parts:
            return []
        if not low or not high or min(high) - max(low) > MAX_RANGE:
            name = ".".join(map(str, path))
            what = f"tool {self.calls.name!r}: conditions look at {name}, which has more than {MAX_RANGE:,} values"
            raise KnowledgeError(what, "give closer bounds, or a list: `x in [...]`")
        return list(range(max(low), min(high) + 1))

    def _narrowed(self, path: Path, schema: Any, args: dict) -> dict[str, Any]:
        """The schema of a value, narrowed by the conditions on it."""
        index = next((part for part in path if isinstance(part, int)), None)
        pattern, parts = pattern_of(path), [schema]
        for condition in self.calls.domains.get(pattern, ()):
            if not condition.sign:
                names = self._names(condition.expression, args, index)
                parts.append(schema_of(condition.expression.form, pattern, schema_type(schema), names, self.evaluation))
        whole = self.calls.schema
        return {"allOf": parts, **{key: whole[key] for key in ("$defs", "definitions") if key in whole}}

    def _key(self, path: Path, narrowed: dict[str, Any]) -> Any:
        return json.dumps(narrowed) if self.calls.narrows else pattern_of(path)

    def _text(self, path: Path, schema: Any, args: dict) -> Node:
        """All values that a schema and the conditions on a path admit."""
        narrowed = self._narrowed(path, schema, args)
        key = self._key(path, narrowed)
        if key not in self._texts:
            prefix = f"{self.calls.name}#{len(self._texts)}"
            self._texts[key] = write_schema(narrowed, self.rules, prefix, self.calls.style, self.calls.options)
        return self._texts[key]

    def _checked(self, name: str, args: dict) -> bool:
        conditions = self.calls.checks.get(name, ())
        return all(condition.holds(self._names(condition, args), self.evaluation) for condition in conditions)

    def _names(self, expression: Expression, args: dict, index: int | None = None) -> dict[str, Any]:
        """The values of an expression's names."""
        names = {name: self.known[name] for name in expression.names if name in self.known}
        names.update((name, args[name]) for name in expression.names if name in args)
        return names if index is None else {**names, "i": index}

    def _branches(self, agenda: Agenda, args: dict, parts: list[Node] | None = None) -> Iterable[Branch] | None:
        """The alternatives at the next choice; () where no choice is left, None where the call can't be completed.

        With `parts`, the text up to that choice is added to them.
        """
        # `sure` is the text that all branches share, `args` the values written so far. Without `parts`, the question is
        # only whether the call can be completed: then text that no condition can rule out is not built.
        sure = [] if parts is None else parts
        while agenda is not None:
            item, agenda = agenda
            match item:
                case "text", text:
                    sure.append(call_literal(text, self.calls.name))
                case ("whole",):
                    sure.append(nodes.EMPTY if parts is None else self._text((), self.calls.schema, args))
                case "check", name:
                    if not self._checked(name, args):
                        return None
                case "member", path, schema, required:
                    # An optional member that no condition looks at is optional text; any other optional member is a
                    # choice.
                    asked = "always" if required else self.calls.asked(path)
                    if asked == "never" and parts is None:
                        continue  # it can be left out
                    inside = args
                    for step in path[:-1]:
                        inside = inside[step]
                    name = f"{', ' if inside else ''}{self._json(path[-1])}: "
                    if asked == "never" and inside:
                        free = nodes.seq([nodes.literal(name), self._text(path, schema, args)])
                        sure.append(nodes.alt([free, nodes.EMPTY]))
                        args = _with(args, path, self.free)
                        continue
                    given = ("value", path, schema), agenda
                    if asked != "always":
                        return self._numbered(item, args, [(name, given, args), ("", agenda, args)])
                    sure.append(nodes.literal(name))
                    agenda = given
                case "value", path, schema:
                    # Several values are alternatives only if something later depends on the choice; else they are one
                    # node.
                    what, offered = self._options(item, args)
                    if what == "values" and not offered:
                        return None
                    if what == "values" and self.calls.matters(path):
                        each = ((self._json(value), agenda, _with(args, path, value)) for value in offered)
                        return self._numbered(item, args, each)
                    if what == "values":
                        sure.append(nodes.choices([self._json(choice).encode() for choice in offered]))
                        args = _with(args, path, offered[0])
                    elif what == "free":
                        if parts is not None or pattern_of(path) in self.calls.domains:
                            sure.append(self._text(path, schema, args))
                            if sure[-1] is nodes.NEVER:
                                return None
                        args = _with(args, path, self.free)
                    elif what == "members":
                        sure.append(nodes.literal("{"))
                        args, agenda = _with(args, path, {}), onto(offered, agenda)
                    else:
                        sure.append(nodes.literal("["))
                        args, agenda = _with(args, path, []), (("more", path, schema, 0), agenda)
                case "more", path, schema, count:
                    # End the list here, or write one more element.
                    branches = [("]", agenda, args)] if count >= schema.get("minItems", 0) else []
                    if count < min(schema.get("maxItems", MAX_ITEMS), MAX_ITEMS):
                        another = ("value", (*path, count), schema.get("items", {}))
                        after = another, (("more", path, schema, count + 1), agenda)
                        branches.append((", " if count else "", after, args))
                    return self._numbered(item, args, branches) if branches else None
        return ()

    def _numbered(self, item: tuple, args: dict, branches: Iterable[tuple[str, Agenda, dict]]) -> Iterator[Branch]:
        place = self._place(item, args)
        return (Branch((place, number), *branch) for number, branch in enumerate(branches))

    def can_finish(self, agenda: Agenda, args: dict) -> bool:
        """Whether the agenda can be written so that every condition holds."""
        branches = self._branches(agenda, args)
        return branches == () or (branches is not None and any(map(self._leads_to_end, branches)))

    def _leads_to_end(self, branch: Branch) -> bool:
        if branch.key not in self._found:
            self._cases += 1
            if self._cases > MAX_CASES:
                what = f"tool {self.calls.name!r}: more than {MAX_CASES:,} branches were tried to find a call of it"
                raise KnowledgeError(what, "bound its lists, or let conditions choose earlier arguments first")
            self._found[branch.key] = self.can_finish(branch.agenda, branch.args)
        return self._found[branch.key]

    def write(self, agenda: Agenda, args: dict) -> Node:
        """The node of all texts of the agenda, of which there must be some (see `can_finish`)."""
        parts: list[Node] = []
        branches, open_branches = self._branches(agenda, args, parts), []
        for branch in branches or ():
            self._cases = 0
            if self._leads_to_end(branch):
                rest = (
                    LazyText(partial(self.write, branch.agenda, branch.args), _LONGEST)
                    if branch.agenda
                    else nodes.EMPTY
                )
                open_branches.append(nodes.seq([nodes.literal(branch.text), rest]))
        return nodes.seq([*parts, nodes.alt(open_branches)] if branches else parts)


def _with(args: dict, path: Path, value: Any) -> dict:
    """A copy of `args` with a value set at a path."""

    def put(at: Any, rest: Path) -> Any:
        if not rest:
            return value
        if isinstance(rest[0], int):
            return [*at[: rest[0]], put(at[rest[0]] if rest[0] < len(at) else {}, rest[1:])]
        return {**at, rest[0]: put(at.get(rest[0], {}), rest[1:])}

    return put(args, path)


def _shaped(value: Any, schema: Any) -> Any:
    """An object with the members that its schema declares, in the schema's order; other values as they are."""
    if isinstance(value, dict) and schema_type(schema) == "object" and schema.get("properties"):
        return {name: value[name] for name in schema["properties"] if name in value}
    return value


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
