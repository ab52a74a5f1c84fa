"""A policy: what tool calls need, tell and change."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from constrained.errors import KnowledgeError
from constrained.grammar.source import Source
from constrained.knowledge.lines.expression import Evaluation, Expression, Function, Unknown, key_of
from constrained.knowledge.lines.forms import Form, Item, Member, Name
from constrained.knowledge.lines.pattern import Pattern
from constrained.knowledge.tool_policy.memory import Memory, found_at, read_result


@dataclass(frozen=True)
class Stored:
    """What of a result is stored: each value at `path`, as `name`, under the values at `keys` if there are any.

    `member` names an argument of the call that is added to objects as a member.
    """

    name: str
    keys: tuple[str, ...]
    path: str
    tools: frozenset[str]
    condition: Expression | None = None
    member: str = ""


@dataclass(frozen=True)
class Makes:
    """What a call changes: the place named by `target` is set to `value`, if `condition` holds.

    With `each`, once for each `variable` in it; with `said`, only if the result says one of these. Where `target` is a
    fact, `true` says whether it becomes true or false of `value`; None: it isn't a fact. Facts change one after the
    other, values all at once.
    """

    target: Form
    value: Expression
    true: bool | None = None
    condition: Expression | None = None
    said: tuple[Pattern, ...] = ()
    variable: str = ""
    each: Expression | None = None

    def made(self, names: Mapping[str, Any], evaluation: Evaluation) -> Any:
        """The new value of the place."""
        value = self.value.value(names, evaluation)
        if self.true is None:
            return value
        rest = [item for item in names[root(self.target)] if item != value]
        return [*rest, value] if self.true else rest


@dataclass
class Policy:
    """What tool calls need, tell and change.

    Attributes
    ----------
    source : Source
        Its rules are an ordinary `.lark` file, one rule for each tool.
    stores : list of Stored
    needs : dict of str to list of Expression
        Tool -> its conditions; all must hold.
    makes : dict of str to list of Makes
    functions : dict of str to Definition
    initial : Memory
    message : str
        The tool that speaks to the user; empty if there is none.
    users : frozenset of str
        The tools that the user has: who calls them asks the user, and hears what they show.
    order : dict of str to list of str
        Tool -> the order in which its arguments are written, if that is not its schema's.
    fails : list of Pattern
    facts : dict of str to int
        Fact -> how many things it is about. The memory holds those that are true, as a list.
    places : dict of str to (int, int)
        Fact or tool -> the line and the column where it is named first.
    """

    source: Source
    stores: list[Stored] = field(default_factory=list)
    needs: dict[str, list[Expression]] = field(default_factory=dict)
    makes: dict[str, list[Makes]] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    initial: Memory = field(default_factory=Memory)
    message: str = ""
    users: frozenset[str] = frozenset()
    order: dict[str, list[str]] = field(default_factory=dict)
    fails: list[Pattern] = field(default_factory=list)
    facts: dict[str, int] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)

    def renamed(self, tools: Mapping[str, str]) -> Policy:
        """The policy in which tools have their own names instead of their rules'; `tools`: slot -> name."""

        def name(rule: str) -> str:
            return tools.get(slot_of(rule), rule)

        stores = [replace(stored, tools=frozenset(map(name, stored.tools))) for stored in self.stores]
        other = replace(self, stores=stores)
        other.message = self.message and name(self.message)
        other.users = frozenset(map(name, self.users))
        for field_name in ("needs", "makes", "order", "places"):
            setattr(other, field_name, {name(rule): value for rule, value in getattr(self, field_name).items()})
        return other

    def failed(self, result: str) -> bool:
        """Whether a result begins like an error, so that the call did nothing."""
        return any(pattern.begins(result) for pattern in self.fails)

    def told(self, memory: Memory, tool: str, arguments: Mapping[str, Any], result: Any) -> Memory:
        """The memory after a call and its result.

        Parameters
        ----------
        memory : Memory
        tool : str
        arguments : mapping
        result : str or JSON value
            As the tool gave it: JSON, or any text.

        Raises
        ------
        KnowledgeError
            The result is neither.
        """
        if not isinstance(result, str):
            try:
                result = json.dumps(result, ensure_ascii=False)
            except (TypeError, ValueError, RecursionError):
                what = f"the result of {tool} is of type {type(result).__name__}, which JSON can't say"
                raise KnowledgeError(what, "give its text, or JSON values") from None
        result = result.encode(errors="replace").decode()
        if self.failed(result):
            return memory
        # What the user says, and what they say that a tool of theirs shows, is text, even if it looks like JSON.
        data = result if tool == self.message or tool in self.users else read_result(result)
        names = {**memory, **arguments, "arguments": dict(arguments), "result": data}
        evaluation = memory.evaluation(self.functions)
        after = memory
        # First what the result tells, evaluated as things were before the call; then what the call changes.
        for stored in self.stores:
            if tool in stored.tools:
                after = self._store(after, stored, names, data, evaluation)
        return self._changed(after, tool, names, evaluation, result).sharing(memory)

    def promised(self, memory: Memory, tool: str, arguments: Mapping[str, Any]) -> Memory:
        """The memory after a call whose result isn't known yet: what it changes, where that doesn't look at the result.

        Parameters
        ----------
        memory : Memory
        tool : str
        arguments : mapping
        """
        names = {**memory, **arguments, "arguments": dict(arguments)}
        return self._changed(memory, tool, names, memory.evaluation(self.functions), None).sharing(memory)

    def _changed(
        self, after: Memory, tool: str, names: Mapping[str, Any], evaluation: Evaluation, result: str | None
    ) -> Memory:
        """The memory after what a call changes; `result`: None while it isn't known."""
        for change in self.makes.get(tool, ()):
            if change.said and (result is None or not any(pattern.found_in(result) for pattern in change.said)):
                continue
            try:
                for item in [None] if change.each is None else change.each.value(names, evaluation):
                    # Facts are read from the memory so far, as they change one after the other.
                    inner = {**names, change.variable: item, **{fact: after[fact] for fact in self.facts}}
                    if change.condition is None or change.condition.holds(inner, evaluation):
                        place = tuple(self.place_of(change.target, inner, evaluation))
                        after = after.with_place(place, change.made(inner, evaluation))
            except (Unknown, KeyError, IndexError, TypeError):
                continue  # it changes what was never seen
        return after

    def _store(
        self, memory: Memory, stored: Stored, names: Mapping[str, Any], data: Any, evaluation: Evaluation
    ) -> Memory:
        values = []
        for value in found_at(stored.path, data):
            if stored.member and isinstance(value, dict) and stored.member in names:
                own = {name: one for name, one in value.items() if name != stored.member or one is not None}
                value = {stored.member: names[stored.member], **own}
            if stored.condition is None or stored.condition.holds({**names, "it": value}, evaluation):
                values.append(value)
        # A name in capitals collects values, one with keys is a table, any other holds the last value.
        if stored.name.isupper():
            listed = [*memory.get(stored.name, []), *values]
            kept: Any = [*{json.dumps(value, sort_keys=True): value for value in listed}.values()]
        elif stored.keys:
            kept = {**memory.get(stored.name, {})}
            for value in values:
                keys = [next(iter(found_at(key, value)), None) for key in stored.keys]
                if all(isinstance(key, (str, int, float)) for key in keys):
                    kept[key_of(keys)] = value
        else:
            kept = values[-1] if values else None
        return memory.with_values(**{stored.name: kept}) if values else memory

    def place_of(self, target: Form, names: Mapping[str, Any], evaluation: Evaluation) -> list[Any]:
        match target:
            case Name(name):
                return [name]
            case Member(of, name):
                return [*self.place_of(of, names, evaluation), name]
            case Item(of, keys):
                found = [Expression(key).value(names, evaluation) for key in keys]
                return [*self.place_of(of, names, evaluation), key_of(found)]
        raise AssertionError(target)


def root(target: Form) -> str:
    """The name at the root of a place such as ``order[id].status``."""
    match target:
        case Name(name):
            return name
        case Member(of) | Item(of):
            return root(of)
    raise AssertionError(target)


def slot_of(tool: str) -> str:
    """The slot that stands for a tool's calls in a policy's rules."""
    return re.sub(r"\W", "_", tool.upper())
