"""The structure of a planning domain without its names.

Two domains that differ only in words, such as blocksworld and "mystery" blocksworld, have the same signature, so
weights trained in one work in the other. Types, predicates, constants and actions are distinguished by their
occurrences in actions, by colour refinement (Weisfeiler and Leman, 1968): each gets a new colour from the colours of
its neighbours, until the number of colours stays the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256

from constrained.planning.model import ROOT, Action, Condition, Domain, Junction, Literal, Quantified

_Occurrence = tuple[str, Literal, tuple[object, ...]]
"""The role of a literal in an action, the literal, and its terms without their names."""


@dataclass(frozen=True)
class Signature:
    """A domain's structure, and its names in an order given by the structure.

    Names that actions don't distinguish are in the order of the file. Names that no action mentions are left out.

    Attributes
    ----------
    key : str
        The same for domains that differ only in names and in the order of their parts.
    types, predicates, constants, actions : tuple of str
    """

    key: str
    types: tuple[str, ...]
    predicates: tuple[str, ...]
    constants: tuple[str, ...]
    actions: tuple[str, ...]


def signature(domain: Domain) -> Signature:
    """The signature of a domain."""
    occurrences = {action.name: list(_occurrences(action)) for action in domain.actions}
    used = {literal.predicate for places in occurrences.values() for _, literal, _ in places} - {"="}
    # The first colours tell apart what can be told without looking at actions: arity, whether facts can change.
    colours = {("type", name): _hash("type", name == ROOT) for name in (ROOT, *domain.types)}
    colours |= {("constant", name): "" for name in domain.constants}
    colours |= {
        ("predicate", name): _hash(len(arguments), name in domain.fluents)
        for name, arguments in domain.predicates.items()
        if name in used
    }
    colours |= {("predicate", "="): _hash("=")}
    colours |= {("action", action.name): _hash(len(action.parameters)) for action in domain.actions}
    # A refinement only ever splits colours, so it is finished when their number stays the same.
    kinds = 0
    while len(set(colours.values())) > kinds:
        kinds = len(set(colours.values()))
        colours = _refined(domain, occurrences, colours)

    def ordered(kind: str) -> tuple[str, ...]:
        return tuple(name for of, name in sorted(colours, key=lambda item: colours[item]) if of == kind)

    parameters = {p.type for action in domain.actions for p in action.parameters}
    types = tuple(name for name in ordered("type") if name in parameters and name != ROOT)
    key = _hash(*sorted(colour for item, colour in colours.items() if item[0] in ("predicate", "action")))
    predicates = tuple(name for name in ordered("predicate") if name != "=")
    mentioned = {term for places in occurrences.values() for _, literal, _ in places for term in literal.terms}
    constants = tuple(name for name in ordered("constant") if name in mentioned)
    return Signature(key, types, predicates, constants, ordered("action"))


def _refined(
    domain: Domain, occurrences: Mapping[str, list[_Occurrence]], colours: Mapping[tuple[str, str], str]
) -> dict[tuple[str, str], str]:
    """One round of colour refinement."""
    # Collect for each item the colours of its neighbours, with the roles in which they meet; then hash all together.
    around: dict[tuple[str, str], list[str]] = {item: [] for item in colours}
    for action in domain.actions:
        here = colours["action", action.name]
        for number, parameter in enumerate(action.parameters):
            kind = "type", parameter.type
            around["action", action.name].append(_hash(number, colours.get(kind, "")))
            if kind in around:
                around[kind].append(_hash(number, here))
        for role, literal, terms in occurrences[action.name]:
            shown = tuple(colours.get(("constant", term), term) if isinstance(term, str) else term for term in terms)
            item = "predicate", literal.predicate
            around["action", action.name].append(_hash(role, literal.positive, shown, colours.get(item, "")))
            around.setdefault(item, []).append(_hash(role, literal.positive, shown, here))
            for place, term in enumerate(literal.terms):
                if ("constant", term) in around:
                    around["constant", term].append(_hash(role, place, shown, here))
    for name, wider in domain.types.items():
        around["type", name].append(_hash("in", colours.get(("type", wider), "")))
    for name, own in domain.constants.items():
        around["constant", name].append(colours.get(("type", own), ""))
    return {item: _hash(colour, *sorted(around[item])) for item, colour in colours.items()}


def _occurrences(action: Action) -> Iterator[_Occurrence]:
    """Yield every literal of an action with its role: its position in the action, not its name."""
    numbers: dict[str, object] = {p.name: n for n, p in enumerate(action.parameters)}
    yield from _of_condition(action.precondition, "needs", numbers)
    for effect in action.effects:
        own = numbers | {v.name: ("every", n) for n, v in enumerate(effect.variables)}
        yield "makes", effect.literal, _terms(effect.literal, own)
        yield from _of_condition(effect.condition, "if", own)


def _of_condition(condition: Condition, role: str, numbers: Mapping[str, object]) -> Iterator[_Occurrence]:
    match condition:
        case Literal():
            yield role, condition, _terms(condition, numbers)
        case Junction(operator, parts):
            inner = role if operator == "and" else f"{role} {operator}"
            for part in parts:
                yield from _of_condition(part, inner, numbers)
        case Quantified(quantifier, variables, part):
            own = {v.name: (quantifier, n, role) for n, v in enumerate(variables)}
            yield from _of_condition(part, f"{role} {quantifier}", {**numbers, **own})


def _terms(literal: Literal, numbers: Mapping[str, object]) -> tuple[object, ...]:
    """A literal's terms: variables by number; constants stay, for their colours."""
    return tuple(numbers.get(term, term) for term in literal.terms)


def _hash(*parts: object) -> str:
    return sha256(repr(parts).encode()).hexdigest()[:16]
