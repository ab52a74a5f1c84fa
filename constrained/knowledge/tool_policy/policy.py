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
from constrained.knowledge.lines.forms import Form, Member, Name, Subscript, argument
from constrained.knowledge.lines.pattern import Pattern
from constrained.knowledge.lines.tells import Stored, Tells
from constrained.knowledge.tool_policy.memory import Memory, found_at, read_result


@dataclass(frozen=True)
class Makes:
    """What a call changes: the place named by `target` is set to `value`, if `condition` holds.

    With `each`, once for each `variable` in it. Where `target` is a fact, `true` says whether it becomes true or false
    of `value`; None: it isn't a fact. Facts change one after the other, values all at once.
    """

    target: Form
    value: Expression
    true: bool | None = None
    condition: Expression | None = None
    variable: str = ""
    each: Expression | None = None

    def made(self, names: Mapping[str, Any], evaluation: Evaluation) -> Any:
        """The new value of the place."""
        value = self.value.value(names, evaluation)
        return value if self.true is None else changed(names[root(self.target)], value, self.true)


def changed(true_of: list[Any], value: Any, true: bool) -> list[Any]:
    """What a fact is true of, after it has become true or false of a value."""
    rest = [item for item in true_of if item != value]
    return [*rest, value] if true else rest


@dataclass
class Policy:
    """What tool calls need, tell and change.

    Attributes
    ----------
    source : Source
        Its rules are an ordinary `.lark` file, one rule for each tool.
    tells : list of Tells
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
    tells: list[Tells[Form]] = field(default_factory=list)
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

    @property
    def stored(self) -> frozenset[str]:
        """The names under which results' values are stored."""
        return frozenset(tells.stored.name for tells in self.tells if tells.stored is not None)

    def tellers(self, tells: Tells[Form]) -> frozenset[str]:
        """The tools whose results tell something."""
        if tells.rules is not None:
            return tells.rules
        return self.users | {self.message} if self.message else self.users

    def renamed(self, tools: Mapping[str, str]) -> Policy:
        """The policy in which tools have their own names instead of their rules'; `tools`: slot -> name."""

        def name(rule: str) -> str:
            return tools.get(slot_of(rule), rule)

        tells = [replace(one, rules=one.rules and frozenset(map(name, one.rules))) for one in self.tells]
        other = replace(self, tells=tells)
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
        # First the values that the result tells, evaluated as things were before the call; then what the call changes;
        # last, as in a world, the facts that the text tells.
        told = [tells for tells in self.tells if tool in self.tellers(tells)]
        for tells in told:
            if tells.stored is not None:
                after = self._store(after, tells, tells.stored, names, data, evaluation)
        after = self._changed(after, tool, names, evaluation)
        for tells in told:
            if tells.facts and (not tells.patterns or any(pattern.found_in(result) for pattern in tells.patterns)):
                after = self._told(after, tells, names, evaluation)
        return after.sharing(memory)

    def promised(self, memory: Memory, tool: str, arguments: Mapping[str, Any]) -> Memory:
        """The memory after a call whose result isn't known yet: what it changes, where that doesn't look at the result.

        Parameters
        ----------
        memory : Memory
        tool : str
        arguments : mapping
        """
        names = {**memory, **arguments, "arguments": dict(arguments)}
        return self._changed(memory, tool, names, memory.evaluation(self.functions)).sharing(memory)

    def _told(self, after: Memory, tells: Tells[Form], names: Mapping[str, Any], evaluation: Evaluation) -> Memory:
        """The memory after the facts that a result's text tells, one after the other."""
        for literal in (told.literal for told in tells.facts):
            inner = {**names, **{fact: after[fact] for fact in self.facts}}
            if not tells.asked.holds(inner, evaluation):
                continue
            try:
                value = Expression(argument(literal)).value(inner, evaluation)
            except Unknown:
                continue  # it is about what was never seen
            true_of = changed(inner[literal.predicate], value, literal.positive)
            after = after.with_values(**{literal.predicate: true_of})
        return after

    def _changed(self, after: Memory, tool: str, names: Mapping[str, Any], evaluation: Evaluation) -> Memory:
        """The memory after what a call changes."""
        for change in self.makes.get(tool, ()):
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
        self,
        memory: Memory,
        tells: Tells[Form],
        stored: Stored,
        names: Mapping[str, Any],
        data: Any,
        evaluation: Evaluation,
    ) -> Memory:
        values = []
        for value in found_at(stored.path, data):
            if stored.member and isinstance(value, dict) and stored.member in names:
                own = {name: one for name, one in value.items() if name != stored.member or one is not None}
                value = {stored.member: names[stored.member], **own}
            if tells.asked.holds({**names, "it": value}, evaluation):
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
            case Subscript(of, keys):
                found = [Expression(key).value(names, evaluation) for key in keys]
                return [*self.place_of(of, names, evaluation), key_of(found)]
        raise AssertionError(target)


def root(target: Form) -> str:
    """The name at the root of a place such as ``order[id].status``."""
    match target:
        case Name(name):
            return name
        case Member(of) | Subscript(of):
            return root(of)
    raise AssertionError(target)


def slot_of(tool: str) -> str:
    """The slot that stands for a tool's calls in a policy's rules."""
    return re.sub(r"\W", "_", tool.upper())
