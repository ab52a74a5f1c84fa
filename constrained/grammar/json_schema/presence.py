"""Conditions on which names an object has, such as an anyOf of `required`: they need no alternatives."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import NamedTuple

from constrained.grammar.alternating_automaton import Steps
from constrained.grammar.bdd import FALSE, TRUE, Formulas
from constrained.grammar.json_schema.document import Subschema
from constrained.grammar.json_schema.keywords import Options, dependencies, is_known
from constrained.limits import Limits

Condition = bool | str | tuple
"""A name that is there; ("and", ...), ("or", ...), ("one", ...) of conditions, ("not", condition)."""


class AsksForSeveral(Exception):
    """An object must have several properties, whatever their names, and meet a condition on its names."""


class Presence(NamedTuple):
    """What a schema says that is only about which names an object has: of an object, and of any other value."""

    condition: Condition
    of_others: bool


def presence(part: Subschema, keyword, options: Options, check: Callable[[Subschema], None]) -> Presence | None:
    """What one keyword of a schema says; None if it is about more than the names. `check`s schemas below."""

    def of(*keys) -> Presence | None:
        return presence_of(part.beside(*keys), options, check)

    # What is no object may be valid whatever names a keyword asks for, or not valid at all, as under `type`.
    value = part[keyword]
    match keyword:
        case "type" if value == "object" or value == ["object"]:
            return Presence(True, False)
        case "required":
            return Presence(("and", *value), True)
        case "properties" if all(inner is False for inner in value.values()):
            return Presence(("and", *(("not", name) for name in value)), True)
        case "allOf" | "anyOf" | "oneOf":
            how = {"allOf": "and", "anyOf": "or", "oneOf": "one"}[keyword]
            return _joined(how, (of(keyword, i) for i in range(len(value))))
        case "not":
            return _joined("not", [of(keyword)])
        case "if":
            test = of("if")
            if test is None:
                return None
            then, other = (of(k) if k in part else Presence(True, True) for k in ("then", "else"))
            return _joined("and", [_joined("or", [_joined("not", [test]), then]), _joined("or", [test, other])])
        case "then" | "else":
            return Presence(True, True)
        case "dependentRequired" | "dependentSchemas" | "dependencies":
            ways = []
            for name, names, schema in dependencies(part, keyword):
                then = of(keyword, name) if schema else Presence(("and", *names), True)
                ways.append(_joined("or", [Presence(("not", name), True), then]))
            return _joined("and", ways)
    return None


def presence_of(part: Subschema, options: Options, check: Callable[[Subschema], None]) -> Presence | None:
    """What a whole schema says, in the same way."""
    check(part)
    if isinstance(part.schema, bool):
        return Presence(part.schema, part.schema)
    said = (k for k in part.keywords if is_known(k) or k == "format" and options.enforces(part[k]))
    return _joined("and", (presence(part, k, options, check) for k in said))


def _joined(how: str, found: Iterable[Presence | None]) -> Presence | None:
    known: list[Presence] = []
    for one in found:
        if one is None:
            return None
        known.append(one)
    others = sum(one.of_others for one in known)
    of_others = {"and": others == len(known), "or": others > 0, "one": others == 1, "not": others == 0}[how]
    return Presence((how, *(one.condition for one in known)), of_others)


def names_in(condition: Condition) -> list[str]:
    """The names that a condition is about."""
    found: dict[str, None] = {}
    work = [condition]
    while work:
        one = work.pop()
        if isinstance(one, str):
            found[one] = None
        elif isinstance(one, tuple):
            work += one[:0:-1]  # in the order in which they are written
    return list(found)


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


_FEW = 16
"""Names of a condition that is tried with some of them before a formula is made of it."""


def satisfiable(condition: Condition, limits: Limits) -> bool:
    """Whether some names meet a condition."""
    names = names_in(condition)
    if len(names) <= _FEW:  # their formula passes no limit, wherever it is made
        must = [one for one in _parts(condition) if isinstance(one, str)]
        likely = [must, *([*must, name] for name in names), names]
        if any(holds(condition, some) for some in likely):
            return True
    return formula(condition, {name: i for i, name in enumerate(names)}, Formulas(Steps(limits))) != FALSE


def _parts(condition: Condition) -> Iterator[Condition]:
    """Yield conditions of which each must be met."""
    if isinstance(condition, tuple) and condition[0] == "and":
        for inner in condition[1:]:
            yield from _parts(inner)
    else:
        yield condition


def formula(condition: Condition, variables: dict[str, int], formulas: Formulas) -> int:
    """A condition as a formula over the numbers of names; names without one are never there."""
    if isinstance(condition, str):
        return formulas.variable(variables[condition]) if condition in variables else FALSE
    if not isinstance(condition, tuple):
        return TRUE if condition else FALSE
    how, *inner = condition
    parts = [formula(one, variables, formulas) for one in inner]
    if how == "not":
        return formulas.negation(parts[0])
    none, one = TRUE, FALSE  # of those so far: none holds, exactly one does
    every, some = TRUE, FALSE
    for part in parts:
        one = formulas.choose(part, none, one)
        none = formulas.choose(part, FALSE, none)
        every, some = formulas.both(every, part), formulas.either(some, part)
    return {"and": every, "or": some, "one": one}[how]
