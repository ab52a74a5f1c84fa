"""Read a planning problem: objects, initial facts and goal, in PDDL's notation.

Only what a problem file holds is read (McDermott et al., *PDDL: the Planning
Domain Definition Language*, 1998): ``(define (problem n) (:domain d)
(:objects ...) (:init ...) (:goal ...))``.  The reader is tolerant, since the
files come from elsewhere: sections in any order, unknown sections skipped,
comments, any spacing.  It refuses text that ends too early or closes too much,
naming the line, and its work is bounded by the length of the text.
"""

from __future__ import annotations

from dataclasses import dataclass

from constrained.errors import GameError
from constrained.knowledge.pddl.expressions import Formula, read_expression, typed_names


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


def read_problem(text: str) -> Problem:
    """Read a PDDL problem.

    Raises
    ------
    GameError
        When the text is too long, ends inside a parenthesis, or lacks objects,
        initial facts or a goal; the message names the section or the line.
    """
    define = read_expression(text, "the PDDL problem")
    if not define or define[0] != "define":
        raise GameError(
            "the PDDL problem doesn't begin with (define (problem ...",
            hint="a game file holds the problem under its key 'pddl_problem'",
        )
    sections = {part[0]: part[1:] for part in define[1:] if isinstance(part, tuple) and part}
    for name in (":objects", ":init", ":goal"):
        if not sections.get(name):
            raise GameError(
                f"the PDDL problem has no ({name} ...)",
                hint="the file may be cut short; fetch it again",
            )
    goal = sections[":goal"][0]
    if not isinstance(goal, tuple) or not goal:
        raise GameError(f"the goal {goal!r} is not a formula", hint="write it as (and ...)")
    return Problem(dict(typed_names(sections[":objects"])), _read_init(sections[":init"]), goal)


def _read_init(facts: Formula) -> tuple[tuple[str, ...], ...]:
    kept = []
    for fact in facts:
        if not isinstance(fact, tuple) or not fact:
            raise GameError(f"(:init ...) holds {fact!r} where a fact (predicate argument ...) belongs")
        # A numeric fluent, (= (distance a b) 3), says nothing about the state.
        if all(isinstance(part, str) for part in fact):
            kept.append(fact)
    return tuple(kept)  # type: ignore[arg-type]
