"""The cases of a precondition: its disjunctive normal form.

Each case is literals that hold at once; a variable of a positive `exists` becomes one more
variable of the case (Pednault, "ADL: Exploring the middle ground between STRIPS and the
situation calculus", 1989, treats it so). What has no such form, or would multiply the cases
past a limit, is kept whole beside the literals.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from constrained.knowledge.pddl.model import Action, Formula, Literal, Parameter, typed_names

MAX_CASES = 32
"""Cases of one precondition; a disjunction that would make more of them is kept whole."""


@dataclass(frozen=True)
class Case:
    """One way in which a precondition can hold.

    Attributes
    ----------
    literals : tuple of Literal
    whole : tuple of Formula
        Conditions that are no literals, such as `forall`.
    variables : tuple of Parameter
        Those of `exists`, under names of their own.
    """

    literals: tuple[Literal, ...] = ()
    whole: tuple[Formula, ...] = ()
    variables: tuple[Parameter, ...] = field(default=())

    def joined(self, other: Case) -> Case:
        """Both at once."""
        return Case(
            tuple(dict.fromkeys(self.literals + other.literals)),
            tuple(dict.fromkeys(self.whole + other.whole)),
            tuple(dict.fromkeys(self.variables + other.variables)),
        )


def cases(action: Action) -> list[Case]:
    """The cases of an action's precondition; none if it can never hold."""
    taken = {p.name for p in action.parameters}
    return list(dict.fromkeys(_cases(action.precondition, True, {}, taken)))


def _cases(formula: Formula, positive: bool, names: dict[str, str], taken: set[str]) -> list[Case]:
    head, *parts = formula
    if head == "not":
        return _cases(parts[0], not positive, names, taken)
    if head == "imply":
        return _cases(("or", ("not", parts[0]), parts[1]), positive, names, taken)
    if head in ("and", "or"):
        found = [_cases(part, positive, names, taken) for part in parts]
        if (head == "and") == positive:
            return _all(found, parts, positive, names)
        every = [case for some in found for case in some]
        return (
            every
            if len(every) <= MAX_CASES
            else [Case(whole=(_renamed(formula if positive else ("not", formula), names),))]
        )
    if head in ("exists", "forall"):
        if (head == "exists") != positive:
            return [Case(whole=(_renamed(formula if positive else ("not", formula), names),))]
        declared = typed_names(parts[0])
        inner = {**names, **{name: _fresh(name, taken) for name, _ in declared}}
        variables = tuple(Parameter(inner[name], kind) for name, kind in declared)
        return [case.joined(Case(variables=variables)) for case in _cases(parts[1], positive, inner, taken)]
    return [Case((Literal(head, tuple(names.get(t, t) for t in parts), positive),))]


def _all(found: list[list[Case]], parts: list[Formula], positive: bool, names: dict[str, str]) -> list[Case]:
    """Every combination of one case of each part."""
    out = [Case()]
    for some, part in sorted(zip(found, parts), key=lambda pair: len(pair[0])):
        if len(out) * len(some) > MAX_CASES:
            whole = _renamed(part if positive else ("not", part), names)
            some = [Case(whole=(whole,))]
        out = [a.joined(b) for a in out for b in some]
    return out


def _fresh(name: str, taken: set[str]) -> str:
    new = next(new for i in count(1) if (new := name if i == 1 else f"{name}{i}") not in taken)
    taken.add(new)
    return new


def _renamed(formula: Formula, names: dict[str, str]) -> Formula:
    """`formula` with its free variables renamed."""
    if formula and formula[0] in ("exists", "forall"):
        own = {name for name, _ in typed_names(formula[1])}
        names = {old: new for old, new in names.items() if old not in own}
        return (formula[0], formula[1], _renamed(formula[2], names))
    return tuple(_renamed(p, names) if isinstance(p, tuple) else names.get(p, p) for p in formula)


def variables_of(formula: Formula) -> set[str]:
    """The free variables of a formula."""
    if formula and formula[0] in ("exists", "forall"):
        return variables_of(formula[2]) - {name for name, _ in typed_names(formula[1])}
    found: set[str] = set()
    for part in formula:
        found |= variables_of(part) if isinstance(part, tuple) else {part} if part.startswith("?") else set()
    return found
