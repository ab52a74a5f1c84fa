"""`World`: what the `//:` lines of a `.lark` file say, with PDDL as its meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import NamedTuple

from constrained.grammar.source import Source, SourceSpan
from constrained.knowledge.world.pattern import MAX_TEXT, Pattern
from constrained.knowledge.world.wording import Wording
from constrained.planning.model import (
    ALWAYS,
    Condition,
    Domain,
    Junction,
    Literal,
    Parameter,
    Problem,
    Quantified,
    renamed,
)
from constrained.planning.wording import Command


@dataclass(frozen=True)
class Told:
    """A fact that an answer tells: true, false, or, with `all`, of no other things than those named."""

    literal: Literal
    all: bool
    span: SourceSpan


@dataclass(frozen=True)
class Tells:
    """What an answer tells.

    Attributes
    ----------
    facts : tuple of Told
        Their variables are holes of the patterns, parameters of the rule, or variables of the condition.
    condition : Condition
        What else must be known; facts are told for all values of its variables.
    patterns : tuple of Pattern
        An answer that any of them is found in.
    rule : str or None
        The action whose answers these are; None: any.
    types : dict of str to str
        Variable -> its type.
    """

    facts: tuple[Told, ...]
    condition: Condition
    patterns: tuple[Pattern, ...]
    rule: str | None
    types: Mapping[str, str]
    span: SourceSpan


@dataclass(frozen=True)
class Maybe:
    """Facts that may hold as long as nothing tells, where a condition holds."""

    literal: Literal
    condition: Condition
    types: Mapping[str, str]
    span: SourceSpan


@dataclass(frozen=True)
class TaskGoal:
    """What task sentences ask for.

    Attributes
    ----------
    patterns : tuple of Pattern
        Of sentences; their holes are names of types.
    condition : Condition
        With these names for types.
    wider : dict of str to str
        Such a name -> the type that what it stands for belongs to.
    """

    patterns: tuple[Pattern, ...]
    condition: Condition
    wider: Mapping[str, str]
    span: SourceSpan


class Asked(NamedTuple):
    """What a sentence asks for: the goal, which of its patterns the sentence is, and what stands in the holes."""

    goal: TaskGoal
    pattern: int
    words: dict[str, str]


@dataclass
class World:
    """The physics of a `.lark` file, what answers tell, and one problem.

    Names are in lower case, as in `Domain`, which keeps how they are written.

    Attributes
    ----------
    source : Source
    domain : Domain
        Types, predicates and actions. A type that conditions use as a predicate is one, too: see `kinds`.
    commands : dict of str to tuple of str
        Action -> how it is written.
    rules : dict of str to str
        Action -> its grammar rule.
    single : dict of str to dict of int to bool
        Predicate -> argument (from 0) of which there is one value at a time -> whether there is always one.
    kinds : frozenset of str
        Types that are used as predicates.
    tells, maybe, goals : list
    wording : Wording
        How what is known is told to a model.
    fails : list of Pattern
        Answers after which nothing has changed.
    problem : Problem or None
        The file's own; None if it has neither objects nor facts nor goal.
    spans : dict of str to SourceSpan
        Where each type, predicate ("fact NAME"), action and object ("object NAME") is written.
    """

    source: Source
    domain: Domain
    commands: dict[str, Command] = field(default_factory=dict)
    rules: dict[str, str] = field(default_factory=dict)
    single: dict[str, dict[int, bool]] = field(default_factory=dict)
    kinds: frozenset[str] = frozenset()
    tells: list[Tells] = field(default_factory=list)
    maybe: list[Maybe] = field(default_factory=list)
    goals: list[TaskGoal] = field(default_factory=list)
    fails: list[Pattern] = field(default_factory=list)
    wording: Wording = field(default_factory=Wording)
    problem: Problem | None = None
    spans: dict[str, SourceSpan] = field(default_factory=dict)

    def read(self, text: str) -> Iterator[tuple[str, dict[str, str]]]:
        """Each action that a text may be, with the names that stand for its parameters in the text, in lower case."""
        for name, pattern in self._patterns.items():
            found = pattern.fullmatch(text)
            if found is not None:
                written = [piece for piece in dict.fromkeys(self.commands[name]) if piece.startswith("?")]
                yield name, {piece: found[i].lower() for i, piece in enumerate(written, 1)}

    @cached_property
    def _patterns(self) -> dict[str, re.Pattern[str]]:
        patterns = {}
        for name, command in self.commands.items():
            groups: dict[str, int] = {}
            out = []
            for piece in command:
                if not piece.startswith("?"):
                    out.append(re.escape(piece))
                elif piece in groups:
                    out.append(rf"\{groups[piece]}")
                else:
                    groups[piece] = len(groups) + 1
                    out.append("(.+?)")
            patterns[name] = re.compile("".join(out))
        return patterns

    def told_in(self, answer: str) -> Iterator[tuple[str, ...]]:
        """The facts that an answer tells whatever is known; "nothing" stands for what a list has none of."""
        for tells in self.tells:
            for pattern in tells.patterns if tells.rule is None and tells.condition == ALWAYS else ():
                for found in pattern.find(answer):
                    names = {f"?{hole.lower()}": own or ["nothing"] for hole, own in found.items()}
                    for literal in (told.literal for told in tells.facts):
                        if literal.positive and names.keys() >= set(literal.terms):
                            for chosen in product(*(names[term] for term in literal.terms)):
                                yield literal.predicate, *chosen

    def goal_of(self, task: str) -> Asked | None:
        """The goal whose sentence a task is; of several, the one that leaves fewest words to its holes."""
        sentence = " ".join(task[:MAX_TEXT].split()).rstrip(" .!")
        fitting = []
        for goal in self.goals:
            for number, pattern in enumerate(goal.patterns):
                found = pattern.match(sentence)
                if found is not None:
                    words = {name.lower(): values[0] for name, values in found.items() if values}
                    fitting.append(Asked(goal, number, words))

        def left(asked: Asked) -> tuple[int, int]:
            """The characters in the holes; of equals, the pattern that says more goes first."""
            return sum(map(len, asked.words.values())), -len(asked.goal.patterns[asked.pattern].text)

        return min(fitting, key=left, default=None)


def kind_of(name: str) -> str:
    """The kind in a thing's name: "mug" of "mug 2"; the name itself if no number stands behind it."""
    found = re.fullmatch(r"(.*\S)\s+[#?]?\d+", name)
    return (found[1] if found else name).lower()


