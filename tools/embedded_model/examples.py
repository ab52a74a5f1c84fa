"""Expert play turned into examples: what the agent knew, and what to do.

The expert plays each game several times. In some plays a random action, usually an admissible one, now and then
replaces its own, so that the examples show how to continue from unusual states (noise injection: Laskey et al., *DART*,
2017). Other plays have another task that the same room allows: ALFWorld's training games ask for few pairs of object
and receptacle, and other goals teach a model to read the task. Others again begin with the result of an exploration, as
WESE's and Reflexion's do. The label is always what the expert would do.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from constrained.agents.step_formats import step_answer, step_prompt
from constrained.environments.household import Game, HouseholdEnv
from constrained.environments.household.expert import Prior, Seen, decide
from constrained.environments.household.task_spec import LIGHT, TASK_TYPES, TREATED, TWO, TaskSpec
from constrained.environments.memory import WorldMemory
from constrained.knowledge.world.world import kind_of

STEP_LIMIT = 50  # ALFWorld's, and KnowAgent's
BLUNDERS = 0.25  # share of the random actions that are mostly impossible
LAMPS = {"DeskLampType", "FloorLampType"}
TRIES = 20  # tasks drawn for a room
OWN_TASK, OTHER_TASK, INFORMED = (0.0, 0.1, 0.2, 0.35), (0.1, 0.2), (0.1,)
"""The noise levels of `make_examples`."""


@dataclass(frozen=True)
class Example:
    """One decision of the expert.

    Attributes
    ----------
    memory : str
        The agent's memory as text.
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

        They are encoded separately: whatever the tokenizer would join, the prompt and the forced text before an action
        end with a space, and an action begins with a letter.
        """
        prompt = step_prompt(self.memory, strategy, self.n, self.path)
        answer = step_answer(strategy, self.n, self.thought, self.action)
        return prompt, answer[: len(answer) - len(self.action)], self.action


def make_examples(
    games: Sequence[Game], seed: int, *, own: Sequence[float] = OWN_TASK, other: Sequence[float] = OTHER_TASK,
    informed: Sequence[float] = INFORMED,
) -> list[Example]:  # fmt: skip
    """The examples of every game that the expert wins; its prior comes from the same games.

    Each number is a noise level (see `play`) with one play of each game: in `own` with its own task, in `other` with
    another task for its room, in `informed` with another task and the result of an exploration.
    """
    prior = Prior(game.contents(game.start.state) for game in games)
    examples: list[Example] = []
    for number, game in enumerate(games):
        for level, noise in enumerate([*own, *other, *informed]):
            rng = random.Random(f"{seed}/{number}/{level}")
            task = game if level < len(own) else relabel(game, rng)
            if task:
                explored = level >= len(own) + len(other)
                played, won = play(HouseholdEnv(task), prior, noise=noise, informed=explored, rng=rng)
                examples += played if won else []
    return examples


def play(
    env: HouseholdEnv, prior: Prior, *, noise: float = 0.0, informed: bool = False, rng: random.Random,
    limit: int = STEP_LIMIT,
) -> tuple[list[Example], bool]:  # fmt: skip
    """Let the expert play one game; returns the examples, and whether it won.

    `noise` is the probability that a step is a random action instead of the expert's; if `informed`, the memory begins
    with the result of an exploration of random length.
    """
    memory = _explored(env, rng) if informed else env.memory(env.reset())
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


def _explored(env: HouseholdEnv, rng: random.Random) -> WorldMemory:
    """The memory of a restarted game after some exploration, in Reflexion's form or in WESE's."""
    first = env.reset()
    memory = env.memory(first)
    for _ in range(rng.randint(1, STEP_LIMIT)):
        actions = memory.filter_exploration(env.admissible())
        if not actions:
            break
        action = rng.choice(actions)
        memory.update(action, env.step(action)[0])
    anew = memory.restart(env.reset())
    if rng.random() < 0.5:  # WESE's triples don't say what is closed
        anew = env.memory(first)
        known = memory.known
        anew.learn([fact[1:] for fact in known.of("first")], [place for _, place in known.of("searched")])
    return anew


def _random_action(env: HouseholdEnv, memory: WorldMemory, rng: random.Random) -> str:
    if rng.random() >= BLUNDERS:
        return rng.choice(env.admissible())
    # Typical mistakes of an unconstrained model: the right words, the wrong names.
    seen = Seen(memory)
    receptacle = rng.choice(seen.receptacles)
    thing = seen.held or f"{seen.spec.object_kind} {rng.randint(1, 3)}"
    return rng.choice(
        [
            f"go to {kind_of(receptacle)} {rng.randint(1, 12)}",
            f"go to {seen.standing_at or receptacle}",
            f"open {receptacle}",
            f"take {thing} from {receptacle}",
            f"put {thing} in/on {receptacle}",
            f"{rng.choice(['clean', 'heat', 'cool'])} {thing} with {receptacle}",
            f"use {seen.spec.destination if seen.spec.task_type == LIGHT else 'desklamp'} 1",
        ]
    )


def relabel(game: Game, rng: random.Random) -> Game | None:
    """The same room with another task that is not solved yet; None if none was found."""
    for _ in range(TRIES):
        spec = _draw(game, rng)
        if spec is None:
            continue
        other = game.wanting(spec.goal())
        if not other.start.reached_goal:
            return replace(other, task=rng.choice(spec.sentences()))
    return None


def _draw(game: Game, rng: random.Random) -> TaskSpec | None:
    """A random task that the room has the objects and receptacles for."""
    facts, task_type = game.start.state, rng.choice(TASK_TYPES)
    treatment = TREATED.get(task_type)
    present = {name for listed in game.contents(facts).values() for name in listed}

    def of(trait: str) -> set[str]:
        return {name for name in present if (trait, name) in facts}

    able = of("pickupable") & of(treatment.trait if treatment else "pickupable")
    numbers = Counter(game.kind(name) for name in able)
    things = sorted(kind for kind, number in numbers.items() if number >= (2 if task_type == TWO else 1))
    furniture = {game.kind(name) for name in game.receptacles}
    if not things or (treatment and f"{treatment.appliance}Type" not in furniture):
        return None
    thing = rng.choice(things)
    if task_type == LIGHT:
        targets = sorted({game.kind(name) for name in of("toggleable")} & LAMPS)
    else:
        targets = sorted(kind for kind in furniture if ("cancontain", kind.lower(), thing.lower()) in facts)
    if not targets:
        return None
    return TaskSpec(task_type, thing.removesuffix("Type"), rng.choice(targets).removesuffix("Type"))
