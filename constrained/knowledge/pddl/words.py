"""Conditions and effects in words, for the comments that models and people read."""

from __future__ import annotations

from constrained.knowledge.pddl.domain import Action, Domain, Effect
from constrained.knowledge.pddl.expressions import Formula, typed_names


def condition_words(formula: Formula, domain: Domain) -> str:
    """A condition in words: "openable r and not opened r"; "" if it asks for nothing."""
    head, *parts = formula
    if head in ("and", "or"):
        found = [(p, w) for p in parts if (w := condition_words(p, domain))]
        if len(found) == 1:
            return found[0][1]
        return f" {head} ".join(f"({w})" if p[0] != head and _joined(p) else w for p, w in found)
    if head == "not" and parts[0][0] == "=":
        return " is not ".join(plain(term, domain) for term in parts[0][1:])
    if head == "not":
        words = condition_words(parts[0], domain)
        return f"not ({words})" if _joined(parts[0]) else f"not {words}"
    if head == "imply":
        left, right = (condition_words(p, domain) for p in parts)
        return f"if {left} then {right}"
    if head in ("exists", "forall"):
        names = " ".join(plain(name, domain) for name, _ in typed_names(parts[0]))
        return f"{'some' if head == 'exists' else 'every'} {names} with ({condition_words(parts[1], domain)})"
    if head == "=":
        return f"{plain(parts[0], domain)} is {plain(parts[1], domain)}"
    return " ".join([domain.spelling.get(head, head), *(plain(t, domain) for t in parts)])


def effect_words(action: Action, domain: Domain) -> str:
    """What an action changes, in words."""
    return " and ".join(_effect(effect, domain) for effect in action.effects)


def _effect(effect: Effect, domain: Domain) -> str:
    literal = effect.literal
    fact = (literal.predicate, *literal.terms)
    words = condition_words(fact if literal.positive else ("not", fact), domain)
    if effect.variables:
        words += f" for every {' '.join(plain(v.name, domain) for v in effect.variables)}"
    condition = condition_words(effect.condition, domain)
    return f"{words} if {condition}" if condition else words


def plain(term: str, domain: Domain) -> str:
    """A variable or constant as the file spells it, without its question mark."""
    return domain.spelling.get(term, term).lstrip("?")


def _joined(formula: Formula) -> bool:
    return formula[0] in ("and", "or", "imply") and len(formula) > 2
