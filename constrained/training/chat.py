"""Conversations to texts: each turn of the assistant with all that was said before it.

A turn is a text of its own, with the token that ends it, as agents let a model write one turn a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from constrained.agents.lumos.conversation import asked
from constrained.environments.data import fields
from constrained.errors import DataError
from constrained.models.load import LoadedModel
from constrained.training.encoding import Span, TrainingText

ROLES = ("system", "user", "assistant")

Messages = Sequence[dict[str, str]]


def read_messages(place: str, row: dict) -> list[dict[str, str]]:
    """The messages of a row.

    Raises
    ------
    DataError
        They are none, or no turn is the assistant's.
    """
    (messages,) = fields(place, row, messages=list)
    for number, message in enumerate(messages, 1):
        at = f"{place}, message {number}"
        if not isinstance(message, dict):
            raise DataError(f"{at}: not an object but a {type(message).__name__}")
        role, _ = fields(at, message, role=str, content=str)
        if role not in ROLES:
            raise DataError(f"{at}: the role {role!r} is none of {', '.join(ROLES)}")
    if not any(message["role"] == "assistant" and message["content"] for message in messages):
        raise DataError(f"{place}: nothing is said by the assistant, so there is nothing to learn")
    return messages


def chat_form(loaded: LoadedModel) -> Callable[[Messages], str]:
    """How a model reads a conversation: in its own chat form, or where it has none in Lumos's."""
    if not getattr(loaded.tokenizer, "chat_template", None):
        return asked
    return lambda messages: loaded.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)


def turns_of(messages: Messages, form: Callable[[Messages], str]) -> list[TrainingText]:
    """The assistant's turns, each a text of which it alone is learned."""
    return [
        TrainingText((Span(form(messages[:number]), False), Span(message["content"], True)))
        for number, message in enumerate(messages)
        if message["role"] == "assistant" and message["content"]
    ]
