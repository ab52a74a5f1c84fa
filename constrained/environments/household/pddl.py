"""Read a planning problem: objects, initial facts and goal, in PDDL's notation.

Only what a problem file holds is read (McDermott et al., *PDDL: the Planning
Domain Definition Language*, 1998): ``(define (problem n) (:domain d)
(:objects ...) (:init ...) (:goal ...))``.  The reader is tolerant, since the
files come from elsewhere: sections in any order, unknown sections skipped,
comments, any spacing.  It refuses text that ends too early or closes too much,
naming the line, and its work is bounded by the length of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Union

from constrained.errors import GameError

# A formula: ("objectType", "?o", "MugType"), ("and", (...), (...)), ...
# Quantified variables stay a flat tuple: ("exists", ("?o", "-", "object"), (...)).
Formula = tuple[Union[str, "Formula"], ...]

MAX_CHARACTERS = 4_000_000  # the largest game file of ALFWorld has 104,757
MAX_DEPTH = 60  # ALFWorld's goals nest nine deep

_TOKEN = re.compile(r";[^\n]*|[()]|[^\s();]+")


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
    if len(text) > MAX_CHARACTERS:
        raise GameError(
            f"the PDDL problem has {len(text):,} characters, more than {MAX_CHARACTERS:,}",
            hint="give one game's problem, not several joined",
        )
    define = _read_expression(text)
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
    return Problem(_read_objects(sections[":objects"]), _read_init(sections[":init"]), goal)


def typed_names(tokens: Formula) -> list[tuple[str, str]]:
    """Pair each name with its type in a list such as ``a b - object r - receptacle``.

    Names after which no type follows are of PDDL's root type ``object``.
    """
    pairs: list[tuple[str, str]] = []
    waiting: list[str] = []
    tokens_left = iter(tokens)
    for token in tokens_left:
        if token != "-":
            waiting.append(str(token))
            continue
        kind = next(tokens_left, None)
        if not isinstance(kind, str):
            raise GameError(f"no type follows '{' '.join(waiting[-3:])} -' in a typed list")
        pairs += [(name, kind) for name in waiting]
        waiting = []
    return pairs + [(name, "object") for name in waiting]


def _read_objects(tokens: Formula) -> dict[str, str]:
    for token in tokens:
        if not isinstance(token, str):
            raise GameError(f"(:objects ...) holds an expression where a name belongs: {token!r}")
    return dict(typed_names(tokens))


def _read_init(facts: Formula) -> tuple[tuple[str, ...], ...]:
    kept = []
    for fact in facts:
        if not isinstance(fact, tuple) or not fact:
            raise GameError(f"(:init ...) holds {fact!r} where a fact (predicate argument ...) belongs")
        # A numeric fluent, (= (distance a b) 3), says nothing about the state.
        if all(isinstance(part, str) for part in fact):
            kept.append(fact)
    return tuple(kept)  # type: ignore[arg-type]


def _read_expression(text: str) -> Formula:
    """Read the first parenthesised expression without recursion."""
    stack: list[tuple[list, int]] = []
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token[0] == ";":
            continue
        if token == "(":
            stack.append(([], match.start()))
            if len(stack) > MAX_DEPTH:
                raise GameError(
                    f"line {_line(text, match.start())} of the PDDL problem nests deeper than {MAX_DEPTH}"
                )
        elif token == ")":
            if not stack:
                raise GameError(f"line {_line(text, match.start())} of the PDDL problem closes what was never opened")
            done = tuple(stack.pop()[0])
            if not stack:
                return done
            stack[-1][0].append(done)
        elif stack:
            stack[-1][0].append(token)
        else:
            raise GameError(f"the PDDL problem begins with {token[:40]!r} instead of a parenthesis")
    if not stack:
        raise GameError("the PDDL problem is empty")
    opened, start = stack[-1]
    name = f"({opened[0]} ..." if opened and isinstance(opened[0], str) else "("
    raise GameError(
        f"the PDDL problem ends inside {name} opened on line {_line(text, start)}",
        hint="the file is cut short; fetch it again",
    )


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
