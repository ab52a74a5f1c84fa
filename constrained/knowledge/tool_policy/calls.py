"""The calls of one tool that a policy admits now, as a grammar.

A call is written argument by argument (see `call_writer`). Conditions of the forms ``x in ...``, ``x == ...``,
``x <= ...`` and ``x >= ...`` say which values an argument, an element ``x[i]`` or a member ``x[i].m`` may have; every
other condition is checked as soon as all its arguments are known. An argument that no condition mentions is free:
whatever its schema admits.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Mapping
from typing import Any

from constrained.errors import KnowledgeError
from constrained.grammar.json_schema import Layout, Options, write_schema
from constrained.grammar.nodes import Node, Rule
from constrained.knowledge.tool_policy.expression import Definition, Expression

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
        return onto(items, None)

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


def _domain(condition: Expression, used: list[str], order: list[str]) -> tuple[tuple[str, ...], type, ast.expr] | None:
    """(path, comparison, the other side) of a condition that says which values an argument may have."""
    tree = condition.tree
    if not isinstance(tree, ast.Compare) or len(tree.ops) != 1:
        return None
    op = type(tree.ops[0])
    path = path_of(tree.left)
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


def path_of(node: ast.expr) -> tuple[str, ...] | None:
    """The path that an expression such as ``x[i].m`` names: ``("x", "[i]", "m")``; None if it names none."""
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute):
        below = path_of(node.value)
        return None if below is None else (*below, node.attr)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and node.slice.id == "i":
        below = path_of(node.value)
        return None if below is None else (*below, "[i]")
    return None


def pattern_of(path: Path) -> tuple[str, ...]:
    """A path with ``[i]`` for each index."""
    return tuple("[i]" if isinstance(part, int) else part for part in path)


def onto(items: list[tuple], agenda: Agenda) -> Agenda:
    """The agenda with some items before it."""
    for item in reversed(items):
        agenda = item, agenda
    return agenda
