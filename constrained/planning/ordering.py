"""Which of a relaxed plan's first actions can come first in a real plan, judged by what actions undo.

A relaxed plan ignores that walking to the shelf undoes having walked to the table, so both look helpful now. This
heuristic orders its actions by what they undo for each other (the threats and causal links of partial-order planning;
Weld, "An introduction to least commitment planning", 1994).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from constrained.planning.facts import Fact, FactSet
from constrained.planning.model import Literal, Quantified, conjuncts, literals_in, renamed
from constrained.planning.task import GroundAction, PlanningTask

Term = tuple[bool, Fact]
"""(whether it holds, fact)."""


def in_order(
    task: PlanningTask,
    state: FactSet,
    first: Collection[GroundAction],
    plan: Collection[GroundAction],
    alternatives: Collection[GroundAction],
) -> frozenset[GroundAction]:
    """The first actions of a relaxed plan that may come first in a real plan; all, if there would be none.

    Parameters
    ----------
    task : PlanningTask
    state : FactSet
        The facts that hold or are assumed to hold.
    first : collection of GroundAction
        The first actions of the relaxed plan.
    plan, alternatives : collection of GroundAction
        The relaxed plan, and the actions of all equally cheap relaxed plans.
    """
    order = _Order(task, state, plan, alternatives)
    return frozenset(action for action in first if order.may_begin(action)) or frozenset(first)


class _Order:
    def __init__(
        self, task: PlanningTask, state: FactSet, plan: Collection[GroundAction], alternatives: Collection[GroundAction]
    ):
        self.task, self.state = task, state
        self.actions = sorted({*plan, *alternatives})
        changes = {action: task.changes(state, action) for action in self.actions}
        # What an action undoes depends on what is true by then: assume all that any of these actions makes true.
        after = state.changed(added=[fact for _, added in changes.values() for fact in added])
        changes = {action: task.changes(after, action) for action in self.actions}
        # What each action makes true, undoes, and needs.
        self.makes: dict[GroundAction, frozenset[Term]] = {}
        self.undoes: dict[GroundAction, frozenset[Term]] = {}
        for action, (deleted, added) in changes.items():
            gone = deleted - added
            self.makes[action] = frozenset([(True, fact) for fact in added] + [(False, fact) for fact in gone])
            self.undoes[action] = frozenset([(False, fact) for fact in added] + [(True, fact) for fact in gone])
        self.needs = {action: frozenset(self._needs(action)) for action in self.actions}
        self.makers: dict[Term, list[GroundAction]] = {}
        for action in self.actions:
            for term in self.makes[action]:
                self.makers.setdefault(term, []).append(action)
        # Terms of the goal that the plan makes true count, unless they are only steps on the way.
        needed = frozenset(term for action in plan for term in self.needs[action])
        asked = {literal.predicate for literal in literals_in(task.goal)} if task.goal is not None else set()
        self.goals = frozenset(
            term for action in plan for term in self.makes[action] if term[1][0] in asked and term not in needed
        )
        # What must still be made true, for the plan and, transitively, for each action.
        self.required = sorted(term for term in needed | self.goals if not self._true(term) and term in self.makers)
        self.open = {
            action: frozenset(term for term in needs if not self._true(term)) for action, needs in self.needs.items()
        }
        self.open_before = {action: self._open_before(action) for action in self.actions}
        self.before = {action: self._must_precede(action) for action in self.actions}

    def _true(self, term: Term) -> bool:
        return (term[1] in self.state) == term[0]

    def _needs(self, action: GroundAction) -> Iterator[Term]:
        precondition = self.task.schemas[action.action].action.precondition
        for part in conjuncts(renamed(precondition, self.task.values(action))):
            if isinstance(part, Literal) and part.predicate != "=":
                yield part.positive, (part.predicate, *part.terms)
            elif isinstance(part, Quantified) and isinstance(part.part, Literal) and not part.part.positive:
                for fact in self.state.of(part.part.predicate):  # "there is none": those that hold must be undone
                    if all(t.startswith("?") or t == value for t, value in zip(part.part.terms, fact[1:])):
                        yield False, fact

    def may_begin(self, action: GroundAction) -> bool:
        """Whether nothing must precede an action, and it makes something true that is needed before it is undone."""
        if self.before[action]:
            return False
        for term in self.makes[action]:
            if self._true(term):
                continue
            if term in self.goals:
                return True
            users = [user for user in self.actions if term in self.needs[user] and user != action]
            if not self._losing(term, action).issuperset(users):
                return True
        return False

    def _must_precede(self, action: GroundAction) -> list[Term]:
        """The terms that must be made true before an action, because it undoes something that all their makers need."""
        undone = {term for term in self.undoes[action] if self._true(term) or term in self.needs[action]}
        return [
            term
            for term in self.required
            if term not in self.makes[action]
            and all(
                maker.action != action.action and not undone.isdisjoint(self.needs[maker] - self.makes[maker])
                for maker in self.makers[term]
            )
            and all(self.makes[action].isdisjoint(self.open_before[maker]) for maker in self.makers[term])
        ]

    def _open_before(self, action: GroundAction) -> set[Term]:
        """The terms that must still be made true for an action, for the makers of these terms, and so on."""
        terms: set[Term] = set()
        work = [action]
        for maker in work:
            for term in self.open[maker] - terms:
                terms.add(term)
                work += self.makers.get(term, ())
        return terms

    def _losing(self, term: Term, first: GroundAction) -> set[GroundAction]:
        """The actions that need something done before them that undoes a term, once the first action is done."""
        undoing = {action for action in self.actions if term in self.undoes[action]}
        losing: set[GroundAction] = set()
        changed = True
        while changed:
            changed = False
            for action in self.actions:
                if action != first and action not in losing and self._lost(action, term, losing | undoing):
                    losing.add(action)
                    changed = True
        return losing

    def _lost(self, action: GroundAction, term: Term, losing: Collection[GroundAction]) -> bool:
        """Whether only `losing` actions make something true that an action needs before it."""
        before = [*(self.open[action] - {term}), *self.before[action]]
        return any(need in self.makers and all(maker in losing for maker in self.makers[need]) for need in before)
