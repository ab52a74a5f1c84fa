"""The `openai` client under a policy: answers are judged before the program sees them."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from constrained.errors import KnowledgeError
from constrained.guard.answers import Judged, correction, judge_answer
from constrained.guard.conversation import Guard
from constrained.guard.followed import Followed
from constrained.guard.streams import Assembled
from constrained.guard.verdict import Refused
from constrained.guard.words import SaysYes
from constrained.knowledge.tool_policy import Policy

_GUARDS = 16
"""Tool lists whose guards are kept."""


class GuardedClient:
    """An ``OpenAI`` or ``AsyncOpenAI`` client whose ``chat.completions.create`` obeys a policy.

    The conversation is the request's messages, the tools are the request's. Of several calls in one answer, those
    before the first that isn't admitted are kept. If there are none, "raise" raises `Refused`; "tell" sends the answer
    back to the model with the reason, `retries` times, and raises `Refused` then; a function gets the verdict, and what
    it returns is returned. With ``stream=True`` an answer is judged when it is whole, and its chunks come then.

    Other ways to a model (``responses``, ``beta``, ``completions``) are refused; all else is the client's own.
    """

    def __init__(
        self, client: Any, policy: Policy, on_violation: Any, says_yes: SaysYes | None, schemas: Any, retries: int
    ):
        self._client = client
        self._settings = policy, on_violation, says_yes, schemas, retries
        self.chat = _Chat(_Completions(client.chat.completions, policy, on_violation, says_yes, schemas, retries))

    def with_options(self, **options: Any) -> GuardedClient:
        """As the client's own, behind the same guard."""
        return GuardedClient(self._client.with_options(**options), *self._settings)

    copy = with_options

    def __enter__(self) -> GuardedClient:
        self._client.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._client.__exit__(*raised)

    async def __aenter__(self) -> GuardedClient:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> None:
        await self._client.__aexit__(*raised)

    def __getattr__(self, name: str) -> Any:
        if name in ("responses", "beta", "completions", "realtime", "with_raw_response", "with_streaming_response"):
            raise KnowledgeError(f"client.{name} isn't guarded", "use chat.completions.create, or the client itself")
        return getattr(self._client, name)


class _Chat:
    def __init__(self, completions: _Completions):
        self.completions = completions


class _Completions:
    def __init__(
        self, inner: Any, policy: Policy, on_violation: Any, says_yes: SaysYes | None, schemas: Any, retries: int
    ):
        self._inner, self._policy, self._on_violation, self._says_yes = inner, policy, on_violation, says_yes
        self._schemas, self._retries = schemas, retries
        self._followed: dict[str, Followed] = {}
        self.create = self._create_async if inspect.iscoroutinefunction(inspect.unwrap(inner.create)) else self._create

    def _create(self, **request: Any) -> Any:
        """As the client's own. Raises Refused: nothing of the answer is admitted."""
        conversation, messages = self._at(request)
        for attempt in range(self._retries + 1):
            answer = self._inner.create(**{**request, "messages": messages})
            chunks = [*answer] if request.get("stream") else None
            judged, message, answer = _judged(conversation, answer, chunks)
            if judged is None:
                return answer if chunks is None else iter(answer)
            again = self._refused(judged, attempt)
            if again is not None:
                return again
            messages = [*messages, *correction(message, judged)]
        raise AssertionError

    async def _create_async(self, **request: Any) -> Any:
        """As the client's own. Raises Refused: nothing of the answer is admitted."""
        conversation, messages = self._at(request)
        for attempt in range(self._retries + 1):
            answer = await self._inner.create(**{**request, "messages": messages})
            chunks = [chunk async for chunk in answer] if request.get("stream") else None
            judged, message, answer = _judged(conversation, answer, chunks)
            if judged is None:
                return answer if chunks is None else _later(answer)
            again = self._refused(judged, attempt)
            if again is not None:
                return again
            messages = [*messages, *correction(message, judged)]
        raise AssertionError

    def __getattr__(self, name: str) -> Any:
        if name in ("retrieve", "update", "list", "delete", "messages"):  # these ask no model
            return getattr(self._inner, name)
        raise KnowledgeError(f"chat.completions.{name} isn't guarded", "use create, or the client itself")

    def _at(self, request: dict[str, Any]) -> tuple[Any, list[Any]]:
        """The conversation that a request holds, and its messages."""
        messages = [*request.get("messages", ())]
        tools = self._schemas if self._schemas is not None else request.get("tools") or []
        tools = [] if not isinstance(tools, (list, tuple)) and not tools else tools
        key = json.dumps(tools, sort_keys=True, default=repr)
        if key not in self._followed:
            if len(self._followed) >= _GUARDS:
                self._followed.pop(next(iter(self._followed)))
            self._followed[key] = Followed(Guard(tools, self._policy, says_yes=self._says_yes))
        return self._followed[key].at_end_of(messages), messages

    def _refused(self, judged: Judged, attempt: int) -> Any:
        """What is returned for a refused answer; None: the model is asked again."""
        verdict = judged.verdict
        assert verdict is not None
        if callable(self._on_violation):
            return self._on_violation(verdict)
        if self._on_violation == "raise" or attempt == self._retries:
            raise Refused(verdict)
        return None


def _judged(conversation: Any, answer: Any, chunks: list[Any] | None) -> tuple[Judged | None, dict[str, Any], Any]:
    """(None, ..., the answer with its admitted part), or (the judgement, the refused message, ...)."""
    if chunks is not None:
        assembled = Assembled()
        for chunk in chunks:
            assembled.add(chunk.model_dump())
        if len(assembled.choices) > 1:
            raise KnowledgeError("a stream with several choices isn't guarded", "leave n out, or stream")
        for message in assembled.messages():
            judged = judge_answer(conversation, message)
            if judged.refused:
                return judged, message, chunks
            if judged.verdict is not None:
                chunks = [*_shortened(chunks, judged.kept)]
        return None, {}, chunks
    for choice in answer.choices:
        message = choice.message.model_dump()
        if message.get("function_call"):
            raise KnowledgeError("the answer has a call in a form that isn't judged", "give tools, not functions")
        judged = judge_answer(conversation, message)
        if judged.refused:
            return judged, message, answer
        if judged.verdict is not None:
            choice.message.tool_calls = choice.message.tool_calls[: judged.kept]
    return None, {}, answer


def _shortened(chunks: list[Any], kept: int) -> Iterator[Any]:
    """The chunks without the calls from number `kept` on."""
    for chunk in chunks:
        for choice in chunk.choices:
            calls = choice.delta.tool_calls
            if calls:
                choice.delta.tool_calls = [call for call in calls if call.index < kept] or None
        yield chunk


async def _later(chunks: list[Any]) -> AsyncIterator[Any]:
    for chunk in chunks:
        yield chunk
