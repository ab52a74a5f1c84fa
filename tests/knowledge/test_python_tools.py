"""Functions and pydantic models as tools: signatures, type hints and docstrings."""

from enum import Enum
from typing import Annotated, Any, Literal, TypedDict

import pytest

from constrained import ActionKnowledge
from constrained.errors import KnowledgeError
from constrained.knowledge.python_tools import python_tool


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


class Place(TypedDict):
    city: str
    zip: int


def ship(order: str, size: Size, to: Place, tries: int = 1, note: Annotated[str | None, "Said aloud."] = None) -> str:
    """Ship an order.

    Now.

    Parameters
    ----------
    order : str
        Which order,
        by number.
    size
        Of the box.

    Returns
    -------
    str
    """
    return order


def google(city: str, days: Literal[1, 3], more: list[float], by: dict[str, bool]):
    """Look at the weather.

    Args:
        city (str): Where
            to look.
        days: How long.

    Returns:
        words: nothing
    """


def sphinx(city, *, day: Any = None):
    """Look.

    :param city: Where.
    :param str day: When.
    """


def test_a_function_is_read_as_signature_types_and_docstring_say():
    tool = python_tool(ship)
    assert (tool["name"], tool["description"]) == ("ship", "Ship an order.")
    assert tool["inputSchema"] == {
        "type": "object",
        "properties": {
            "order": {"type": "string", "description": "Which order, by number."},
            "size": {"enum": ["s", "l"], "description": "Of the box."},
            "to": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "zip": {"type": "integer"}},
                "required": ["city", "zip"],
            },
            "tries": {"type": "integer"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "Said aloud."},
        },
        "required": ["order", "size", "to"],
    }


def test_docstrings_of_google_and_sphinx_are_read():
    properties = python_tool(google)["inputSchema"]["properties"]
    assert properties["city"] == {"type": "string", "description": "Where to look."}
    assert properties["days"] == {"enum": [1, 3], "description": "How long."}
    assert properties["more"] == {"type": "array", "items": {"type": "number"}}
    assert properties["by"] == {"type": "object", "additionalProperties": {"type": "boolean"}}
    tool = python_tool(sphinx)
    assert tool["description"] == "Look."
    assert tool["inputSchema"]["properties"] == {"city": {"description": "Where."}, "day": {"description": "When."}}
    assert tool["inputSchema"]["required"] == ["city"]


def test_their_calls_are_admitted_and_others_not():
    knowledge = ActionKnowledge.from_tools([ship, google])
    call = {"order": "1", "size": "s", "to": {"city": "Ulm", "zip": 1}}
    assert knowledge.judge({"name": "ship", "arguments": call})
    assert not knowledge.judge({"name": "ship", "arguments": {**call, "size": "m"}})
    assert "Which order" in knowledge.to_text()


def test_pydantic_models_are_tools_and_types_of_arguments():
    pydantic = pytest.importorskip("pydantic")

    class Item(pydantic.BaseModel):
        name: str
        count: int = pydantic.Field(1, ge=1, le=9)

    class Buy(pydantic.BaseModel):
        """Buy things."""

        items: list[Item] = pydantic.Field(description="What to buy.")

    def back(item: Item) -> None:
        """Give an item back."""

    knowledge = ActionKnowledge.from_tools([Buy, back])
    item = {"name": "cup", "count": 9}
    assert knowledge.judge({"name": "Buy", "arguments": {"items": [item]}})
    assert knowledge.judge({"name": "back", "arguments": {"item": item}})
    assert not knowledge.judge({"name": "back", "arguments": {"item": {**item, "count": 10}}})
    assert knowledge.judge({"name": "Buy", "arguments": {"items": [{"count": 9, "name": "cup"}]}})  # in any order
    policy = """
%declare _STEP BUY BACK
start: buy | back
//: needs items[i].name in ["cup"]
buy: BUY _STEP start
back: BACK
"""
    ruled = ActionKnowledge.from_tools([Buy, back], policy=policy)
    ruled = ruled.bind_view(ruled.tools.view(ruled.tools.policy.initial))
    for name, count, admitted in (("cup", 9, True), ("mug", 9, False), ("cup", 10, False)):
        arguments = {"items": [{"count": count, "name": name}]}
        assert bool(ruled.judge({"name": "Buy", "arguments": arguments})) is admitted
    assert ruled.judge({"name": "back", "arguments": {"item": item}})
    assert "Buy things." in knowledge.to_text() and "What to buy." in knowledge.to_text()


def scattered(*names: str): ...


def positional(name: str, /): ...


def odd(when: complex): ...


def unknown(when: "Nowhere"): ...  # noqa: F821


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (scattered, "can't be passed by name"),
        (positional, "can't be passed by name"),
        (odd, "argument 'when' is of type complex"),
        (unknown, "its types can't be read"),
    ],
)
def test_what_has_no_schema_is_one_clear_error(function, told):
    with pytest.raises(KnowledgeError, match=told):
        ActionKnowledge.from_tools([function])
