"""Tool lists as action knowledge: each tool is an action, written as the call that a model makes.

These forms of function calling are read: OpenAI's (``{"type": "function", "function": {...}}``, and flat as in its
Responses API), MCP's ``{"name", "inputSchema"}`` and the result of its ``tools/list``, also in the JSON-RPC message
that carries it, and Anthropic's ``{"name", "input_schema"}``. Their schemas may name types as programming languages do
(see `constrained.knowledge.type_names`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from constrained.automaton import Grammar
from constrained.errors import GrammarError, KnowledgeError, LimitError
from constrained.grammar import STEP, nodes
from constrained.grammar.analysis import productive_rules, trim
from constrained.grammar.json_schema import Layout, Options, layout, missing_property, read_schema, write_schema
from constrained.grammar.nodes import Node, Rule, RuleRef, Slot
from constrained.knowledge.action_graph import START
from constrained.knowledge.lines.expression import Expression
from constrained.knowledge.lines.forms import Compare, Form, Member, Name, Subscript
from constrained.knowledge.lines.syntax import MAX_DEPTH
from constrained.knowledge.mcp_tools import is_address, tools_at
from constrained.knowledge.python_tools import python_tool
from constrained.knowledge.tool_calls import CallForm, as_dict, call_around, call_literal, closing_marker, referred
from constrained.knowledge.tool_policy import Memory, Policy
from constrained.knowledge.tool_policy.call_writer import call_grammar
from constrained.knowledge.tool_policy.calls import Calls
from constrained.knowledge.tool_policy.narrowing import path_of
from constrained.knowledge.tool_policy.policy import slot_of
from constrained.knowledge.type_names import with_json_types
from constrained.limits import Limits

CALL_FORMATS = {
    "json": '{"name": "NAME", "arguments": ARGUMENTS}',
    "llama": '{"name": "NAME", "parameters": ARGUMENTS}',
    "hermes": '<tool_call>\n{"name": "NAME", "arguments": ARGUMENTS}\n</tool_call>',
}
"""The templates of calls; "hermes" is also Qwen's format."""

_SCHEMAS = ("parameters", "inputSchema", "input_schema")
_DESCRIPTIVE = {"type", "title", "description", "$schema"}


