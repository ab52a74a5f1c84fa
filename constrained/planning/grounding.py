"""Ground a planning task for delete relaxation (Bonet and Geffner, 2001): facts and operators as numbers.

Facts are numbered, and so is the negation of a fact if a condition asks for it: in the relaxation both may be true at
once. An action has an operator for each disjunct of its precondition joined with a disjunct of an effect's condition. A
condition that isn't a conjunction (`forall`, a disjunction inside it) becomes a fact that axioms derive at no cost. So
all of PDDL's ADL is exact, except for the deletes.

Operators are found once for a task, by joins over the facts reached so far (Helmert, "Concise finite-domain
representations for PDDL planning tasks", 2009). If a state has a fact that was never reached, more are added.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from constrained.errors import PddlError
from constrained.planning.facts import Fact, FactSet, FactTable
from constrained.planning.model import Action, Condition, Junction, Literal, Quantified, conjuncts, literals_in, renamed
from constrained.planning.normal_form import Disjunct, disjuncts_of
from constrained.planning.query import Query
from constrained.planning.task import GroundAction, PlanningTask

MAX_OPERATORS = 300_000
"""Operators and axioms of one task; PlanBench's tasks have some thousands."""

TRUE, FALSE = 0, 1
"""The numbers of the facts that always hold and never hold."""


_Template = tuple[str, tuple[int | str, ...]]
"""A fact with variables: its predicate, and for each argument the number of a variable, or an object."""


@dataclass
class _Rule:
    """The operators of one disjunct of an action, before variables have values.

    Attributes
    ----------
    action : Action
    query : Query
        The positive literals and equalities, over all variables; the action's parameters come first.
    names : tuple of str
        The variables.
    needs, denies : list of (str, tuple)
        The facts of changing predicates that must hold, and the facts that must not.
    rest : list of Condition
        The conditions that aren't literals.
    adds, deletes : list of (str, tuple)
        The effects on predicates that conditions ask for.
    seen : set of tuple of str
        The values for which there is an operator.
    """

    action: Action
    query: Query
    names: tuple[str, ...]
    needs: list[_Template]
    denies: list[_Template]
    rest: list[Condition]
    adds: list[_Template]
    deletes: list[_Template]
    seen: set[tuple[str, ...]] = field(default_factory=set)


def _filled(templates: Iterable[_Template], values: Sequence[str]) -> list[Fact]:
    return [(name, *[values[term] if isinstance(term, int) else term for term in terms]) for name, terms in templates]


@dataclass(frozen=True)
class Block:
    """Operators, or axioms, as arrays.

    Attributes
    ----------
    needs : ndarray of int, shape (number of preconditions,)
        The facts that the operators need, operator by operator; each needs at least one.
    starts : ndarray of int, shape (operators,)
        The index in `needs` at which each operator begins.
    adds, adders : ndarray of int, shape (number of effects,)
        The facts that become true, and the operators that make them true.
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
        """Make the arrays from operators' preconditions and effects; `facts` is the number of facts."""
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
        """Which operators have all their preconditions met, as a bool each."""
        if not len(self.starts):
            return np.zeros(0, dtype=bool)
        return np.logical_and.reduceat(true[self.needs], self.starts)


