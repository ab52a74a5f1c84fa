"""A whole path that the knowledge admits, each action planned as if those before it had been done.

It is executed afterwards, without looking (`plan_ahead`), or not at all (`open_loop`).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from constrained.agents.episode import Episode
from constrained.agents.messages import Strategy
from constrained.automaton import Grammar
from constrained.environments.base import Environment
from constrained.errors import ConstrainedError, KnowledgeError
from constrained.knowledge import ActionKnowledge
from constrained.knowledge.answering import answer_only
from constrained.knowledge.report import INVALID

STOPS = ("stop", "stop planning", "the plan is whole")
"""The extra action by which a model ends a plan that may end: the first of these that is no action itself."""

_HOW = "Nothing is observed before the whole plan is written; once it is whole, write `{stop}` as the action."


def open_loop(episode: Episode, imagined: Environment | None = None) -> Strategy:
    """Write a path, step by step, that ends whole within the limits.

    Parameters
    ----------
    episode : Episode
        Without an environment.
    imagined : Environment, optional
        Serves only to bind the slots, as if each action had been done there.

    Raises
    ------
    ConstrainedError
        No whole path fits in the limits.
    """
    plan, settings = episode.plan, episode.settings
    plan.open_loop = True
    if imagined is not None:
        opening = imagined.reset().split("Your task is to:")[0]
        episode.memory = imagined.memory(f"{opening}Your task is to: {plan.task}")
        episode.knowledge = episode.knowledge.bind_view(imagined.view())
    stops = _stops(episode.knowledge)
    while len(plan.steps) < settings.max_steps:
        steps_left = _steps_left(episode)
        try:
            action = episode.knowledge.next_action(steps_left if settings.constrained else None)
        except KnowledgeError:
            raise _too_tight(episode) from None
        may_stop = episode.knowledge.may_end and plan.steps
        stop = next((word for word in stops if not action.matches(word)), None) if may_stop else None
        if stop is not None:
            action = _either().bind(A=action, STOP=stop)
        left = episode.left()
        if left is not None and not episode.fits(action, left):
            break
        if left is not None and settings.constrained:
            left -= _reserve(episode, steps_left)
        step = yield from episode.write(action, left)
        if step.action == stop:
            break
        if step.verdict == "ok":
            episode.knowledge = episode.knowledge.after(step.action)
        reached = False
        if imagined is not None:
            answer, _, reached = imagined.step(step.action)
            episode.memory.update(step.action, answer)
            episode.knowledge = episode.knowledge.bind_view(imagined.view())
        episode.add(step)
        if reached or not any(q.first() for q in episode.knowledge.grammar.automaton.start.positions):
            break  # the goal is reached as far as one can imagine, or nothing may follow
    if settings.constrained and not episode.knowledge.may_end:
        raise _too_tight(episode)


def plan_ahead(episode: Episode) -> Strategy:
    """Write a whole path before anything is seen but the first observation, then do it without looking.

    Slots are bound to the world as that observation lets one imagine it, where the environment says how
    (``imagined(first_observation)``), else to what is in view at first; the verdicts are by that. An action
    whose objects turn out to be elsewhere does nothing.
    """
    first = episode.begin()
    imagine = getattr(episode.environment, "prior", None)
    how = _HOW.format(stop=_stops(episode.knowledge)[0])
    plan = replace(episode.plan, steps=[])  # its answers are the same list: tokens are counted together
    draft = Episode(episode.models, episode.knowledge, plan, episode.settings, memory=episode.memory, hints=how)
    yield from open_loop(draft, imagine(first) if imagine else None)
    for step in plan.steps:
        if episode.over:
            break
        episode.do(step, as_planned=True)


def _too_tight(episode: Episode) -> ConstrainedError:
    settings = episode.settings
    tokens = f" and {settings.max_new_tokens} tokens" if settings.max_new_tokens else ""
    return ConstrainedError(
        f"no whole plan fits in {settings.max_steps} steps{tokens}", "raise max_steps or max_new_tokens"
    )


def _steps_left(episode: Episode) -> int:
    """Steps in which the path must end: those left, fewer if the tokens won't last."""
    steps = episode.settings.max_steps - len(episode.plan.steps)
    left = episode.left()
    return steps if left is None else max(1, min(steps, left // _step_cost(episode)))


def _step_cost(episode: Episode) -> int:
    """A bound on the tokens of a shortest step, from the steps it could be."""
    try:
        action = episode.knowledge.next_action()
    except KnowledgeError:
        return 1
    compiled = episode.step_grammar(action)
    return (compiled.budget.fewest(compiled.matcher(episode.head()).state) or 1) + 8


def _reserve(episode: Episode, steps_left: int) -> int:
    """Tokens kept back so that the path can still be ended after this step."""
    longest = max(episode.knowledge.graph.distance.values(), default=1)
    return _step_cost(episode) * max(0, min(steps_left, longest) - 1)


def _stops(knowledge: ActionKnowledge) -> list[str]:
    """The words of `STOPS` that are no action of the knowledge; all of them where any text is one."""
    return [word for word in STOPS if knowledge.judge(word).verdict == INVALID] or list(STOPS)


@cache
def _either() -> Grammar:
    return Grammar.from_lark("%declare A STOP\nstart: A | STOP\n")


def cot(episode: Episode, imagined: Environment | None = None) -> Strategy:
    """Answer, or plan ahead; without an environment nothing is executed (`imagined` as in `open_loop`)."""
    answer = answer_only(episode.start)
    if answer is None:
        episode.settings = replace(episode.settings, step_format="react")
        yield from plan_ahead(episode) if episode.environment else open_loop(episode, imagined)
        return
    episode.start = episode.knowledge = answer
    if episode.environment is None:
        yield from open_loop(episode)
    else:
        episode.begin()
        yield from episode.step()