@dataclass(frozen=True)
class Tool:
    """A tool: its name, what it does, and the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: dict


def read_tools(tools: Any, limits: Limits, *, may_be_empty: bool = False) -> list[Tool]:
    """Read tools from a list (with functions and pydantic models), a ``tools/list`` result, JSON text, a file, or the
    address of an MCP server.

    Raises GrammarError: the file can't be read, or is not JSON. Raises KnowledgeError: it is not a list of tools, is
    empty, or has two tools of the same name.
    """
    if is_address(tools):
        tools = tools_at(tools)
    elif callable(tools) or isinstance(tools, (list, tuple)):
        listed = tools if isinstance(tools, (list, tuple)) else [tools]
        tools = [python_tool(tool) if callable(tool) else tool for tool in listed]
    read = [_tool(tool, i, limits) for i, tool in enumerate(_listed(read_schema(tools, limits, "a list of tools")))]
    for name, number in Counter(tool.name for tool in read).items():
        if number > 1:
            raise KnowledgeError(f"there are {number} tools named {name!r}", "give each tool another name")
    if not read and not may_be_empty:
        raise KnowledgeError("there are no tools", "give at least one")
    return read


def _listed(given: Any) -> list[Any]:
    """The tools of a list, of one tool, of a ``tools/list`` result, or of the JSON-RPC messages that carry results."""
    given = as_dict(given)
    if isinstance(given, Mapping) and "name" not in given:
        if isinstance(given.get("error"), Mapping):
            what = f"the tool list is an error: {str(given['error'].get('message', given['error']))[:200]}"
            raise KnowledgeError(what, "ask its server again, and give what it answers")
        inner = given.get("result", given.get("tools"))
        if inner is not None:
            return _listed(inner)
    if isinstance(given, Mapping):
        return [given]
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes)):
        raise KnowledgeError(f"{str(given)[:80]!r} is not a list of tools", "give a list, or {'tools': [...]}")
    listed: list[Any] = []
    for one in map(as_dict, given):  # a long list comes in pages, one message each
        paged = isinstance(one, Mapping) and "name" not in one and not one.keys().isdisjoint(("result", "tools"))
        listed += _listed(one) if paged else [one]
    return listed


def _tool(given: Any, index: int, limits: Limits) -> Tool:
    function = given.get("function", given) if isinstance(given, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str) or not function["name"]:
        hint = "a tool is {'name': ..., 'description': ..., 'parameters': {a JSON Schema}}, or that under 'function'"
        raise KnowledgeError(f"tool {index} has no name", hint)
    name = function["name"]
    if any(0xD800 <= ord(c) <= 0xDFFF for c in name):
        raise KnowledgeError(f"tool {index} can't be named {name!r}", "a lone surrogate is not text")
    schema: Any = next((function[key] for key in _SCHEMAS if function.get(key) is not None), {})
    if not isinstance(schema, Mapping):
        raise KnowledgeError(f"tool {name!r}: its parameters are not a JSON Schema", "give an object of type 'object'")
    schema = with_json_types(schema, name, limits)
    kind = schema.get("type", "object")
    if kind != "object":
        raise KnowledgeError(f"tool {name!r}: its parameters are of type {kind!r}", "arguments are an object")
    schema = {"type": "object", **schema}
    if set(schema) <= _DESCRIPTIVE:  # no arguments are mentioned, so the tool has none
        schema["properties"] = {}
    return Tool(name, " ".join(str(function.get("description") or "").split()), schema)


def rule_names(names: Sequence[str]) -> dict[str, str]:
    """Tool -> the rule that writes its calls: the tool's name, changed where a rule of that name means something else.

    "start" is the rule of whole paths, `_STEP` ends a call, and the rules of schemas have a # in their names.
    """
    taken = {START, STEP, *names}
    rules = {}
    for name in names:
        rule = name.replace("#", "_")
        while rule in taken and (rule != name or rule in (START, STEP)):
            rule += "_"
        rules[name] = rule
        taken.add(rule)
    return rules


def tool_rules(
    tools: list[Tool],
    call_format: str,
    follow: Mapping[str, Iterable[str]] | None,
    end: Iterable[str] | None,
    whitespace: str,
    options: Options,
) -> Grammar:
    """The grammar of paths whose actions are calls (see `ActionKnowledge.from_tools`)."""
    names = [tool.name for tool in tools]
    rule_of = rule_names(names)
    successors = _order(rule_of, follow or {})
    ends = set(names if end is None else _known(names, end, "end"))
    style, template = layout(whitespace), _template(call_format)
    rules: dict[str, Rule] = {}
    then: dict[
        tuple[str, ...], RuleRef
    ] = {}  # one rule for all tools with the same successors, as there may be thousands
    for tool in tools:
        if _has_slot(tool.parameters):
            hint = "give policy=: a .lark file with `//: tells ORDER = $.path by tool`"
            raise KnowledgeError(f"tool {tool.name!r} has an x-slot, but nothing says what results tell", hint)
        rule = rule_of[tool.name]
        call = _call(tool, rule, template, call_format in CALL_FORMATS, rules, style, options)
        after = tuple(successors.get(rule, names))
        if after not in then:
            then[after] = RuleRef(f"#{len(then)}")
            rules[then[after].rule] = Rule(then[after].rule, nodes.alt(RuleRef(rule_of[name]) for name in after))
        may_end = [nodes.EMPTY] if tool.name in ends else []
        rules[rule] = Rule(rule, nodes.seq([call, Slot(STEP), nodes.alt([then[after], *may_end])]))
    rules[START] = Rule(START, nodes.alt([RuleRef(rule_of[name]) for name in successors.get(START, names)]))
    # A schema that no value fits, or an order without an end, leaves a tool without calls.
    productive = productive_rules(rules)
    for tool in tools:
        if rule_of[tool.name] not in productive:
            lacking = f"tool {tool.name!r}: no call of it can be finished"
            missing = missing_property(tool.parameters, replace(options, left_out={}, unknown={}))
            if missing is not None:
                raise KnowledgeError(f"{lacking}: {missing.message}", missing.hint)
            hint = "look for keywords that rule each other out, and let some tool after it end the plan"
            raise KnowledgeError(lacking, hint)
    return Grammar(trim(rules, productive), RuleRef(START), {STEP}, limits=options.limits)


RESPOND = {
    "name": "respond",
    "description": "Say something to the user.",
    "parameters": {"type": "object", "properties": {"content": {"type": "string"}}, "required": ["content"]},
}
"""The tool that speaks to the user, added if a tool list doesn't have one."""


