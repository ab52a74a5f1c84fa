"""The `openai` client under a policy: answers are judged before the program sees them."""

from __future__ import annotations

import inspect
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, get_args

from constrained.errors import KnowledgeError
from constrained.guard import responses
from constrained.guard.answers import Judged, correction, judge_answer
from constrained.guard.conversation import Conversation, Guard
from constrained.guard.followed import Followed
from constrained.guard.response_streams import ResponseStream
from constrained.guard.streams import Assembled
from constrained.guard.verdict import Refused
from constrained.guard.words import SaysYes
from constrained.knowledge.tool_policy import Policy

_GUARDS = 16
"""Tool lists whose guards are kept."""

_OTHER_WAYS = ("beta", "completions", "realtime", "with_raw_response", "with_streaming_response")


class GuardedClient:
    """An ``OpenAI`` or ``AsyncOpenAI`` client whose answers obey a policy.

    ``chat.completions.create`` and ``responses.create`` are guarded. The conversation is the request's messages (or its
    input), the tools are the request's. Of several calls in one answer, those before the first that isn't admitted are
    kept. If there are none, "raise" raises `Refused`; "tell" sends the answer back to the model with the reason,
    `retries` times, and raises `Refused` then; a function gets the verdict, and what it returns is returned. With
    ``stream=True`` an answer is judged when it is whole, and its chunks come then.

    Other ways to a model (``beta``, ``completions``) are refused; all else is the client's own.
    """

    def __init__(
        self, client: Any, policy: Policy, on_violation: Any, says_yes: SaysYes | None, schemas: Any, retries: int
    ):
        self._client = client
        self._settings = policy, on_violation, says_yes, schemas, retries
        self.chat = _Chat(_Completions(client.chat.completions, *self._settings))

    @cached_property
    def responses(self) -> _Responses:
        """As the client's own, behind the same guard."""
        return _Responses(self._client.responses, *self._settings)

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
        if name in _OTHER_WAYS:
            hint = "use chat.completions.create, responses.create, or the client itself"
            raise KnowledgeError(f"client.{name} isn't guarded", hint)
        return getattr(self._client, name)


class _Chat:
    def __init__(self, completions: _Completions):
        self.completions = completions


class _Guarded(ABC):
    """One endpoint of a client: its `create` judges answers, and asks again where nothing of them is admitted."""

    _name = ""
    _open: tuple[str, ...] = ()
    """What asks no model."""

    def __init__(
        self, inner: Any, policy: Policy, on_violation: Any, says_yes: SaysYes | None, schemas: Any, retries: int
    ):
        self._inner, self._policy, self._on_violation, self._says_yes = inner, policy, on_violation, says_yes
        self._schemas, self._retries = schemas, retries
        self._followed: dict[str, Followed] = {}
        self.create = self._create_async if inspect.iscoroutinefunction(inspect.unwrap(inner.create)) else self._create

    def _create(self, **request: Any) -> Any:
        """As the client's own. Raises Refused: nothing of the answer is admitted."""
        steps = self._steps(request)
        ask = next(steps)
        while True:
            answer = self._inner.create(**ask)
            try:
                ask = steps.send([*answer] if request.get("stream") else answer)
            except StopIteration as end:
                return iter(end.value) if isinstance(end.value, _Pieces) else end.value

    async def _create_async(self, **request: Any) -> Any:
        """As the client's own. Raises Refused: nothing of the answer is admitted."""
        steps = self._steps(request)
        ask = next(steps)
        while True:
            answer = await self._inner.create(**ask)
            try:
                ask = steps.send([piece async for piece in answer] if request.get("stream") else answer)
            except StopIteration as end:
                return _later(end.value) if isinstance(end.value, _Pieces) else end.value

    def _steps(self, request: dict[str, Any]) -> Generator[dict[str, Any], Any, Any]:
        """Yield each request that is sent, and be sent its answer (a list of its pieces); return what is given back."""
        conversation, ask = self._at(request), request
        for attempt in range(self._retries + 1):
            answer = yield ask
            judged, message, kept = self._judged(conversation, answer, bool(request.get("stream")))
            if judged is None:
                return kept
            verdict = judged.verdict
            assert verdict is not None
            if callable(self._on_violation):
                return self._on_violation(verdict)
            if self._on_violation == "raise" or attempt == self._retries:
                raise Refused(verdict)
            ask = self._asked_again(ask, correction(message, judged))
        raise AssertionError

    def __getattr__(self, name: str) -> Any:
        if name in self._open:
            return getattr(self._inner, name)
        raise KnowledgeError(f"{self._name}.{name} isn't guarded", "use create, or the client itself")

    def _at(self, request: dict[str, Any]) -> Conversation:
        """The conversation that a request holds."""
        messages = self._messages(request)
        tools = self._schemas if self._schemas is not None else request.get("tools") or []
        tools = [] if not isinstance(tools, (list, tuple)) and not tools else tools
        key = json.dumps(tools, sort_keys=True, default=repr)
        if key not in self._followed:
            if len(self._followed) >= _GUARDS:
                self._followed.pop(next(iter(self._followed)))
            self._followed[key] = Followed(Guard(tools, self._policy, says_yes=self._says_yes))
        return self._followed[key].at_end_of(messages)

    @abstractmethod
    def _messages(self, request: dict[str, Any]) -> list[Any]:
        """The conversation, as chat messages."""

    @abstractmethod
    def _asked_again(self, request: dict[str, Any], messages: list[dict[str, Any]]) -> dict[str, Any]:
        """A request that goes on with some messages."""

    @abstractmethod
    def _judged(
        self, conversation: Conversation, answer: Any, stream: bool
    ) -> tuple[Judged | None, Mapping[str, Any], Any]:
        """(None, ..., the admitted part of an answer), or (the judgement, the refused message, ...)."""


