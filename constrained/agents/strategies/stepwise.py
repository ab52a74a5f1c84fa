"""Act, ReAct and KnowAgent: one step after the other, each with the last one's observation.

They differ in what one step looks like (`grammars/steps/`): the bare action; a thought before it
(ReAct); the path so far, a thought, the action (KnowAgent, section 3.2).
"""

from __future__ import annotations

from dataclasses import replace

from constrained.agents.episode import Episode
from constrained.agents.messages import Strategy


def stepwise(episode: Episode) -> Strategy:
    """Play the environment to its end or the limits."""
    episode.begin()
    while not episode.over:
        yield from episode.step()


def fireact(episode: Episode) -> Strategy:
    """Play the environment to its end or the limits."""
    if episode.loaded().is_embedded:
        episode.settings = replace(episode.settings, step_format="react")
    yield from stepwise(episode)
