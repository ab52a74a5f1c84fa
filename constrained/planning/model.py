"""PDDL planning domains and problems as data: types, predicates, actions, conditions, effects, facts.

Names are in lower case, as PDDL ignores case; a domain keeps the spelling of its file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, Union

Term = TypeVar("Term", covariant=True)
Part = TypeVar("Part", covariant=True)
Kind = TypeVar("Kind")

ROOT = "object"
"""The type that all types belong to."""

Formula = tuple[Union[str, "Formula"], ...]
"""A PDDL expression as nested tuples: ("and", ("objectType", "?o", "MugType"), ...). The variables of a quantifier are
a flat tuple: ("exists", ("?o", "-", "object"), (...))."""


@dataclass(frozen=True)
class Parameter:
    """A variable, "?o", and its type."""

    name: str
    type: str


@dataclass(frozen=True)
class Literal(Generic[Term]):
    """A predicate with its terms, or the negation of that; "=" is a predicate, too.

    In a planning task, a term is a variable, "?x", or an object; in a policy of tools, it is a value
    (`constrained.knowledge.lines.forms`).
    """

    predicate: str
    terms: tuple[Term, ...]
    positive: bool = True

    @property
    def negated(self) -> Literal[Term]:
        """The negation."""
        return Literal(self.predicate, self.terms, not self.positive)


@dataclass(frozen=True)
class Junction(Generic[Part]):
    """All of some conditions ("and"), or any of them ("or")."""

    operator: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Quantified(Generic[Part]):
    """A condition for "every" or for "some" value of its variables."""

    quantifier: str
    variables: tuple[Parameter, ...]
    part: Part


Condition = Union[Literal[str], "Junction[Condition]", "Quantified[Condition]"]
"""A condition over facts, in negation normal form: only literals are negated, and implications are disjunctions."""

ALWAYS: Junction[Any] = Junction("and", ())
"""The condition that always holds."""
NEVER: Junction[Any] = Junction("or", ())
"""The condition that never holds."""


@dataclass(frozen=True)
class Effect:
    """A literal that becomes true, for all values of `variables` for which `condition` holds."""

    literal: Literal
    variables: tuple[Parameter, ...] = ()
    condition: Condition = ALWAYS

    @property
    def plain(self) -> bool:
        """Whether it is unconditional, and has no variables."""
        return not self.variables and self.condition == ALWAYS


@dataclass(frozen=True)
class Action:
    """An action schema."""

    name: str
    parameters: tuple[Parameter, ...]
    precondition: Condition
    effects: tuple[Effect, ...]

    @property
    def conditions(self) -> list[Condition]:
        """The precondition, and the conditions of the effects."""
        return [self.precondition, *(effect.condition for effect in self.effects)]


@dataclass(eq=False)
class Domain:
    """A planning domain; compared by identity.

    Attributes
    ----------
    name : str
    types : dict of str to str
        Type -> its supertype; "object" is the root.
    constants : dict of str to str
        Constant -> type.
    predicates : dict of str to tuple of Parameter
        Predicate -> its arguments.
    actions : list of Action
    spelling : dict of str to str
        Name in lower case -> its first spelling in the file.
    undeclared : dict of str to None
        Objects that conditions and effects name, and that each problem must declare.
    title : str
        The name that problems have to give in ``(:domain NAME)``; "": any.
    places : dict of str to mapping
        "type NAME", "constant NAME", "predicate NAME", "action NAME" -> where it is declared, as the keywords that
        `PddlError` takes.
    """

    name: str
    types: dict[str, str] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=dict)
    predicates: dict[str, tuple[Parameter, ...]] = field(default_factory=dict)
    actions: list[Action] = field(default_factory=list)
    spelling: dict[str, str] = field(default_factory=dict)
    undeclared: dict[str, None] = field(default_factory=dict)
    title: str = ""
    places: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def wider(self, kind: str) -> list[str]:
        """A type and its supertypes, up to the root."""
        types = [kind]
        while kind in self.types and (kind := self.types[kind]) not in types:
            types.append(kind)
        return types if ROOT in types else [*types, ROOT]

    def is_subtype(self, kind: str, wider: str) -> bool:
        """Whether `kind` is `wider` or one of its subtypes."""
        return wider in self.wider(kind)

    def spell(self, name: str) -> str:
        """A name in the spelling of the file."""
        return self.spelling.get(name, name)

    @property
    def fluents(self) -> set[str]:
        """The predicates that some action changes."""
        return {effect.literal.predicate for action in self.actions for effect in action.effects}


@dataclass(frozen=True)
class Problem:
    """A planning problem, in the spelling of its file.

    Attributes
    ----------
    objects : dict of str to str
        Object -> type, in the file's order.
    init : tuple of tuple of str
        The facts that hold at the start: predicate first, then arguments.
    condition : Condition, optional
        The goal; None: there is none.
    name : str
    goal_place : mapping
        The place of the goal, as the keywords that `PddlError` takes.
    """

    objects: dict[str, str]
    init: tuple[tuple[str, ...], ...]
    condition: Condition | None = None
    name: str = "problem"
    goal_place: Mapping[str, Any] = field(default_factory=dict)


def parts_in(condition: Condition) -> Iterator[Condition]:
    """A condition and all its parts, from left to right."""
    yield condition
    match condition:
        case Junction(_, parts):
            for part in parts:
                yield from parts_in(part)
        case Quantified(_, _, part):
            yield from parts_in(part)


def conjuncts(condition: Kind) -> tuple[Kind, ...]:
    """The parts of a conjunction, and of conjunctions in it; any other condition as its only part."""
    if isinstance(condition, Junction) and condition.operator == "and":
        return tuple(inner for part in condition.parts for inner in conjuncts(part))
    return (condition,)


def conjunction(conditions: Iterable[Kind]) -> Kind | Junction[Kind]:
    """The conjunction of some conditions, without conjunctions in it."""
    parts = tuple(part for condition in conditions for part in conjuncts(condition))
    return parts[0] if len(parts) == 1 else Junction("and", parts)


def literals_in(condition: Condition) -> Iterator[Literal]:
    """The literals of a condition, including equalities."""
    return (part for part in parts_in(condition) if isinstance(part, Literal))


def negated(condition: Condition) -> Condition:
    """The negation of a condition, by De Morgan's laws."""
    match condition:
        case Literal():
            return condition.negated
        case Junction(operator, parts):
            return Junction("or" if operator == "and" else "and", tuple(map(negated, parts)))
        case Quantified(quantifier, variables, part):
            return Quantified("every" if quantifier == "some" else "some", variables, negated(part))


