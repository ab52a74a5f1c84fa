"""Why a goal can't be reached: the fact that nothing makes true, and what it is needed for.

The answer comes from the delete relaxation (`relaxed`), or from a search of all states, so it is sound: such a goal is
really out of reach. A goal that passes may still be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product
from math import prod

from constrained.errors import PddlError, UnreachableError
from constrained.planning import model
from constrained.planning.model import (
    Action,
    Condition,
    Effect,
    Junction,
    Literal,
    Parameter,
    Quantified,
    conjuncts,
    negated,
    renamed,
)
from constrained.planning.relaxed import Relaxed
from constrained.planning.search import find_plan
from constrained.planning.task import PlanningTask
from constrained.planning.wording import condition_words

NO_ORDER = "in whatever order the actions are done, none leads to it"
"""The reason if a search has tried all."""
SEARCHED = 500
"""States that a search for a way to a world's goal visits before it is played: a fraction of a second."""
SEARCH_WORK = 500_000
"""Such a search visits so many states times ground actions at most: about a second. Larger tasks get fewer states."""
MAX_CHOICES = 20_000
"""Choices of objects of a goal that is checked."""
MAX_TRIED = 2_000
"""Choices of objects that are tried for an action, or for a quantified condition."""
MAX_CHAIN = 20
"""Actions that an explanation names, at most."""


