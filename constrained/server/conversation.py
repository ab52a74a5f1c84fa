"""From a request to the model's prompt and the grammar of its answer.

The conversation is the path: calls and their results, the assistant's texts and the user's answers. The knowledge
follows it, and admits the calls that may come next.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from constrained.automaton import Grammar
from constrained.decoding.generation import LanguageModel
from constrained.errors import ConstrainedError, KnowledgeError
from constrained.grammar.source import Source
from constrained.knowledge import ActionKnowledge
from constrained.knowledge.tool_calls import CallForm
from constrained.knowledge.tool_policy import read_policy
from constrained.knowledge.tool_policy.memory import Memory
from constrained.knowledge.tool_policy.policy import slot_of
from constrained.server import bounds
from constrained.server.chat_request import ChatRequest, RequestError

Value = TypeVar("Value")

MARKERS = {"hermes": "<tool_call>", "json": "{", "llama": "{"}
"""Form of calls -> the text that a call begins with; "{" counts only at the beginning of the answer."""


def _without(marker: str) -> str:
    """A regular expression for texts without `marker`, whose first character occurs in it only once."""
    # Runs without the marker's first character, and every way in which the marker can begin and break off.
    first, rest = marker[0], marker[1:]
    broken = "|".join(f"{marker[: i + 1]}(?:[^{first}{one}][^{first}]*)?" for i, one in enumerate(rest))
    return f"(?:[^{first}]+(?:{broken})*|(?:{broken})+)"


_BESIDE = {
    "<tool_call>": Grammar.from_lark(f"%declare CALL\nstart: CALL | text [CALL]\ntext: /{_without('<tool_call>')}/\n"),
    "{": Grammar.from_lark("%declare CALL\nstart: CALL | /\\s*[^\\s{][\\s\\S]*/\n"),
}
"""Marker -> a call or a text, neither of which can be taken for the other."""

_SEVERAL = Grammar.from_lark(f'%declare CALL\nstart: CALL ("\\n" CALL)~0..{bounds.CALLS - 1}\n')
"""One or more calls in Hermes's form, each on its own line."""


class Writable(NamedTuple):
    """What the model may write, and how its calls are read.

    `grammar` is None for any text, `form` is None where no call is allowed.
    """

    grammar: Grammar | None
    form: CallForm | None


class Conversations:
    """Follows conversations with the knowledge, to find what may come next in each.

    Parameters
    ----------
    policy : Source, optional
        The knowledge: a `.lark` file whose rules name the tools. Without it, a call obeys its tool's schema.
    call_format : str
        A name of `MARKERS`.
    """

    def __init__(self, policy: Source | None, call_format: str):
        self.policy, self.call_format, self.marker = policy, call_format, MARKERS[call_format]
        self._knowledge = _Recent[ActionKnowledge](bounds.TOOL_LISTS)
        self._points = _Recent[_Point](bounds.CONVERSATIONS)

    def knowledge(self, tools: list[dict[str, Any]], follow: dict[str, list[str]] | None = None) -> ActionKnowledge:
        """The knowledge of a request's tools and the policy, or, without a policy, `follow` (see `from_tools`).

        Raises
        ------
        RequestError
            The tools can't be read, or the policy doesn't fit them.
        """

        def read() -> ActionKnowledge:
            try:
                return ActionKnowledge.from_tools(
                    tools,
                    call_format=self.call_format,
                    whitespace="dumps",
                    follow=follow,
                    name="the request's tools",
                    policy=None if self.policy is None else read_policy(self.policy),
                )
            except ConstrainedError as error:
                raise RequestError(error.message, error.hint, param="tools") from None

        return self._knowledge.get(_digest([tools, follow]), read)

    def writable(self, request: ChatRequest) -> Writable:
        """What the model may write next.

        Raises
        ------
        RequestError
            A call in the conversation was not admitted, or nothing that the request asks for is admitted now.
        """
        said = None if request.schema is None else _schema_grammar(request.schema)
        if not request.tools:
            return Writable(said, None)
        knowledge, may_say = self.knowledge(request.tools), True
        if request.named and request.named not in (
            knowledge.actions if knowledge.tools is None else knowledge.tools.calls
        ):
            raise RequestError(f"there is no tool {request.named!r} here", param="tool_choice")
        # Without a policy a named tool is a tool list of its own; with one, the conversation decides what is admitted.
        if knowledge.tools is None:
            if request.named:
                knowledge = self.knowledge([tool for tool in request.tools if _name(tool) == request.named])
        else:
            knowledge, may_say = self._bound(self._follow(knowledge, request), request.named)
        try:
            calls = knowledge.next_action()
        except KnowledgeError:
            calls = None
        else:  # with a policy, a call's result decides what may follow
            if request.parallel and knowledge.tools is None and self.call_format == "hermes":
                single = self.knowledge(request.tools, {name: [] for name in knowledge.actions})
                calls = _SEVERAL.bind(CALL=single.grammar.bind(_STEP=""))
        if request.choice == "auto" and may_say:
            return Writable(said if calls is None else self._either(calls, said), knowledge.calls)
        if calls is None:
            what = f"no call of {request.named}" if request.named else "neither text nor a call"
            what = what if request.named or not may_say else "no call"
            raise RequestError(f"{what} is admitted at this point of the conversation", param="tool_choice")
        return Writable(calls, knowledge.calls)

    def _either(self, calls: Grammar, said: Grammar | None) -> Grammar:
        if said is not None:
            return Grammar.from_lark("%declare CALL SAID\nstart: CALL | SAID\n").bind(CALL=calls, SAID=said)
        return _BESIDE[self.marker].bind(CALL=calls)

    def _bound(self, point: _Point, named: str) -> tuple[ActionKnowledge, bool]:
        """The knowledge bound to the calls that are admitted now, and whether a text is admitted."""
        tools = point.knowledge.tools
        assert tools is not None
        view, message = tools.view(point.memory), _speaks(point.knowledge)
        may_say = not message or slot_of(message) in map(slot_of, point.knowledge.bind_view(view).may_follow)
        if message:
            view.pop(slot_of(message), None)  # it is written as plain text, not as a call
        if named:
            view = {slot_of(named): view.get(slot_of(named), [])}
        return point.knowledge.bind_view(view), may_say

    def _follow(self, knowledge: ActionKnowledge, request: ChatRequest) -> _Point:
        """The point that a conversation has reached; points that were reached before are kept."""
        assert knowledge.tools is not None
        point = _Point(knowledge, knowledge.tools.policy.initial, {}, "")
        key = _digest(request.tools)
        for number, message in enumerate(request.messages):
            key = _digest([key, message])
            before = point
            point = self._points.get(key, lambda: _after(before, message, f"messages[{number}]"))  # noqa: B023
        return point


