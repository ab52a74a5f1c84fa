"""`GraphChooser` takes the action that the graph network scores highest; `SearchChooser` looks ahead before it acts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import numpy as np

from constrained.chooser.graphs import Encoder, FeatureVocabulary
from constrained.chooser.scorer import Scorer
from constrained.chooser.weights import EMBEDDED, load_scorer, read_weights
from constrained.decoding.choosers import Choice
from constrained.errors import ConstrainedError, ModelError, UnreachableError
from constrained.knowledge import Knowledge
from constrained.knowledge.ordered_task import OrderedTask
from constrained.knowledge.world_state import WorldState
from constrained.planning import Domain, FactSet, GroundAction, PlanningTask
from constrained.planning.engines import plan_with
from constrained.planning.model import ALWAYS, conjuncts
from constrained.planning.planner import DEFAULT, Searched, SearchLimits, search_plan
from constrained.planning.reachable import NO_ORDER, mended
from constrained.planning.relaxed import Relaxed
from constrained.planning.search import shortened

MAX_AHEAD, AHEAD = 200, 5
"""Most actions that `SearchChooser` simulates before it searches, for each part of a larger goal."""

REPEATED = 1.0
"""Subtracted from an action's score (a logit) each time that the action is done."""

_KEPT = 64
"""How many domains' networks, and tasks' encoders and plans, are kept."""


class GraphChooser:
    """Chooses the action with the highest score, from the facts that hold and the goal's facts alone.

    An action that leads back to a state where an action was done before is taken only if all do.

    Parameters
    ----------
    path : Path
        A file of weights; default: those that come with this package.
    scorer : Scorer, optional
        Used for its domain, instead of a file's.
    name : str
        For tables and records; default: "chooser", or the file's.

    Raises
    ------
    DataError
        The file that is named is missing, or holds something else.
    """

    def __init__(self, path: str | Path = EMBEDDED, *, scorer: Scorer | None = None, name: str = ""):
        self.path, self._given = Path(path), scorer
        self.name = name or ("chooser" if self.path == EMBEDDED else self.path.stem)
        if self.path != EMBEDDED:
            read_weights(self.path)
        if scorer is not None:
            values = [array.tobytes() for array in scorer.weights.values()]
        else:
            values = [self.path.read_bytes()] if self.path.is_file() else []
        self.digest = sha256(b"".join(values)).hexdigest()[:16] if values else ""
        self.scorer = lru_cache(_KEPT)(self._scorer)
        self._encoder = lru_cache(_KEPT)(self._make_encoder)

    def choose(self, choice: Choice) -> str:
        """The best action (with a temperature, a likely one), or the one that ends the plan.

        Raises
        ------
        ModelError
            No facts are known, or there are no weights for this domain.
        """
        facts = _facts(choice, self.name)
        if choice.stop is not None:
            return choice.stop
        if len(choice.actions) == 1:
            return choice.actions[0]
        # Without facts about an action its successor is unknown, so it can't be scored.
        texts = [text for text in choice.actions if facts.actions.get(text)]
        if self.scorer(facts.task.domain) is None:
            raise ModelError(
                f"{self.path.name} has no weights for a domain of this structure",
                "train some: `constrained train self-learning --pddl DOMAIN PROBLEM ...`; or use the model 'search'",
            )
        if not texts:
            return choice.random.choice(choice.actions)
        # Actions that lead somewhere new; repeating one of the others would loop.
        after = {text: facts.task.apply(facts.state, facts.actions[text][0]) for text in texts}
        new = [text for text in texts if after[text] != facts.state and after[text] not in choice.been] or texts
        scores = self.scores(facts.task, facts.state, [facts.actions[text][0] for text in new])
        if not choice.temperature:
            return new[int((scores - REPEATED * np.array([choice.path.count(text) for text in new])).argmax())]
        chances = np.exp((scores - scores.max()) / choice.temperature)
        return choice.random.choices(new, chances.tolist())[0]

    def scores(self, task: PlanningTask, state: FactSet, actions: Sequence[GroundAction]) -> np.ndarray:
        """The scores (logits) of some actions, float32, shape (actions,)."""
        scorer, encoder = self._encoder(task)
        return scorer(encoder.encode(state, actions))

    def _make_encoder(self, task: PlanningTask) -> tuple[Scorer, Encoder]:
        scorer = self.scorer(task.domain)
        assert scorer is not None
        return scorer, Encoder(scorer.vocabulary, task)

    def _scorer(self, domain: Domain) -> Scorer | None:
        """The network for a domain; None if there are no weights for it."""
        if self._given is None:
            return load_scorer(domain, self.path)
        vocabulary = FeatureVocabulary(domain)  # its own names: the domain may be the given one under others
        fits = vocabulary.signature.key == self._given.vocabulary.signature.key
        return Scorer(vocabulary, self._given.width, self._given.weights) if fits else None


@dataclass
class _SearchResults:
    """Results of the searches in a task: the action for each state, and the states from which no plan was found."""

    actions: dict[FactSet, GroundAction] = field(default_factory=dict)
    hopeless: dict[FactSet, ConstrainedError] = field(default_factory=dict)
    """State -> why there is no plan: a ModelError if none was found, UnreachableError if there is none."""


