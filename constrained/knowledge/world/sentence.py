"""The goal that a task's sentence asks for in a world with a problem of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from constrained.errors import KnowledgeError
from constrained.knowledge.world.world import Asked, World, filled
from constrained.planning.model import Problem
from constrained.planning.wording import squeezed

MAX_LISTED = 30
"""Most objects that an error lists."""


class AskedProblem(NamedTuple):
    """A problem with the goal that a sentence asks for; `words`: hole -> the object, or the type, that it names."""

    problem: Problem
    words: Mapping[str, str]


def asked_problem(world: World, task: str) -> AskedProblem | None:
    """A world's problem with the goal that a sentence asks for; None if no `goal` line has such a sentence.

    A hole may name an object ("r303"), an object after its type ("room r303"), or a type ("room": any room). Of several
    lines that match, the first in the order of `World.asked` whose words all name something.

    Raises
    ------
    KnowledgeError
        The sentence names an object that isn't there.
    """
    asked, problem = world.asked(task), world.problem
    assert problem is not None
    for one in asked:
        found = {hole: _named(world, words, one.goal.wider[hole]) for hole, words in one.words.items()}
        if all(found.values()):
            words = {hole: name for hole, name in found.items() if name is not None}
            objects = {hole: name for hole, name in words.items() if name in _objects(world)}
            types = {hole: name for hole, name in words.items() if hole not in objects}
            goal, place = filled(one.goal.condition, types, objects), one.goal.span.for_error()
            return AskedProblem(replace(problem, condition=goal, goal_place=place), words)
    if asked:
        raise _no_object(world, task, asked[0])
    return None


def goal_sentences(world: World) -> list[str]:
    """The sentences of the file's `goal` lines in quotes, with their holes: '"book {R} for {G}"'."""
    patterns = [goal.patterns[0] for goal in world.goals]
    return [f'"{pattern.write({hole: [f"{{{hole}}}"] for hole in pattern.holes})}"' for pattern in patterns]


def _objects(world: World) -> dict[str, str]:
    """Object, in lower case -> type."""
    return {} if world.problem is None else {name.lower(): kind for name, kind in world.problem.objects.items()}


def _named(world: World, words: str, wider: str) -> str | None:
    """The object of the type `wider`, or else the type, that words name; None if there is none."""
    objects, domain = _objects(world), world.domain
    key = " ".join(words.lower().split())
    kind, _, rest = key.partition(" ")
    named = {squeezed(kind): kind for kind in domain.types}
    for name, of in ((key, wider), (rest, named.get(squeezed(kind)))):
        if of is not None and name in objects and {of, wider} <= {*domain.wider(objects[name])}:
            return name
    found = named.get(squeezed(key))
    return found if found is not None and domain.is_subtype(found, wider) else None


def _no_object(world: World, task: str, asked: Asked) -> KnowledgeError:
    """The error that a sentence names an object that isn't there: it lists those that are."""
    hole = next(hole for hole, words in asked.words.items() if _named(world, words, asked.goal.wider[hole]) is None)
    wider, words = asked.goal.wider[hole], asked.words[hole]
    assert world.problem is not None
    named = [name for name, kind in world.problem.objects.items() if world.domain.is_subtype(kind, wider)]
    more = f" and {len(named) - MAX_LISTED} more" if len(named) > MAX_LISTED else ""
    return KnowledgeError(
        f"the task {task[:80]!r} names {words[:40]!r}, which is no {world.domain.spell(wider)}",
        f"there are: {', '.join(named[:MAX_LISTED]) or 'none'}{more}",
    )
