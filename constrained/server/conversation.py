"""From a request to the model's prompt and the grammar of its answer.

The conversation is the path: calls and their results, the assistant's texts and the user's answers. The knowledge
follows it, and admits the calls that may come next.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from constrained.agents.prompts import first_that_fits
from constrained.automaton import Grammar
from constrained.decoding.generation import LanguageModel
from constrained.errors import ConstrainedError, KnowledgeError
from constrained.grammar.source import Source
from constrained.knowledge import ActionKnowledge, CallKnowledge, ToolKnowledge
from constrained.knowledge.tool_calls import CallForm, call_around
from constrained.knowledge.tool_policy import Memory, Policy, read_policy
from constrained.knowledge.tool_policy.policy import slot_of
from constrained.knowledge.tool_prompt import tools_text
from constrained.knowledge.tools import rule_names
from constrained.server import bounds
from constrained.server.chat_request import ChatRequest, RequestError

MARKERS = {"hermes": "<tool_call>", "json": "{", "llama": "{"}
"""Form of calls -> the text that a call begins with; "{" counts only at the beginning of the answer."""

EXAMPLES = 3
"""Worked examples of calls in a prompt, at most."""


def _without(marker: str) -> str:
    """A regular expression for texts without `marker`, whose first character occurs in it only once."""
    # Runs of characters other than the marker's first, and every proper prefix of the marker before another character.
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


def read_rules(source: Source) -> Policy:
    """The policy of a server, checked as far as its file alone shows. Raises ConstrainedError: it can't be used."""
    policy = read_policy(source)
    ActionKnowledge.from_tools([], policy=policy, some=True)
    return policy


class Writable(NamedTuple):
    """What the model may write, and how its calls are read.

    `grammar` is None for any text, `form` is None where no call is allowed, `knowledge` is None without a policy.
    """

    grammar: Grammar | None
    form: CallForm | None
    knowledge: ToolKnowledge | None


def writable(request: ChatRequest, policy: Policy | None, call_format: str) -> Writable:
    """What the model may write next.

    Parameters
    ----------
    request : ChatRequest
    policy : Policy or None
        The knowledge. Without it, a call obeys its tool's schema, and any text is allowed.
    call_format : str
        A name of `MARKERS`.

    Raises
    ------
    RequestError
        The tools can't be read, or the policy doesn't fit them; a call in the conversation was not admitted; or
        nothing that the request asks for is admitted now.
    """
    text = None if request.schema is None else _schema_grammar(request.schema)
    if policy is not None:
        return _under(policy, request, call_format, text)
    if not request.offered:
        return Writable(text, None, None)
    tools, names = request.tools, [*map(_name, request.tools)]
    if request.named:
        if request.named not in names:
            raise _no_tool(request.named)
        tools, names = [tools[names.index(request.named)]], [request.named]
    rules = rule_names([name for name in names if isinstance(name, str)]).values()
    knowledge = _listed(tools, call_format, follow=dict.fromkeys(rules, ()))
    calls = knowledge.grammar.bind(_STEP="")
    if request.parallel and call_format == "hermes":
        calls = _SEVERAL.bind(CALL=calls)
    if request.choice == "auto":
        calls = _either(calls, text, MARKERS[call_format])
    return Writable(calls, knowledge.form, None)


def _listed(
    tools: list[dict[str, Any]], call_format: str, follow: Mapping[str, Iterable[str]] | None = None
) -> CallKnowledge:
    """The knowledge of a request's tools."""
    with _refused("tools"):
        return ActionKnowledge.from_tools(
            tools, call_format=call_format, whitespace="dumps", name="the request's tools", follow=follow
        )


@contextmanager
def _refused(param: str) -> Iterator[None]:
    """Turn a ConstrainedError raised inside into a RequestError about the request's field `param`."""
    try:
        yield
    except ConstrainedError as error:
        raise RequestError(error.message, error.hint, param=param) from None


