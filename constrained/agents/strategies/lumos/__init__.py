"""Lumos: a planner writes subgoals, a grounder turns them into actions, the environment carries them out (section 2).

Planner and grounder may be two models, two adapters of one base, or one model. In an environment without a memory both
read conversations in the form that Lumos's models were trained on.
"""

from __future__ import annotations

from collections.abc import Sequence

from constrained.agents.episode import Episode
from constrained.agents.messages import Strategy
from constrained.agents.strategies.lumos import grounder, planner
from constrained.agents.strategies.lumos.conversation import Shot, WithShots
from constrained.agents.strategies.lumos.grounder import Grounder
from constrained.agents.strategies.lumos.planner import Planner, reads_memory
from constrained.agents.strategies.open_loop import plan_ahead

SHOTS = 2
"""Worked examples of an action space that models weren't trained on (section 4.4)."""


def lumos(episode: Episode) -> Strategy:
    """Lumos-I (section 2.3): plan a subgoal, do its actions, then plan the next one with their result."""
    task = episode.begin()
    shots = worked_out(episode)
    planning, grounding = Planner(episode, task, shots), Grounder(episode, task, shots)
    result = ""
    while not episode.over:
        subgoal = yield from planning.next(result)
        if subgoal is None:
            break
        result = yield from grounding.carry_out(subgoal)


def lumos_onetime(episode: Episode) -> Strategy:
    """Lumos-O (section 2.2): plan all subgoals, then do all actions.

    If the embedded model reads a memory, it plans ahead as it was trained to: a thought for each subgoal, and the
    action that grounds it.
    """
    task = episode.begin()
    if reads_memory(episode, planner.ROLE) and reads_memory(episode, grounder.ROLE):
        yield from plan_ahead(episode)
        return
    subgoals = yield from Planner(episode, task).all()
    if subgoals is not None:
        yield from Grounder(episode, task).carry_out(subgoals, most=episode.settings.max_steps)


def worked_out(episode: Episode) -> Sequence[Shot]:
    """The worked examples that the environment offers: two as in the paper, or as many as the settings say."""
    environment, most = episode.surroundings.environment, episode.settings.demonstrations
    return environment.shots(SHOTS if most is None else most) if isinstance(environment, WithShots) else ()
