"""PDDL's planning domains and problems as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Union

from constrained.errors import PddlError

Formula = tuple[Union[str, "Formula"], ...]
"""("objectType", "?o", "MugType"), ("and", (...), (...)), ...; the variables of a quantifier
stay a flat list: ("exists", ("?o", "-", "object"), (...))."""


ROOT = "object"


ALWAYS: Formula = ("and",)
"""The condition that asks for nothing."""


@dataclass(frozen=True)
class Parameter:
    """A variable, "?o", and its type."""

    name: str
    type: str


@dataclass(frozen=True)
class Literal:
    """A predicate of terms, or its negation; "=" is a predicate, too."""

    predicate: str
    terms: tuple[str, ...]
    positive: bool = True

    @property
    def negated(self) -> Literal:
        """The opposite."""
        return Literal(self.predicate, self.terms, not self.positive)


@dataclass(frozen=True)
class Effect:
    """A literal that becomes true: for all values of `variables` for which `condition` holds."""

    literal: Literal
    variables: tuple[Parameter, ...] = ()
    condition: Formula = ALWAYS

    @property
    def plain(self) -> bool:
        """It happens always, and once."""
        return not self.variables and self.condition == ALWAYS


@dataclass(frozen=True)
class Action:
    """An action schema; formulas are in lower case, as PDDL's names know no case."""

    name: str
    parameters: tuple[Parameter, ...]
    precondition: Formula
    effects: tuple[Effect, ...]


@dataclass
class Domain:
    """A planning domain as its file states it.

    Attributes
    ----------
    name : str
    types : dict of str to str
        Type -> the type it belongs to; "object" is the root.
    constants : dict of str to str
        Constant -> type.
    predicates : dict of str to tuple of Parameter
        Predicate -> its arguments.
    actions : list of Action
    spelling : dict of str to str
        Names as the file first spells them, by their lower case.
    """

    name: str
    types: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    predicates: dict[str, tuple[Parameter, ...]] = field(default_factory=dict)
    actions: list[Action] = field(default_factory=list)
    spelling: dict[str, str] = field(default_factory=dict)

    def within(self, kind: str, wider: str) -> bool:
        """Whether every `kind` is a `wider`."""
        seen = set()
        while kind != wider and kind in self.types and kind not in seen:
            seen.add(kind)
            kind = self.types[kind]
        return kind == wider or wider == ROOT

    @property
    def fluents(self) -> set[str]:
        """Predicates that some action changes."""
        return {effect.literal.predicate for action in self.actions for effect in action.effects}


@dataclass(frozen=True)
class Problem:
    """A planning problem as its file states it.

    Attributes
    ----------
    objects : dict of str to str
        The type of each object, by object, in the file's order.
    init : tuple of tuple of str
        Ground facts that hold at the start: predicate first, then arguments.
    goal : Formula
        The goal as a nested tuple, connective or predicate first.
    """

    objects: dict[str, str]
    init: tuple[tuple[str, ...], ...]
    goal: Formula


def typed_names(tokens: Formula) -> list[tuple[str, str]]:
    """Pair each name with its type in a list such as ``a b - object r - receptacle``.

    Names after which no type follows are of PDDL's root type ``object``.
    """
    pairs: list[tuple[str, str]] = []
    waiting: list[str] = []
    tokens_left = iter(tokens)
    for token in tokens_left:
        if not isinstance(token, str):
            raise PddlError(f"a typed list holds an expression where a name belongs: {token!r}")
        if token != "-":
            waiting.append(token)
            continue
        kind = next(tokens_left, None)
        if not isinstance(kind, str):
            raise PddlError(f"no type follows '{' '.join(waiting[-3:])} -' in a typed list")
        pairs += [(name, kind) for name in waiting]
        waiting = []
    return pairs + [(name, "object") for name in waiting]
