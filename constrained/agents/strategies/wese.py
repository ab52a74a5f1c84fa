"""WESE: weak exploration, then strong exploitation of what it found (section 3, Algorithm 3)."""

from __future__ import annotations

from dataclasses import replace

from constrained.agents.episode import Episode
from constrained.agents.messages import POLICY, Strategy
from constrained.agents.step_writer import play_step
from constrained.agents.strategies.knowledge_graph import Triple, around, extract, knowledge_graph, task_entities
from constrained.environments.base import IN_ON, LearningMemory, WithExploration
from constrained.knowledge import Knowledge

OVERVIEW = "Find out whatever may help with the task, and nothing else: another agent does the task afterwards."


def wese(episode: Episode, explorer: str = "explorer", extractor: str = "extractor") -> Strategy:
    """Explore with a weak model, start anew, and act with the policy's model and the triples found.

    Exploring takes "less reasoning and induction" (section 3.3), so its steps are bare actions.

    `explorer`, `extractor`: the roles that explore and that extract triples from the observations.
    """
    settings = episode.settings
    episode.settings = replace(settings, step_format="act", max_steps=settings.explore_steps or settings.max_steps)
    episode.begin("explore", _exploring(episode))
    if settings.explore_stop:  # N_e "could also be determined by the agent" (section 3.1)
        episode.may_stop = True
        episode.hints = f"Once you know enough for the task, write `{episode.space.stop}` as the action."
    memory = episode.surroundings.memory

    def not_done(actions: list[str]) -> list[str]:
        """The actions not done yet after the current observation; the others would show the same again."""
        seen = [episode.plan.first_observation, *(step.observation for step in episode.steps)]
        done = {step.action for before, step in zip(seen, episode.steps) if before == seen[-1]}
        return [action for action in actions if action not in done]

    episode.choose = memory.filter_exploration if isinstance(memory, LearningMemory) else not_done
    # Weak exploration (Algorithm 3): look around, and extract triples from what was not read before.
    triples: list[Triple] = []
    read: set[str | None] = set()
    while not episode.over:
        step = yield from play_step(episode, explorer)
        if step is not None and step.had_effect and step.observation not in read:
            read.add(step.observation)
            triples += yield from extract(episode, step, extractor)
    # Retrieval (Algorithm 2): the triples one hop around the entities that the task is about.
    graph = knowledge_graph(triples)
    entities = yield from task_entities(episode, graph, extractor)
    retrieved = around(graph, entities, settings.retrieved, settings.hops)
    # Strong exploitation: the task from its start, with the triples as hints, or in a memory that can hold them.
    episode.settings = settings
    episode.begin("exploit")
    episode.hints = "\n".join(map(str, retrieved))
    if isinstance(episode.surroundings.memory, LearningMemory):
        # Of the triples that were not retrieved, it is told only which places were searched.
        locations = [(triple.head, triple.tail) for triple in retrieved if triple.relation == IN_ON]
        episode.surroundings.memory.learn(locations, [triple.tail for triple in triples if triple.relation == IN_ON])
    while not episode.over:
        yield from play_step(episode)


def sese(episode: Episode) -> Strategy:
    """WESE with the policy's model in every role."""
    yield from wese(episode, POLICY, POLICY)


def _exploring(episode: Episode) -> Knowledge:
    """The explorer's knowledge: the actions that only look, or else all that don't end the path."""
    environment, rules = episode.surroundings.environment, episode.start.rules
    looking = environment.exploring if isinstance(environment, WithExploration) else ()
    return episode.start.only(looking or [action for action in episode.start.actions if rules[action]], OVERVIEW)