def filled(condition: Condition, types: Mapping[str, str], objects: Mapping[str, str]) -> Condition:
    """A condition of task sentences with what a sentence says.

    Parameters
    ----------
    condition : Condition
    types : mapping of str to str
        The name of a hole -> the type that stands for it.
    objects : mapping of str to str
        The name of a hole -> the one object that stands for it: a variable of this type is that object.
    """
    match condition:
        case Literal():
            return condition
        case Junction(operator, parts):
            return Junction(operator, tuple(filled(part, types, objects) for part in parts))
        case Quantified(quantifier, variables, part):
            left = tuple(Parameter(v.name, types.get(v.type, v.type)) for v in variables if v.type not in objects)
            inner = filled(part, types, objects)
            inner = renamed(inner, {v.name: objects[v.type] for v in variables if v.type in objects})
            return Quantified(quantifier, left, inner) if left else inner


def every_part(condition: Condition) -> tuple[Condition, ...]:
    """The parts of a conjunction; the condition itself if it is none."""
    return condition.parts if isinstance(condition, Junction) and condition.operator == "and" else (condition,)


def join(parts: tuple[Condition, ...]) -> Condition:
    """All of some conditions."""
    flat = tuple(part for given in parts for part in every_part(given))
    return flat[0] if len(flat) == 1 else Junction("and", flat) if flat else ALWAYS