class Toolbox:
    """The tools that a policy's rules name.

    Attributes
    ----------
    policy : Policy
    calls : dict of str to Calls
        Tool -> its calls.
    form : CallForm
        How their calls are written, with the JSON Schema of each tool's arguments.
    """

    def __init__(self, policy: Policy, schemas: Mapping[str, dict], template: str, options: Options):
        self.policy, self._template, self._options = policy, template, options
        self.calls = {name: Calls(name, schema, policy, template, options) for name, schema in schemas.items()}
        self.form = CallForm(template, schemas, options, {name: calls.order for name, calls in self.calls.items()})

    def view(self, memory: Memory) -> dict[str, Any]:
        """The values of the tools' slots now: for each tool, the grammar of its admitted calls, or nothing."""
        return {slot_of(name): call_grammar(calls, memory) or [] for name, calls in self.calls.items()}

    def write(self, name: str, arguments: Mapping[str, Any]) -> str:
        """A call as the masks write it (see `CallForm.write`)."""
        return self.form.write(name, arguments)

    def read(self, action: str) -> tuple[str, dict[str, Any]] | None:
        """(tool, arguments) of a written call; None if it isn't a call of one of these tools."""
        call = self.form.read(action)
        return call if call is not None and call[0] in self.calls else None

    def told(self, memory: Memory, action: str, result: str) -> Memory:
        """The memory after an action and its result."""
        call = self.read(action)
        return memory if call is None else self.policy.told(memory, *call, result)

    def named(self, name: str) -> Policy:
        """The policy in which the rule for the tool `name`, which may not be in the list, has that name."""
        return self.policy if name in self.calls else self.policy.renamed({slot_of(name): name})

    def calls_of(self, name: str, arguments: Mapping[str, Any]) -> Calls:
        """The calls of a tool; of a tool that isn't in the list, those that the policy alone decides."""
        calls = self.calls.get(name)
        if calls is None:
            schema = {"properties": {key: {"const": value} for key, value in arguments.items()}}
            calls = Calls(name, schema, replace(self.named(name), order={}), self._template, self._options)
        return calls

    def unmet(self, memory: Memory, name: str, arguments: Mapping[str, Any]) -> list[str]:
        """Why a call is not admitted: the conditions that don't hold.

        Of a tool that isn't in the list, only the conditions in the policy are known, not those in its schema.
        """
        return self.calls_of(name, arguments).unmet(memory, arguments)


def toolbox(tools: list[Tool], policy: Policy, call_format: str, options: Options) -> Toolbox:
    """The toolbox of the tools that a policy's rules name."""
    if policy.message and all(tool.name != policy.message for tool in tools):
        tools.append(_tool({**RESPOND, "name": policy.message}, len(tools), options.limits))
    # A policy names tools by their slots.
    named: dict[str, Tool] = {}
    for tool in tools:
        other = named.setdefault(slot_of(tool.name), tool)
        if other is not tool:
            what = f"the tools {other.name!r} and {tool.name!r} have the same slot {slot_of(tool.name)}"
            raise KnowledgeError(what, "rename one of them")
    used = [tool for slot, tool in named.items() if re.search(rf"\b{slot}\b", policy.source.text)]
    policy = policy.renamed({slot: tool.name for slot, tool in named.items()})
    template = _template(call_format)
    # `x-slot` in a schema is a condition like those of the policy, and comes before them.
    schemas = {}
    for tool in used:
        needs: list[Expression] = []
        schemas[tool.name] = _without_slots(tool, tool.parameters, None, needs)
        if _has_slot({key: value for key, value in schemas[tool.name].items() if key != "$defs"}):
            hint = "put it into properties and items, not into $defs, anyOf, ..."
            raise KnowledgeError(f"tool {tool.name!r}: an x-slot stands where no argument can be found", hint)
        policy.needs[tool.name] = [*needs, *policy.needs.get(tool.name, [])]
    return Toolbox(policy, schemas, template, options)


def call_form(tools: list[Tool], call_format: str, whitespace: str, options: Options) -> CallForm:
    """The format in which calls of a tool list are written."""
    compact, template = whitespace == "compact", _template(call_format)
    if compact and call_format in CALL_FORMATS:
        template = template.replace('": ', '":').replace('", ', '",')
    schemas = {tool.name: tool.parameters for tool in tools}
    descriptions = {tool.name: tool.description for tool in tools}
    return CallForm(template, schemas, options, compact=compact, descriptions=descriptions)


