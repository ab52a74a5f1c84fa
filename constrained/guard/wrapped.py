"""`guard`: tools, a LangGraph tool node, an MCP session or an OpenAI client that obey a policy."""

from __future__ import annotations

import functools
import inspect
import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from constrained.errors import KnowledgeError
from constrained.grammar.source import Source
from constrained.guard.conversation import Conversation, Guard
from constrained.guard.followed import Followed
from constrained.guard.messages import Heard, Said, ToolCall
from constrained.guard.verdict import OnViolation, Verdict, refusal
from constrained.guard.words import SaysYes
from constrained.knowledge.python_tools import python_tool
from constrained.knowledge.tool_policy import Policy, read_policy


def guard(
    tools: Any,
    policy: str | Path | Source | Policy,
    *,
    on_violation: OnViolation = "raise",
    says_yes: SaysYes | None = None,
    schemas: Any = None,
    retries: int = 2,
) -> Any:
    """Wrap tools so that a call which the policy doesn't admit is never carried out.

    Parameters
    ----------
    tools : dict, list, LangGraph ToolNode, MCP session or OpenAI client
        Functions by name (or a list of them), plain or ``async``: see `GuardedTools`. LangGraph's ``ToolNode``: a node
        that judges the calls of the state's last message. An MCP ``ClientSession``: see `GuardedSession`. The
        ``OpenAI`` or ``AsyncOpenAI`` client: see `constrained.guard.openai_client.GuardedClient`.
    policy : str, Path, Source or Policy
        A ``.lark`` file, its text, or a name that ships.
    on_violation : str or callable
        "raise": `Refused`; "tell": what the model should read in place of the result; or a function of the `Verdict`.
    says_yes : callable, optional
        See `Guard`.
    schemas : list, optional
        The tools' descriptions, as in `Guard`; default: those of the functions, the node, the session or the request.
    retries : int
        With an OpenAI client and "tell": how often an answer is sent back to the model.

    Raises
    ------
    KnowledgeError
        `tools` is none of these, or `on_violation` isn't.
    GrammarError
        The policy can't be read.
    """
    if on_violation not in ("raise", "tell") and not callable(on_violation):
        raise KnowledgeError(f"on_violation is {on_violation!r:.80}", "raise, tell, or a function of the verdict")
    read = policy if isinstance(policy, Policy) else read_policy(policy)
    if isinstance(tools, (Mapping, list, tuple)):
        if not isinstance(tools, Mapping):
            tools = {getattr(tool, "__name__", ""): tool for tool in tools}
        return GuardedTools(tools, read, on_violation, says_yes, schemas)
    if hasattr(tools, "call_tool") and hasattr(tools, "list_tools"):
        return GuardedSession(tools, read, on_violation, says_yes, schemas)
    if hasattr(tools, "tools_by_name") and hasattr(tools, "ainvoke"):
        from constrained.guard.langgraph_node import guarded_node

        return guarded_node(tools, read, on_violation, says_yes, schemas)
    if hasattr(tools, "chat") and hasattr(tools, "base_url"):
        from constrained.guard.openai_client import GuardedClient

        return GuardedClient(tools, read, on_violation, says_yes, schemas, retries)
    hint = "give a dict of functions, a LangGraph ToolNode, an MCP session or an OpenAI client"
    raise KnowledgeError(f"{type(tools).__name__} can't be guarded", hint)


class _Made:
    """A call: the verdict on it, and its result as the policy reads it, once there is one."""

    def __init__(self, verdict: Verdict):
        self.verdict = verdict
        self.result: Any = None

    def done(self, result: Any) -> Any:
        """Note what a function returned."""
        self.result = as_result(result)
        return result


class _Held:
    """A conversation that a program leads, and tells what is said in it.

    Attributes
    ----------
    conversation : Conversation
    """

    def __init__(self, on_violation: OnViolation):
        self._on_violation, self._numbers, self._lock = on_violation, itertools.count(), threading.RLock()
        self.conversation: Conversation | None = None
        self._followed: Followed | None = None
        self._before: list[Heard | Said] = []

    def _begin(self, guard: Guard) -> None:
        self._followed = Followed(guard, 1)
        self.conversation = guard.start
        for event in self._before:
            self.conversation = self.conversation.after(event)

    def _happens(self, event: Heard | Said) -> None:
        with self._lock:
            if self.conversation is None:
                self._before.append(event)
            else:
                self.conversation = self.conversation.after(event)

    def heard(self, text: str) -> None:
        """Say what the user said."""
        self._happens(Heard(text))

    def said(self, text: str) -> None:
        """Say what the assistant said to the user."""
        self._happens(Said(text))

    def follow(self, messages: list[Any]) -> None:
        """Begin anew after these messages, in the form of OpenAI, Anthropic or LangChain.

        Raises KnowledgeError: they can't be read.
        """
        with self._lock:
            if self._followed is None:
                raise KnowledgeError("the session's tools aren't known yet", "await session.list_tools() first")
            self.conversation = self._followed.at_end_of(messages)

    def judge(self, name: str, arguments: Mapping[str, Any]) -> Verdict:
        """Judge a call as the next one, without making it."""
        if self.conversation is None:
            raise KnowledgeError("the session's tools aren't known yet", "await session.list_tools() first")
        return self.conversation.judge(name, arguments)

    def _admit(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, Verdict]:
        """Judge a call and, if it is admitted, note that it is made; its result is told later by the identity."""
        with self._lock:
            verdict, identity = self.judge(name, arguments), f"#{next(self._numbers)}"
            if verdict:
                assert self.conversation is not None
                self.conversation = self.conversation.called(ToolCall(name, arguments, identity), refused=False)
            return identity, verdict

    @contextmanager
    def _carried_out(self, name: str, arguments: Mapping[str, Any]) -> Iterator[_Made]:
        """A call that the block carries out if it is admitted; its result, or its error, is noted at the end."""
        identity, verdict = self._admit(name, arguments)
        made = _Made(verdict)
        if not verdict:
            yield made
            return
        try:
            yield made
        except BaseException as error:
            self._answered(identity, f"Error: {error}")
            raise
        self._answered(identity, made.result)

    def _answered(self, identity: str, result: Any) -> None:
        with self._lock:
            assert self.conversation is not None
            self.conversation = self.conversation.answered(identity, result)


