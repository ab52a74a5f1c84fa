"""The calls of one tool that a policy admits now, as a grammar.

A call is written argument by argument (see `call_writer`). Conditions of the forms ``x in ...``, ``x == ...``,
``x <= ...`` and ``x >= ...`` say which values an argument, an element ``x[i]`` or a member ``x[i].m`` may have; every
other condition is checked as soon as all its arguments are known. An argument that no condition mentions is free:
whatever its schema admits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from constrained.errors import KnowledgeError
from constrained.grammar.json_schema import Layout, Options, write_schema
from constrained.grammar.nodes import Node, Rule
from constrained.knowledge.tool_policy.expression import COMPARE, Definition, Expression, Scope, Unknown
from constrained.knowledge.tool_policy.memory import Memory
from constrained.knowledge.world.syntax import ParseTree

Path = tuple[str | int, ...]
Agenda = tuple | None
"""What is still to be written: (item, the rest); None: nothing."""


class Calls:
    """What may ever be written as a call of one tool.

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
        self.name, self.functions = name, functions
        properties = {**schema.get("properties", {})}
        properties |= {one: {} for one in schema.get("required", ()) if one not in properties}
        self.schema = {**schema, "properties": properties}
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
        self.domains: dict[tuple[str, ...], list[tuple[str, Expression]]] = {}
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
                properties[name] = {**properties[name], "pattern": text}
                continue
            domain = _domain(condition, self.order)
            if domain is not None:
                path, sign, value = domain
                self.domains.setdefault(path, []).append((sign, condition.part(value)))
                others = [one for one in used if one != path[0]]
                mentioned.update({one: max(mentioned.get(one, -1), self.order.index(path[0])) for one in others})
                if len(path) > 1 and path[0] in Expression(value).names:
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

    def _agenda(self) -> Agenda:
        items: list[tuple] = [("text", f"{self.before}{{")]
        for name in self.order:
            items += [("member", (name,), self.schema["properties"][name], name in self.required), ("check", name)]
        return onto([*items, ("text", f"}}{self.after}")], None)

    def unmet(self, memory: Memory, arguments: Mapping[str, Any]) -> list[str]:
        """The conditions of a call that don't hold: in the words behind them, else as they are written."""
        names, scope = {**memory, **arguments}, memory.scope(self.functions)
        return [one.words or one.text for one in self.conditions if not self._holds(one, names, scope)]

    def _holds(self, condition: Expression, names: dict[str, Any], scope: Scope) -> bool:
        """Whether a condition holds; one about ``x[i]`` holds if it does for every element, those before it known."""
        path, sign, other = _domain(condition, self.order) or ((), "", condition.tree)
        if "[i]" not in path and not condition.if_given:
            return condition.holds(names, scope)
        root, right = path[0], condition.part(other)
        try:
            for i, value in _places(names[root], path[1:]):
                before = names[root]
                if path[1:2] == ("[i]",) and i is not None:
                    before = before[: i if path[-1] == "[i]" else i + 1]
                given = right.value({**names, "i": i, root: before}, scope)
                if not (any(_like(value, one) for one in given) if sign == "in" else COMPARE[sign](value, given)):
                    return False
        except KeyError:
            return condition.if_given
        except (Unknown, TypeError):
            return False
        return True

    def asked(self, path: Path) -> str:
        """Whether conditions ask for a value at a path, or in it: "always", "if given", or "never"."""
        pattern = pattern_of(path)
        below = [one for at, given in self.domains.items() if at[: len(pattern)] == pattern for _, one in given]
        if path[0] in self.mentioned or not all(one.if_given for one in below):
            return "always"
        return "if given" if below else "never"

    def opens(self, path: Path) -> bool:
        """Whether conditions look inside the value at a path."""
        pattern = pattern_of(path)
        return any(found[: len(pattern)] == pattern and len(found) > len(pattern) for found in self.domains)

    def matters(self, path: Path) -> bool:
        """Whether something still to be decided looks at the value at a path."""
        root = str(path[0])
        last, own = self.mentioned.get(root, -1), self.order.index(root)
        return last > own or (last == own and (len(path) > 1 or bool(self.checks.get(root))))

    def text_of(self, path: Path, schema: Any) -> Node:
        """Whatever a schema admits at a path."""
        pattern = pattern_of(path)
        if pattern not in self._free:
            prefix = f"{self.name}#{'.'.join(map(str, pattern))}"
            if isinstance(schema, dict):
                schema = {**schema, **{key: self.schema[key] for key in ("$defs", "definitions") if key in self.schema}}
            self._free[pattern] = write_schema(schema, self.rules, prefix, self.style, self.options)
        return self._free[pattern]

    def relevant(self, path: Path) -> list[str]:
        """The arguments that are written before a place and that something from there on looks at."""
        if path[0] not in self._relevant:
            own = self.order.index(str(path[0]))
            names = [name for name in self.order[:own] if self.mentioned.get(name, -1) >= own]
            self._relevant[path[0]] = [*names, str(path[0])]
        return self._relevant[path[0]]


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


def _domain(condition: Expression, order: list[str]) -> tuple[tuple[str, ...], str, ParseTree] | None:
    """(path, comparison, the other side) of a condition that says which values an argument may have."""
    match condition.tree:
        case ParseTree("compare", [left, "in" | "==" | "<=" | ">=" as sign, right]):
            path = path_of(left)
            if path is None or path[0] not in order:
                return None
            later = order[order.index(path[0]) + (len(path) > 1) :]
            return None if Expression(right).names.intersection(later) else (path, sign, right)
    return None


def _pattern_for(tree: ParseTree, order: list[str]) -> tuple[str, str] | None:
    """(argument, regular expression) of a condition ``search("...", argument)``, which its schema can say."""
    match tree:
        case ParseTree("call", ["search", ParseTree("constant", [str(text)]), ParseTree("name", [name])]):
            return (name, text) if name in order else None
    return None


def path_of(tree: ParseTree) -> tuple[str, ...] | None:
    """The path that an expression such as ``x[i].m`` names: ``("x", "[i]", "m")``; None if it names none."""
    match tree:
        case ParseTree("name", [name]):
            return (name,)
        case ParseTree("member", [inner, step]) if (below := path_of(inner)) is not None:
            return (*below, step)
        case ParseTree("item", [inner, ParseTree("name", ["i"])]) if (below := path_of(inner)) is not None:
            return (*below, "[i]")
    return None


def _places(value: Any, path: tuple[str, ...]) -> list[tuple[int | None, Any]]:
    """(index of the list's element, value) at each place of a path; KeyError: there is no such place."""
    found: list[tuple[int | None, Any]] = [(None, value)]
    for step in path:
        if step == "[i]":
            found = [(i if at is None else at, one) for at, top in found for i, one in enumerate(top)]
        else:
            found = [(at, top[step]) for at, top in found]
    return found


def _like(value: Any, candidate: Any) -> bool:
    """Whether a value is a candidate, of which it may have some members only."""
    if isinstance(value, dict) and isinstance(candidate, dict):
        return all(name in candidate and candidate[name] == one for name, one in value.items())
    return bool(value == candidate)


def pattern_of(path: Path) -> tuple[str, ...]:
    """A path with ``[i]`` for each index."""
    return tuple("[i]" if isinstance(part, int) else part for part in path)


def onto(items: list[tuple], agenda: Agenda) -> Agenda:
    """The agenda with some items before it."""
    for item in reversed(items):
        agenda = item, agenda
    return agenda
