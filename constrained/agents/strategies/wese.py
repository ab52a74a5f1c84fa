"""WESE: weak exploration, then strong exploitation with what the exploration found (section 3, Algorithm 3)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from constrained.agents.episode import Episode
from constrained.agents.messages import POLICY, Strategy
from constrained.agents.strategies.knowledge_graph import Triple, extract, knowledge_graph, one_hop, task_entities
from constrained.environments.base import IN_ON
from constrained.knowledge import ActionKnowledge

OVERVIEW = "Find out whatever may help with the task, and nothing else: another agent does the task afterwards."


def wese(episode: Episode, explorer: str = "explorer", extractor: str = "extractor") -> Strategy:
    """Explore and read with weak models, then begin anew and act with the policy's.

    Exploring takes "less reasoning and induction" (section 3.3): its steps are bare actions.

    Parameters
    ----------
    episode : Episode
    explorer, extractor : str
        The roles that explore, and that read what was observed.
    """
    settings = episode.settings
    episode.settings = replace(settings, step_format="act", max_steps=settings.explore_steps or settings.max_steps)
    episode.begin("explore", _exploring(episode))
    episode.sift = getattr(episode.memory, "filter_exploration", partial(_not_done, episode))
    known: list[Triple] = []
    read: set[str] = set()
    while not episode.over:
        step = yield from episode.step(explorer)
        if step is not None and step.had_effect and step.observation not in read:
            read.add(step.observation)
            known += yield from extract(episode, step, extractor)
    graph = knowledge_graph(known)
    entities = yield from task_entities(episode, graph, extractor)
    retrieved = one_hop(graph, entities, settings.retrieved)
    episode.settings = settings
    episode.begin("exploit")
    _tell(episode, retrieved, known)
    while not episode.over:
        yield from episode.step()


def sese(episode: Episode) -> Strategy:
    """The same, with the strong model in every role."""
    yield from wese(episode, POLICY, POLICY)


def _exploring(episode: Episode) -> ActionKnowledge:
    """The explorer's action space: what the environment says only looks; else whatever doesn't end the path."""
    looking = getattr(episode.environment, "exploring", None)
    rules = episode.start.rules
    return episode.start.only(looking or [action for action in episode.start.actions if rules[action]], OVERVIEW)


def _not_done(episode: Episode, actions: list[str]) -> list[str]:
    """The actions that the explorer has not done yet after seeing the same as now: they would show the same."""
    seen = [episode.plan.first_observation, *(step.observation for step in episode.steps)]
    done = {step.action for before, step in zip(seen, episode.steps) if before == seen[-1]}
    return [action for action in actions if action not in done]


def _tell(episode: Episode, retrieved: list[Triple], known: list[Triple]) -> None:
    """What was retrieved, into the prompts, and into a memory that can be told what is where.

    Of what else is known, such a memory is told only where one need not look again.
    """
    episode.hints = "\n".join(map(str, retrieved))
    if hasattr(episode.memory, "learn"):
        places = [(triple.head, triple.tail) for triple in retrieved if triple.relation == IN_ON]
        episode.memory.learn(places, [triple.tail for triple in known if triple.relation == IN_ON])
