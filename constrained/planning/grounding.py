"""A planning task without deletes, as numbers: what delete relaxation needs (Bonet and Geffner, 2001).

Facts are numbered, and so is "this fact doesn't hold" wherever a condition asks for it: in the relaxation both may be
true at once. Each way in which an action has an effect is one `Operator`: a disjunct of its precondition, joined with a
disjunct of the effect's condition. What is no conjunction (`forall`, a disjunction inside it) becomes a fact of its own
that axioms derive at no cost. So nothing of PDDL's ADL is approximated, but for the deletes.

Operators are found by joins over the facts reached so far (Helmert, "Concise finite-domain representations for PDDL
planning tasks", 2009), once for a task; where a state has a fact that was never reached, from there on.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from constrained.errors import PddlError
from constrained.planning.facts import Fact, State, Table
from constrained.planning.model import Action, Condition, Junction, Literal, Quantified, literals_in, renamed
from constrained.planning.normal_form import Disjunct, disjuncts_of
from constrained.planning.query import Query
from constrained.planning.task import GroundAction, Task

MAX_OPERATORS = 300_000
"""Operators and axioms of one task; PlanBench's have some thousands."""

TRUE, FALSE = 0, 1
"""The facts that always and never hold."""


_Form = tuple[str, tuple[int | str, ...]]
"""A fact to be filled in: its predicate, and places of variables or objects."""


@dataclass
class _Rule:
    """One way in which an action has effects.

    Attributes
    ----------
    action : Action
    query : Query
        The positive literals and equalities, asked of all variables; the action's parameters stand first.
    names : tuple of str
        The variables.
    needs, denies : list of (str, tuple)
        The facts of changing predicates that must hold, and those of any predicate that must not.
    rest : list of Condition
        What is no literal.
    adds, deletes : list of (str, tuple)
        The effects that conditions ask for.
    seen : set of tuple of str
        The values that operators were made for.
    """

    action: Action
    query: Query
    names: tuple[str, ...]
    needs: list[_Form]
    denies: list[_Form]
    rest: list[Condition]
    adds: list[_Form]
    deletes: list[_Form]
    seen: set[tuple[str, ...]] = field(default_factory=set)


def _filled(forms: Iterable[_Form], values: Sequence[str]) -> list[Fact]:
    return [(name, *[values[term] if isinstance(term, int) else term for term in terms]) for name, terms in forms]


@dataclass(frozen=True)
class Block:
    """Operators, or axioms, as arrays.

    Attributes
    ----------
    needs : ndarray of int, shape (number of preconditions,)
        The facts that the operators need, one operator's after the other's; at least one each.
    starts : ndarray of int, shape (operators,)
        Where those of each operator begin.
    adds, adders : ndarray of int, shape (number of effects,)
        The facts that become true, and the operators that make them so.
    supporters : list of ndarray of int
        Fact -> the operators that make it true.
    """

    needs: np.ndarray
    starts: np.ndarray
    adds: np.ndarray
    adders: np.ndarray
    supporters: list[np.ndarray]

    @classmethod
    def of(cls, needs: Sequence[Sequence[int]], adds: Sequence[Sequence[int]], facts: int) -> Block:
        """The arrays of some operators' preconditions and effects, where there are so many facts."""
        lengths = np.array([len(facts) for facts in needs], dtype=np.intp)
        adders = np.repeat(np.arange(len(adds)), [len(facts) for facts in adds]) if adds else np.zeros(0, np.intp)
        flat = np.array([fact for facts in adds for fact in facts], dtype=np.intp)
        order = np.argsort(flat, kind="stable")
        supporters = np.split(adders[order], np.searchsorted(flat[order], np.arange(1, facts)))
        return cls(
            np.array([fact for facts in needs for fact in facts], dtype=np.intp),
            np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.intp) if len(needs) else lengths,
            flat, adders, supporters,
        )  # fmt: skip

    def ready(self, true: np.ndarray) -> np.ndarray:
        """Which operators have all that they need, as a bool each."""
        if not len(self.starts):
            return np.zeros(0, dtype=bool)
        return np.logical_and.reduceat(true[self.needs], self.starts)


