"""Find the values of variables for which a condition holds in a state: conjunctive queries, answered by joins.

A condition is brought into disjunctive normal form. Each disjunct is compiled into steps: match a literal against the
facts that agree with the variables bound so far (found by an index), test a literal whose variables are bound, or go
through the objects of a type if no fact binds a variable. Steps with few expected answers come first. `forall` is
answered by asking whether its negation has no answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from constrained.errors import PddlError
from constrained.planning.facts import Fact, FactSet
from constrained.planning.model import Condition, Literal, Parameter, Quantified, free_variables, literals_in, negated
from constrained.planning.normal_form import disjuncts_of

MAX_EXAMINED = 5_000_000
"""Facts and objects examined to answer one query; PlanBench's and ALFWorld's need some thousands."""


NOTHING: Mapping[str, str] = MappingProxyType({})


class Objects:
    """The objects of a problem by type.

    Parameters
    ----------
    of : mapping of str to sequence of str
        Type -> its objects, including those of subtypes.
    counts : mapping of str to int
        Predicate -> the approximate number of its facts.
    """

    def __init__(self, of: Mapping[str, Sequence[str]], counts: Mapping[str, int]):
        self.of = {kind: tuple(objects) for kind, objects in of.items()}
        self.sets = {kind: frozenset(objects) for kind, objects in of.items()}
        self.counts = counts
        self.total = max(map(len, self.of.values()), default=0)


@dataclass(frozen=True, slots=True)
class _Match:
    """Match a fact of a predicate; the predicate is at position 0."""

    predicate: str
    constants: tuple[tuple[int, str], ...]
    bound: tuple[tuple[int, int], ...]  # position, slot that has a value
    new: tuple[tuple[int, int, frozenset[str] | None], ...]  # position, slot, its type's objects
    equal: tuple[tuple[int, int], ...]  # two positions of one new variable


@dataclass(frozen=True, slots=True)
class _Test:
    """Test a literal whose variables are all bound; its terms are slots or objects."""

    predicate: str
    terms: tuple[int | str, ...]
    positive: bool


@dataclass(frozen=True, slots=True)
class _Each:
    """Go through the objects of a type."""

    slot: int
    objects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Ask:
    """Ask another query with the values bound so far; `positive`: it must have an answer, else it must have none."""

    query: Query
    slots: tuple[int, ...]
    positive: bool


_Step = _Match | _Test | _Each | _Ask


class Query:
    """A condition compiled for asking it of states.

    Parameters
    ----------
    objects : Objects
    variables : sequence of Parameter
        The variables to find values for; they include all free variables of the condition.
    condition : Condition

    Attributes
    ----------
    predicates : frozenset of str
        The predicates that the answers depend on.
    joined : bool
        Whether all disjuncts consist of literals only. Then a change of some facts affects only answers that use these
        facts.
    """

    def __init__(self, objects: Objects, variables: Sequence[Parameter], condition: Condition):
        self.objects, self.variables, self.condition = objects, tuple(variables), condition
        self._names = [v.name for v in self.variables]
        self.disjuncts = disjuncts_of(condition, set(self._names))
        self._slots = [{v.name: i for i, v in enumerate((*self.variables, *d.variables))} for d in self.disjuncts]
        self._types = [{v.name: v.type for v in (*self.variables, *d.variables)} for d in self.disjuncts]
        self.predicates = frozenset(literal.predicate for literal in literals_in(condition))
        self.joined = not any(d.whole for d in self.disjuncts)
        self._plans: dict[tuple[int, frozenset[str]], tuple[_Step, ...]] = {}

    def answers(self, state: FactSet, given: Mapping[str, str] = NOTHING) -> set[tuple[str, ...]]:
        """The values of the variables, in their order, for which the condition holds; some values may be given."""
        found: set[tuple[str, ...]] = set()
        for number in range(len(self.disjuncts)):
            self._run(state, number, given, found)
        return found

    def holds(self, state: FactSet, values: Sequence[str]) -> bool:
        """Whether the condition holds for these values of all variables; their types are not checked."""
        given = dict(zip(self._names, values))
        return any(self._run(state, number, given, None) for number in range(len(self.disjuncts)))

    def answers_with(self, state: FactSet, facts: Iterable[Fact], positive: bool) -> set[tuple[str, ...]]:
        """The answers of a `joined` query in which a literal with the given sign is matched by one of these facts."""
        found: set[tuple[str, ...]] = set()
        by_predicate: dict[str, list[Fact]] = {}
        for fact in facts:
            by_predicate.setdefault(fact[0], []).append(fact)
        for number, disjunct in enumerate(self.disjuncts):
            for literal in disjunct.literals:
                if literal.positive == positive:
                    for fact in by_predicate.get(literal.predicate, ()):
                        given = self._unified(number, literal, fact)
                        if given is not None:
                            self._run(state, number, given, found)
        return found

    def _unified(self, number: int, literal: Literal, fact: Fact) -> dict[str, str] | None:
        """The values of variables with which a literal equals a fact; None if it can't."""
        given: dict[str, str] = {}
        types = self._types[number]
        for term, value in zip(literal.terms, fact[1:]):
            if not term.startswith("?"):
                if term != value:
                    return None
            elif given.setdefault(term, value) != value or value not in self.objects.sets[types[term]]:
                return None
        return given

    # running

    def _run(self, state: FactSet, number: int, given: Mapping[str, str], found: set[tuple[str, ...]] | None) -> bool:
        """Add the answers of a disjunct with some variables given; without `found`, stop at the first."""
        key = number, frozenset(given)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = tuple(self._plan(number, key[1]))
        slots = self._slots[number]
        values = [""] * len(slots)
        for name, value in given.items():
            values[slots[name]] = value
        return _Execution(state, plan, values, len(self.variables), found).step(0)

    # planning

    def _plan(self, number: int, given: frozenset[str]) -> Iterator[_Step]:
        slots, types = self._slots[number], self._types[number]
        bound = set(given)
        # What is still to be planned: literals, and conditions that must be asked whole.
        literals = list(self.disjuncts[number].literals)
        whole = list(self.disjuncts[number].whole)

        def place(term: str) -> int | str:
            return slots[term] if term.startswith("?") else term

        while True:
            # Tests come as soon as their variables are bound: they cost least and stop most.
            for literal in [lit for lit in literals if {t for t in lit.terms if t[0] == "?"} <= bound]:
                literals.remove(literal)
                yield _Test(literal.predicate, tuple(map(place, literal.terms)), literal.positive)
            for part in [c for c in whole if free_variables(c) <= bound]:
                whole.remove(part)
                yield self._ask(part, types, slots)
            unbound = [name for name in slots if name not in bound]
            if not unbound:
                return
            # Else bind variables: by the literal with the fewest expected matches, or by all objects of the smallest
            # type, if that is cheaper and no literal could bind this variable.
            matches = [lit for lit in literals if lit.positive and lit.predicate != "="]
            costs = [(self._cost(lit, bound), i) for i, lit in enumerate(matches)]
            each = min(unbound, key=lambda name: len(self.objects.of[types[name]]))
            objects = self.objects.of[types[each]]
            if costs and (min(costs)[0] <= len(objects) or any(each in literal.terms for literal in matches)):
                literal = matches[min(costs)[1]]
                literals.remove(literal)
                yield self._match(literal, bound, types, slots)
                bound |= {t for t in literal.terms if t[0] == "?"}
            else:
                yield _Each(slots[each], objects)
                bound.add(each)

    def _cost(self, literal: Literal, bound: set[str]) -> float:
        """An estimate of the facts that a literal matches: each bound term divides them by the number of objects."""
        bound_terms = sum(term in bound or not term.startswith("?") for term in literal.terms)
        count = self.objects.counts.get(literal.predicate, 1)
        return count / max(2.0, count ** (1 / max(1, len(literal.terms)))) ** bound_terms

    def _match(self, literal: Literal, bound: set[str], types: Mapping[str, str], slots: Mapping[str, int]) -> _Match:
        constants, bound_terms, new, equal = [], [], [], []
        first: dict[str, int] = {}
        for position, term in enumerate(literal.terms, 1):
            if not term.startswith("?"):
                constants.append((position, term))
            elif term in bound:
                bound_terms.append((position, slots[term]))
            elif term in first:
                equal.append((first[term], position))
            else:
                first[term] = position
                members = self.objects.sets[types[term]]
                new.append((position, slots[term], members if len(members) < self.objects.total else None))
        return _Match(literal.predicate, tuple(constants), tuple(bound_terms), tuple(new), tuple(equal))

    def _ask(self, part: Condition, types: Mapping[str, str], slots: Mapping[str, int]) -> _Ask:
        names = sorted(free_variables(part))
        outer = [Parameter(name, types[name]) for name in names]
        universal = isinstance(part, Quantified) and part.quantifier == "every"
        query = Query(self.objects, outer, negated(part) if universal else part)
        return _Ask(query, tuple(slots[name] for name in names), not universal)


