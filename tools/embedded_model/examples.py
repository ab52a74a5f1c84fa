"""Expert play turned into examples: what the agent knew, and what to do.

The expert plays each game several times; in some of its plays a random action
takes the place of its own now and then, mostly a possible one, so that the
examples show how to go on from odd states too (noise injection: Laskey et al., *DART*,
2017). Other plays begin with what an exploration found, as WESE's and Reflexion's do. The label
is always what the expert would do.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from constrained.agents.step_formats import step_answer, step_prompt
from constrained.environments.household import Game, HouseholdEnv
from constrained.environments.household.memory import Memory
from constrained.environments.household.observations import kind_of
from tools.embedded_model.expert import Prior, decide
from tools.embedded_model.relabel import relabel

STEP_LIMIT = 50  # ALFWorld's, and KnowAgent's
BLUNDERS = 0.25  # share of the random actions that are mostly impossible ones


@dataclass(frozen=True)
class Example:
    """One decision of the expert.

    Attributes
    ----------
    memory : str
        What the agent knew, as text.
    n : int
        Number of the step, from 1.
    path : tuple of str
        Effective actions so far.
    thought, action : str
        The expert's reason and choice.
    """

    memory: str
    n: int
    path: tuple[str, ...]
    thought: str
    action: str

    def texts(self, strategy: str) -> tuple[str, str, str]:
        """The prompt, the answer up to its action, and the action.

        Kept apart because they are encoded apart: the prompt and the forced
        text before an action end with a space, and an action begins with a
        letter, however the tokenizer would join them.
        """
        prompt = step_prompt(self.memory, strategy, self.n, self.path)
        answer = step_answer(strategy, self.n, self.thought, self.action)
        return prompt, answer[: len(answer) - len(self.action)], self.action


def play(
    env, prior: Prior, *, noise: float = 0.0, informed: bool = False, rng: random.Random, limit: int = STEP_LIMIT
) -> tuple[list[Example], bool]:
    """Let the expert play one game.

    Parameters
    ----------
    env : household environment
    prior : Prior
    noise : float
        Chance that a step is a random action instead of the expert's.
    informed : bool
        Begin with what an exploration of a random length found.
    rng : random.Random
    limit : int
        Steps, at most.

    Returns
    -------
    examples : list of Example
    won : bool
    """
    memory = _explored(env, rng) if informed else Memory(env.reset())
    examples: list[Example] = []
    path: list[str] = []
    for n in range(1, limit + 1):
        move = decide(memory, prior)
        examples.append(Example(memory.text(), n, tuple(path), move.thought, move.action))
        action = _random_action(env, memory, rng) if rng.random() < noise else move.action
        observation, _, done = env.step(action)
        memory.update(action, observation)
        if memory.had_effect:
            path.append(action)
        if done:
            return examples, True
    return examples, False


def _explored(env: HouseholdEnv, rng: random.Random) -> Memory:
    """The memory of a game begun anew after some looking around, told as Reflexion's is, or as WESE's."""
    first = env.reset()
    memory = Memory(first)
    for _ in range(rng.randint(1, STEP_LIMIT)):
        actions = memory.filter_exploration(env.admissible())
        if not actions:
            break
        action = rng.choice(actions)
        memory.update(action, env.step(action)[0])
    anew = memory.restart(env.reset())
    if rng.random() < 0.5:  # WESE's triples don't say what is closed
        anew = Memory(first)
        anew.learn(memory.first_seen.items(), memory.searched)
    return anew


def _random_action(env: HouseholdEnv, memory: Memory, rng: random.Random) -> str:
    if rng.random() >= BLUNDERS:
        return rng.choice(env.admissible())
    # What an unconstrained model gets wrong: the right words, the wrong names.
    place = rng.choice(memory.receptacles)
    thing = memory.held or f"{memory.spec.object_kind} {rng.randint(1, 3)}"
    return rng.choice(
        [
            f"go to {kind_of(place)} {rng.randint(1, 12)}",
            f"go to {memory.standing_at or place}",
            f"open {place}",
            f"take {thing} from {place}",
            f"put {thing} in/on {place}",
            f"{rng.choice(['clean', 'heat', 'cool'])} {thing} with {place}",
            f"use {memory.spec.lamp or 'desklamp'} 1",
        ]
    )


def plays(
    games: Sequence[Game],
    prior: Prior,
    *,
    own: Sequence[float],
    other: Sequence[float],
    informed: Sequence[float] = (),
    seed: int,
) -> Iterator[Example]:
    """The examples of every game that the expert wins.

    Parameters
    ----------
    games : sequence of Game
    prior : Prior
    own : sequence of float
        Noise levels: one play of each game's own task for each.
    other : sequence of float
        Noise levels: one play of another task in the game's room for each.
    informed : sequence of float
        Noise levels: one play of another task for each, begun with what an exploration found.
    seed : int
    """
    for number, game in enumerate(games):
        for level, noise in enumerate([*own, *other, *informed]):
            rng = random.Random(f"{seed}/{number}/{level}")
            staged = game if level < len(own) else relabel(game, rng)
            if staged:
                told = level >= len(own) + len(other)
                examples, won = play(HouseholdEnv(staged), prior, noise=noise, informed=told, rng=rng)
                yield from examples if won else ()