def _under(policy: Policy, request: ChatRequest, call_format: str, said: Grammar | None) -> Writable:
    """What a policy admits after the conversation: a single call (its result decides what may follow), or a text."""
    with _refused("tools"):
        knowledge = ActionKnowledge.from_tools(request.tools, policy=policy, call_format=call_format, some=True)
    tools = knowledge.tools
    if request.named and request.named not in tools.calls:
        raise _no_tool(request.named)
    knowledge, memory = _followed(knowledge, request.messages)
    view, message = tools.view(memory), tools.policy.message
    may_say = not message or slot_of(message) in map(slot_of, knowledge.bind_view(view).may_follow)
    if message:
        view.pop(slot_of(message), None)  # it is written as plain text, not as a call
    if request.named:
        view = {slot_of(request.named): view.get(slot_of(request.named), [])}
    calls = None
    if request.offered:
        with suppress(KnowledgeError):  # no call is admitted
            calls = knowledge.bind_view(view).next_action()
    if may_say and request.choice != "required":
        if calls is None:
            return Writable(said, None, knowledge)
        return Writable(_either(calls, said, MARKERS[call_format]), knowledge.form, knowledge)
    if calls is not None:
        return Writable(calls, knowledge.form, knowledge)
    if request.offered:
        what = f"no call of {request.named}" if request.named else "no call" if may_say else "neither text nor a call"
        raise RequestError(f"{what} is admitted at this point of the conversation", param="tool_choice")
    hint = "give the tools, without tool_choice" if not request.tools else "leave tool_choice out"
    what = "no text is admitted at this point of the conversation, only a call"
    raise RequestError(what, hint, param="tool_choice" if request.tools else "tools")


def _either(calls: Grammar, said: Grammar | None, marker: str) -> Grammar:
    if said is not None:
        return Grammar.from_lark("%declare CALL SAID\nstart: CALL | SAID\n").bind(CALL=calls, SAID=said)
    return _BESIDE[marker].bind(CALL=calls)


def _no_tool(name: str) -> RequestError:
    return RequestError(f"there is no tool {name!r} here", "name one of tools", param="tool_choice")


def _followed(knowledge: ToolKnowledge, messages: list[dict[str, Any]]) -> tuple[ToolKnowledge, Memory]:
    """(The knowledge after a conversation, the policy's memory after it)."""
    tools = knowledge.tools
    memory, speaks, last_text = tools.policy.initial, tools.policy.message, ""
    waiting: dict[str, tuple[str, dict[str, Any]]] = {}  # calls without a result, by id
    # A user answers the last text, a tool a waiting call; the assistant calls tools, or writes a text, which is an
    # action itself if the policy has one for that.
    for number, message in enumerate(messages):
        where, role = f"messages[{number}]", message["role"]
        if role == "user" and speaks:
            memory = tools.policy.told(memory, speaks, {"content": last_text}, message["content"])
        elif role == "tool":
            if message["tool_call_id"] not in waiting:
                raise RequestError(f"{where} is the result of a call that isn't in the conversation", param=where)
            name, arguments = waiting[message["tool_call_id"]]
            memory = tools.named(name).told(memory, name, arguments, message["content"])
        elif role == "assistant":
            called = message.get("tool_calls", ())
            calls = [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in called]
            if not calls and speaks:
                last_text = message["content"]
                calls = [("", speaks, {"content": last_text})]
            for identity, name, arguments in calls:
                knowledge = _after(knowledge, memory, name, arguments, where)
                waiting[identity] = name, arguments
    return knowledge, memory


def _after(knowledge: ToolKnowledge, memory: Memory, name: str, arguments: dict[str, Any], where: str) -> ToolKnowledge:
    """The knowledge after a call of the conversation. Raises RequestError: it was not admitted."""
    tools = knowledge.tools
    slot, view = slot_of(name), tools.view(memory)
    action: Any = {"name": name, "arguments": arguments}
    if slot not in knowledge.slots:
        raise RequestError(f"{where}: no rule of the policy is about the tool {name!r}", param=where)
    unmet: list[str] = []
    # Nothing is known of a tool that the request doesn't offer: bind its slot to this one call.
    if name not in tools.calls:
        unmet, action = tools.unmet(memory, name, arguments), json.dumps(action)
        view[slot] = [] if unmet else [action]
    judged = knowledge.bind_view(view).judge(action)
    if not judged:
        if name in tools.calls:
            unmet = tools.unmet(memory, name, arguments)
        raise RequestError(f"{where}: {name} is not admitted there: {'; '.join(unmet) or judged.reason}", param=where)
    return knowledge.bind_view(view).after(judged.text)


def _schema_grammar(schema: Any) -> Grammar:
    try:
        return Grammar.from_json_schema(schema, whitespace="dumps", any_order=False, closed=True)
    except ConstrainedError as error:
        raise RequestError(f"response_format: {error.message}", error.hint, param="response_format") from None


def _name(tool: Any) -> Any:
    """The name of a tool of a request; None if it isn't one."""
    function = tool.get("function", tool) if isinstance(tool, dict) else None
    return function.get("name") if isinstance(function, dict) else None