class _Pieces(list):
    """The pieces of a streamed answer."""


class _Completions(_Guarded):
    """Chat completions."""

    _name = "chat.completions"
    _open = ("retrieve", "update", "list", "delete", "messages")

    def _messages(self, request: dict[str, Any]) -> list[Any]:
        return [*request.get("messages", ())]

    def _asked_again(self, request: dict[str, Any], messages: list[dict[str, Any]]) -> dict[str, Any]:
        return {**request, "messages": [*request["messages"], *messages]}

    def _judged(
        self, conversation: Conversation, answer: Any, stream: bool
    ) -> tuple[Judged | None, Mapping[str, Any], Any]:
        if stream:
            return self._judged_pieces(conversation, _Pieces(answer))
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

    def _judged_pieces(
        self, conversation: Conversation, chunks: _Pieces
    ) -> tuple[Judged | None, Mapping[str, Any], Any]:
        assembled = Assembled()
        numbers = [assembled.add(chunk.model_dump()) for chunk in chunks]
        if len(assembled.choices) > 1:
            raise KnowledgeError("a stream with several choices isn't guarded", "leave n out, or stream")
        for message in assembled.messages():
            judged = judge_answer(conversation, message)
            if judged.refused:
                return judged, message, chunks
            if judged.verdict is not None:
                for chunk, of in zip(chunks, numbers):
                    _shorten(chunk, of, judged.kept)
        return None, {}, chunks


def _shorten(chunk: Any, numbers: Sequence[int], kept: int) -> None:
    """Leave out a chunk's calls from number `kept` on; `numbers`: those of its calls."""
    given = iter(numbers)
    for choice in chunk.choices:
        calls = choice.delta.tool_calls
        if calls:
            choice.delta.tool_calls = [call for call in calls if next(given) < kept] or None


class _Responses(_Guarded):
    """The Responses API. Conversations that the server keeps can't be judged, and are refused."""

    _name = "responses"
    _open = ("delete", "input_items", "input_tokens")

    def _messages(self, request: dict[str, Any]) -> list[Any]:
        responses.check_request(request)
        return responses.messages_of(request.get("input", ()))

    def _asked_again(self, request: dict[str, Any], messages: list[dict[str, Any]]) -> dict[str, Any]:
        return responses.with_messages(request, messages)

    def _judged(
        self, conversation: Conversation, answer: Any, stream: bool
    ) -> tuple[Judged | None, Mapping[str, Any], Any]:
        taken = None
        if stream:
            taken = ResponseStream(False, conversation.guard.looks_at_text)
            for event in answer:
                taken.add(event.model_dump(by_alias=True))
            message = taken.message()
        else:
            message = responses.message_of(answer.output)
        judged = judge_answer(conversation, message)
        if judged.refused:
            return judged, message, answer
        if taken is not None:
            kept = None if judged.verdict is None else judged.kept
            return None, {}, _Pieces(map(_typed, taken.rest(kept)))
        if judged.verdict is not None:
            answer.output = answer.output[: responses.kept_items(answer.output, judged.kept)]
        return None, {}, answer


def _typed(event: dict[str, Any]) -> Any:
    """An event as the package's own object, whatever fields its server leaves out."""
    return _event_classes()[event["type"]].construct(**event)


@cache
def _event_classes() -> dict[str, Any]:
    """Type of an event -> its class."""
    from openai.types.responses import ResponseStreamEvent

    classes = get_args(get_args(ResponseStreamEvent)[0])
    return {get_args(one.model_fields["type"].annotation)[0]: one for one in classes}


async def _later(chunks: Sequence[Any]) -> AsyncIterator[Any]:
    for chunk in chunks:
        yield chunk
