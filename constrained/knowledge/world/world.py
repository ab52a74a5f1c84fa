"""`World`: the content of the `//:` lines of a `.lark` file, with PDDL's semantics."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import NamedTuple

from constrained.grammar.source import Source, SourceSpan
from constrained.knowledge.lines.pattern import MAX_TEXT, Pattern
from constrained.knowledge.lines.tells import Tells
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
class Maybe:
    """Unknown facts that may hold if a condition holds."""

    literal: Literal
    condition: Condition
    types: Mapping[str, str]
    span: SourceSpan


@dataclass(frozen=True)
class TaskGoal:
    """A goal that task sentences ask for.

    Attributes
    ----------
    patterns : tuple of Pattern
        The sentences; their holes are names of types.
    condition : Condition
        The goal, with these names as types.
    wider : dict of str to str
        Name of a hole -> the supertype of what it stands for.
    span : SourceSpan
        The place of the sentences.
    """

    patterns: tuple[Pattern, ...]
    condition: Condition
    wider: Mapping[str, str]
    span: SourceSpan


class Asked(NamedTuple):
    """The goal that a sentence asks for, the number of the matching pattern, and the words in its holes."""

    goal: TaskGoal
    pattern: int
    words: dict[str, str]


ASKS = "asks "
"""The prefix of a predicate that stands for "the goal asks for such a fact"."""


class Where(NamedTuple):
    """A condition on what is known; `holes`: the holes of the task's sentence without which it never holds."""

    condition: Condition
    holes: frozenset[str] = frozenset()


class Means(NamedTuple):
    """A derived fact: it follows from the first of some conditions that has answers; `once`: from one answer only."""

    literal: Literal
    once: bool
    conditions: tuple[Where, ...]


class Piece(NamedTuple):
    """A piece of text, written if its condition holds: alternating texts, and holes (name, format).

    The format is "" for one object, "," for a list, "..." for a list by kind.
    """

    parts: tuple[str | tuple[str, str], ...]
    where: Where

    @property
    def holes(self) -> list[tuple[str, str]]:
        """The holes alone."""
        return [part for part in self.parts if not isinstance(part, str)]


class Shows(NamedTuple):
    """A line of text with a list of entries; lines with the same label are joined.

    There is an entry, made of the pieces, for each answer to `entries`; beyond `most`, they are only counted. If there
    are none, `otherwise` is written, or no line if that is None.
    """

    label: str
    most: int | None
    entries: Where
    pieces: tuple[Piece, ...]
    otherwise: str | None


class Again(NamedTuple):
    """Facts that still hold when the same episode starts again."""

    literal: Literal
    where: Where


@dataclass
class Wording:
    """The lines that say how what is known is described; the pieces of `explores` write actions that show more."""

    means: dict[str, list[Means]] = field(default_factory=dict)
    shows: list[Shows] = field(default_factory=list)
    again: list[Again] = field(default_factory=list)
    explores: list[Piece] = field(default_factory=list)

    def conditions(self) -> Iterable[Condition]:
        """All conditions in the lines."""
        pieces = [*self.explores, *(piece for shows in self.shows for piece in shows.pieces)]
        wheres = [piece.where for piece in pieces] + [again.where for again in self.again]
        wheres += [shows.entries for shows in self.shows]
        wheres += [where for rules in self.means.values() for means in rules for where in means.conditions]
        return [where.condition for where in wheres]


