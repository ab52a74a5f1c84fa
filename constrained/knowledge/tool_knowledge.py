"""Knowledge whose actions are calls: `CallKnowledge` of a list of tools, `ToolKnowledge` of tools under a policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from constrained.automaton import Grammar
from constrained.grammar.json_schema import Options
from constrained.grammar.nodes import STEP
from constrained.knowledge.action_graph import START, ActionGraph
from constrained.knowledge.base import Knowledge, path_start
from constrained.knowledge.demonstration import Demonstration
from constrained.knowledge.path_state import PathState, PossibleActions
from constrained.knowledge.report import INVALID, Judgement
from constrained.knowledge.tool_calls import CallForm, calls_in
from constrained.knowledge.tool_policy import Policy, read_policy
from constrained.knowledge.tool_policy.faults import check_policy
from constrained.knowledge.tool_prompt import example_calls
from constrained.knowledge.tools import (
    Toolbox,
    call_form,
    joined_comments,
    overview,
    read_tools,
    rule_names,
    tool_comments,
    tool_rules,
    toolbox,
)

OF_THE_USER = "(The user has this tool: the call asks them to use it, and its result is what they say.)"
"""What a prompt says of a tool that the user has."""


class CallKnowledge(Knowledge):
    """Knowledge whose actions are calls; they may be given as text, as dictionaries, and in messages.

    Attributes
    ----------
    form : CallForm
        How calls are written, with the JSON Schema of each tool's arguments.
    """

    def __init__(
        self,
        name: str,
        state: PathState,
        comments: Mapping[str, str],
        form: CallForm,
        demonstrations: Sequence[Demonstration] = (),
    ):
        super().__init__(name, state, comments, demonstrations=demonstrations)
        self.form = form

    @classmethod
    def of(
        cls,
        tools: Any,
        call_format: str,
        follow: Mapping[str, Iterable[str]] | None,
        end: Iterable[str] | None,
        whitespace: str,
        options: Options,
        name: str,
    ) -> CallKnowledge:
        """The knowledge of a list of tools, whose calls are part of the grammar; see `ActionKnowledge.from_tools`."""
        listed = read_tools(tools, options.limits)
        grammar = tool_rules(listed, call_format, follow, end, whitespace, options)
        grammar.left_out = tuple(options.left_out)
        described = tool_comments(listed)
        rule_of = rule_names(list(described))
        comments = {START: overview(call_format), **{rule_of[tool]: text for tool, text in described.items()}}
        state = PathState(grammar, ActionGraph(grammar.all_rules(), START))
        return CallKnowledge(name, state, comments, call_form(listed, call_format, whitespace, options))

    def _judged(self, action: Any) -> tuple[Judgement, PathState | PossibleActions]:
        judgement, step = super()._judged(self._as_written(action))
        if judgement.verdict == INVALID and (fault := self.form.fault(action)):
            judgement = replace(judgement, reason=fault)
        return judgement, step

    def _as_written(self, action: Any) -> Any:
        """A call in the form that the masks write it; other actions, and calls admitted as they are, unchanged."""
        order = self.state.order
        if isinstance(action, str) and order.judge(action):
            return action
        text = self.form.text(action)
        if order.judge(text).verdict != INVALID or self.form.fault(action):
            return text
        # Its values may be admitted in another order or spelling, as where a policy chooses among values of its own.
        opening = order.anywhere()
        return (opening and self.form.find(action, opening)) or text

    def after(self, action: Any) -> Self:
        """As `Knowledge.after`."""
        return super().after(self._as_written(action))

    def _actions_in(self, given: Iterable[Any]) -> Iterable[Any]:
        return calls_in(given)

    def _written_forms(self) -> dict[str, str]:
        return {}  # a call's form is the overview's; its arguments are a grammar of their own, which no few words show

    def invented_examples(self, count: int) -> Sequence[Demonstration]:
        """At most `count` calls, made from the tools' schemas."""
        return example_calls(self.form, count)


class ToolKnowledge(CallKnowledge):
    """Knowledge of tools under a policy: their calls stand in slots, which are bound to what is admitted at each step.

    Attributes
    ----------
    tools : Toolbox
        The tools; its `view` has the values of the slots.
    """

    def __init__(
        self,
        name: str,
        state: PathState,
        comments: Mapping[str, str],
        tools: Toolbox,
        demonstrations: Sequence[Demonstration] = (),
    ):
        super().__init__(name, state, comments, tools.form, demonstrations)
        self.tools = tools

    @classmethod
    def under(
        cls,
        tools: Any,
        policy: str | Path | Policy,
        call_format: str,
        options: Options,
        *,
        some: bool = False,
    ) -> ToolKnowledge:
        """The knowledge of the tools that a policy's rules name; see `ActionKnowledge.from_tools`."""
        listed = read_tools(tools, options.limits, may_be_empty=some)
        policy = policy if isinstance(policy, Policy) else read_policy(policy)
        name, state, comments, demonstrations = path_start(Grammar.from_lark(policy.source), policy.source)
        box = toolbox(listed, policy, call_format, options)
        check_policy(box.policy, state.grammar.slots - {STEP}, box.form.schemas, some=some)
        comments = {**dict.fromkeys(state.graph.actions, ""), **comments}
        described = tool_comments(listed)
        described |= {tool: f"{described[tool]} {OF_THE_USER}" for tool in box.policy.users & described.keys()}
        comments = joined_comments(comments, described, overview(call_format))
        return ToolKnowledge(name, state, comments, box, demonstrations)

    def _written_forms(self) -> dict[str, str]:
        return Knowledge._written_forms(self)  # of the policy's rules

    def invented_examples(self, count: int) -> Sequence[Demonstration]:
        """None: a call must fit what is known, which a call made up from a schema wouldn't."""
        return ()
