"""Generated demonstrations: a search solves a renamed copy (twin) of a problem, whose world writes the answers.

The twin has the problem's facts with other names for the objects, and a goal of the same form about others of them. So
it shows how such a goal is reached without naming anything that the task is about.
"""

from __future__ import annotations

import itertools
import logging
import random
import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping

from constrained.environments.facts import FactsEnvironment
from constrained.errors import ConstrainedError
from constrained.knowledge.demonstration import Demonstrated, Demonstration
from constrained.knowledge.world_state import WorldState
from constrained.planning import Fact, GroundAction, PlanningTask
from constrained.planning.model import Condition, Problem, conjuncts, free_variables, literals_in, renamed
from constrained.planning.relaxed import Relaxed
from constrained.planning.search import find_plan
from constrained.planning.wording import condition_words

log = logging.getLogger(__name__)

MAX_ACTIONS = 20
"""Steps of a demonstration, at most: a longer one fills the prompt."""

MAX_SEARCHED = 2_000
"""States that the search for one demonstration visits, at most."""

DIGITS_TRIED = 50
"""Other digits that are tried for a name."""

WORDS = (
    "alder", "aspen", "birch", "cedar", "clover", "elder", "fern", "hazel", "heather", "holly", "iris", "ivy",
    "juniper", "laurel", "lilac", "linden", "maple", "myrtle", "olive", "poppy", "rowan", "sage", "violet", "willow",
)  # fmt: skip
"""Names for objects whose own names have no digits: they can be persons or things."""

FAILURES = 3
"""After so many twins without a demonstration no more are tried: each may cost a search."""


def twin_demonstrations(environment: FactsEnvironment, count: int) -> list[Demonstration]:
    """Up to `count` demonstrations for an environment's problem, with different goals.

    Fewer if the problem has no goal, or a search finds no short plan for a twin.
    """
    task, examples, failures = environment.facts.task, list[Demonstration](), 0
    for number in itertools.count():
        if task.goal is None or len(examples) == count or failures == FAILURES:
            break
        demonstration = None
        try:
            twin = _Twin(task, number)
            sentence = twin.sentence(environment.task)
            demonstration = _played(environment.twin(twin.problem, sentence), sentence)
        except ConstrainedError as error:
            log.info("the goal of twin %d can't be reached: %s", number, error.message)
        failures = 0 if demonstration else failures + 1
        examples += [demonstration] if demonstration else []
    return examples


class _Twin:
    """A renamed problem.

    Parameters
    ----------
    task : PlanningTask
    number : int
        Another number makes another twin.
    """

    def __init__(self, task: PlanningTask, number: int):
        self.task, rng = task, random.Random(f"twin {number}")
        fixed = _named_by_actions(task)
        own = {name.lower(): name for name in task.problem.objects if name.lower() not in fixed}
        self.names = dict(zip(own, _fresh_names(own, task, rng)))
        # The goal is about other objects: those of each type are dealt anew.
        self.meant: dict[str, str] = {}
        for kind in dict.fromkeys(task.objects[name] for name in own):
            alike = [name for name in own if task.objects[name] == kind]
            self.meant.update(zip(alike, rng.sample(alike, len(alike))))
        assert task.goal is not None
        goal = renamed(task.goal, {name: self.names[other].lower() for name, other in self.meant.items()})
        problem = task.problem
        self.problem = Problem(
            {self.names.get(name.lower(), name): kind for name, kind in problem.objects.items()},
            tuple((fact[0], *(self.names.get(term.lower(), term) for term in fact[1:])) for fact in problem.init),
            goal,
            f"{problem.name}-twin",
        )

    def sentence(self, text: str) -> str:
        """A task's sentence about the twin's objects."""
        spelled = {self.task.spell(name).lower(): self.names[other] for name, other in self.meant.items()}
        longest_first = sorted(spelled, key=len, reverse=True)
        pattern = r"(?<!\w)(?:" + "|".join(map(re.escape, longest_first)) + r")(?!\w)"
        return re.sub(pattern, lambda found: spelled[found[0].lower()], text, flags=re.IGNORECASE) if spelled else text


