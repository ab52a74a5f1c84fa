"""LangGraph's tool node under a policy; its state's messages are the conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constrained.errors import KnowledgeError
from constrained.guard.answers import LATER
from constrained.guard.conversation import Guard
from constrained.guard.followed import Followed
from constrained.guard.messages import Said, message_events
from constrained.guard.verdict import Verdict, refusal
from constrained.guard.words import SaysYes
from constrained.knowledge.tool_policy import Policy


def guarded_node(node: Any, policy: Policy, on_violation: Any, says_yes: SaysYes | None, schemas: Any) -> Any:
    """A node like LangGraph's ``ToolNode``: calls that the policy doesn't admit are answered, not carried out.

    The calls of a message are judged in their order; from the first that isn't admitted on, none is carried out, and
    each gets an answer that says why.

    Parameters
    ----------
    node : ToolNode
    policy : Policy
    on_violation : str or callable
        As in `constrained.guard.guard`.
    says_yes : callable or None
    schemas : list or None
        Default: those of the node's tools.
    """
    from langchain_core.runnables import RunnableLambda
    from langchain_core.utils.function_calling import convert_to_openai_tool

    if schemas is None:
        schemas = [convert_to_openai_tool(tool) for tool in node.tools_by_name.values()]
    followed = Followed(Guard(schemas, policy, says_yes=says_yes))
    key = getattr(node, "_messages_key", "messages")

    def split(state: Any) -> tuple[Any, list[Any]]:
        """The state with the admitted calls, None if there are none, and the answers to the others."""
        messages = list(_messages(state, key))
        calls = getattr(messages[-1], "tool_calls", None) if messages else None
        if not calls:
            raise KnowledgeError("the last message of the state has no tool calls", "let only those reach the node")
        before = followed.at_end_of(messages[:-1])
        kept, verdict = before.admitted(_read(messages[-1]))
        if verdict is None:
            return state, []
        admitted = messages[-1].model_copy(update={"tool_calls": calls[:kept]})
        return (
            _with_messages(state, key, [*messages[:-1], admitted]) if kept else None,
            _answers(calls[kept:], verdict, on_violation),
        )

    def run(state: Any, config: Any = None) -> Any:
        admitted, answers = split(state)
        found = [] if admitted is None else node.invoke(admitted, config)
        return _joined(found, answers, state, key)

    async def run_async(state: Any, config: Any = None) -> Any:
        admitted, answers = split(state)
        found = [] if admitted is None else await node.ainvoke(admitted, config)
        return _joined(found, answers, state, key)

    return RunnableLambda(run, run_async, name=getattr(node, "name", None) or "tools")


def _read(message: Any) -> tuple[Any, ...]:
    [said] = message_events(message)
    assert isinstance(said, Said)
    return said.calls


def _answers(calls: list[Any], verdict: Verdict, on_violation: Any) -> list[Any]:
    from langchain_core.messages import ToolMessage

    texts = [str(refusal(on_violation, verdict)), *[LATER] * (len(calls) - 1)]
    return [
        ToolMessage(content=text, tool_call_id=call["id"], name=call["name"], status="error")
        for call, text in zip(calls, texts)
    ]


def _messages(state: Any, key: str) -> Any:
    if isinstance(state, list):
        return state
    return state[key] if isinstance(state, Mapping) else getattr(state, key)


def _with_messages(state: Any, key: str, messages: list[Any]) -> Any:
    if isinstance(state, list):
        return messages
    if isinstance(state, Mapping):
        return {**state, key: messages}
    return state.model_copy(update={key: messages}) if hasattr(state, "model_copy") else {key: messages}


def _joined(found: Any, answers: list[Any], state: Any, key: str) -> Any:
    """What the node returned, with the answers to refused calls."""
    if not answers:
        return found
    if isinstance(found, Mapping):
        return {**found, key: [*found.get(key, ()), *answers]}
    if found and not all(hasattr(part, "tool_call_id") for part in found):  # with commands among the results
        return [*found, {key: answers}]
    return [*found, *answers] if isinstance(state, list) else {key: [*found, *answers]}
