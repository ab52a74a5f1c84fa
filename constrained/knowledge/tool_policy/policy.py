"""A policy: the `//>` lines of a `.lark` file whose actions are tools.

The file's rules say which tool may follow which; the lines say what results tell, and what each call needs:

//> tells order[@.order_id] = $ by get_order      a result, or each value at a JSON path, is kept under a name
//> tells flight[@.number, @.date] = $[*] with date by search    the call's `date` becomes a member of each
//> tells ORDER = $.orders[*] by get_user         a name in capitals collects every value it was ever told
//> init changed = []                             what holds at the beginning
//> let total(o) = sum(i.price for i in order[o].items)
//> fails "^Error"                                results that match this tell and change nothing
//> message respond                               the tool that speaks to the user, whose answers are its results
//> write book: user_id, cabin, flights           in which order arguments are written
//> needs order[order_id].status == "pending" // it isn't pending     (above a rule) a condition; why, if it fails
//> makes order[order_id].status = "cancelled"    (above a rule) what a call changes

A line that begins with ``//>`` and two spaces or more goes on with the statement before it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from constrained.errors import KnowledgeError
from constrained.grammar.source import Source, read_source
from constrained.knowledge.tool_policy.expression import Definition, Expression, Scope, Unknown, json_key
from constrained.knowledge.tool_policy.json_path import found_at, read_path
from constrained.knowledge.tool_policy.memory import Memory, read_result

_HEAD = re.compile(r"\s*[?!]*([a-z_][a-z0-9_]*)\s*:")
_TELLS = re.compile(
    r"(\w+)\s*(?:\[(.*?)\])?\s*=\s*([$@].*?)(?:\s+with\s+(\w+))?(?:\s+if\s+(.*?))?\s+by\s+([\w ,]+)", re.DOTALL
)
_LET = re.compile(r"(\w+)\(([\w\s,]*)\)\s*=\s*(.+)", re.DOTALL)
_SET = re.compile(r"(.+?)\s(?<![=<>!])=(?!=)\s*(.+)", re.DOTALL)
_EACH = re.compile(r"each\s+(\w+)\s+in\s+([^:]+):\s*")
_ORDER = re.compile(r"(\w+)\s*:\s*([\w\s,]+)")


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
    """What a call changes: the place that `target` names gets `value`; with `each`, once for each `variable` in it."""

    target: ast.expr
    value: Expression
    variable: str = ""
    each: Expression | None = None


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
    """

    source: Source
    tells: list[Tells] = field(default_factory=list)
    needs: dict[str, list[Expression]] = field(default_factory=dict)
    makes: dict[str, list[Makes]] = field(default_factory=dict)
    functions: dict[str, Definition] = field(default_factory=dict)
    initial: Memory = field(default_factory=Memory)
    message: str = ""
    order: dict[str, list[str]] = field(default_factory=dict)
    fails: re.Pattern | None = None

    def failed(self, result: str) -> bool:
        """Whether a result says that nothing was done."""
        return self.fails is not None and self.fails.search(result) is not None

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
                    inner = names if change.each is None else {**names, change.variable: one}
                    place = tuple(self._place(change.target, inner, scope))
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

    def _place(self, target: ast.expr, names: Mapping[str, Any], scope: Scope) -> list[Any]:
        if isinstance(target, ast.Name):
            return [target.id]
        if isinstance(target, ast.Attribute):
            return [*self._place(target.value, names, scope), target.attr]
        assert isinstance(target, ast.Subscript)
        key = Expression(ast.unparse(target.slice)).value(names, scope)
        return [*self._place(target.value, names, scope), json_key(key) if isinstance(key, tuple) else key]

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


def read_policy(text_or_path: str | Path | Source) -> Policy:
    """Read a policy: a `.lark` file, its text, or a name that ships, such as "tau_retail".

    Raises
    ------
    GrammarError
        There is no such file.
    KnowledgeError
        A line can't be read; the message says which.
    """
    source = read_source(text_or_path)
    policy = Policy(source)
    waiting: list[tuple[int, str]] = []
    above: list[tuple[int, str]] = []
    lines = source.text.split("\n")
    for number, line in enumerate(lines, 1):
        stripped = line.strip()
        if stripped.startswith("//>"):
            words = stripped[3:]
            if words.startswith("  ") and waiting:
                waiting[-1] = waiting[-1][0], f"{waiting[-1][1]} {words.strip()}"
            else:
                waiting.append((number, words.strip()))
            continue
        if stripped.startswith("//"):
            above, waiting = above + waiting, []
            continue
        head = _HEAD.match(line)
        for place, statement in above + waiting:
            _add(policy, f"{source.name}:{place}: ", statement, head[1] if head else "")
        above, waiting = [], []
    for place, statement in above + waiting:
        _add(policy, f"{source.name}:{place}: ", statement, "")
    return policy


def _add(policy: Policy, where: str, statement: str, rule: str) -> None:
    word, _, rest = statement.partition(" ")
    rest = rest.strip()
    if word in ("needs", "makes"):
        if not rule:
            raise KnowledgeError(f"{where}`{word}` stands above no rule", "put it right above the rule of a tool")
        if word == "needs":
            text, _, words = rest.partition(" // ")
            condition = Expression(text, where)
            condition.words = words.strip()
            policy.needs.setdefault(rule, []).append(condition)
            return
        loop = _EACH.match(rest)
        found = _matched(
            _SET, rest[loop.end() :] if loop else rest, where, "makes order[order_id].status = 'cancelled'"
        )
        target, value = Expression(found[1], where).tree, Expression(found[2], where)
        every = Expression(loop[2], where) if loop else None
        policy.makes.setdefault(rule, []).append(Makes(target, value, loop[1] if loop else "", every))
    elif word == "tells":
        found = _matched(_TELLS, rest, where, "tells order[@.order_id] = $ by get_order")
        keys = tuple(key.strip() for key in (found[2] or "").split(",") if key.strip())
        for path in (*keys, found[3]):
            read_path(path)
        only_if = Expression(found[5], where) if found[5] else None
        tools = frozenset(found[6].replace(",", " ").split())
        policy.tells.append(Tells(found[1], keys, found[3].strip(), tools, only_if, found[4] or ""))
    elif word == "let":
        found = _matched(_LET, rest, where, "let total(o) = sum(i.price for i in order[o].items)")
        params = tuple(found[2].replace(",", " ").split())
        policy.functions[found[1]] = Definition(params, Expression(found[3], where))
    elif word == "init":
        found = _matched(_SET, rest, where, "init changed = []")
        value = Expression(found[2], where).value({}, Scope(policy.functions, {}))
        policy.initial = policy.initial.with_values(**{found[1].strip(): value})
    elif word == "write":
        found = _matched(_ORDER, rest, where, "write book: user_id, cabin, flights")
        policy.order[found[1]] = found[2].replace(",", " ").split()
    elif word == "fails":
        try:
            policy.fails = re.compile(ast.literal_eval(rest))
        except (ValueError, SyntaxError, TypeError, re.error) as error:
            raise KnowledgeError(f"{where}{rest!r} is no regular expression: {error}", 'fails "^Error"') from None
    elif word == "message":
        policy.message = rest
    else:
        known = "tells, needs, makes, let, init, fails, message, write"
        raise KnowledgeError(f"{where}a policy has no statement {word!r}", f"there are: {known}")


def _matched(pattern: re.Pattern, text: str, where: str, example: str) -> re.Match:
    found = pattern.fullmatch(text)
    if found is None:
        raise KnowledgeError(f"{where}can't read {text[:80]!r}", f"write it like: {example}")
    return found