class _Execution:
    """One execution of a query's steps."""

    __slots__ = ("examined", "found", "state", "steps", "values", "wanted")

    def __init__(
        self,
        state: FactSet,
        steps: tuple[_Step, ...],
        values: list[str],
        wanted: int,
        found: set[tuple[str, ...]] | None,
    ):
        self.state, self.steps, self.values, self.wanted, self.found = state, steps, values, wanted, found
        self.examined = 0

    def step(self, number: int) -> bool:
        """Continue from a step; returns True if the search is over, because one answer was enough."""
        values = self.values
        while number < len(self.steps):
            step = self.steps[number]
            number += 1
            # Steps that branch continue by recursion; tests stay in this loop.
            if isinstance(step, _Match):
                return self.match(step, number)
            if isinstance(step, _Test):
                terms = tuple([values[t] if isinstance(t, int) else t for t in step.terms])
                true = (
                    terms[0] == terms[1]
                    if step.predicate == "="
                    else (step.predicate, *terms) in self.state.of(step.predicate)
                )
                if true != step.positive:
                    return False
            elif isinstance(step, _Each):
                self.count(len(step.objects))
                for value in step.objects:
                    values[step.slot] = value
                    if self.step(number):
                        return True
                return False
            elif step.query.holds(self.state, [values[slot] for slot in step.slots]) != step.positive:
                return False
        # All steps done: this is an answer.
        if self.found is None:
            return True
        self.found.add(tuple(values[: self.wanted]))
        return False

    def match(self, step: _Match, number: int) -> bool:
        values, table = self.values, self.state.table(step.predicate)
        # Begin with the smallest index among the positions whose values are known.
        fixed = [*step.constants, *((position, values[slot]) for position, slot in step.bound)]
        candidates = table.facts
        if fixed:
            candidates = table.where(*fixed[0])
            for position, value in fixed[1:]:
                narrower = table.where(position, value)
                if len(narrower) < len(candidates):
                    candidates = narrower
        self.count(len(candidates))
        new, last = step.new, number == len(self.steps)
        several = len(fixed) > 1
        # An index guarantees one of the fixed positions; with several, all are compared.
        for fact in candidates:
            if several and any(fact[position] != value for position, value in fixed):
                continue
            if step.equal and any(fact[first] != fact[second] for first, second in step.equal):
                continue
            for position, slot, members in new:
                value = fact[position]
                if members is not None and value not in members:
                    break
                values[slot] = value
            else:
                # The last step adds its answer without another call: most matches end here.
                if last and self.found is not None:
                    self.found.add(tuple(values[: self.wanted]))
                elif self.step(number):
                    return True
        return False

    def count(self, more: int) -> None:
        self.examined += more
        if self.examined > MAX_EXAMINED:
            raise PddlError(
                f"a condition has more than {MAX_EXAMINED:,} cases in this state",
                "give its variables types, or conditions that few objects meet",
            )
