"""Lumos: a planner writes subgoals, a grounder turns them into actions, the environment carries them out (section 2).

Planner and grounder may be models of their own, adapters of one base, or one model. In an environment without a
memory both read the conversations that Lumos's models were trained on.
"""

from __future__ import annotations

from constrained.agents.episode import Episode
from constrained.agents.messages import Strategy
from constrained.agents.strategies.lumos.grounder import ROLE as GROUNDER
from constrained.agents.strategies.lumos.grounder import Grounding
from constrained.agents.strategies.lumos.planner import ROLE as PLANNER
from constrained.agents.strategies.lumos.planner import Planning, reads_memory
from constrained.agents.strategies.open_loop import plan_ahead


def lumos(episode: Episode) -> Strategy:
    """Lumos-I (section 2.3): a subgoal, its actions, their result; then the next subgoal."""
    task = episode.begin()
    planner, grounder = Planning(episode, task), Grounding(episode, task)
    result = ""
    while not episode.over:
        subgoal = yield from planner.next(result)
        if subgoal is None:
            break
        result = yield from grounder.carry_out(subgoal)


def lumos_onetime(episode: Episode) -> Strategy:
    """Lumos-O (section 2.2): all subgoals, then all actions.

    Where the embedded model reads a memory, it plans ahead in the form that it learned, a thought for each subgoal with
    the action that grounds it.
    """
    task = episode.begin()
    if all(reads_memory(episode, role) for role in (PLANNER, GROUNDER)):
        yield from plan_ahead(episode)
        return
    subgoals = yield from Planning(episode, task).all()
    if subgoals is not None:
        yield from Grounding(episode, task).carry_out(subgoals, most=episode.settings.max_steps)