def _has_slot(schema: Any) -> bool:
    """Whether the keyword "x-slot" occurs anywhere in a schema."""
    parts, seen = [schema], set()
    for part in parts:
        if id(part) not in seen and isinstance(part, (dict, list)):
            seen.add(id(part))
            if isinstance(part, dict) and not isinstance(part.get("x-slot", {}), dict):
                return True
            parts += part.values() if isinstance(part, dict) else part
    return False


def _without_slots(
    tool: Tool, schema: Any, at: Form | None, needs: list[Expression], seen: frozenset[str] = frozenset()
) -> Any:
    """A schema without the keyword "x-slot", and with references replaced by what they refer to.

    The conditions that "x-slot" stands for are added to `needs`. References of a schema to itself stay.
    """
    if not isinstance(schema, dict):
        return schema
    # A reference is followed once on each way down, since conditions need the place where a value stands.
    ref = schema.get("$ref")
    if isinstance(ref, str) and ref not in seen and isinstance(found := referred(tool.parameters, ref), dict):
        schema, seen = {**found, **{key: value for key, value in schema.items() if key != "$ref"}}, seen | {ref}
    plain = {key: value for key, value in schema.items() if key != "x-slot"}
    if at is not None and "x-slot" in schema:
        slot = schema["x-slot"]
        if not isinstance(slot, str) or not slot.isidentifier():
            raise KnowledgeError(
                f"tool {tool.name!r}: {slot!r} is not a slot", 'name what a result tells: "x-slot": "ORDER"'
            )
        text = f"{'.'.join(path_of(at) or ())} in {slot}".replace(".[i]", "[i]")
        needs.append(Expression(Compare(at, "in", Name(slot)), text, if_given=True))
    if at is not None and len(path_of(at) or ()) > MAX_DEPTH:
        raise KnowledgeError(f"tool {tool.name!r}: its schema nests deeper than {MAX_DEPTH}", "state it flatter")
    # `at` is the expression of the value in a call: x, x.member, x[i].
    properties = plain.get("properties")
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        below: Form = Name(name) if at is None else Member(at, name)
        plain["properties"] = {**plain["properties"], name: _without_slots(tool, inner, below, needs, seen)}
    if at is not None and "items" in plain:
        below = Subscript(at, (Name("i"),))
        plain["items"] = _without_slots(tool, plain["items"], below, needs, seen)
    return plain


def _template(call_format: str) -> str:
    template = CALL_FORMATS.get(str(call_format), call_format)
    if not isinstance(template, str) or template.count("ARGUMENTS") != 1 or template.count("NAME") != 1:
        hint = f"give a text with NAME and ARGUMENTS once each, or one of: {', '.join(CALL_FORMATS)}"
        raise KnowledgeError(f"{call_format!r} is not a format of calls", hint)
    return template


def _call(
    tool: Tool, rule: str, template: str, named: bool, rules: dict[str, Rule], style: Layout, options: Options
) -> Node:
    try:
        options = replace(options, closing=closing_marker(template, tool.name))
        arguments = write_schema(tool.parameters, rules, f"{rule}#", style, options)
    except LimitError:
        raise
    except GrammarError as error:
        raise KnowledgeError(f"tool {tool.name!r}: {error.message}", error.hint) from None
    before, after = call_around(template, tool.name)
    around = [_text(text, tool.name, named, style) for text in (before, after)]
    return nodes.seq([*around[0], arguments, *around[1]])


def _text(text: str, name: str, named: bool, style: Layout) -> list[Node]:
    """The text around the arguments; in the named formats, with the same white space as the arguments."""
    if not named:
        return [call_literal(text, name)]
    spaced = {", ": style.comma, ": ": style.colon}
    return [spaced.get(piece) or call_literal(piece, name) for piece in re.split(r'((?<="), |(?<="): )', text)]


