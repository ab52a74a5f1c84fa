"""A policy: what tool calls need, tell and change."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from constrained.grammar.source import Source
from constrained.knowledge.tool_policy.expression import Definition, Expression, Scope, Unknown, json_key
from constrained.knowledge.tool_policy.json_path import found_at
from constrained.knowledge.tool_policy.memory import Memory, read_result
from constrained.knowledge.world.pattern import Pattern


@dataclass(frozen=True)
class Tells:
    """What a result tells: each value at `path` is kept as `name`, under the values at `keys` if there are any.

    `member` is an argument of the call that objects get as a member.
    """

    name: str
    keys: tuple[str, ...]
    path: str
    tools: frozenset[str]
    condition: Expression | None = None
    member: str = ""


@dataclass(frozen=True)
class Makes:
    """What a call changes: the place that `target` names gets `value`, if `condition` holds.

    With `each`, once for each `variable` in it. Facts change one after the other, values all at once.
    """

    target: ast.expr
    value: Expression
    variable: str = ""
    each: Expression | None = None
    condition: Expression | None = None


@dataclass
class Policy:
    """What tool calls need, tell and change.

    Attributes
    ----------
    source : Source
        Its rules are an ordinary `.lark` file, one rule for each tool.
    tells : list of Tells
    needs : dict of str to list of Expression
        Tool -> its conditions, all of which must hold.
    makes : dict of str to list of Makes
    functions : dict of str to Definition
    initial : Memory
    message : str
        The tool that speaks to the user; empty if there is none.
    order : dict of str to list of str
        Tool -> the order in which its arguments are written, if that is not its schema's.
    fails : list of Pattern
    facts : dict of str to int
        Fact -> how many things it is about. The memory holds those that are true, as a list.
    places : dict of str to (int, int)
        Fact or tool -> the line and the column where it is named first.
    """

    source: Source
    tells: list[Tells] = field(default_factory=list)
    needs: dict[str, list[Expression]] = field(default_factory=dict)
    makes: dict[str, list[Makes]] = field(default_factory=dict)
    functions: dict[str, Definition] = field(default_factory=dict)
    initial: Memory = field(default_factory=Memory)
    message: str = ""
    order: dict[str, list[str]] = field(default_factory=dict)
    fails: list[Pattern] = field(default_factory=list)
    facts: dict[str, int] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)

    def failed(self, result: str) -> bool:
        """Whether a result begins like one that says that nothing was done."""
        return any(pattern.begins(result) for pattern in self.fails)

    def told(self, memory: Memory, tool: str, arguments: Mapping[str, Any], result: str) -> Memory:
        """The memory after a call and its result.

        Parameters
        ----------
        memory : Memory
        tool : str
        arguments : mapping
        result : str
            As the tool gave it: JSON, or any text.
        """
        if self.failed(result):
            return memory
        data = result if tool == self.message else read_result(result)
        names = {**memory, **arguments, "arguments": dict(arguments), "result": data}
        scope = memory.scope(self.functions)
        after = memory
        for telling in self.tells:
            if tool in telling.tools:
                after = self._tell(after, telling, names, data, scope)
        for change in self.makes.get(tool, ()):
            try:
                each = [None] if change.each is None else change.each.value(names, scope)
                for one in each:
                    inner = {**names, change.variable: one, **{fact: after[fact] for fact in self.facts}}
                    if change.condition is not None and not change.condition.holds(inner, scope):
                        continue
                    place = tuple(self.place_of(change.target, inner, scope))
                    after = after.with_place(place, change.value.value(inner, scope))
            except (Unknown, KeyError, IndexError, TypeError):
                continue  # it changes what was never seen
        return after.since(memory)

    def _tell(self, memory: Memory, telling: Tells, names: Mapping[str, Any], data: Any, scope: Scope) -> Memory:
        for value in found_at(telling.path, data):
            if telling.member and isinstance(value, dict) and telling.member in names:
                value = {telling.member: names[telling.member], **value}
            if telling.condition is not None and not telling.condition.holds({**names, "it": value}, scope):
                continue
            if telling.name.isupper():
                if value not in memory.get(telling.name, []):
                    memory = memory.with_values(**{telling.name: [*memory.get(telling.name, []), value]})
            elif telling.keys:
                keys = [next(found_at(key, value), None) for key in telling.keys]
                if None not in keys:
                    key = keys[0] if len(keys) == 1 else json_key(tuple(keys))
                    memory = memory.with_values(**{telling.name: {**memory.get(telling.name, {}), key: value}})
            else:
                memory = memory.with_values(**{telling.name: value})
        return memory

    def place_of(self, target: ast.expr, names: Mapping[str, Any], scope: Scope) -> list[Any]:
        if isinstance(target, ast.Name):
            return [target.id]
        if isinstance(target, ast.Attribute):
            return [*self.place_of(target.value, names, scope), target.attr]
        assert isinstance(target, ast.Subscript)
        key = Expression(target.slice).value(names, scope)
        return [*self.place_of(target.value, names, scope), json_key(key) if isinstance(key, tuple) else key]

    def unmet(self, memory: Memory, tool: str, arguments: Mapping[str, Any]) -> list[str]:
        """The conditions of a call that don't hold: in the words behind them, else as they are written."""
        names = {**memory, **arguments}
        return [
            one.words or one.text
            for one in self.needs.get(tool, ())
            if not _holds(one, names, memory.scope(self.functions))
        ]


def _holds(condition: Expression, names: Mapping[str, Any], scope: Scope) -> bool:
    """Whether a condition holds; one about ``x[i]`` holds if it does for every element of x, those before it known."""
    roots = [n.value.id for n in ast.walk(condition.tree) if is_element(n)]  # type: ignore[attr-defined]
    if not roots or "i" not in condition.names:
        return condition.holds(names, scope)
    tree = condition.tree
    root = next((n.value.id for n in ast.walk(getattr(tree, "left", tree)) if is_element(n)), roots[0])  # type: ignore
    listed = names.get(root)
    if not isinstance(listed, list) or not isinstance(tree, ast.Compare):
        return False
    whole = is_element(tree.left)  # else a member, and the other side may look at the element's others
    for i in range(len(listed)):
        before = {**names, root: listed[: i + (not whole)], "i": i}
        try:
            left = condition.part(tree.left).value({**names, "i": i}, scope)
            other = ast.Compare(ast.Name("left", ast.Load()), tree.ops, tree.comparators)
            if whole and isinstance(left, dict):
                right = condition.part(tree.comparators[0]).value(before, scope)
                if not any(all(one.get(k) == v for k, v in left.items()) for one in right):
                    return False
            elif not condition.part(other).value({**before, "left": left}, scope):
                return False
        except Unknown:
            return False
    return True


def is_element(node: ast.AST) -> bool:
    """Whether a node is ``x[i]``."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and isinstance(node.slice, ast.Name)
        and node.slice.id == "i"
    )


def near(name: str, known: Iterable[str]) -> str:
    """A hint: the known name that is like a misspelt one, or the first of them."""
    found = difflib.get_close_matches(name, list(known), 1)
    return f"did you mean {found[0]}?" if found else f"there are: {', '.join(sorted(known)[:12])}"
