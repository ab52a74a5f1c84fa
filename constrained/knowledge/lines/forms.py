"""The conditions and values of `//:` lines: one type, `Form`, for worlds and for policies of tools.

Conditions over facts are those of planning tasks (`Literal`, `Junction` and `Quantified` of
`constrained.planning.model`), so a planning task compiles its queries and operators from what a line says. Values stand
beside them: comparisons are conditions, too, and any value may be asked whether it is true.

A literal of a world has variables and objects as terms, one of a policy has values: it says that they are in the list
of those that the fact is true of (`membership`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, TypeGuard, Union

from constrained.planning.model import Condition, Junction, Literal, Quantified, negated


@dataclass(frozen=True)
class Constant:
    """A text, a number, or true, false and null."""

    value: Any


@dataclass(frozen=True)
class Name:
    """The value of a name."""

    name: str


@dataclass(frozen=True)
class Member:
    """A member of an object, ``order.status``."""

    of: Form
    name: str


@dataclass(frozen=True)
class Subscript:
    """An element of a list, or of a table under one key or several, ``flight[number, date]``."""

    of: Form
    keys: tuple[Form, ...]


@dataclass(frozen=True)
class Call:
    """A call of a built-in function, or of one that a `let` line defines."""

    function: str
    arguments: tuple[Form, ...]


@dataclass(frozen=True)
class Compare:
    """A comparison; the signs are ``== != < <= > >=``, "in" and "not in"."""

    left: Form
    sign: str
    right: Form


@dataclass(frozen=True)
class Calculate:
    """A calculation by ``+ - * /`` or ``%``."""

    left: Form
    sign: str
    right: Form


@dataclass(frozen=True)
class Minus:
    """A number with the other sign."""

    of: Form


@dataclass(frozen=True)
class Negation:
    """The negation of a condition that is no literal, where its parts may be unknown."""

    part: Form


@dataclass(frozen=True)
class Conditional:
    """``value if condition else other``."""

    value: Form
    condition: Form
    other: Form


@dataclass(frozen=True)
class Comprehension:
    """The values of ``element for names in values if condition``, one after the other."""

    element: Form
    names: tuple[str, ...]
    values: Form
    condition: Form | None


@dataclass(frozen=True)
class ListComprehension:
    """The list of a comprehension's values, ``[element for names in values]``."""

    each: Form


@dataclass(frozen=True)
class ListOf:
    """A list."""

    parts: tuple[Form, ...]


@dataclass(frozen=True)
class MappingOf:
    """An object, by its keys and values."""

    pairs: tuple[tuple[Form, Form], ...]


Value = (Constant | Name | Member | Subscript | Call | Compare | Calculate | Minus | Negation | Conditional
         | Comprehension | ListComprehension | ListOf | MappingOf)  # fmt: skip
Form = Union[Literal[str], Literal["Form"], "Junction[Form]", "Quantified[Form]", Value]
"""A condition or a value."""


def parts_of(form: Form) -> Iterator[Form]:
    """The forms that a form is made of, from left to right, without theirs."""
    for field in fields(form):
        yield from _forms_in(getattr(form, field.name))


def _forms_in(value: Any) -> Iterator[Form]:
    if isinstance(value, (Value, Literal, Junction, Quantified)):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _forms_in(part)


def all_parts(form: Form) -> Iterator[Form]:
    """A form and all forms in it."""
    yield form
    for part in parts_of(form):
        yield from all_parts(part)


def free_names(form: Form) -> frozenset[str]:
    """The free names in a form: of values, of the facts of a policy, and of variables ("?x")."""
    match form:
        case Name(name):
            return frozenset([name])
        case Literal(predicate, terms):
            if is_condition(form):
                return frozenset(term for term in terms if isinstance(term, str) and term.startswith("?"))
            return frozenset([predicate]).union(*map(free_names, parts_of(form)))
    names: frozenset[str] = frozenset().union(*map(free_names, parts_of(form)))
    match form:
        case Comprehension(names=bound):
            return names.difference(bound)
        case Quantified(variables=variables):
            return names.difference(v.name for v in variables)
    return names


def is_condition(form: Form) -> TypeGuard[Condition]:
    """Whether a form is a condition of planning tasks: over facts about objects and variables, without values."""
    match form:
        case Literal():
            return all(isinstance(term, str) for term in form.terms)
        case Junction() | Quantified():
            return all(map(is_condition, parts_of(form)))
    return False


def negation(form: Form) -> Form:
    """The negation of a form.

    Conditions of planning tasks are negated by De Morgan's laws. Others may be unknown in part, where these laws don't
    hold: `and` stops at an unknown part.
    """
    if isinstance(form, Literal):
        return form.negated
    return negated(form) if is_condition(form) else Negation(form)


def membership(literal: Literal[Any]) -> Compare:
    """What a policy's fact says: the value of its arguments is in the list of those that it is true of."""
    return Compare(argument(literal), "in" if literal.positive else "not in", Name(literal.predicate))


def argument(literal: Literal[Any]) -> Form:
    """The value that stands for the arguments of a policy's fact: the only one, or a list of several."""
    [*terms] = literal.terms
    return terms[0] if len(terms) == 1 else ListOf(literal.terms)


TRUE = Constant(True)
"""The argument that a policy's fact without arguments is true of."""
