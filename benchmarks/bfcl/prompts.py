"""What a model reads before it answers one of BFCL's questions: the benchmark's prompt, and ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from benchmarks.bfcl.questions import Question
from constrained.agents.prompts import in_chat_form
from constrained.decoding.request import Message
from constrained.knowledge.tools import read_tools
from constrained.limits import DEFAULT
from constrained.models import LoadedModel
from constrained.server.chat_request import ChatRequest
from constrained.server.conversation import Writable, prompt, usual_format, writable

OWN = (
    "You are an expert in composing functions.You are given a question and a set of possible functions. Based on the "
    "question, you will need to make one or more function/tool calls to achieve the purpose. If none of the functions "
    "can be used, point it out. If the given question lacks the parameters required by the function, also point it "
    "out.\n\nYou should only return the function calls in your response.\n\nIf you decide to invoke any of the "
    "function(s), you MUST put it in the format of [func_name1(params_name1=params_value1, "
    "params_name2=params_value2...), func_name2(params)].  You SHOULD NOT include any other text in the "
    "response.\n\nAt each turn, you should try your best to complete the tasks requested by the user within the "
    "current turn. Continue to output functions to call until you have fulfilled the user's request to the best of "
    "your ability. Once you have no more functions to call, the system will consider the current turn complete and "
    "proceed to the next turn or task.\n\nHere is a list of functions in json format that you can "
    "invoke.\n{functions}\n"
)
"""The benchmark's system prompt for models without a form of tools of their own (bfcl-eval 2026.3.23), verbatim."""

_HINTS = {"python": "Python 3", "java": "Java 8 SDK", "javascript": "JavaScript"}


def own_prompt(loaded: LoadedModel, question: Question) -> str:
    """The benchmark's prompt in the model's chat template."""
    return in_chat_form(loaded, own_messages(question))


def own_messages(question: Question) -> list[Message]:
    """The benchmark's prompt: its system text, before that of the question if it has one, and the question."""
    text = OWN.format(functions=json.dumps([_hinted(one, question.language) for one in question.functions], indent=4))
    first, *rest = question.messages
    if first["role"] == "system":
        return [{"role": "system", "content": f"{text}\n\n{first['content']}"}, *rest]
    return [{"role": "system", "content": text}, first, *rest]


def _hinted(function: Mapping[str, Any], lang: str) -> dict[str, Any]:
    """A tool as the benchmark shows it: it says which language it is in; other than Python's take texts."""
    function = deepcopy(dict(function))
    function["description"] = f"{function['description']} Note that the provided function is in {_HINTS[lang]} syntax."
    if lang == "python":
        return function
    title = "Java" if lang == "java" else "JavaScript"
    for schema in function["parameters"]["properties"].values():
        kind = schema["type"]
        schema["description"] += (
            f" This parameter can be of any type of {title} object in string representation."
            if kind == "any"
            else f" This is {title} {kind} type parameter in string representation."
        )
        if kind in ("ArrayList", "Array", "array"):
            inner = schema.pop("items")["type"]
            schema["description"] += f" The list elements are of type {inner}; they are not in string representation."
        if kind == "dict" and "properties" in schema:
            inner = json.dumps(schema.pop("properties"))
            schema["description"] += (
                f" The dictionary entries have the following schema; they are not in string representation. {inner}"
            )
        schema["type"] = "string"
    return function


def our_request(question: Question, choice: str, max_tokens: int) -> ChatRequest:
    """The request that a client would send to `constrained serve`, with the question's tools.

    Parameters
    ----------
    choice : str
        "required": at least one call. "auto": calls, or a message.
    """
    described = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
        for tool in read_tools(question.functions, DEFAULT)
    ]
    tools = [{"type": "function", "function": function} for function in described]
    return ChatRequest(
        messages=[dict(message) for message in question.messages], tools=tools, choice=choice, named="", schema=None,
        max_tokens=max_tokens, temperature=0.0, top_p=1.0, seed=None, stop=[], parallel=True, stream=False,
        stream_usage=False,
    )  # fmt: skip


def our_prompt(loaded: LoadedModel, request: ChatRequest) -> tuple[str, Writable]:
    """The prompt that `constrained serve` makes of a request, and what the masks admit."""
    call_format = "llama" if usual_format(loaded) == "llama" else "hermes"
    return prompt(loaded, request, None, call_format), writable(request, None, call_format)
