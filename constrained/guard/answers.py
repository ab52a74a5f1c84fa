"""A model's answer under a policy: the part that is admitted, and what is sent back where none is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from constrained.guard.conversation import Conversation
from constrained.guard.messages import Said, ToolCall, message_events
from constrained.guard.verdict import REFUSED, Verdict

LATER = f"{REFUSED}a call before it was refused. Make one call, and read its result before you go on."
"""What the model reads of a call after a refused one."""


class Judged(NamedTuple):
    """The judgement of an answer.

    Attributes
    ----------
    calls : tuple of Call
    kept : int
        How many of the calls are admitted, from the first on.
    verdict : Verdict or None
        On the call, or the text, that is not admitted.
    """

    calls: tuple[ToolCall, ...]
    kept: int
    verdict: Verdict | None

    @property
    def refused(self) -> bool:
        """Whether nothing of the answer is admitted."""
        return self.verdict is not None and not self.kept


def judge_answer(conversation: Conversation, message: Mapping[str, Any]) -> Judged:
    """Judge an answer, a message of the assistant, at a point of a conversation.

    Raises KnowledgeError: the message can't be read.
    """
    calls = message.get("tool_calls")
    if isinstance(calls, (list, tuple)):  # by what clients read of them; records' other fields mean nothing here
        message = {**message, "tool_calls": [*map(_as_read, calls)]}
    [said] = (event for event in message_events({**message, "role": "assistant"}) if isinstance(event, Said))
    if said.calls:
        kept, verdict = conversation.admitted(said.calls)
        return Judged(said.calls, kept, verdict)
    unmet = conversation.judge_text(said.text)
    if not unmet:
        return Judged((), 0, None)
    name = conversation.guard.policy.message
    allowed, may_speak = conversation.allowed(), not conversation.judge_text("")
    return Judged((), 0, Verdict(name, {"content": said.text}, tuple(unmet), allowed, may_speak))


def _as_read(call: Any) -> Any:
    """A call with its identity, name and arguments alone."""
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return call
    return {"id": call.get("id"), "function": {key: function.get(key) for key in ("name", "arguments")}}


def correction(message: Mapping[str, Any], judged: Judged) -> list[dict[str, Any]]:
    """The messages that tell a model why its answer was refused: the answer itself, and a result for each of its calls.

    They are added to the conversation that is sent to the model, not to the one that the user sees.
    """
    assert judged.verdict is not None
    kept = {key: message[key] for key in ("role", "content", "tool_calls", "refusal") if message.get(key) is not None}
    answer = {"role": "assistant", "content": None, **kept}
    if not judged.calls:
        return [answer, {"role": "user", "content": judged.verdict.text()}]
    # Each call needs an identity by which its result names it.
    given: Sequence[Any] = message.get("tool_calls") or ()
    identities = [call.identity or f"call_{number}" for number, call in enumerate(judged.calls)]
    answer["tool_calls"] = [_sent(*each) for each in zip(given, judged.calls, identities)]
    texts = [judged.verdict.text(), *[LATER] * (len(identities) - 1)]
    return [answer, *({"role": "tool", "tool_call_id": i, "content": text} for i, text in zip(identities, texts))]


def _sent(given: Any, call: ToolCall, identity: str) -> dict[str, Any]:
    """A refused call as it is sent back; arguments that servers can't parse are left out."""
    plain = dict(given) if isinstance(given, Mapping) else given.model_dump()
    if not isinstance(call.arguments, Mapping) or not call.arguments:
        plain["function"] = {**plain["function"], "arguments": "{}"}
    return {**plain, "id": identity}


def add_usage(used: dict[str, Any], usage: Any) -> None:
    """Add what one attempt used: the client pays for all of them."""
    for key, value in usage.items() if isinstance(usage, Mapping) else ():
        if isinstance(value, int) and not isinstance(value, bool):
            used[key] = used.get(key, 0) + value
        elif isinstance(value, Mapping):
            add_usage(inner := dict(used.get(key) or {}), value)
            used[key] = inner
        else:
            used[key] = value
