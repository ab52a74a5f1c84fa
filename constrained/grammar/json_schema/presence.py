"""Conditions on which names an object has, such as an anyOf of `required`: they need no alternatives."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import reduce
from typing import NamedTuple

from constrained.grammar.alternating_automaton import Steps
from constrained.grammar.bdd import FALSE, TRUE, Formulas
from constrained.grammar.json_schema.shape import ANYTHING, NOTHING, Condition, Join, Schema, names_in
from constrained.grammar.json_schema.values import EVERY
from constrained.limits import Limits

_OBJECT = frozenset(("object",))
_SAID = frozenset(("types", "members", "joins", "keywords", "parts", "order"))
_OF_NAMES = frozenset(("groups", "required", "limits", "closed"))
_HOW = {"all": "and", "any": "or", "one": "one"}


class Presence(NamedTuple):
    """What a schema says that is only about which names an object has: of an object, and of any other value."""

    condition: Condition
    of_others: bool


def presence(join: Join) -> Presence | None:
    """What a join says; None if it is about more than the names."""
    # What is no object may be valid whatever names a join asks for, or not valid at all, as under `type`.
    match join.how:
        case "all" | "any" | "one":
            return _joined(_HOW[join.how], map(presence_of, join.schemas))
        case "not":
            return _joined("not", map(presence_of, join.schemas))
        case "if":
            test, then, other = map(presence_of, join.schemas)
            if test is None or then is None or other is None:
                return None
            return _joined("and", [_joined("or", [_joined("not", [test]), then]), _joined("or", [test, other])])
        case "depends":
            then = presence_of(join.schemas[0]) if join.schemas else Presence(("and", *join.names), True)
            return _joined("or", [Presence(("not", join.to), True), then])
    return None


def presence_of(schema: Schema) -> Presence | None:
    """What a whole schema says, in the same way."""
    if schema is ANYTHING or schema is NOTHING:
        return Presence(schema is ANYTHING, schema is ANYTHING)
    shape = schema.shape
    if not shape.says_only(_SAID) or shape.types is not EVERY and shape.types != _OBJECT:
        return None
    found = [Presence(True, shape.types is EVERY)]
    if shape.says("members"):
        if not shape.members.says_only(_OF_NAMES):
            return None
        for group in shape.members.groups:
            absent = all(inner is NOTHING for inner in group.named.values())
            if not absent or group.patterns or group.rest is not None or group.unevaluated is not None:
                return None
            found.append(Presence(("and", *(("not", name) for name in group.named)), True))
        found.append(Presence(("and", *shape.members.required), True))
    return _joined("and", [*found, *map(presence, shape.joins)])


def _joined(how: str, found: Iterable[Presence | None]) -> Presence | None:
    known: list[Presence] = []
    for one in found:
        if one is None:
            return None
        known.append(one)
    others = sum(one.of_others for one in known)
    of_others = {"and": others == len(known), "or": others > 0, "one": others == 1, "not": others == 0}[how]
    return Presence((how, *(one.condition for one in known)), of_others)


def holds(condition: Condition, names: Collection[str]) -> bool:
    """Whether an object with those names meets a condition."""
    if not isinstance(condition, tuple):
        return condition in names if isinstance(condition, str) else condition
    met = [one in names if isinstance(one, str) else holds(one, names) for one in condition[1:]]
    match condition[0]:
        case "and":
            return all(met)
        case "or":
            return any(met)
        case "one":
            return sum(met) == 1
    return not any(met)


def satisfiable(condition: Condition, limits: Limits) -> bool:
    """Whether some names meet a condition."""
    variables = {name: i for i, name in enumerate(names_in(condition))}
    return formula(condition, variables, Formulas(Steps(limits))) != FALSE


def formula(condition: Condition, variables: dict[str, int], formulas: Formulas) -> int:
    """A condition as a formula over the numbers of names; names without one are never there."""
    if isinstance(condition, str):
        return formulas.variable(variables[condition]) if condition in variables else FALSE
    if not isinstance(condition, tuple):
        return TRUE if condition else FALSE
    how, *inner = condition
    parts = [formula(one, variables, formulas) for one in inner]
    match how:
        case "not":
            return formulas.negation(parts[0])
        case "and":
            return reduce(formulas.both, parts, TRUE)
        case "or":
            return reduce(formulas.either, parts, FALSE)
    none, one = TRUE, FALSE  # of those so far: none holds, exactly one does
    for part in parts:
        one = formulas.choose(part, none, one)
        none = formulas.choose(part, FALSE, none)
    return one


def ways(condition: Condition, limits: Limits) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield names that are there, and names that aren't, which together meet a condition: every way, each once."""
    formulas = Formulas(Steps(limits))
    variables = {name: i for i, name in enumerate(names_in(condition))}
    names = [*variables]
    start = formula(condition, variables, formulas)
    if start == FALSE:
        return
    rows = dict(enumerate(formulas.rows(start), 2)) if start != TRUE else {}
    work: list[tuple[int, tuple[str, ...], tuple[str, ...]]] = [(len(rows) + 1, (), ())]
    while work:
        at, there, absent = work.pop()
        if at not in rows:
            yield there, absent
            continue
        variable, high, low = rows[at]
        work += [(low, there, (*absent, names[variable]))] if low != FALSE else []
        work += [(high, (*there, names[variable]), absent)] if high != FALSE else []
