"""Write a planning problem as PDDL."""

from __future__ import annotations

from constrained.planning.model import ROOT, Condition, Domain, Junction, Literal, Problem, Quantified


def problem_text(domain: Domain, problem: Problem) -> str:
    """A problem as PDDL, such as `read_problem_of` reads."""
    objects = " ".join(name if kind == ROOT else f"{name} - {kind}" for name, kind in _untyped_last(problem))
    facts = "\n    ".join(f"({' '.join(fact)})" for fact in problem.init)
    goal = f"\n  (:goal {condition_text(problem.condition)})" if problem.condition is not None else ""
    return (
        f"(define (problem {problem.name}) (:domain {domain.name})\n"
        f"  (:objects {objects})\n  (:init\n    {facts}){goal})\n"
    )


def _untyped_last(problem: Problem) -> list[tuple[str, str]]:
    """The objects; those without a type stand last, as a type counts for all names before it."""
    return sorted(problem.objects.items(), key=lambda item: item[1] == ROOT)


def condition_text(condition: Condition) -> str:
    """A condition as PDDL."""
    match condition:
        case Literal(predicate, terms, positive):
            text = f"({' '.join((predicate, *terms))})"
            return text if positive else f"(not {text})"
        case Junction(operator, parts):
            return f"({' '.join((operator, *map(condition_text, parts)))})"
        case Quantified(quantifier, variables, part):
            declared = " ".join(f"{v.name} - {v.type}" for v in variables)
            return f"({'exists' if quantifier == 'some' else 'forall'} ({declared}) {condition_text(part)})"
