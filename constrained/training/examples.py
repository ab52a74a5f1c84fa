"""Expert play turned into examples: what the agent knew, and what to do.

The expert plays each game several times; in some of its plays a random
possible action takes the place of its own now and then, so that the examples
show how to go on from odd states too (noise injection: Laskey et al., *DART*,
2017). The label is always what the expert would do.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from constrained.agents.steps import step_answer, step_prompt
from constrained.environments.household.memory import Memory
from constrained.training.expert import Prior, decide

STEP_LIMIT = 50  # ALFWorld's, and KnowAgent's


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


def play(env, prior: Prior, *, noise: float = 0.0, rng: random.Random, limit: int = STEP_LIMIT):
    """Let the expert play one game.

    Parameters
    ----------
    env : household environment
    prior : Prior
    noise : float
        Chance that a step is a random possible action instead of the expert's.
    rng : random.Random
    limit : int
        Steps, at most.

    Returns
    -------
    examples : list of Example
    won : bool
    """
    memory = Memory(env.reset())
    examples: list[Example] = []
    path: list[str] = []
    for n in range(1, limit + 1):
        move = decide(memory, prior)
        examples.append(Example(memory.text(), n, tuple(path), move.thought, move.action))
        action = rng.choice(env.admissible()) if rng.random() < noise else move.action
        observation, _, done = env.step(action)
        memory.update(action, observation)
        if memory.had_effect:
            path.append(action)
        if done:
            return examples, True
    return examples, False


def expert_examples(
    envs: Iterable, prior: Prior, *, noises: tuple[float, ...], seed: int
) -> Iterator[list[Example]]:
    """The examples of each game: one play for each noise level, won plays only."""
    for number, env in enumerate(envs):
        kept: list[Example] = []
        for level, noise in enumerate(noises):
            rng = random.Random(f"{seed}/{number}/{level}")
            examples, won = play(env, prior, noise=noise, rng=rng)
            if won:
                kept += examples
        yield kept
