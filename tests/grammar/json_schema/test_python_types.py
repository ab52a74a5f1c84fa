"""Python's types as schemas: what a type hint, a class or a pydantic model says is what a text may hold."""

import json
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Literal, NotRequired, Optional, TypedDict

import pytest

from constrained import ActionKnowledge, Grammar
from constrained.errors import GrammarError

pydantic = pytest.importorskip("pydantic")


class Unit(Enum):
    C = "celsius"
    F = "fahrenheit"


class Place(pydantic.BaseModel):
    city: str
    zip: Optional[int] = None  # noqa: UP045  # as much code has it


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=5)
    lives: Place | None = None
    friends: list["Person"] = pydantic.Field(default_factory=list)


@dataclass
class Point:
    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list)
    next: "Point | None" = None


@pydantic.dataclasses.dataclass
class Bounded:
    n: int = pydantic.Field(ge=1, le=3)


class Seat(TypedDict):
    row: int
    side: NotRequired[Literal["l", "r"]]


CASES = [
    (Place, {"city": "Ulm"}, {"zip": 3}),
    (Place, {"zip": None, "city": "Ulm"}, {"city": 3}),
    (Person, {"name": "Ann", "friends": [{"name": "Bob", "lives": {"city": "Ulm"}}]}, {"name": "Archibald"}),
    (pydantic.TypeAdapter(list[Place]), [{"city": "Ulm"}], {"city": "Ulm"}),
    (pydantic.TypeAdapter(int | None), None, "x"),
    (Point, {"x": 1, "next": {"x": 2, "tags": ["a"]}}, {"y": 1}),
    (Point, {"x": 1, "next": None}, {"x": 1, "next": {"y": 2}}),
    (Bounded, {"n": 3}, {"n": 4}),
    (Seat, {"row": 1}, {"row": 1, "side": "m"}),
    (list[Point], [{"x": 1}], [{"x": "1"}]),
    (dict[str, Unit], {"a": "celsius"}, {"a": "kelvin"}),
    (Annotated[int, "A number."], 3, 3.5),
    (Literal["a", 1], 1, 2),
    (int | None, None, ""),
    (Unit, "celsius", "C"),
    (str, "x", 1),
]


@pytest.mark.parametrize(("kind", "right", "wrong"), CASES, ids=str)
def test_a_type_admits_its_values_and_no_others(kind, right, wrong):
    grammar = Grammar.from_json_schema(kind)
    assert grammar.matches(json.dumps(right)) and not grammar.matches(json.dumps(wrong))


@pytest.mark.parametrize("kind", [Place, Person, Point, Bounded], ids=str)
def test_a_class_is_the_same_schema_as_the_arguments_of_a_tool(kind):
    right, wrong = next((right, wrong) for one, right, wrong in CASES if one is kind)
    for tools in (kind, [kind]):
        knowledge = ActionKnowledge.from_tools(tools)
        assert knowledge.judge({"name": kind.__name__, "arguments": right})
        assert not knowledge.judge({"name": kind.__name__, "arguments": wrong})


def test_a_model_is_read_by_its_aliases_and_options_hold():
    class Aliased(pydantic.BaseModel):
        inner: int = pydantic.Field(alias="outer")

    grammar = Grammar.from_json_schema(Aliased, whitespace="compact", closed=True)
    assert grammar.matches('{"outer":1}') and not grammar.matches('{"inner":1}')
    assert not grammar.matches('{"outer": 1}') and not grammar.matches('{"outer":1,"more":2}')


class Odd(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    of: type(len)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (complex, "complex is of type complex, which has no JSON Schema"),
        (dict[str, complex], "which has no JSON Schema"),
        (Odd, "Odd: pydantic makes none"),
        (pydantic.TypeAdapter(Odd), "pydantic makes none"),
        (len, "is not a schema"),
        (Point(1), "is not a schema"),
    ],
    ids=str,
)
def test_what_has_no_schema_is_one_clear_error(given, told):
    with pytest.raises(GrammarError, match=told):
        Grammar.from_json_schema(given)