def unreachable(task: PlanningTask, searched: int = 0) -> str:
    """Why the goal can't be reached; "" if it may be reached.

    It can't if it isn't even reached where nothing that is true becomes false again, or if a search of at most
    `searched` states (`SEARCH_WORK`) tries all that can be reached. A task with too many ground actions, or with a goal
    about too many choices of objects, is not checked.
    """
    if task.goal is None or _choices(task, task.goal) > MAX_CHOICES:
        return ""
    try:
        relaxed = Relaxed.of(task)
        if not relaxed.dead_end(task.initial):
            searched = min(searched, SEARCH_WORK // max(1, len(relaxed.grounding.needs)))
            # So few states are hardly ever all that can be reached: the search would only cost time.
            none = searched > SEARCHED // 20 and find_plan(task, task.initial, searched)[1] is False
            return NO_ORDER if none else ""
    except PddlError:
        return ""
    parts = conjuncts(task.goal)
    alone = (PlanningTask(task.domain, replace(task.problem, condition=part)) for part in parts)
    never = [part for part, single in zip(parts, alone) if Relaxed(single).dead_end(single.initial)]
    because = _Because(task)
    return "; and ".join(dict.fromkeys(because.never(part) for part in never or parts))


def _choices(task: PlanningTask, condition: Condition) -> int:
    """How many choices of objects a condition quantifies over."""
    match condition:
        case Junction(_, parts):
            return sum(_choices(task, part) for part in parts)
        case Quantified(_, variables, part):
            return prod(len(task.of_type(v.type)) for v in variables) * _choices(task, part)
        case _:
            return 1


def require_reachable(task: PlanningTask, searched: int = 0) -> None:
    """Raise UnreachableError, with the goal's place and the reason, if `unreachable` says that it can't be reached."""
    if reason := unreachable(task, searched):
        raise UnreachableError(f"the goal can't be reached: {reason}", mended(reason), **task.problem.goal_place)


def mended(reason: str) -> str:
    """What to do about a goal that is `unreachable` for a reason."""
    if reason == NO_ORDER:
        return "let other actions follow those that end a path or spoil what it needs, or ask for another goal"
    return "add the fact to those at the start, let an action make it true, or ask for another goal"


class _Because:
    """Finds the reason why a condition never holds.

    Parameters
    ----------
    task : PlanningTask
        Its goal is out of reach in the relaxation.
    """

    def __init__(self, task: PlanningTask):
        self.task = task
        self._reached = Relaxed.of(task).reached(task.initial)

    def never(self, part: Condition) -> str:
        """The reason in words: the fact that nothing makes true, then what needs it, up to `part`."""
        chain: dict[Condition, str] = {}  # fact -> the action that would make it true
        already = ""
        while (supporter := self._supporter(part := self._innermost(part))) and len(chain) < MAX_CHAIN:
            if part in chain:  # its own supporters need it: the reason begins where it was needed first
                chain, already = dict(islice(chain.items(), list(chain).index(part))), " that doesn't need it first"
                break
            chain[part], part = self.task.spell(supporter[0].name), supporter[1]
        if part == model.NEVER:
            return "an empty (or) never holds"
        is_false = isinstance(part, Literal) and not part.positive
        words = condition_words(negated(part) if is_false else part, self.task)
        first = f"nothing makes {words} {'false' if is_false else 'true'}{already}"
        needs = (f"{action} needs for {condition_words(made, self.task)}" for made, action in reversed(chain.items()))
        return ", which ".join([first, *needs])

    def _supporter(self, wanted: Condition) -> tuple[Action, Condition] | None:
        """An action that would make a fact true (or false), and the first of its conditions that never holds.

        Of several, one with the fewest such conditions; None if there is no such action.
        """
        if not isinstance(wanted, Literal):
            return None
        best: tuple[int, Action, Condition] | None = None
        for action in self.task.domain.actions:
            for effect in action.effects:
                for values in self._ways(action, effect, wanted):
                    parts = [*conjuncts(action.precondition), *conjuncts(effect.condition)]
                    unmet = [part for part in (renamed(part, values) for part in parts) if not self._holds(part)]
                    if unmet and (best is None or len(unmet) < best[0]):
                        best = len(unmet), action, unmet[0]
        return None if best is None else best[1:]

    def _ways(self, action: Action, effect: Effect, wanted: Literal) -> Iterator[Mapping[str, str]]:
        """The values of an action's variables with which an effect makes a literal true."""
        made = effect.literal
        if (made.predicate, made.positive, len(made.terms)) != (wanted.predicate, wanted.positive, len(wanted.terms)):
            return
        given = {term: value for term, value in zip(made.terms, wanted.terms) if term.startswith("?")}
        if renamed(made, given) == wanted:
            yield from self._values((*action.parameters, *effect.variables), given)

    def _values(
        self, variables: Sequence[Parameter], given: Mapping[str, str] | None = None
    ) -> Iterator[dict[str, str]]:
        """The first choices of objects for variables, some of which may be given."""
        given, of_type = given or {}, self.task.of_type
        choices = [[name for name in of_type(v.type) if given.get(v.name, name) == name] for v in variables]
        for chosen in islice(product(*choices), MAX_TRIED):
            yield dict(zip((v.name for v in variables), chosen))

    def _innermost(self, condition: Condition) -> Condition:
        """The first part of a condition that never holds by itself: a fact, or a condition that can't be taken apart.

        Of the instances of a quantified condition, the one with the fewest such parts is looked at.
        """
        match condition:
            case Junction("and", parts):
                inner = next((part for part in parts if not self._holds(part)), None)
            case Quantified(_, variables, part):
                instances = (renamed(part, values) for values in self._values(variables))
                unmet = ([part for part in conjuncts(one) if not self._holds(part)] for one in instances)
                inner = min(filter(None, unmet), key=len, default=[None])[0]
            case _:
                inner = None
        return condition if inner is None else self._innermost(inner)

    def _holds(self, condition: Condition) -> bool:
        """Whether a condition without free variables holds at some time, if nothing is undone."""
        match condition:
            case Literal("=", (left, right), positive):
                return (left == right) == positive
            case Literal(predicate, terms, positive):
                fact = (predicate, *terms)
                if positive:
                    return fact in self._reached or fact in self.task.initial
                return (False, fact) in self._reached or fact not in self.task.initial
            case Junction(operator, parts):
                return (all if operator == "and" else any)(map(self._holds, parts))
            case Quantified(quantifier, variables, part):
                instances = (self._holds(renamed(part, values)) for values in self._values(variables))
                return (all if quantifier == "every" else any)(instances)
