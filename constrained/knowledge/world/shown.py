"""Describe what is known as text, and derive facts from it, by the `shows` and `means` lines of the world's file.

Conditions are answered by `constrained.planning.answers`: facts in the order in which they became known, objects of a
type by kind and number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice

from constrained.knowledge.world.belief_state import BeliefState
from constrained.knowledge.world.world import ASKS, Piece, Shows, Where
from constrained.planning.answers import Values, answers, unified
from constrained.planning.facts import Fact
from constrained.planning.model import Literal, conjunction, conjuncts, free_variables
from constrained.planning.query import NOTHING
from constrained.planning.wording import fact_lines

MAX_NAMES = 4
"""Names in a list."""
MAX_NUMBERS = 3
"""Numbers of one kind in a list by kind."""


class Shown:
    """A description of what is known at one moment.

    Parameters
    ----------
    known : BeliefState
        It must not change after the first question, since answers are cached.
    """

    def __init__(self, known: BeliefState):
        self.known, self.wording = known, known.world.wording
        self._facts = (known.world.domain.predicates.keys() - known.world.kinds) | self.wording.means.keys()
        self._means: dict[str, list[Fact]] = {}
        self._things: dict[str, list[str]] = {}

    # derived facts

    def of(self, predicate: str) -> list[Fact]:
        """The facts of a predicate, known or derived."""
        if predicate not in self.wording.means:
            return self.known.of(predicate)
        if predicate not in self._means:
            self._means[predicate] = []  # a fact isn't derived from itself
            facts: dict[Fact, None] = {}
            for means in self.wording.means[predicate]:
                for where in means.conditions:
                    answers = ((predicate, *(v.get(t, t) for t in means.literal.terms)) for v in self.answers(where))
                    if new := dict.fromkeys(islice(answers, 1 if means.once else None)):
                        facts |= new
                        break
            self._means[predicate] = list(facts)
        return self._means[predicate]

    def answers(self, where: Where, given: Values = NOTHING) -> Iterable[Values]:
        """The values for which a condition holds; none if it uses a hole that the task's sentence doesn't have."""
        return answers(where.condition, given, self) if where.holes <= self.known.words.keys() else ()

    def is_of(self, name: str, kind: str) -> bool:
        """Whether an object is of a type, or what a hole of the task's sentence stands for."""
        known = self.known
        kind = known.words.get(kind, kind)
        return name == kind or (name in known.objects and known.is_kind(known.objects[name], kind))

    def matching(self, literal: Literal[str], given: Values) -> Iterable[Values]:
        """The values, extending those given, for which a fact holds."""
        predicate, known = literal.predicate, self.known
        terms = [given.get(term, term) for term in literal.terms]
        bound = not any(term[0] == "?" for term in terms)
        # Not a fact: a question about the goal, or a type.
        if predicate not in self._facts:
            if predicate.startswith(ASKS):
                asked = [None if term[0] == "?" else term for term in terms]
                return (given,) if known.asks(predicate[len(ASKS) :], asked) else ()
            if bound:
                return (given,) if self.is_of(terms[0], predicate) else ()
            return [{**given, terms[0]: name} for name in self.things(predicate)]
        if predicate not in self.wording.means and bound:
            return (given,) if known.holds(predicate, *terms) else ()
        found = (unified(terms, fact, given) for fact in self.of(predicate))
        return [values for values in found if values is not None]

    def things(self, kind: str) -> list[str]:
        """The objects of a type, or of a hole of the task's sentence, by kind and number."""
        if kind not in self._things:
            self._things[kind] = sorted((name for name in self.known.objects if self.is_of(name, kind)), key=_number)
        return self._things[kind]

    def slots(self) -> dict[str, Sequence[str] | Mapping[str, Sequence[str]]]:
        """Slot -> the objects for which the derived fact of that name holds; an empty mapping for none."""
        return {
            predicate.upper(): [self.known.spell(thing) for _, thing in self.of(predicate)] or {}
            for predicate, rules in self.wording.means.items()
            if len(rules[0].literal.terms) == 1
        }

    # texts

    @cached_property
    def text(self) -> str:
        """What is known, as lines of text."""
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """The lines written by the file's `shows` lines; if there are none, all objects and facts."""
        known = self.known
        if not self.wording.shows:
            yield from fact_lines(known.world.domain, known.objects, known.facts, known.spell)
        by_label: dict[str, list[Shows]] = {}
        for shows in self.wording.shows:
            by_label.setdefault(shows.label, []).append(shows)
        for label, parts in by_label.items():
            entries = list(chain.from_iterable(map(self._entries, parts)))
            otherwise = next((shows.otherwise for shows in parts if shows.otherwise is not None), None)
            holes = (hole for shows in parts for piece in shows.pieces for hole in piece.holes)
            between = "; " if any(how for _, how in holes) else ", "
            if entries or otherwise is not None:
                most = parts[0].most or len(entries)
                yield label + (between.join(entries[:most]) or otherwise or "") + _more(len(entries) - most)

    def _entries(self, shows: Shows) -> Iterator[str]:
        for values in self.answers(shows.entries):
            written = "".join(self._written(piece, values) for piece in shows.pieces)
            if written:
                yield written

    def _written(self, piece: Piece, values: Values) -> str:
        """A piece of text; "" if its condition doesn't hold."""
        listed = next((f"?{name}" for name, how in piece.holes if how), None)
        parts = conjuncts(piece.where.condition)
        about = [part for part in parts if listed in free_variables(part)]  # the conditions on the listed variable
        test = Where(conjunction(part for part in parts if part not in about), piece.where.holes)
        answer = next(iter(self.answers(test, values)), None)
        if answer is None:
            return ""
        names = [values[listed] for values in answers(conjunction(about), answer, self)] if listed else []
        return "".join(self._part(part, answer, names) for part in piece.parts)

    def _part(self, part: str | tuple[str, str], values: Values, names: Iterable[str] = ()) -> str:
        if isinstance(part, str):
            return part
        name, how = part
        if not how:
            return self.known.spell(values[f"?{name}"]) if f"?{name}" in values else self.known.words[name]
        return self._listed(list(names)) if how == "," else _by_kind(map(self.known.spell, names))

    def _listed(self, names: list[str]) -> str:
        """The names that the task is about, at most `MAX_NAMES`, and the number of the others."""
        words = self.known.words.keys()
        named = [name for name in names if not words or any(self.is_of(name, word) for word in words)][:MAX_NAMES]
        return (", ".join(map(self.known.spell, named)) or "none") + _more(len(names) - len(named))

    def explores(self) -> list[str]:
        """The actions that show something new, by the first `explores` piece that gives any."""
        for piece in self.wording.explores:
            answers = list(self.answers(piece.where))
            if answers:
                return ["".join(self._part(part, values) for part in piece.parts) for values in answers]
        return []

    def again(self) -> Iterator[Fact]:
        """The facts that still hold when the episode starts again."""
        for again in self.wording.again:
            for values in self.answers(again.where):
                yield again.literal.predicate, *(values.get(term, term) for term in again.literal.terms)


def _by_kind(names: Iterable[str]) -> str:
    """Names with each kind written once: "cabinet 1 2 3 +47, fridge 1"."""
    numbers: dict[str, list[str]] = {}
    for name in names:
        kind, number = _number(name)
        numbers.setdefault(kind, []).append(f" {number}" if number else "")
    shown = (f"{kind}{''.join(n[:MAX_NUMBERS])}{_more(len(n) - MAX_NUMBERS)}" for kind, n in numbers.items())
    return ", ".join(shown) or "none"


def _number(name: str) -> tuple[str, int]:
    """A name's kind and number; 0 if it has no number."""
    kind, _, number = name.rpartition(" ")
    return (kind, int(number)) if kind and number.isdecimal() and len(number) < 10 else (name, 0)


def _more(number: int) -> str:
    return f" +{number}" if number > 0 else ""