def usual_format(loaded: LanguageModel) -> str:
    """The form of calls in the model's chat template; "json" if it has none."""
    template = str(getattr(loaded.tokenizer, "chat_template", None))
    return "hermes" if "<tool_call>" in template else "llama" if '"parameters"' in template else "json"


def prompt(loaded: LanguageModel, request: ChatRequest, knowledge: ToolKnowledge | None, call_format: str) -> str:
    """The model's prompt: the conversation in its chat template, or as plain lines if it has none.

    Parameters
    ----------
    loaded : LoadedModel
    request : ChatRequest
    knowledge : ToolKnowledge or None
        What the policy says of the tools. Its text is put into the system message. Without a policy, the tools are, if
        the template doesn't describe tools, and worked examples of calls stand before the conversation.
    call_format : str

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
    if not request.offered or (knowledge is None and "tools" in str(template)):
        return _in_template(loaded, request, messages)
    before = messages.pop(0)["content"] if messages[0]["role"] == "system" else ""
    descriptions = [(knowledge.to_text(), [])] if knowledge else _shown(request, call_format)
    return first_that_fits(
        loaded,
        (
            _in_template(loaded, request, [_system(before, text), *examples, *messages])
            for text, examples in descriptions
        ),
    )


def _system(*texts: str) -> dict[str, Any]:
    return {"role": "system", "content": "\n\n".join(filter(None, texts))}


def _in_template(loaded: LanguageModel, request: ChatRequest, messages: list[dict[str, Any]]) -> str:
    """The messages in the model's chat template. Raises RequestError: it refuses them."""
    if getattr(loaded.tokenizer, "chat_template", None) is None:
        lines = [f"{message['role']}: {message['content']}{_calls_as_text(message)}" for message in messages]
        return "\n".join([*lines, "assistant: "])
    tools = request.tools if request.offered else None
    try:
        return loaded.tokenizer.apply_chat_template(messages, tools=tools, tokenize=False, add_generation_prompt=True)
    except Exception as error:  # a template is a program of its own
        raise RequestError(f"the model's chat template refuses the conversation: {error}", param="messages") from None


def _shown(request: ChatRequest, call_format: str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield (text about a request's tools, worked examples as turns), from the longest to the shortest."""
    knowledge = _listed(request.tools, call_format)
    examples = knowledge.invented_examples(EXAMPLES)
    for count in range(len(examples), -1, -1):
        turns = [
            {"role": role, "content": content}
            for example in examples[:count]
            for role, content in (("user", example.task), ("assistant", example.steps[0].action))
        ]
        yield tools_text(knowledge.form), turns
    yield knowledge.to_text(), []  # without the schemas


def _calls_as_text(message: Mapping[str, Any]) -> str:
    return "".join(json.dumps(call["function"], ensure_ascii=False) for call in message.get("tool_calls", ()))


def parts(text: str, marker: str, schema: bool, final: bool) -> tuple[str, str]:
    """Split an answer that may hold calls into (what is said, calls).

    Parameters
    ----------
    text : str
        The answer so far.
    marker : str
        What a call begins with, of `MARKERS`.
    schema : bool
        What is said is JSON.
    final : bool
        Whether that is all of it; until then, what may yet be the beginning of a call is in neither part.
    """
    if marker == "{":  # an answer that begins as a call is a call as a whole
        called = text.lstrip().startswith(marker)
        return ("", "") if (schema or not text.strip()) and not final else ("", text) if called else (text, "")
    if schema and not final:
        return "", ""
    # Text, then calls from the first marker on; the end of the text may be the beginning of a marker.
    said, found, call = text.partition(marker)
    if not found and not final:
        held = next((n for n in range(len(marker) - 1, 0, -1) if text.endswith(marker[:n])), 0)
        said = text[: len(text) - held]
    return said, found + call


def read_answer(form: CallForm, marker: str, schema: bool, text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """What is said in a whole answer, and its calls: each one's tool, and its arguments as they are written."""
    if schema and (not text.startswith(marker) or (marker == "{" and form.read(text) is None)):
        return text, ()  # a JSON text that begins like a call but isn't one
    said, called = parts(text, marker, schema, final=True)
    calls = []
    for written in re.split(rf"\n(?={re.escape(marker)})", called) if called else ():
        call = form.read(written)
        assert call is not None, "the masks wrote it"
        before, after = call_around(form.template, call[0])
        whole = written.startswith(before) and written.endswith(after)
        inside = written[len(before) : len(written) - len(after)]
        calls.append((call[0], inside if whole else json.dumps(call[1], ensure_ascii=False)))
    return said, tuple(calls)
