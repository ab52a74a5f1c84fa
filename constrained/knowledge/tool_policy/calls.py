"""The calls of one tool that a policy admits now, as a grammar.

A call is written argument by argument. What may be written next depends on what was written before, on what is known,
and on whether the rest of the call can still meet every condition; it is worked out when the text gets there.
Conditions of the forms ``x in ...``, ``x == ...``, ``x <= ...`` and ``x >= ...`` say which values an argument, an
element ``x[i]`` or a member ``x[i].m`` may have; every other condition is checked as soon as all its arguments are
known. An argument that no condition mentions is free: whatever its schema admits.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from constrained.automaton import Grammar
from constrained.errors import KnowledgeError, LimitError
from constrained.grammar import nodes
from constrained.grammar.json_schema import Layout, Options, write_schema
from constrained.grammar.nodes import Lazy, Node, Rule
from constrained.knowledge.tool_policy.expression import Definition, Expression, Unknown
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

Path = tuple[str | int, ...]
Agenda = tuple | None
"""What is still to be written: (item, the rest); None: nothing."""


class Calls:
    """What may be written as a call of one tool.

    Parameters
    ----------
    name : str
    schema : dict
        Of the arguments, an object's.
    conditions : list of Expression
    functions : mapping of str to Definition
    order : list of str
        Arguments in the order in which they are written.
    template : str
        How a call is written, with ARGUMENTS in it.
    style : Layout
    options : Options
    """

    def __init__(
        self,
        name: str,
        schema: dict,
        conditions: list[Expression],
        functions: Mapping[str, Definition],
        order: Iterable[str],
        template: str,
        style: Layout,
        options: Options,
    ):
        self.name, self.schema, self.functions = name, schema, functions
        properties = schema.get("properties", {})
        listed = list(order)
        self.order = [*listed, *(one for one in properties if one not in listed)]
        if unknown := [one for one in listed if one not in properties]:
            raise KnowledgeError(f"tool {name!r} has no argument {unknown[0]!r}", f"it has: {', '.join(properties)}")
        self.required = set(schema.get("required", ()))
        self.rules: dict[str, Rule] = {}
        self.style, self.options = style, options
        self._relevant: dict[str | int, list[str]] = {}
        self.before, _, self.after = template.replace("NAME", json.dumps(name)[1:-1]).partition("ARGUMENTS")
        self.static: list[Expression] = []  # conditions that mention no argument
        self.domains: dict[tuple[str, ...], list[tuple[type, Expression]]] = {}
        self.checks: dict[str, list[Expression]] = {}
        self.conditions = conditions
        mentioned: dict[str, int] = {}
        for condition in conditions:
            used = [one for one in self.order if one in condition.names]
            if not used:
                self.static.append(condition)
                continue
            if (pattern := _pattern_for(condition.tree, self.order)) is not None:
                name, text = pattern
                schema = {**schema, "properties": {**properties, name: {**properties[name], "pattern": text}}}
                self.schema, properties = schema, schema["properties"]
                continue
            domain = _domain(condition, used, self.order)
            if domain is not None:
                path, op, value = domain
                self.domains.setdefault(path, []).append((op, condition.part(value)))
                others = [one for one in used if one != path[0]]
                mentioned.update({one: max(mentioned.get(one, -1), self.order.index(path[0])) for one in others})
                if len(path) > 1 and path[0] in {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}:
                    mentioned[path[0]] = max(mentioned.get(path[0], -1), self.order.index(path[0]) + 1)
            else:
                last = used[-1]
                self.checks.setdefault(last, []).append(condition)
                mentioned.update({one: max(mentioned.get(one, -1), self.order.index(last)) for one in used})
        self.mentioned = mentioned
        self.governed = {path[0] for path in self.domains} | set(mentioned)
        self.looks_at = frozenset().union(*(_seen_by(one, functions) for one in conditions if one not in self.static))
        self._free: dict[Path, Node] = {}
        self.agenda = self._agenda()

    def grammar(self, memory: Memory) -> Grammar | None:
        """The calls that are admitted now; None if there are none.

        It is worked out anew where something that the conditions look at has changed since.
        """
        if not all(one.holds(memory, memory.scope(self.functions)) for one in self.static):
            return None
        return memory.kept(self, self.looks_at, self._grammar)

    def _grammar(self, memory: Memory) -> Grammar | None:
        writer = _Writer(self, memory)
        if not writer.can(self.agenda, {}):
            return None
        return Grammar(self.rules, writer.write(self.agenda, {}), limits=self.options.limits, name=self.name)

    def _agenda(self) -> Agenda:
        items: list[tuple] = [("text", f"{self.before}{{")]
        for i, name in enumerate(self.order):
            if name not in self.required and name not in self.governed:
                items.append(("optional", name, bool(i)))
                continue
            items.append(("text", f"{', ' if i else ''}{json.dumps(name)}: "))
            items.append(("value", (name,), self.schema["properties"][name]))
            items.append(("check", name))
        items.append(("text", f"}}{self.after}"))
        return _onto(items, None)

    def opens(self, path: Path) -> bool:
        """Whether conditions look inside the value at a path."""
        pattern = _pattern(path)
        return any(found[: len(pattern)] == pattern and len(found) > len(pattern) for found in self.domains)

    def matters(self, path: Path) -> bool:
        """Whether something still to be decided looks at the value at a path."""
        root = str(path[0])
        last, own = self.mentioned.get(root, -1), self.order.index(root)
        return last > own or (last == own and (len(path) > 1 or bool(self.checks.get(root))))

    def text_of(self, path: Path, schema: Any) -> Node:
        """Whatever a schema admits at a path."""
        pattern = _pattern(path)
        if pattern not in self._free:
            prefix = f"{self.name}#{'.'.join(map(str, pattern))}"
            self._free[pattern] = write_schema(schema, self.rules, prefix, self.style, self.options)
        return self._free[pattern]

    def relevant(self, path: Path) -> list[str]:
        """The arguments that are written before a place and that something from there on looks at."""
        if path[0] not in self._relevant:
            own = self.order.index(str(path[0]))
            names = [name for name in self.order[:own] if self.mentioned.get(name, -1) >= own]
            self._relevant[path[0]] = [*names, str(path[0])]
        return self._relevant[path[0]]


class _Writer:
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
        if _pattern(path) in calls.domains:
            return "values", self._kept("values", item, args, partial(self._candidates, path, schema, args))
        if path[0] not in calls.governed:
            return "free", None
        if _kind(schema) == "array" and (calls.opens(path) or len(path) == 1):
            return "items", None
        if _kind(schema) == "object" and calls.opens(path):
            items: list[tuple] = []
            for i, (name, inner) in enumerate(schema.get("properties", {}).items()):
                items += [("text", f"{', ' if i else '{'}{json.dumps(name)}: "), ("value", (*path, name), inner)]
            return "into", [*items, ("text", "}")]
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
        for op, value in self.calls.domains[_pattern(path)]:
            try:
                given = value.value(self._names(value, args, index), self.scope)
            except Unknown:
                return []
            if op in (ast.In, ast.Eq):
                values = [given] if op is ast.Eq else list(given)
                found = values if found is None else [one for one in found if one in values]
            elif op is ast.LtE:
                high = given if high is None else min(high, given)
            else:
                low = given if low is None else max(low, given)
        if found is None:
            if low is None or high is None or high - low > MAX_RANGE:
                what = f"tool {self.calls.name!r}: {'.'.join(map(str, path))} has no lower and upper bound of its own"
                raise KnowledgeError(what, "give conditions for both, or a list: `x in [...]`")
            return list(range(int(low), int(high) + 1))
        kept = [one for one in found if (low is None or one >= low) and (high is None or one <= high)]
        allowed = schema.get("enum")
        unique = {json.dumps(one, sort_keys=True): one for one in kept if allowed is None or one in allowed}
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
            elif kind == "value":
                what, given = self._options(item, args)
                path = item[1]
                if what == "free":
                    args = _with(args, path, FREE)
                elif what == "into":
                    args, agenda = _with(args, path, {}), _onto(given, agenda)
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
            elif kind == "optional":
                parts.append(self._optional(item[1], item[2]))
            elif kind == "value":
                what, given = self._options(item, args)
                path, schema = item[1], item[2]
                if what == "free":
                    args = _with(args, path, FREE)
                    parts.append(self.calls.text_of(path, schema))
                elif what == "into":
                    args, agenda = _with(args, path, {}), _onto(given, agenda)
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

    def _optional(self, name: str, comma: bool) -> Node:
        written = [nodes.literal(f"{', ' if comma else ''}{json.dumps(name)}: ")]
        written.append(self.calls.text_of((name,), self.calls.schema["properties"][name]))
        return nodes.alt([nodes.seq(written), nodes.EMPTY])


def _seen_by(condition: Expression, functions: Mapping[str, Definition]) -> frozenset[str]:
    """What a condition looks at, itself or in the functions that it calls."""
    names, calls, done = set(condition.names), list(condition.calls), set()
    while calls:
        name = calls.pop()
        if name in functions and name not in done:
            done.add(name)
            names |= functions[name].body.names - set(functions[name].params)
            calls += functions[name].body.calls
    return frozenset(names)


def _domain(condition: Expression, used: list[str], order: list[str]) -> tuple[tuple[str, ...], type, ast.expr] | None:
    """(path, comparison, the other side) of a condition that says which values an argument may have."""
    tree = condition.tree
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1:
        return None
    op = type(tree.ops[0])
    path = _path_of(tree.left)
    if path is None or path[0] not in order or op not in (ast.In, ast.Eq, ast.LtE, ast.GtE):
        return None
    right = {n.id for n in ast.walk(tree.comparators[0]) if isinstance(n, ast.Name)}
    at = order.index(path[0])
    if any(order.index(one) >= at for one in used if one in right and not (one == path[0] and len(path) > 1)):
        return None
    return path, op, tree.comparators[0]


def _pattern_for(tree: ast.expr, order: list[str]) -> tuple[str, str] | None:
    """(argument, regular expression) of a condition ``search("...", argument)``, which its schema can say."""
    match tree:
        case ast.Call(ast.Name("search"), [ast.Constant(str(text)), ast.Name(name)]) if name in order:
            return name, text
    return None


def _path_of(node: ast.expr) -> tuple[str, ...] | None:
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        below = _path_of(node.value)
        return None if below is None else (*below, node.attr)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and node.slice.id == "i":
        below = _path_of(node.value)
        return None if below is None else (*below, "[i]")
    return None


def _pattern(path: Path) -> tuple[str, ...]:
    return tuple("[i]" if isinstance(part, int) else part for part in path)


def _onto(items: list[tuple], agenda: Agenda) -> Agenda:
    for item in reversed(items):
        agenda = item, agenda
    return agenda


def _with(args: dict, path: Path, value: Any) -> dict:
    """`args` with another value at a path; the lists and objects on the way are copied."""

    def put(at: Any, rest: Path) -> Any:
        if not rest:
            return value
        if isinstance(rest[0], int):
            return [*at[: rest[0]], put(at[rest[0]] if rest[0] < len(at) else {}, rest[1:])]
        return {**at, rest[0]: put(at.get(rest[0], {}), rest[1:])}

    return put(args, path)


def _kind(schema: Any) -> str:
    return schema.get("type", "") if isinstance(schema, dict) else ""


def _shaped(value: Any, schema: Any) -> Any:
    """A value with the members that its schema has, in its order."""
    if isinstance(value, dict) and _kind(schema) == "object" and schema.get("properties"):
        return {name: value[name] for name in schema["properties"] if name in value}
    return value


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