class Grounding:
    """The operators of a task without deletes.

    Parameters
    ----------
    task : Task

    Attributes
    ----------
    numbers : dict
        Fact -> its number; of the opposite of a fact, (False, fact); of a condition that axioms derive, the condition.
    goal : list of int
        The facts that make the goal.
    actions : list of GroundAction
        Operator -> the action that it is a part of.
    needs : list of tuple of int
        Operator -> its preconditions; at least one.
    changes : list of (tuple of int, tuple of int)
        Operator -> the facts that it adds and those that it deletes, where conditions ask for their predicates.
    axioms : list of (tuple of int, int)
        What derives a fact, and the fact. What derives other facts on the way stands before.
    derived : set of int
        The facts that axioms derive.
    opposites : list of (int, int)
        A fact, and its opposite.
    """

    def __init__(self, task: Task):
        self.task = task
        actions = task.domain.actions
        conditions = [a.precondition for a in actions] + [e.condition for a in actions for e in a.effects]
        literals = [
            lit for c in (*conditions, task.goal) if c is not None for lit in literals_in(c) if lit.predicate != "="
        ]
        self._asked = {lit.predicate for lit in literals}
        self._denied = {lit.predicate for lit in literals if not lit.positive}
        self._static = set(task.static)  # less those of which states have other facts than the task's first
        self._build()

    def _build(self) -> None:
        self.numbers: dict[object, int] = {True: TRUE, None: FALSE}
        self.names: list[object] = [True, None]
        self.actions: list[GroundAction] = []
        self.needs: list[tuple[int, ...]] = []
        self.changes: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        self.axioms: list[tuple[tuple[int, ...], int]] = []
        self.derived: set[int] = set()
        self.opposites: list[tuple[int, int]] = []
        self._adds: list[tuple[int, ...]] = []  # with opposites
        self._reached = State()
        self._numbered: dict[Fact, int] = {}  # those reached
        self._tables: dict[str, tuple[Table, np.ndarray]] = {}
        self._blocks: tuple[Block, Block] | None = None
        self._rules = [rule for action in self.task.domain.actions for rule in self._rules_of(action)]
        goal = self.task.goal
        self.goal = [] if goal is None else [self.number(part) for part in self.task.parts(goal)]
        self._extend(self.task.initial, first=True)

    # what is derived

    def _rules_of(self, action: Action) -> Iterator[_Rule]:
        taken = {p.name for p in action.parameters} | {v.name for e in action.effects for v in e.variables}
        plain = tuple(effect.literal for effect in action.effects if effect.plain)
        for disjunct in disjuncts_of(action.precondition, taken):
            if plain:
                yield self._rule(action, disjunct, plain)
            for effect in (effect for effect in action.effects if not effect.plain):
                inner = taken | {v.name for v in disjunct.variables}
                for condition in disjuncts_of(effect.condition, inner):
                    both = disjunct.joined(condition).joined(Disjunct(variables=effect.variables))
                    yield self._rule(action, both, (effect.literal,))

    def _rule(self, action: Action, disjunct: Disjunct, effects: tuple[Literal, ...]) -> _Rule:
        joined = [lit for lit in disjunct.literals if lit.positive or lit.predicate == "="]
        variables = (*action.parameters, *disjunct.variables)
        places = {v.name: place for place, v in enumerate(variables)}

        def forms(literals: Iterable[Literal], positive: bool, among: Container[str]) -> list[_Form]:
            return [
                (lit.predicate, tuple(places.get(term, term) for term in lit.terms))
                for lit in dict.fromkeys(literals)
                if lit.positive == positive and lit.predicate in among
            ]

        return _Rule(
            action,
            Query(self.task._objects, variables, Junction("and", tuple(joined))),
            tuple(places),
            forms(joined, True, self._asked - self._static),
            forms(disjunct.literals, False, self._asked),
            list(disjunct.whole),
            forms(effects, True, self._asked),
            forms(effects, False, self._asked),
        )

    def _extend(self, facts: Iterable[Fact], first: bool = False) -> None:
        """Take facts as reached, and find all operators that this makes possible."""
        new = {fact for fact in facts if fact not in self._numbered}
        while new or first:
            self._reached = self._reached.changed(added=new)
            for fact in sorted(new):  # so that runs don't depend on the order of sets
                self._numbered[fact] = self._number(fact)
            later: set[Fact] = set()
            for rule in self._rules:
                found = (
                    rule.query.answers(self._reached) if first else rule.query.answers_with(self._reached, new, True)
                )
                for values in sorted(found - rule.seen):
                    rule.seen.add(values)
                    later |= self._operator(rule, values)
            new, first = later, False
        self._blocks = None
        self._tables = {}

    def _operator(self, rule: _Rule, values: tuple[str, ...]) -> set[Fact]:
        """Make an operator; returns what it adds that was not reached before."""
        needs = [self._number(fact) for fact in _filled(rule.needs, values)]
        needs += [self._opposite(fact) for fact in _filled(rule.denies, values)]
        if rule.rest:
            names = dict(zip(rule.names, values))
            needs += [self.number(renamed(part, names)) for part in rule.rest]
        if FALSE in needs:
            return set()
        self._check_size()
        added, deleted = _filled(rule.adds, values), _filled(rule.deletes, values)
        self.changes.append((tuple(map(self._number, added)), tuple(map(self._number, deleted))))
        self.needs.append(tuple({*needs} - {TRUE}) or (TRUE,))
        opposites = [self._opposite(fact) for fact in deleted if fact[0] in self._denied]
        self._adds.append((*self.changes[-1][0], *opposites))
        self.actions.append(GroundAction(rule.action.name, values[: len(rule.action.parameters)]))
        return {fact for fact in added if fact not in self._numbered}

    def _check_size(self) -> None:
        if len(self.needs) + len(self.axioms) > MAX_OPERATORS:
            raise PddlError(
                f"the task has more than {MAX_OPERATORS:,} ground actions, too many to look ahead to the goal",
                "use the level state and another model than a search, or fewer objects",
            )

    # numbers

    def number(self, condition: Condition) -> int:
        """The number of a condition without free variables."""
        if isinstance(condition, Literal):
            if condition.predicate == "=":
                return TRUE if (condition.terms[0] == condition.terms[1]) == condition.positive else FALSE
            fact = (condition.predicate, *condition.terms)
            return self._positive(fact) if condition.positive else self._opposite(fact)
        known = self.numbers.get(condition)
        if known is None:
            if isinstance(condition, Quantified):
                every, parts = condition.quantifier == "every", tuple(self._instances(condition))
            else:
                every, parts = condition.operator == "and", condition.parts
            neutral = TRUE if every else FALSE
            found = set(map(self.number, parts)) - {neutral}
            if (FALSE if every else TRUE) in found:
                found = {FALSE if every else TRUE}
            if len(found) < 2:
                known = self.numbers[condition] = next(iter(found), neutral)
            else:
                known = self._number(condition)
                self.derived.add(known)
                self.axioms += [(tuple(found), known)] if every else [((part,), known) for part in found]
                self._check_size()
        return known

    def _instances(self, condition: Quantified) -> Iterator[Condition]:
        for values in product(*(self.task.of_type(v.type) for v in condition.variables)):
            yield renamed(condition.part, {v.name: value for v, value in zip(condition.variables, values)})

    def _number(self, name: object) -> int:
        number = self.numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number

    def _positive(self, fact: Fact) -> int:
        if fact[0] in self._static:
            return TRUE if fact in self.task.initial else FALSE
        return self._number(fact)

    def _opposite(self, fact: Fact) -> int:
        if fact[0] in self._static:
            return FALSE if fact in self.task.initial else TRUE
        number = len(self.names)
        found = self._number((False, fact))
        if found == number:
            self.opposites.append((self._number(fact), found))
        return found

    # states

    @property
    def blocks(self) -> tuple[Block, Block]:
        """The operators, and the axioms."""
        if self._blocks is None:
            axioms = [(needs, (fact,)) for needs, fact in self.axioms]
            self._blocks = (
                Block.of(self.needs, self._adds, len(self.names)),
                Block.of([needs for needs, _ in axioms], [adds for _, adds in axioms], len(self.names)),
            )
            self._pairs = np.array(self.opposites, dtype=np.intp).reshape(-1, 2)
        return self._blocks

    def true_in(self, state: State, possible: Iterable[Fact] = ()) -> np.ndarray:
        """Which facts are true in a state, as a bool each; `possible` are unknown, so each may hold or not."""
        possible = [fact for fact in possible if fact[0] in self._asked]
        unmet = [fact for fact in possible if fact not in self._numbered]
        parts: list[np.ndarray] = []
        for predicate, table in state.tables.items():
            if predicate in self._asked:
                known = self._tables.get(predicate)
                if known is None or known[0] is not table:
                    numbers = [self._numbered.get(fact, -1) for fact in table.facts]
                    if -1 in numbers:
                        unmet += [fact for fact in table.facts if fact not in self._numbered]
                        continue
                    known = self._tables[predicate] = table, np.array(numbers, dtype=np.intp)
                parts.append(known[1])
        if unmet:
            other = self._static.intersection(fact[0] for fact in unmet)
            self._static -= other
            if other:
                self._build()
            else:
                self._extend(unmet)
            return self.true_in(state, possible)
        blocks = self.blocks
        assert blocks
        true = np.zeros(len(self.names), dtype=bool)
        for part in parts:
            true[part] = True
        true[self._pairs[:, 1]] = ~true[self._pairs[:, 0]]
        if possible:
            true[[self._numbered[fact] for fact in possible]] = True
        true[TRUE], true[FALSE] = True, False
        return true