def _named_by_actions(task: PlanningTask) -> set[str]:
    """Objects that the actions' conditions and effects name: they keep their names."""
    actions = task.domain.actions
    literals = [literal for action in actions for part in action.conditions for literal in literals_in(part)]
    literals += [effect.literal for action in actions for effect in action.effects]
    return {term for literal in literals for term in literal.terms if not term.startswith("?")}


def _fresh_names(own: Mapping[str, str], task: PlanningTask, rng: random.Random) -> Iterator[str]:
    """A new name for each object, alike in form: with other digits, or else other words.

    Words of the object's type stay, and those that several objects of the type share: "red bike" becomes "hazel bike".
    """
    taken = set(task.objects)
    shared = Counter((task.objects[name], word) for name in own for word in set(name.split()))
    pool = itertools.chain(rng.sample(WORDS, len(WORDS)), (f"thing {number}" for number in itertools.count(1)))
    for name, spelled in own.items():
        kind = task.objects[name]
        digits = (re.sub(r"\d", lambda _: str(rng.randint(1, 9)), spelled) for _ in range(DIGITS_TRIED))
        new = next((one for one in digits if one.lower() not in taken), None)
        while new is None or new.lower() in taken:
            kept = [word for word in spelled.split() if word.lower() == kind or shared[kind, word.lower()] > 1]
            new = " ".join([next(pool), *kept])
        taken.add(new.lower())
        yield new


def _played(environment: FactsEnvironment, sentence: str) -> Demonstration | None:
    """Play an environment to its goal by a search over what the player knows; None if it isn't reached soon."""
    environment.task = sentence
    environment.reset()
    plan: list[GroundAction] = []
    steps: list[Demonstrated] = []
    for _ in range(MAX_ACTIONS + 1):
        if environment.done:
            return Demonstration(environment.task, tuple(steps)) if steps else None
        facts = environment.facts_now()
        if not plan or plan[0] not in facts.task.applicable(facts.hopeful):
            plan = _plan(facts)
        if not plan:
            return None
        text = facts.write(plan[0])
        thought = _purpose(facts, plan)
        answer, _, _ = environment.step(text)
        if environment.had_effect:
            steps.append(Demonstrated(text, answer, thought))
        # A supposed fact may have turned out false: then make a new plan.
        plan = plan[1:] if environment.had_effect and not facts.optimistic else []
    return None


def _plan(facts: WorldState) -> list[GroundAction]:
    """A plan by the known facts; if there is none, by the facts that may hold."""
    state = facts.state
    if facts.optimistic and Relaxed.of(facts.task).dead_end(state):
        state = facts.hopeful
    plan, found = find_plan(facts.task, state, MAX_SEARCHED)
    return plan if found else []


def _purpose(facts: WorldState, plan: list[GroundAction]) -> str:
    """Why the first action of a plan is done: what it makes true that a later action or the goal needs."""
    task, state = facts.task, facts.hopeful
    new = task.apply(state, plan[0]).difference(state)
    for action in plan[1:]:
        schema = task.schemas[action.action].action
        needed = renamed(schema.precondition, task.values(action))
        if part := next((p for p in conjuncts(needed) if _about(p, new)), None):
            return f"{condition_words(part, task)} is needed to {facts.write(action)}."
    part = next((p for p in conjuncts(task.goal or needed) if _about(p, new)), None)
    return f"The task asks for this: {condition_words(part, task)}." if part else "This leads on to the goal."


def _about(condition: Condition, facts: Container[Fact]) -> bool:
    """Whether a condition without variables has one of some facts in it."""
    return not free_variables(condition) and any(
        literal.positive and (literal.predicate, *literal.terms) in facts for literal in literals_in(condition)
    )
