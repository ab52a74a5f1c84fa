"""Write the calls of one tool in one memory, argument by argument.

What may be written next depends on what was written before, on what is known, and on whether the rest of the call can
still meet every condition; it is worked out when the text gets there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

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


class Way(NamedTuple):
    """One of the ways to go on at a choice: what is written, and what is still to be written then."""

    key: tuple  # the same for all ways that go on alike
    text: str
    agenda: Agenda
    args: dict


class CallWriter:
    """The calls of one tool in one memory: what was found out about them is kept."""

    def __init__(self, calls: Calls, memory: Memory):
        self.calls, self.scope = calls, memory.scope(calls.functions)
        self.known = dict(memory)
        self._cases = 0
        self._found: dict[tuple, Any] = {}

    def _place(self, item: tuple, args: dict) -> tuple:
        """What the rest of a call depends on: where it is, and the arguments before that are still looked at."""
        kind, path, _, *count = item
        given = [args[name] for name in self.calls.relevant(path) if name in args]
        return kind, path, *count, json.dumps(given)

    def _options(self, item: tuple, args: dict) -> tuple[str, Any]:
        """What a value can be: ("values", list), ("free", None), ("into", agenda items), ("items", None)."""
        _, path, schema = item
        calls = self.calls
        if pattern_of(path) in calls.domains:
            key = self._place(item, args)
            if key not in self._found:
                self._found[key] = self._candidates(path, schema, args)
            return "values", self._found[key]
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

    def _checked(self, name: str, args: dict) -> bool:
        return all(one.holds(self._names(one, args), self.scope) for one in self.calls.checks.get(name, ()))

    def _names(self, expression: Expression, args: dict, index: int | None = None) -> dict[str, Any]:
        """What an expression's names stand for."""
        names = {name: self.known[name] for name in expression.names if name in self.known}
        names.update((name, args[name]) for name in expression.names if name in args)
        return names if index is None else {**names, "i": index}

    def _ways(self, agenda: Agenda, args: dict, parts: list[Node] | None = None) -> Iterable[Way] | None:
        """How a call can go on from the next choice; () where none is left, None where it can't.

        Where `parts` are given, what is written before that choice is added to them.
        """
        sure = [] if parts is None else parts
        while agenda is not None:
            item, agenda = agenda
            match item:
                case "text", text:
                    sure.append(nodes.literal(text))
                case "check", name:
                    if not self._checked(name, args):
                        return None
                case "member", path, schema, required:
                    asked = "always" if required else self.calls.asked(path)
                    if asked == "never" and parts is None:
                        continue  # it can be left out
                    inside = args
                    for step in path[:-1]:
                        inside = inside[step]
                    name = f"{', ' if inside else ''}{json.dumps(path[-1])}: "
                    if asked == "never" and inside:
                        free = nodes.seq([nodes.literal(name), self.calls.text_of(path, schema)])
                        sure.append(nodes.alt([free, nodes.EMPTY]))
                        continue
                    given = ("value", path, schema), agenda
                    if asked != "always":
                        return self._numbered(item, args, [(name, given, args), ("", agenda, args)])
                    sure.append(nodes.literal(name))
                    agenda = given
                case "value", path, schema:
                    what, found = self._options(item, args)
                    if what == "values" and not found:
                        return None
                    if what == "values" and self.calls.matters(path):
                        return self._numbered(item, args, ((_dumped(v), agenda, _with(args, path, v)) for v in found))
                    if what == "values":
                        sure.append(nodes.choices([_dumped(one).encode() for one in found]))
                        args = _with(args, path, found[0])
                    elif what == "free":
                        sure.append(nodes.EMPTY if parts is None else self.calls.text_of(path, schema))
                        args = _with(args, path, FREE)
                    elif what == "into":
                        sure.append(nodes.literal("{"))
                        args, agenda = _with(args, path, {}), onto(found, agenda)
                    else:
                        sure.append(nodes.literal("["))
                        args, agenda = _with(args, path, []), (("more", path, schema, 0), agenda)
                case "more", path, schema, count:
                    ways = [("]", agenda, args)] if count >= max(schema.get("minItems", 1), 1) else []
                    if count < min(schema.get("maxItems", MAX_ITEMS), MAX_ITEMS):
                        another = ("value", (*path, count), schema.get("items", {}))
                        after = another, (("more", path, schema, count + 1), agenda)
                        ways.append((", " if count else "", after, args))
                    return self._numbered(item, args, ways) if ways else None
        return ()

    def _numbered(self, item: tuple, args: dict, ways: Iterable[tuple[str, Agenda, dict]]) -> Iterator[Way]:
        place = self._place(item, args)
        return (Way((place, number), *way) for number, way in enumerate(ways))

    def can(self, agenda: Agenda, args: dict) -> bool:
        """Whether what is on the agenda can be written so that every condition holds."""
        ways = self._ways(agenda, args)
        return ways == () or (ways is not None and any(map(self._leads_on, ways)))

    def _leads_on(self, way: Way) -> bool:
        if way.key not in self._found:
            self._cases += 1
            if self._cases > MAX_CASES:
                advice = "bound its lists, or let conditions choose earlier arguments first"
                raise LimitError(
                    "policy_cases", MAX_CASES, f"a call of {self.calls.name} takes too long to find", advice
                )
            self._found[way.key] = self.can(way.agenda, way.args)
        return self._found[way.key]

    def write(self, agenda: Agenda, args: dict) -> Node:
        """The texts of what is on the agenda; the caller has made sure that there are some."""
        parts: list[Node] = []
        ways, going = self._ways(agenda, args, parts), []
        for way in ways or ():
            self._cases = 0
            if self._leads_on(way):
                going.append(nodes.seq([nodes.literal(way.text), self._later(way.agenda, way.args)]))
        return nodes.seq([*parts, nodes.alt(going)] if ways else parts)

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