class _Point(NamedTuple):
    """A point of a conversation: the knowledge there, the memory, calls without a result by id, and the last text."""

    knowledge: ActionKnowledge
    memory: Memory
    waiting: Mapping[str, tuple[str, dict[str, Any]]]
    said: str


def _after(point: _Point, message: dict[str, Any], where: str) -> _Point:
    knowledge, memory, waiting, said = point
    tools, role = knowledge.tools, message["role"]
    assert tools is not None
    # The user answers the last text; a tool, a waiting call; the assistant calls tools, or says something, which is an
    # action itself if the policy has one for that.
    speaks = _speaks(knowledge)
    if role == "user" and speaks:
        memory = tools.policy.told(memory, speaks, {"content": said}, message["content"])
    elif role == "tool":
        if message["tool_call_id"] not in waiting:
            raise RequestError(f"{where} is the result of a call that isn't in the conversation", param=where)
        memory = tools.policy.told(memory, *waiting[message["tool_call_id"]], message["content"])
    elif role == "assistant":
        calls = [
            (call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls", ())
        ]
        if not calls and speaks:
            said = message["content"]
            calls = [("", speaks, {"content": said})]
        for identity, name, arguments in calls:
            now = knowledge.bind_view(tools.view(memory))
            judged = now.judge({"name": name, "arguments": arguments})
            if not judged:
                unmet = "; ".join(tools.unmet(memory, name, arguments)) or judged.reason
                raise RequestError(f"{where}: {name} is not admitted there: {unmet}", param=where)
            knowledge = now.after(judged.text)
            waiting = {**waiting, identity: (name, arguments)}
    return _Point(knowledge, memory, waiting, said)


def _speaks(knowledge: ActionKnowledge) -> str:
    """The policy's action for a message to the user; "" if it has none."""
    assert knowledge.tools is not None
    return knowledge.tools.policy.message


def _schema_grammar(schema: Any) -> Grammar:
    try:
        return Grammar.from_json_schema(schema, whitespace="dumps", any_order=False, closed=True)
    except ConstrainedError as error:
        raise RequestError(f"response_format: {error.message}", error.hint, param="response_format") from None


def _name(tool: Any) -> Any:
    return tool.get("function", tool).get("name")


class _Recent(OrderedDict[str, Value]):
    """A cache of the `most` values that were used last."""

    def __init__(self, most: int):
        super().__init__()
        self._most = most

    def get(self, key: str, make: Callable[[], Value]) -> Value:  # type: ignore[override]
        value = self.pop(key) if key in self else make()
        self[key] = value
        if len(self) > self._most:
            self.popitem(last=False)
        return value


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def usual_format(loaded: LanguageModel) -> str:
    """The form of calls in the model's chat template; "json" if it has none."""
    template = str(getattr(loaded.tokenizer, "chat_template", None))
    return "hermes" if "<tool_call>" in template else "llama" if '"parameters"' in template else "json"


def prompt(loaded: LanguageModel, request: ChatRequest, knowledge: ActionKnowledge | None, explain: bool) -> str:
    """The model's prompt: the conversation in its chat template, or as plain lines if it has none.

    Parameters
    ----------
    loaded : LoadedModel
    request : ChatRequest
    knowledge : ActionKnowledge or None
        The knowledge of the request's tools.
    explain : bool
        Put the knowledge's text into the system message even where the template describes tools.

    Raises
    ------
    RequestError
        The template refuses the conversation.
    """
    template = getattr(loaded.tokenizer, "chat_template", None)
    messages = [
        {**message, "role": "system" if message["role"] == "developer" else message["role"]}
        for message in request.messages
    ]
    if knowledge is not None and (explain or "tools" not in str(template)):
        before = messages.pop(0)["content"] if messages[0]["role"] == "system" else ""
        text = "\n\n".join(filter(None, [before, knowledge.to_text()]))
        messages.insert(0, {"role": "system", "content": text})
    if template is None:
        lines = [f"{message['role']}: {message['content']}{_calls_as_text(message)}" for message in messages]
        return "\n".join([*lines, "assistant: "])
    try:
        return loaded.tokenizer.apply_chat_template(
            messages, tools=request.tools or None, tokenize=False, add_generation_prompt=True
        )
    except Exception as error:  # a template is a program of its own
        raise RequestError(f"the model's chat template refuses the conversation: {error}", param="messages") from None


def _calls_as_text(message: Mapping[str, Any]) -> str:
    return "".join(json.dumps(call["function"], ensure_ascii=False) for call in message.get("tool_calls", ()))