class SearchChooser:
    """Looks ahead in the task's simulator: follows the network until a state recurs, then searches.

    It works in any domain with facts: without weights it searches greedily (`constrained.planning.planner`). If the
    goal can't be reached by the known facts, it assumes that facts that may hold do, and plans again when one turns out
    not to. It is a planner, and tables show it as one.

    Parameters
    ----------
    path : Path
        A file of weights; default: those that come with this package.
    limits : SearchLimits
        What a search may cost.
    """

    name: str = "search"

    def __init__(self, path: str | Path = EMBEDDED, limits: SearchLimits = DEFAULT):
        self._chooser, self._limits = GraphChooser(path), limits
        self.digest = self._chooser.digest
        self._plan = lru_cache(_KEPT)(lambda task: _SearchResults())

    def choose(self, choice: Choice) -> str:
        """The next action of a plan that the order rules admit; any action if there is no goal.

        Raises
        ------
        ModelError
            No facts are known, or no plan is found.
        UnreachableError
            There is no plan.
        """
        facts = _facts(choice, self.name)
        if choice.stop is not None:
            return choice.stop
        ordered = OrderedTask.of(facts.task, choice.knowledge)
        task, held = ordered.task, self._plan(ordered.task)
        meant = {action: text for text in choice.actions for action in facts.actions.get(text, ())}
        # A first search tells whether there is a plan at all, even if nothing can be chosen yet.
        if task.goal is not None and (len(choice.actions) > 1 or not held.actions):
            reasons: list[ConstrainedError | None] = []
            for supposed in _supposed(facts):
                state = ordered.state(supposed, choice.knowledge)
                # Plan only where no earlier plan says what to do.
                if held.actions.get(state) not in meant and state not in held.hopeless:
                    self._look_ahead(held, task, state)
                if (action := held.actions.get(state)) in meant:
                    return meant[action]
                reasons.append(held.hopeless.get(state))
            if all(reasons):  # that a search gave up comes first: then a plan may exist
                raise _with_unfilled(min(filter(None, reasons), key=lambda reason: reason.exit_code), choice.knowledge)
        return choice.random.choice(choice.actions)

    def _look_ahead(self, held: _SearchResults, task: PlanningTask, state: FactSet) -> None:
        """Hold a plan from a state: the network's path, as it is cheaper, or else the one that a search finds."""
        plan = self._ahead(task, state)
        if plan is None:
            searched = self._searched(task, state)
            if searched.plan is None:
                held.hopeless[state] = _no_plan(task, state, searched)
                return
            plan = searched.plan
        held.actions |= task.states(state, plan)

    def _searched(self, task: PlanningTask, state: FactSet) -> Searched:
        return search_plan(task, state, self._limits)

    def _ahead(self, task: PlanningTask, start: FactSet) -> list[GroundAction] | None:
        """Follow the network without entering a state twice; return what of it is needed, or None without the goal."""
        if self._chooser.scorer(task.domain) is None:
            return None
        way, state = dict[FactSet, GroundAction](), start
        most = max(MAX_AHEAD, AHEAD * len(conjuncts(task.goal or ALWAYS)))
        while not task.reached_goal(state):
            after = {action: task.apply(state, action) for action in task.applicable(state)}
            actions = [action for action, there in after.items() if there not in way and there != state]
            if not actions or len(way) >= most:
                return None
            way[state] = actions[int(self._chooser.scores(task, state, actions).argmax())]
            state = after[way[state]]
        return shortened(task, start, list(way.values()))


class PlannerChooser(SearchChooser):
    """Has a planner of the package unified-planning plan, and does what the plan says.

    Parameters
    ----------
    name : str
        The planner's name there, such as "pyperplan".
    limits : SearchLimits
    """

    def __init__(self, name: str, limits: SearchLimits = DEFAULT):
        super().__init__(limits=limits)
        self.name, self.digest = name, ""

    def _searched(self, task: PlanningTask, state: FactSet) -> Searched:
        return plan_with(self.name, task, state, self._limits)

    def _ahead(self, task: PlanningTask, state: FactSet) -> None:
        """Nothing: the planner is asked, not the network."""


def _no_plan(task: PlanningTask, state: FactSet, searched: Searched) -> ConstrainedError:
    """The error that a search found no plan: that there is none, or that it gave up."""
    if not searched.proven:
        return ModelError(
            f"the search gave up: no plan was found {searched.limit}",
            "make the problem smaller, or give a model that doesn't search",
        )
    here = "" if state == task.initial else " from here"
    place = task.problem.goal_place if not here else {}
    return UnreachableError(f"the goal can't be reached{here}: {NO_ORDER}", mended(NO_ORDER), **place)


def _with_unfilled(error: ConstrainedError, knowledge: Knowledge | None) -> ConstrainedError:
    """An error that a goal can't be reached, with the answers that are never given, and so told nothing, if any."""
    world = None if knowledge is None else knowledge.own_world
    told = () if world is None else world.tells
    never = [f"{{{hole}}} of the answer in line {tells.span.line}" for tells in told for hole in tells.unfilled]
    if not never or not isinstance(error, UnreachableError):
        return error
    which = ", or ".join(never)
    message = f"{error.problem}; and nothing says what stands for {which}, so that answer is never given"
    place = {name: getattr(error, name) for name in ("line", "column", "context", "source")}
    return UnreachableError(
        message, f"name a parameter of the action there, or a variable of what is told; else {error.hint}", **place
    )


def _supposed(facts: WorldState) -> Iterator[FactSet]:
    """The states to plan in: what is known, unless the goal is out of reach by it; then with facts that may hold."""
    if not facts.optimistic:
        yield facts.state
        return
    relaxed = Relaxed.of(facts.task)
    if not relaxed.dead_end(facts.state):
        yield facts.state
    yield facts.hopeful
    # Facts that may hold can stand in the way, too: then only those that a relaxed plan needs are supposed.
    if plan := relaxed.plan(facts.state, facts.optimistic):
        yield facts.state.changed(added=plan.needed & frozenset(facts.optimistic))


def _facts(choice: Choice, name: str) -> WorldState:
    if choice.facts is None:
        raise ModelError(
            f"the model {name!r} chooses by facts, and none are known here", "give a language model, or 'random'"
        )
    return choice.facts
