"""Tools under a policy: calls read, written, judged, and bound to what is known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from constrained.automaton import Grammar
from constrained.errors import KnowledgeError
from constrained.grammar.json_schema import Options, layout
from constrained.knowledge.tool_policy.calls import Calls
from constrained.knowledge.tool_policy.memory import Memory
from constrained.knowledge.tool_policy.policy import Policy


class Toolbox:
    """The tools that a policy's rules name.

    Attributes
    ----------
    policy : Policy
    calls : dict of str to Calls
        Tool -> what may be written as a call of it.
    """

    def __init__(self, policy: Policy, schemas: Mapping[str, dict], template: str, key: str, options: Options):
        self.policy, self.key = policy, key
        self.template = template
        self.schemas = dict(schemas)
        self.calls = {
            name: Calls(
                name, schema, policy.needs.get(name, []), policy.functions, policy.order.get(name, ()), template,
                layout("dumps"), options,
            )
            for name, schema in schemas.items()
        }  # fmt: skip
        self._static: dict[str, Grammar] = {}

    def view(self, memory: Memory) -> dict[str, Any]:
        """What each tool's slot holds now: the calls that are admitted, or nothing."""
        out: dict[str, Any] = {}
        for name, calls in self.calls.items():
            if not calls.conditions:
                if name not in self._static:
                    grammar = calls.grammar(memory)
                    assert grammar is not None, "nothing forbids it"
                    self._static[name] = grammar
                out[slot_of(name)] = self._static[name]
            else:
                grammar = calls.grammar(memory)
                out[slot_of(name)] = [] if grammar is None else grammar
        return out

    def write(self, name: str, arguments: Mapping[str, Any]) -> str:
        """A call as the masks write it: arguments in their order, white space as `json.dumps` has it.

        Raises
        ------
        KnowledgeError
            There is no such tool.
        """
        if name not in self.calls:
            raise KnowledgeError(f"there is no tool {name!r}", f"the tools are: {', '.join(self.calls)}")
        ordered = {one: arguments[one] for one in self.calls[name].order if one in arguments}
        ordered.update({one: value for one, value in arguments.items() if one not in ordered})
        text = json.dumps(_in_order(ordered, self.schemas[name], top=False), ensure_ascii=False)
        return self.template.replace("NAME", json.dumps(name)[1:-1]).replace("ARGUMENTS", text)

    def read(self, action: str) -> tuple[str, dict[str, Any]] | None:
        """(tool, arguments) of a written call; None if it is none."""
        before, _, after = self.template.partition("ARGUMENTS")
        for name in self.calls:
            head = before.replace("NAME", json.dumps(name)[1:-1])
            if action.startswith(head) and action.endswith(after):
                try:
                    arguments = json.loads(action[len(head) : len(action) - len(after)])
                except (ValueError, RecursionError):
                    continue
                if isinstance(arguments, dict):
                    return name, arguments
        return None

    def told(self, memory: Memory, action: str, result: str) -> Memory:
        """The memory after an action and its result."""
        call = self.read(action)
        return memory if call is None else self.policy.told(memory, *call, result)

    def unmet(self, memory: Memory, name: str, arguments: Mapping[str, Any]) -> list[str]:
        """Why a call is not admitted: the conditions that don't hold."""
        return self.policy.unmet(memory, name, arguments)


def slot_of(tool: str) -> str:
    """The slot that stands for a tool's calls in a policy's rules."""
    return tool.upper().replace("-", "_").replace(".", "_")


def _in_order(value: Any, schema: Any, top: bool = True) -> Any:
    """`value` with the members of objects in their schema's order; those of the arguments are in order already."""
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if isinstance(value, dict) and isinstance(properties, dict):
        names = [*(n for n in (properties if top else value) if n in value), *(n for n in value if n not in properties)]
        return {name: _in_order(value[name], properties.get(name)) for name in dict.fromkeys(names)}
    if isinstance(value, list) and isinstance(schema, dict):
        return [_in_order(one, schema.get("items")) for one in value]
    return value
