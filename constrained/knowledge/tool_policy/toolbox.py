"""`Toolbox`: the tools under a policy, with their calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constrained.grammar.json_schema import Options
from constrained.knowledge.tool_calls import CallForm
from constrained.knowledge.tool_policy.call_writer import call_grammar
from constrained.knowledge.tool_policy.calls import Calls
from constrained.knowledge.tool_policy.memory import Memory
from constrained.knowledge.tool_policy.policy import Policy, slot_of


class Toolbox:
    """The tools that a policy's rules name.

    Attributes
    ----------
    policy : Policy
    calls : dict of str to Calls
        Tool -> its calls.
    form : CallForm
    schemas : mapping of str to dict
        Tool -> the JSON Schema of its arguments.
    """

    def __init__(self, policy: Policy, schemas: Mapping[str, dict], template: str, options: Options):
        self.policy, self.schemas = policy, schemas
        self.calls = {name: Calls(name, schema, policy, template, options) for name, schema in schemas.items()}
        self.form = CallForm(template, schemas, {name: calls.order for name, calls in self.calls.items()})

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

    def unmet(self, memory: Memory, name: str, arguments: Mapping[str, Any]) -> list[str]:
        """Why a call is not admitted: the conditions that don't hold."""
        return self.calls[name].unmet(memory, arguments)
