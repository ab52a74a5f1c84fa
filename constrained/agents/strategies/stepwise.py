"""Act, ReAct, KnowAgent and FireAct: one step at a time, each written after the observation of the last.

They differ in the format of a step (`grammars/steps/`): the bare action; a thought before it (ReAct; Yao et al., 2022);
the path so far, a thought, the action (KnowAgent, section 3.2).
"""

from __future__ import annotations

from dataclasses import replace

from constrained.agents.episode import Episode
from constrained.agents.messages import Strategy
from constrained.agents.step_writer import play_step


def stepwise(episode: Episode) -> Strategy:
    """Play until the environment is done or a limit is reached."""
    episode.begin()
    while not episode.over:
        yield from play_step(episode)


def fireact(episode: Episode) -> Strategy:
    """FireAct: ReAct by a model that was tuned on ReAct trajectories and needs no examples (Chen et al., 2023).

    The prompt is the task in Alpaca's form, and a step is written as in FireAct's data, without numbers. The embedded
    model was tuned on trajectories in ReAct's format instead: with it, FireAct is ReAct.
    """
    if episode.writer.model().is_embedded:
        episode.settings = replace(episode.settings, step_format="react")
    yield from stepwise(episode)
