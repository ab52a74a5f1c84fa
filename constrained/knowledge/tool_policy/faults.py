"""Find mistakes in a policy: names of tools, arguments or members that don't exist, and facts without use."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import chain

from constrained.errors import GrammarError, KnowledgeError, nearest
from constrained.knowledge.lines.expression import Expression
from constrained.knowledge.lines.forms import Member, all_parts
from constrained.knowledge.tool_policy.narrowing import path_of
from constrained.knowledge.tool_policy.policy import Makes, Policy, root, slot_of
from constrained.planning.model import Literal

UNKNOWN_TOOL, UNKNOWN_NAME, NEVER_TRUE, WITHOUT_USE = "unknown-tool", "unknown-name", "never-true", "fact-without-use"
"""The codes of faults, as lint findings have them."""

_Fault = tuple[str, str, str, tuple[int, int] | None]
"""Its code, what is wrong, what to do, and (line, column) where that is known."""


def check_policy(policy: Policy, slots: Collection[str], schemas: Mapping[str, dict], *, some: bool = False) -> None:
    """Raise KnowledgeError for the first fault that makes a policy unusable with these tools, `some` of its tools."""
    for fault in faults(policy, slots, schemas):
        if fault.code not in ((WITHOUT_USE, UNKNOWN_TOOL) if some else (WITHOUT_USE,)):
            raise KnowledgeError(fault.message, fault.hint)


def faults(policy: Policy, slots: Collection[str], schemas: Mapping[str, dict] | None = None) -> Iterator[GrammarError]:
    """Every fault of a policy, as an error with its code.

    Parameters
    ----------
    policy : Policy
    slots : collection of str
        The slots that its file declares.
    schemas : mapping of str to dict, optional
        Tool -> the JSON Schema of its arguments. Without it, only what the file alone shows is reported.
    """
    for code, message, hint, at in chain(_tools(policy, slots, schemas), _names(policy, schemas), _facts(policy)):
        error = policy.source.error(message, hint, *(at or ()))
        error.code = code
        yield error


def _tools(policy: Policy, slots: Collection[str], schemas: Mapping[str, dict] | None) -> Iterator[_Fault]:
    """Tools without a rule, and rules without a tool."""
    named = {*policy.needs, *policy.makes, *policy.order, *policy.users, *filter(None, [policy.message])}
    for tool in sorted(named.union(*(tells.rules or () for tells in policy.tells))):
        if slot_of(tool) not in slots if schemas is None else tool not in schemas:
            hint = nearest(tool, [slot.lower() for slot in slots] if schemas is None else schemas)
            message = f"the policy names {tool!r}, which is not a tool with a rule"
            yield UNKNOWN_TOOL, message, hint, policy.places.get(tool)
    if schemas is not None:
        for slot in sorted(set(slots) - set(map(slot_of, schemas))):
            message = f"the slot {slot} belongs to no tool"
            yield UNKNOWN_TOOL, message, "a tool's slot is its name in capitals", None


def _names(policy: Policy, schemas: Mapping[str, dict] | None) -> Iterator[_Fault]:
    """Names that nothing defines, and members that no argument has."""
    defined = {*policy.initial, *policy.stored, "i"}
    defined |= {root(change.target) for made in policy.makes.values() for change in made}
    for name, function in policy.functions.items():
        yield from _unknown(f"the function {name}", function.body, function.looks_at, defined)
    for tool, schema in (schemas or {}).items():
        arguments = schema.get("properties", {})
        there = defined.union(arguments)
        for condition in policy.needs.get(tool, ()):
            yield from _unknown(f"`needs {condition.text}`", condition, condition.names, there)
            yield from _members(condition, arguments)
        for tells in (tells for tells in policy.tells if tells.facts and tool in policy.tellers(tells)):
            at = tells.span.line, tells.span.column
            for expression in (
                Expression(form, at=at) for form in (tells.condition, *(f.literal for f in tells.facts))
            ):
                yield from _unknown(f"`tells` of {tool}", expression, expression.names, {"result", "arguments", *there})
        for change in policy.makes.get(tool, ()):
            names = {"result", "arguments", change.variable, *there}
            for expression in _parts(change):
                yield from _unknown(f"`makes` of {tool}", expression, expression.names, names)


def _unknown(where: str, expression: Expression, names: Collection[str], there: Collection[str]) -> Iterator[_Fault]:
    for name in sorted(set(names) - set(there)):
        yield UNKNOWN_NAME, f"{where} looks at {name!r}, which nothing tells", nearest(name, there), expression.at


def _members(condition: Expression, arguments: Mapping[str, dict]) -> Iterator[_Fault]:
    for part in all_parts(condition.form):
        whole = path_of(part) if isinstance(part, Member) else None
        if whole is None or whole[0] not in arguments:
            continue
        *path, name = whole
        schema = arguments[path[0]]
        for step in path[1:]:
            inner = schema.get("items") if step == "[i]" else schema.get("properties", {}).get(step)
            schema = inner if isinstance(inner, dict) else {}
        members = schema.get("properties")
        if members and name not in members:
            message = f"`needs {condition.text}`: {'.'.join(path)} has no member {name!r}"
            yield UNKNOWN_NAME, message, nearest(name, members), condition.at


def _facts(policy: Policy) -> Iterator[_Fault]:
    """Facts that are needed but never made true, and facts that nothing asks for."""
    changes = [change for made in policy.makes.values() for change in made]
    true = {root(change.target) for change in changes if change.true is not False}
    true |= {told.literal.predicate for tells in policy.tells for told in tells.facts if told.literal.positive}
    true |= {name for name in policy.facts if policy.initial[name]}
    conditions = [condition for needs in policy.needs.values() for condition in needs]
    for condition in conditions:
        match condition.form:
            case Literal(name, _, True) if name not in true:
                message = f"`needs {condition.text}` can never hold: nothing makes {name} true"
                yield NEVER_TRUE, message, f"//: makes {name}(...), //: tells, or //: init", condition.at
    asked = [*conditions, *(function.body for function in policy.functions.values())]
    asked += [change.condition for change in changes if change.condition is not None]
    asked += [tells.asked for tells in policy.tells]
    for name in sorted(set(policy.facts).difference(*(expression.names for expression in asked))):
        message = f"{name} is declared, but nothing asks for it"
        yield WITHOUT_USE, message, "leave it out, or name it in a `needs`", policy.places.get(name)


def _parts(change: Makes) -> Iterator[Expression]:
    """The expressions that a change evaluates."""
    yield Expression(change.target, at=change.value.at)
    yield from filter(None, (change.value, change.each, change.condition))