def simplified(condition: Condition) -> Condition:
    """An equivalent condition in which only `ALWAYS` and `NEVER`, alone, have no parts.

    A quantifier over them speaks of whether there is any object: ``(exists (?x - t) (and))`` becomes
    ``(exists (?x - t) (= ?x ?x))``.
    """
    match condition:
        case Junction(operator, parts):
            neutral, absorbing = (ALWAYS, NEVER) if operator == "and" else (NEVER, ALWAYS)
            kept = [part for part in map(simplified, parts) if part != neutral]
            if absorbing in kept:
                return absorbing
            return kept[0] if len(kept) == 1 else Junction(operator, tuple(kept))
        case Quantified(quantifier, variables, inner):
            part = simplified(inner)
            if not variables or part == (ALWAYS if quantifier == "every" else NEVER):
                return part
            if part in (ALWAYS, NEVER):
                part = Literal("=", (variables[0].name,) * 2, part == ALWAYS)
            return Quantified(quantifier, variables, part)
    return condition


def free_variables(condition: Condition) -> set[str]:
    """The variables of a condition that none of its quantifiers declares."""
    match condition:
        case Literal():
            return {term for term in condition.terms if term.startswith("?")}
        case Junction():
            return set().union(*map(free_variables, condition.parts))
        case Quantified():
            return free_variables(condition.part) - {v.name for v in condition.variables}


def bound_by(condition: Condition) -> set[str]:
    """The variables that the facts of a condition bind."""
    facts = (p for p in conjuncts(condition) if isinstance(p, Literal) and p.positive and p.predicate != "=")
    return {term for fact in facts for term in fact.terms if term.startswith("?")}


def renamed(condition: Condition, names: Mapping[str, str]) -> Condition:
    """`condition` with its free variables renamed."""
    match condition:
        case Literal(predicate, terms, positive):
            return Literal(predicate, tuple(names.get(term, term) for term in terms), positive)
        case Junction(operator, parts):
            return Junction(operator, tuple(renamed(part, names) for part in parts))
        case Quantified(quantifier, variables, part):
            bound = {v.name for v in variables}
            free = {old: new for old, new in names.items() if old not in bound}
            return Quantified(quantifier, variables, renamed(part, free))