def _order(rule_of: Mapping[str, str], follow: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    """Rule -> the tools that may follow it, by `follow`. Raises KnowledgeError: it names a tool that doesn't exist."""
    if not isinstance(follow, Mapping):
        raise KnowledgeError(f"follow: {follow!r} is not a mapping", "give tool -> the tools that may follow it")
    rules = {**rule_of, START: START, **{rule: rule for rule in rule_of.values()}}
    _known(list(rules), follow, "follow")
    return {rules[name]: _known(list(rule_of), after, f"follow[{name!r}]") for name, after in follow.items()}


def _known(names: Sequence[str], given: Iterable[str], what: str) -> list[str]:
    """`given` as a list. Raises KnowledgeError: it names a tool that doesn't exist."""
    hint = f"the tools are: {', '.join(names)}"
    if not isinstance(given, Iterable):
        raise KnowledgeError(f"{what}: {given!r} is not a list of tools", hint)
    listed = [given] if isinstance(given, str) else list(given)
    for name in listed:
        if name not in names:
            raise KnowledgeError(f"{what}: there is no tool {name!r}", hint)
    return listed


def overview(call_format: str) -> str:
    """What a prompt says of all tools: how a call is written."""
    call = CALL_FORMATS.get(call_format, call_format).replace("ARGUMENTS", "{...}").replace("\n", "\\n")
    return f"Use the tools one after the other. A call is written {call}"


def tool_comments(tools: list[Tool]) -> dict[str, str]:
    """Tool -> its definition: its arguments, and what it does."""
    comments = {}
    for tool in tools:
        head = f"{tool.name}({_members(tool.parameters, _DEPTH)})"
        described = [f"{head}: {tool.description}" if tool.description else head, *_described(tool.parameters)]
        comments[tool.name] = " ".join(described)
    return comments


def joined_comments(comments: Mapping[str, str], described: Mapping[str, str], general: str) -> dict[str, str]:
    """A file's comments joined with the tool list's: a tool's description before its comment, the overview after."""
    words = {slot_of(name): text for name, text in described.items()}
    joined = {name: " ".join(filter(None, [words.get(slot_of(name)), text])) for name, text in comments.items()}
    return {**joined, START: " ".join(filter(None, [comments.get(START), general]))}


_VALUES = 6
"""How many values of an enum a signature shows."""

_DEPTH = 3
"""How many levels of objects and lists a signature shows."""


def _described(parameters: dict) -> list[str]:
    """The descriptions of the arguments: ``city: Where to look.``"""
    properties = parameters.get("properties")
    pairs = properties.items() if isinstance(properties, dict) else ()
    found = (
        (k, " ".join(str(v["description"]).split())) for k, v in pairs if isinstance(v, dict) and v.get("description")
    )
    return [f"{name}: {words}" if words.endswith(".") else f"{name}: {words}." for name, words in found]


def _members(schema: dict, depth: int) -> str:
    """An object's members with their types, ``?`` behind optional ones: ``city: string, days?: integer``."""
    properties, required = schema.get("properties"), schema.get("required") or ()
    if not isinstance(properties, dict):
        return "..."
    return ", ".join(f"{k}{'' if k in required else '?'}: {_type(v, depth)}" for k, v in properties.items())


def _type(schema: Any, depth: int) -> str:
    if not isinstance(schema, dict) or not depth:
        return "any" if schema is not False else "nothing"
    # The most telling keyword decides: values, alternatives, a reference, then the type with its bounds.
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list):
        more = [f"{len(values) - _VALUES} more"] if len(values) > _VALUES else []
        return " | ".join([json.dumps(v, ensure_ascii=False) for v in values[:_VALUES]] + more)
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            return " | ".join(dict.fromkeys(_type(option, depth) for option in schema[keyword]))
    if isinstance(schema.get("$ref"), str):
        return schema["$ref"].rsplit("/", 1)[-1].lstrip("#") or "the same again"
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " | ".join(map(str, kind))
    if kind == "array":
        return f"list of {_type(schema.get('items', {}), depth - 1)}"
    if kind == "object" and isinstance(schema.get("properties"), dict):
        return f"{{{_members(schema, depth - 1)}}}"
    return " ".join([str(kind), *_bounds(schema)])


def _bounds(schema: dict) -> list[str]:
    out = [f"of format {schema['format']}"] if isinstance(schema.get("format"), str) else []
    for keyword, sign in (("minimum", ">="), ("exclusiveMinimum", ">"), ("maximum", "<="), ("exclusiveMaximum", "<")):
        if keyword in schema:
            out.append(f"{sign} {schema[keyword]}")
    return out