@dataclass
class World:
    """The physics of a `.lark` file, what answers tell, and one problem.

    Names are in lower case, as in `Domain`, which keeps their spelling.

    Attributes
    ----------
    source : Source
    domain : Domain
        Types, predicates and actions. Types that conditions use as predicates (`kinds`) are predicates, too.
    commands : dict of str to tuple of str
        Action -> its command.
    rules : dict of str to str
        Action -> its grammar rule.
    single : dict of str to dict of int to bool
        Predicate -> argument (from 0) that has one value at a time -> whether it always has one.
    kinds : frozenset of str
        Types that are used as predicates.
    tells, maybe, goals : list
    wording : Wording
        How what is known is described to a model.
    fails : list of Pattern
        Answers that mean that nothing has changed.
    problem : Problem or None
        The file's own; None if it has neither objects nor facts nor goal.
    spans : dict of str to SourceSpan
        Where each predicate ("fact NAME"), each action and the problem's goal ("the goal") is written.
    """

    source: Source
    domain: Domain
    commands: dict[str, Command] = field(default_factory=dict)
    rules: dict[str, str] = field(default_factory=dict)
    single: dict[str, dict[int, bool]] = field(default_factory=dict)
    kinds: frozenset[str] = frozenset()
    tells: list[Tells[Condition]] = field(default_factory=list)
    maybe: list[Maybe] = field(default_factory=list)
    goals: list[TaskGoal] = field(default_factory=list)
    fails: list[Pattern] = field(default_factory=list)
    wording: Wording = field(default_factory=Wording)
    problem: Problem | None = None
    spans: dict[str, SourceSpan] = field(default_factory=dict)

    @property
    def has_whole_problem(self) -> bool:
        """Whether the file's problem has a goal, or facts at the start that actions change.

        Else it has only what problems in other files share, or objects alone.
        """
        problem, changing = self.problem, self.domain.fluents
        return problem is not None and (
            problem.condition is not None or any(fact[0] in changing for fact in problem.init)
        )

    def read(self, text: str) -> Iterator[tuple[str, dict[str, str]]]:
        """Each action that a text may say, with its parameters and the names in the text, in lower case."""
        for name, pattern in self._patterns.items():
            if match := pattern.fullmatch(text):
                parameters = [piece for piece in dict.fromkeys(self.commands[name]) if piece.startswith("?")]
                yield name, {parameter: value.lower() for parameter, value in zip(parameters, match.groups())}

    @cached_property
    def _patterns(self) -> dict[str, re.Pattern[str]]:
        patterns = {}
        for name, command in self.commands.items():
            groups: dict[str, str] = {}  # parameter -> the back reference to its first value
            out = []
            for piece in command:
                out.append(groups.get(piece, "(.+?)") if piece.startswith("?") else re.escape(piece))
                if piece.startswith("?"):
                    groups.setdefault(piece, rf"\{len(groups) + 1}")
            patterns[name] = re.compile("".join(out))
        return patterns

    def told_in(self, answer: str) -> Iterator[tuple[str, ...]]:
        """The facts that an answer tells unconditionally; "nothing" stands for the objects of an empty list."""
        for tells in self.tells:
            for pattern in tells.patterns if tells.rules is None and tells.condition == ALWAYS else ():
                for holes in pattern.find(answer):
                    names = {f"?{hole.lower()}": listed or ["nothing"] for hole, listed in holes.items()}
                    for literal in (told.literal for told in tells.facts):
                        if literal.positive and names.keys() >= set(literal.terms):
                            for chosen in product(*(names[term] for term in literal.terms)):
                                yield literal.predicate, *chosen

    def goal_of(self, task: str) -> Asked | None:
        """The goal whose sentence a task is; of several, the first of `asked`."""
        return next(iter(self.asked(task)), None)

    def asked(self, task: str) -> list[Asked]:
        """The goals whose sentence a task is, those with the fewest characters in their holes first."""
        sentence = " ".join(task[:MAX_TEXT].split()).rstrip(" .!")
        matching = []
        for goal in self.goals:
            for number, pattern in enumerate(goal.patterns):
                holes = pattern.match(sentence)
                if holes is not None:
                    words = {name.lower(): values[0] for name, values in holes.items() if values}
                    matching.append(Asked(goal, number, words))

        def vagueness(asked: Asked) -> tuple[int, int]:
            return sum(map(len, asked.words.values())), -len(asked.goal.patterns[asked.pattern].text)

        return sorted(matching, key=vagueness)


def kind_of(name: str) -> str:
    """The kind in an object's name: "mug" of "mug 2"; the name itself if it has no number."""
    match = re.fullmatch(r"(.*\S)\s+[#?]?\d+", name)
    return (match[1] if match else name).lower()


def filled(condition: Condition, types: Mapping[str, str], objects: Mapping[str, str]) -> Condition:
    """The condition of a task goal with the words of a sentence.

    Parameters
    ----------
    condition : Condition
    types : mapping of str to str
        Name of a hole -> its type.
    objects : mapping of str to str
        Name of a hole -> the object that replaces variables of this type.
    """
    match condition:
        case Literal():
            return condition
        case Junction(operator, parts):
            return Junction(operator, tuple(filled(part, types, objects) for part in parts))
        case Quantified(quantifier, variables, part):
            rest = tuple(Parameter(v.name, types.get(v.type, v.type)) for v in variables if v.type not in objects)
            inner = filled(part, types, objects)
            inner = renamed(inner, {v.name: objects[v.type] for v in variables if v.type in objects})
            return Quantified(quantifier, rest, inner) if rest else inner
