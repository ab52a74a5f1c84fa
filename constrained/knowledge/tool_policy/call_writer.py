"""Write the calls of one tool in one memory, argument by argument.

What may be written next depends on what was written before, on what is known, and on whether the rest of the call can
still meet every condition; it is worked out when the text gets there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from constrained.automaton import Grammar
from constrained.errors import KnowledgeError, LimitError
from constrained.grammar import nodes
from constrained.grammar.json_schema.validity import type_of
from constrained.grammar.nodes import Lazy, Node
from constrained.knowledge.tool_policy.calls import Agenda, Calls, Path, onto, pattern_of
from constrained.knowledge.tool_policy.expression import Expression, Unknown
from constrained.knowledge.tool_policy.memory import Memory

FREE = "\0free"
"""Stands for a value that no condition looks at."""

MAX_ITEMS = 12
"""Elements of a list whose elements conditions choose, or whose length they ask for."""

MAX_CASES = 20_000
"""Values that are tried in looking for one way to complete a call."""

MAX_RANGE = 2_000
"""Numbers between two bounds that are offered."""

_LONGEST = 4_000
"""Bytes that the rest of a call may take, as a bound for token budgets."""


def call_grammar(calls: Calls, memory: Memory) -> Grammar | None:
    """The calls that are admitted now; None if there are none.

    They are worked out anew where something that the conditions look at has changed since.
    """
    if not all(one.holds(memory, memory.scope(calls.functions)) for one in calls.static):
        return None
    return memory.kept(calls, calls.looks_at, lambda now: _call_grammar(calls, now))


def _call_grammar(calls: Calls, memory: Memory) -> Grammar | None:
    writer = CallWriter(calls, memory)
    if not writer.can(calls.agenda, {}):
        return None
    return Grammar(calls.rules, writer.write(calls.agenda, {}), limits=calls.options.limits, name=calls.name)


class CallWriter:
    """The calls of one tool in one memory: what was found out about them is kept."""

    def __init__(self, calls: Calls, memory: Memory):
        self.calls, self.scope = calls, memory.scope(calls.functions)
        self.known = dict(memory)
        self._cases = 0
        self._found: dict[tuple, Any] = {}

    def _kept(self, what: str, item: tuple, args: dict, make: Callable[[], Any]) -> Any:
        """What `make` gives: the same each time for the same place and arguments."""
        path = item[1]
        given = [args[name] for name in self.calls.relevant(path) if name in args]
        key = (what, path, item[3] if item[0] == "more" else -1, json.dumps(given))
        if key not in self._found:
            self._found[key] = make()
        return self._found[key]

    def _options(self, item: tuple, args: dict) -> tuple[str, Any]:
        """What a value can be: ("values", list), ("free", None), ("into", agenda items), ("items", None)."""
        _, path, schema = item
        calls = self.calls
        if pattern_of(path) in calls.domains:
            return "values", self._kept("values", item, args, partial(self._candidates, path, schema, args))
        if path[0] not in calls.governed:
            return "free", None
        if _kind(schema) == "array" and (calls.opens(path) or len(path) == 1):
            return "items", None
        if _kind(schema) == "object" and calls.opens(path):
            required = schema.get("required", ())
            inner = [("member", (*path, name), one, name in required) for name, one in schema["properties"].items()]
            return "into", [*inner, ("text", "}")]
        if len(path) == 1 and "enum" in schema:
            return "values", list(schema["enum"])
        if len(path) == 1 and _kind(schema) == "boolean":
            return "values", [True, False]
        return "free", None

    def _candidates(self, path: Path, schema: Any, args: dict) -> list[Any]:
        """The values that the conditions on a path leave."""
        index = next((part for part in path if isinstance(part, int)), None)
        found: list[Any] | None = None
        low, high = schema.get("minimum"), schema.get("maximum")
        for sign, value in self.calls.domains[pattern_of(path)]:
            try:
                given = value.value(self._names(value, args, index), self.scope)
            except Unknown:
                return []
            if sign in ("in", "=="):
                values = [given] if sign == "==" else list(given)
                found = values if found is None else [one for one in found if one in values]
            elif sign == "<=":
                high = given if high is None else min(high, given)
            else:
                low = given if low is None else max(low, given)
        if found is None:
            if low is None or high is None or high - low > MAX_RANGE:
                what = f"tool {self.calls.name!r}: {'.'.join(map(str, path))} has no lower and upper bound of its own"
                raise KnowledgeError(what, "give conditions for both, or a list: `x in [...]`")
            return list(range(int(low), int(high) + 1))
        kept = [one for one in found if (low is None or one >= low) and (high is None or one <= high)]
        unique = {json.dumps(one, sort_keys=True): one for one in kept if _fits(one, schema)}
        return [_shaped(one, schema) for one in unique.values()]

    # looking ahead

    def can(self, agenda: Agenda, args: dict) -> bool:
        """Whether what is on the agenda can be written so that every condition holds."""
        while agenda is not None:
            item, agenda = agenda
            kind = item[0]
            if kind == "check":
                if not self._checked(item[1], args):
                    return False
            elif kind == "member":
                written, asked = (("value", *item[1:3]), agenda), self.calls.asked(item[1])
                if item[3] or asked == "always":
                    agenda = written
                elif asked == "if given":
                    return self._kept("lack", item, args, partial(self._either, written, agenda, args))
            elif kind == "value":
                what, given = self._options(item, args)
                path = item[1]
                if what == "free":
                    args = _with(args, path, FREE)
                elif what == "into":
                    args, agenda = _with(args, path, {}), onto(given, agenda)
                elif what == "items":
                    args, agenda = _with(args, path, []), (("more", path, item[2], 0), agenda)
                elif not self.calls.matters(path):
                    if not given:
                        return False
                    args = _with(args, path, given[0])
                else:
                    return self._kept("some", item, args, partial(self._some, given, path, agenda, args))
            elif kind == "more":
                return self._can_close(item, agenda, args) or self._can_add(item, agenda, args)
        return True

    def _either(self, one: Agenda, other: Agenda, args: dict) -> bool:
        return self._can(one, args) or self._can(other, args)

    def _can_close(self, item: tuple, agenda: Agenda, args: dict) -> bool:
        _, _, schema, count = item
        if count < max(schema.get("minItems", 1), 1):
            return False
        return self._kept("close", item, args, partial(self._can, agenda, args))

    def _can_add(self, item: tuple, agenda: Agenda, args: dict) -> bool:
        _, _, schema, count = item
        if count >= min(schema.get("maxItems", MAX_ITEMS), MAX_ITEMS):
            return False
        return self._kept("add", item, args, partial(self._can, self._another(item, agenda), args))

    def _some(self, values: list[Any], path: Path, agenda: Agenda, args: dict) -> bool:
        return any(self._can(agenda, _with(args, path, one)) for one in values)

    def _can(self, agenda: Agenda, args: dict) -> bool:
        self._cases += 1
        if self._cases > MAX_CASES:
            advice = "bound its lists, or let conditions choose earlier arguments first"
            raise LimitError("policy_cases", MAX_CASES, f"a call of {self.calls.name} takes too long to find", advice)
        return self.can(agenda, args)

    def _another(self, item: tuple, agenda: Agenda) -> Agenda:
        _, path, schema, count = item
        more = ("more", path, schema, count + 1)
        return ("value", (*path, count), schema.get("items", {})), (more, agenda)

    def _checked(self, name: str, args: dict) -> bool:
        return all(one.holds(self._names(one, args), self.scope) for one in self.calls.checks.get(name, ()))

    def _names(self, expression: Expression, args: dict, index: int | None = None) -> dict[str, Any]:
        """What an expression's names stand for."""
        names = {name: self.known[name] for name in expression.names if name in self.known}
        names.update((name, args[name]) for name in expression.names if name in args)
        return names if index is None else {**names, "i": index}

    # writing

    def write(self, agenda: Agenda, args: dict) -> Node:
        """The texts of what is on the agenda; the caller has made sure that there are some."""
        parts: list[Node] = []
        while agenda is not None:
            item, agenda = agenda
            kind = item[0]
            if kind == "text":
                parts.append(nodes.literal(item[1]))
            elif kind == "member":
                path, schema = item[1:3]
                inside = args
                for step in path[:-1]:
                    inside = inside[step]
                comma = nodes.literal(f"{', ' if inside else ''}{json.dumps(path[-1])}: ")
                written, asked = (("value", path, schema), agenda), self.calls.asked(path)
                if item[3] or asked == "always":
                    parts.append(comma)
                    agenda = written
                elif inside and asked == "never":
                    parts.append(nodes.alt([nodes.seq([comma, self.calls.text_of(path, schema)]), nodes.EMPTY]))
                else:
                    self._cases = 0
                    ways = [nodes.seq([comma, self._later(written, args)])] if self.can(written, args) else []
                    ways += [self._later(agenda, args)] if self.can(agenda, args) else []
                    return nodes.seq([*parts, nodes.alt(ways)])
            elif kind == "value":
                what, given = self._options(item, args)
                path, schema = item[1], item[2]
                if what == "free":
                    args = _with(args, path, FREE)
                    parts.append(self.calls.text_of(path, schema))
                elif what == "into":
                    args, agenda = _with(args, path, {}), onto(given, agenda)
                    parts.append(nodes.literal("{"))
                elif what == "items":
                    args, agenda = _with(args, path, []), (("more", path, schema, 0), agenda)
                    parts.append(nodes.literal("["))
                else:
                    return nodes.seq([*parts, self._one_of(given, path, agenda, args)])
            elif kind == "more":
                return nodes.seq([*parts, self._more(item, agenda, args)])
        return nodes.seq(parts)

    def _one_of(self, values: list[Any], path: Path, agenda: Agenda, args: dict) -> Node:
        if not self.calls.matters(path):
            texts = nodes.choices([_dumped(one).encode() for one in values])
            return nodes.seq([texts, self._later(agenda, _with(args, path, values[0]))])
        ways = []
        for one in values:
            after = _with(args, path, one)
            self._cases = 0
            if self.can(agenda, after):
                ways.append(nodes.seq([nodes.literal(_dumped(one)), self._later(agenda, after)]))
        return nodes.alt(ways)

    def _more(self, item: tuple, agenda: Agenda, args: dict) -> Node:
        ways = []
        self._cases = 0
        if self._can_close(item, agenda, args):
            ways.append(nodes.seq([nodes.literal("]"), self._later(agenda, args)]))
        self._cases = 0
        if self._can_add(item, agenda, args):
            comma = nodes.literal(", ") if item[3] else nodes.EMPTY
            ways.append(nodes.seq([comma, self._later(self._another(item, agenda), args)]))
        return nodes.alt(ways)

    def _later(self, agenda: Agenda, args: dict) -> Node:
        return nodes.EMPTY if agenda is None else Lazy(partial(self.write, agenda, args), _LONGEST)


def _with(args: dict, path: Path, value: Any) -> dict:
    """`args` with another value at a path; the lists and objects on the way are copied."""

    def put(at: Any, rest: Path) -> Any:
        if not rest:
            return value
        if isinstance(rest[0], int):
            return [*at[: rest[0]], put(at[rest[0]] if rest[0] < len(at) else {}, rest[1:])]
        return {**at, rest[0]: put(at.get(rest[0], {}), rest[1:])}

    return put(args, path)


def _fits(value: Any, schema: dict) -> bool:
    """Whether a value is of its schema's type, and one of those that it lists."""
    kind, kinds = type_of(value), schema.get("type", [])
    names = {kind, "number"} if kind == "integer" else {kind}
    named = not kinds or not names.isdisjoint([kinds] if isinstance(kinds, str) else kinds)
    return named and ("enum" not in schema or value in schema["enum"])


def _kind(schema: Any) -> str:
    return schema.get("type", "") if isinstance(schema, dict) else ""


def _shaped(value: Any, schema: Any) -> Any:
    """A value with the members that its schema has, in its order."""
    if isinstance(value, dict) and _kind(schema) == "object" and schema.get("properties"):
        return {name: value[name] for name in schema["properties"] if name in value}
    return value


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