class GuardedTools(_Held, Mapping[str, Callable[..., Any]]):
    """Functions by name; each call is judged in the conversation so far, and its result is noted.

    Tell it what is said: ``tools.said("Shall I cancel it?")``, ``tools.heard("Yes, please.")``, or give it all
    messages: ``tools.follow(messages)``.
    """

    def __init__(
        self,
        tools: Mapping[str, Callable[..., Any]],
        policy: Policy,
        on_violation: OnViolation,
        says_yes: SaysYes | None,
        schemas: Any,
    ):
        super().__init__(on_violation)
        for name, function in tools.items():
            if not callable(function) or not isinstance(name, str) or not name:
                raise KnowledgeError(f"the tool {name!r} is no function: {function!r:.80}", "give name -> function")
        listed = [{**python_tool(tool), "name": name} for name, tool in tools.items()] if schemas is None else schemas
        self.guard = Guard(listed, policy, says_yes=says_yes)
        self._begin(self.guard)
        self._tools = {name: self._wrapped(name, function) for name, function in tools.items()}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def _wrapped(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)

        def arguments(args: tuple, kwargs: dict) -> dict[str, Any]:
            return dict(signature.bind(*args, **kwargs).arguments) if args else kwargs

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def call_async(*args: Any, **kwargs: Any) -> Any:
                with self._carried_out(name, arguments(args, kwargs)) as made:
                    if made.verdict:
                        return made.done(await function(*args, **kwargs))
                return refusal(self._on_violation, made.verdict)

            return call_async

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self._carried_out(name, arguments(args, kwargs)) as made:
                if made.verdict:
                    return made.done(function(*args, **kwargs))
            return refusal(self._on_violation, made.verdict)

        return call


class GuardedSession(_Held):
    """An MCP session whose ``call_tool`` judges each call; all else is the session's own.

    Its tools are those that ``list_tools`` returns, all pages, asked for at the first call.
    """

    def __init__(self, session: Any, policy: Policy, on_violation: OnViolation, says_yes: SaysYes | None, schemas: Any):
        super().__init__(on_violation)
        self._session, self._policy, self._says_yes = session, policy, says_yes
        if schemas is not None:
            self._begin(Guard(schemas, policy, says_yes=says_yes))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def list_tools(self, *args: Any, **kwargs: Any) -> Any:
        """As the session's own; the tools are noted."""
        listed = await self._session.list_tools(*args, **kwargs)
        await self._prepare(listed if not args and not kwargs else None)
        return listed

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None, *args: Any, **kwargs: Any) -> Any:
        """As the session's own. A refused call's text is a result that is marked as an error."""
        await self._prepare()
        with self._carried_out(name, arguments or {}) as made:
            if made.verdict:
                result = await self._session.call_tool(name, arguments, *args, **kwargs)
                made.result = _mcp_text(result)
                return result
        from mcp.types import CallToolResult, TextContent

        told = refusal(self._on_violation, made.verdict)
        if not isinstance(told, str):
            return told
        fields = {"isError": True, "content": [TextContent(type="text", text=told)]}
        return CallToolResult.model_validate(fields)

    async def _prepare(self, first: Any = None) -> None:
        if self.conversation is not None:
            return
        tools: list[Any] = []
        page = first if first is not None else await self._session.list_tools()
        while True:
            tools += [tool.model_dump(by_alias=True, exclude_none=True) for tool in page.tools]
            cursor = getattr(page, "next_cursor", None) or getattr(page, "nextCursor", None)
            if not cursor:
                break
            if "cursor" in inspect.signature(self._session.list_tools).parameters:
                page = await self._session.list_tools(cursor=cursor)
            else:
                from mcp.types import PaginatedRequestParams

                page = await self._session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        if self.conversation is None:
            self._begin(Guard(tools, self._policy, says_yes=self._says_yes))


def _mcp_text(result: Any) -> Any:
    """A result of MCP as text: its structured content as JSON if it has one, else its texts."""
    failed = getattr(result, "is_error", None) or getattr(result, "isError", None)
    whole = getattr(result, "structured_content", None) or getattr(result, "structuredContent", None)
    if whole is not None and not failed:
        # A tool that returns no object is wrapped by servers as {"result": ...}.
        return as_result(whole["result"] if list(whole) == ["result"] else whole)
    text = "".join(part.text for part in getattr(result, "content", ()) if getattr(part, "text", None) is not None)
    return f"Error: {text}" if failed and not text.startswith("Error") else text


def as_result(value: Any) -> Any:
    """What a function returned, as a result that a policy reads: a text, or JSON values."""
    if isinstance(value, str):
        return value
    dump = getattr(value, "model_dump", None)
    try:
        return json.loads(json.dumps(dump(mode="json") if callable(dump) else value))
    except (TypeError, ValueError, RecursionError):
        return str(value)