class Grounding:
    """The operators of a task without deletes.

    Parameters
    ----------
    task : PlanningTask

    Attributes
    ----------
    numbers : dict
        Fact -> its number. The key of a negated fact is (False, fact); of a fact that axioms derive, the condition.
    goal : list of int
        The facts of which the goal consists.
    actions : list of GroundAction
        Operator -> its action.
    needs : list of tuple of int
        Operator -> its preconditions; at least one.
    changes : list of (tuple of int, tuple of int)
        Operator -> the facts that it adds and deletes; only of predicates that conditions ask for.
    adds : list of tuple of int
        Operator -> the facts that it makes true, with negations that conditions ask for.
    axioms : list of (tuple of int, int)
        The facts that derive a fact, and that fact; an axiom comes after those that it depends on.
    derived : set of int
        The facts that axioms derive.
    opposites : list of (int, int)
        A fact and its negation.
    """

    def __init__(self, task: PlanningTask):
        self.task = task
        actions = task.domain.actions
        conditions = [condition for action in actions for condition in action.conditions]
        conditions += [] if task.goal is None else [task.goal]
        literals = [lit for c in conditions for lit in literals_in(c) if lit.predicate != "="]
        self._asked = {lit.predicate for lit in literals}
        self._denied = {lit.predicate for lit in literals if not lit.positive}
        # shrinks if a state has other facts of such a predicate than the initial one
        self._static = self._asked & task.static
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
        self.adds: list[tuple[int, ...]] = []
        self._reached = FactSet()
        self._numbered: dict[Fact, int] = {}  # reached fact -> its number
        self._tables: dict[str, tuple[FactTable, np.ndarray]] = {}
        self._blocks: tuple[Block, Block] | None = None
        self._rules = [rule for action in self.task.domain.actions for rule in self._rules_of(action)]
        goal = self.task.goal
        self.goal = [] if goal is None else [self.number(part) for part in conjuncts(goal)]
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
        # Joins need literals that are true; negated facts become preconditions of the operators.
        joined = [lit for lit in disjunct.literals if lit.positive or lit.predicate == "="]
        variables = (*action.parameters, *disjunct.variables)
        places = {v.name: place for place, v in enumerate(variables)}

        # Literals as facts with the numbers of variables in place of their names; predicates that nothing asks for are
        # left out.
        def templates(literals: Iterable[Literal], positive: bool, among: Container[str]) -> list[_Template]:
            return [
                (lit.predicate, tuple(places.get(term, term) for term in lit.terms))
                for lit in dict.fromkeys(literals)
                if lit.positive == positive and lit.predicate in among
            ]

        return _Rule(
            action,
            Query(self.task._objects, variables, Junction("and", tuple(joined))),
            tuple(places),
            templates(joined, True, self._asked - self._static),
            templates(disjunct.literals, False, self._asked),
            list(disjunct.whole),
            templates(effects, True, self._asked),
            templates(effects, False, self._asked),
        )

    def _extend(self, facts: Iterable[Fact], first: bool = False) -> None:
        """Mark facts as reached, and add all operators that become possible."""
        new = {fact for fact in facts if fact not in self._numbered}
        while new or first:
            self._reached = self._reached.changed(added=new)
            for fact in sorted(new):  # makes runs reproducible
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
        """Add an operator; returns the facts that it adds and that were not reached before."""
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
        self.adds.append((*self.changes[-1][0], *opposites))
        self.actions.append(GroundAction(rule.action.name, values[: len(rule.action.parameters)]))
        return {fact for fact in added if fact not in self._numbered}

    def _check_size(self) -> None:
        if len(self.needs) + len(self.axioms) > MAX_OPERATORS:
            raise PddlError(
                f"the task has more than {MAX_OPERATORS:,} ground actions, too many to look ahead to the goal",
                "use the level `state` and a model that doesn't search, or fewer objects",
            )

    # numbers

    def number(self, condition: Condition) -> int:
        """The number of a condition without free variables."""
        # Equalities between objects are decided now; other literals have the number of their fact.
        if isinstance(condition, Literal):
            if condition.predicate == "=":
                return TRUE if (condition.terms[0] == condition.terms[1]) == condition.positive else FALSE
            fact = (condition.predicate, *condition.terms)
            return self._positive(fact) if condition.positive else self._opposite(fact)
        number = self.numbers.get(condition)
        if number is None:
            # A quantified condition over finitely many objects is a conjunction (`every`) or a disjunction (`some`).
            if isinstance(condition, Quantified):
                conjunction, parts = condition.quantifier == "every", tuple(self._instances(condition))
            else:
                conjunction, parts = condition.operator == "and", condition.parts
            # Parts that are decided already leave the condition, or decide it.
            neutral, absorbing = (TRUE, FALSE) if conjunction else (FALSE, TRUE)
            numbers = set(map(self.number, parts)) - {neutral}
            if absorbing in numbers:
                numbers = {absorbing}
            # What remains needs a fact of its own only if it has several parts: one axiom for all of them (and), or one
            # for each (or).
            if len(numbers) < 2:
                number = self.numbers[condition] = next(iter(numbers), neutral)
            else:
                number = self._number(condition)
                self.derived.add(number)
                self.axioms += [(tuple(numbers), number)] if conjunction else [((part,), number) for part in numbers]
                self._check_size()
        return number

    def _instances(self, condition: Quantified) -> Iterator[Condition]:
        for values in product(*(self.task.of_type(v.type) for v in condition.variables)):
            yield renamed(condition.part, {v.name: value for v, value in zip(condition.variables, values)})

    def _number(self, name: object) -> int:
        number = self.numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number

    def _positive(self, fact: Fact) -> int:
        """The number of a fact; a static fact is decided now."""
        if fact[0] in self._static:
            return TRUE if fact in self.task.initial else FALSE
        return self._number(fact)

    def _opposite(self, fact: Fact) -> int:
        """The number of a fact's negation."""
        if fact[0] in self._static:
            return FALSE if fact in self.task.initial else TRUE
        is_new = (False, fact) not in self.numbers
        number = self._number((False, fact))
        if is_new:
            self.opposites.append((self._number(fact), number))
        return number

    # states

    @property
    def blocks(self) -> tuple[Block, Block]:
        """The operators and the axioms as arrays."""
        if self._blocks is None:
            axioms = [(needs, (fact,)) for needs, fact in self.axioms]
            self._blocks = (
                Block.of(self.needs, self.adds, len(self.names)),
                Block.of([needs for needs, _ in axioms], [adds for _, adds in axioms], len(self.names)),
            )
            self._pairs = np.array(self.opposites, dtype=np.intp).reshape(-1, 2)
        return self._blocks

    def true_in(self, state: FactSet, possible: Iterable[Fact] = ()) -> np.ndarray:
        """Which facts are true in a state, as a bool each; a fact that is `possible` and its negation both are."""
        possible = [fact for fact in possible if fact[0] in self._asked]
        new = [fact for fact in possible if fact not in self._numbered]
        parts: list[np.ndarray] = []
        # States share the tables of predicates that no action has changed, so most numbers are cached by table.
        for predicate, table in state.tables.items():
            if predicate in self._asked:
                cached = self._tables.get(predicate)
                if cached is None or cached[0] is not table:
                    numbers = [self._numbered.get(fact, -1) for fact in table.facts]
                    if -1 in numbers:
                        new += [fact for fact in table.facts if fact not in self._numbered]
                        continue
                    cached = self._tables[predicate] = table, np.array(numbers, dtype=np.intp)
                parts.append(cached[1])
        # A state may have facts that were never reached (then operators are added), or other facts of a predicate that
        # was taken for static (then all is built anew, with the predicate as one that changes).
        changed = {p for p in self._static if state.table(p) != self.task.initial.table(p)}
        changed |= self._static.intersection(fact[0] for fact in new)
        if new or changed:
            self._static -= changed
            if changed:
                self._build()
            else:
                self._extend(new)
            return self.true_in(state, possible)
        blocks = self.blocks
        assert blocks
        true = np.zeros(len(self.names), dtype=bool)
        for part in parts:
            true[part] = True
        # Negations first: a fact that is only possible leaves its negation true.
        true[self._pairs[:, 1]] = ~true[self._pairs[:, 0]]
        if possible:
            true[[self._numbered[fact] for fact in possible]] = True
        true[TRUE], true[FALSE] = True, False
        return true
