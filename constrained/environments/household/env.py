"""The household as a text environment, and its suites: ALFWorld's games, and games generated from a seed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, partial
from itertools import islice

from constrained.environments.base import IN_ON
from constrained.environments.household.expert import Prior, decide
from constrained.environments.household.game import SPLITS, Game, game_files
from constrained.environments.household.generate import make_game, prior_game
from constrained.environments.household.task_spec import TASK_TYPES, UNKNOWN, parse_task, player_world
from constrained.environments.household.transcripts import STEPS, transcribed
from constrained.environments.memory import WorldMemory
from constrained.environments.suite import Suite, Task, check_split
from constrained.errors import DataError, GameError
from constrained.knowledge import ActionKnowledge, Knowledge
from constrained.knowledge.demonstration import Demonstrated, Demonstration
from constrained.knowledge.lines.pattern import listed
from constrained.knowledge.world.world import kind_of

KNOWLEDGE = "household"
"""The shipped action knowledge of these games."""

GENERATED_GAMES = 60
"""Games of the suite "household" if no limit is given."""
EXAMPLE_GAMES = 12
"""Generated games of each task type from which worked examples are taken."""
HELD_OUT = 25
"""Every 25th training game of ALFWorld is kept from training, for choosing between models."""

# Texts of ALFWorld's game files: a transcript of the original game and one of this game are the same.
NOTHING_HAPPENS = "Nothing happens."
WELCOME = "-= Welcome to TextWorld, ALFRED! =-"
NAME = r"[a-z]+ \d+"


def is_household(knowledge: Knowledge) -> bool:
    """Whether a household can be played with this knowledge: it has the name, and only slots that games bind."""
    return knowledge.name == KNOWLEDGE and knowledge.slots <= _shipped_slots()


@cache
def _shipped_slots() -> frozenset[str]:
    return frozenset(ActionKnowledge.from_lark(KNOWLEDGE).slots)


class HouseholdTexts:
    """The methods that need only the texts of a household game, whichever engine writes them.

    Attributes
    ----------
    task : str
    name : str
        The game's name.
    done : bool
    """

    task: str
    name: str
    done: bool
    # Actions that move no object: what they show is still true when the game starts anew.
    exploring = ("goto", "open", "look", "examine")

    def outcome(self) -> dict[str, float]:
        """Whether the goal has been reached."""
        return {"success": float(self.done)}

    def form(self, knowledge: Knowledge) -> Knowledge:
        """Knowledge of the household's actions in any order, with any receptacle and any object seen so far."""
        return ActionKnowledge.from_lark(f"{KNOWLEDGE}_form") if is_household(knowledge) else knowledge

    def memory(self, first_observation: str) -> WorldMemory:
        """A memory that begins with the first observation."""
        return WorldMemory(player_world(), first_observation)

    def prior(self, first_observation: str) -> HouseholdEnv:
        """The room of the first observation, with the task's objects in every place where they may be kept."""
        return HouseholdEnv(prior_game(first_observation))

    def demonstrations(self, count: int) -> list[Demonstration]:
        """Up to `count` won games of the same kind about other things; none if the task is of no known kind.

        They are ALFWorld's training games in other rooms, won by its expert, or, where its transcripts aren't in the
        data folder, generated games, won by `expert`.

        Raises DataError: the transcripts are damaged.
        """
        spec = parse_task(self.task)
        if spec.task_type not in TASK_TYPES:
            return []
        result: list[Demonstration] = []
        things = {spec.object_kind}
        for example in transcribed(spec.task_type, self.name) or generated_examples(spec.task_type):
            thing = parse_task(example.task).object_kind
            if len(result) < count and thing not in things:
                things.add(thing)
                result.append(example)
        return result

    def triples(self, observation: str) -> list[tuple[str, str, str]]:
        """Where things are ("nothing" too), and what can be opened, as an observation says."""
        facts = list(player_world().told_in(observation))
        located = [(fact[1], IN_ON, fact[2]) for fact in facts if fact[0] == "in"]
        return located + [(fact[1], "can be", "opened") for fact in facts if fact[0] == "closed"]

    def entities(self, names: Iterable[str]) -> list[str]:
        """The names that the task is about: first its objects, then the lamp or receptacle.

        If the task isn't in the game's own wording, these are all names whose kind is a word of the task.
        """
        spec, names = parse_task(self.task), list(names)
        kinds = re.findall(r"[a-z]+", self.task.lower()) if spec == UNKNOWN else [spec.object_kind, spec.destination]
        return [name for kind in dict.fromkeys(kinds) for name in names if kind_of(name) == kind]


class HouseholdEnv(HouseholdTexts):
    """Play a household game.

    Parameters
    ----------
    game : Game

    Attributes
    ----------
    task : str
        The task sentence.
    had_effect : bool
        Whether the last action was possible; if not, it was answered "Nothing happens." and changed nothing.
    done : bool
        Whether the goal has been reached.
    truth : WorldState
        The facts that hold now; a player doesn't see them.
    """

    def __init__(self, game: Game):
        self.game = game
        self.task, self.name = game.task, game.name
        self.reset()

    def reset(self) -> str:
        """Put everything back and return the room's description and the task."""
        self.truth = self.game.start
        self.had_effect = True
        self.done = False
        room = f"You are in the middle of a room. Looking quickly around you, you see {listed(self.game.receptacles)}."
        return f"{WELCOME}\n\n{room}\n\nYour task is to: {self.task}"

    def step(self, action: str) -> tuple[str, float, bool]:
        """Do one action; a command that isn't possible is answered "Nothing happens."

        Returns
        -------
        observation : str
        reward : float
            1.0 on the step that reaches the goal, else 0.0.
        done : bool
            Whether the goal has been reached.

        Raises
        ------
        GameError
            When the game is over.
        """
        if self.done:
            raise GameError("the game is over: its goal was reached", hint="call reset() to play it again")
        action = action.strip()
        self.had_effect = action in self.truth.actions
        if not self.had_effect:
            return NOTHING_HAPPENS, 0.0, False
        ground = self.truth.actions[action][0]
        self.truth = self.truth.after(action)
        answer = self.game.answers.to(ground, self.truth.state)
        self.done = self.truth.reached_goal
        return answer, float(self.done), self.done

    def admissible(self) -> list[str]:
        """Every command that would have an effect now, and no other."""
        return sorted(self.truth.actions)


@cache
def generated_examples(task_type: str) -> list[Demonstration]:
    """The first generated games of a task type that the expert wins in a number of `STEPS`, the shortest first."""
    games = (make_game(seed, task_type) for seed in range(EXAMPLE_GAMES))
    won = [example for game in games if (example := _won(HouseholdEnv(game)))]
    return sorted(won, key=lambda example: len(example.steps))


def _won(env: HouseholdEnv) -> Demonstration | None:
    """A game as the expert wins it, without a prior of where things are; None if its length is not in `STEPS`."""
    first, steps = env.reset(), list[Demonstrated]()
    memory = env.memory(first)
    while not env.done and len(steps) < STEPS.stop:
        move = decide(memory, Prior())
        observation, _, _ = env.step(move.action)
        memory.update(move.action, observation)
        steps.append(Demonstrated(move.action, observation, move.thought))
    return Demonstration(env.task, tuple(steps), first) if env.done and len(steps) in STEPS else None


def alfworld(*, split: str | None = None, limit: int | None = None, seed: int = 0) -> Suite:
    """ALFWorld's own games, sorted by name (Shridhar et al., 2021); `seed` changes nothing.

    Besides ALFWorld's splits there are "held_out", every 25th training game, and "practice", the other training games.

    Raises
    ------
    DataError
        No such split, or its games aren't there.
    """
    split = check_split("alfworld", split, (*SPLITS, "held_out", "practice"))
    games = game_files(split if split in SPLITS else "train")
    if split == "held_out":
        games = islice(games, 0, None, HELD_OUT)
    elif split == "practice":
        games = (game for number, game in enumerate(games) if number % HELD_OUT)
    # A game takes a hundred times the memory of its file, so it is parsed only when it is played.
    tasks = [Task(name, _task_type(name), partial(_open, content, name)) for name, content in islice(games, limit)]
    return Suite(f"alfworld/{split}", KNOWLEDGE, tasks)


def _open(content: bytes, name: str) -> HouseholdEnv:
    return HouseholdEnv(Game.from_json(content, name))


def household(*, split: str | None = None, limit: int | None = None, seed: int = 0) -> Suite:
    """Games generated from the seed, in rooms with other layouts than ALFWorld's."""
    if split is not None:
        raise DataError(f"household has no split {split!r}", "its games are generated from the seed")
    games = (make_game(seed * 1_000_000 + i) for i in range(GENERATED_GAMES if limit is None else limit))
    return Suite(f"household/seed {seed}", KNOWLEDGE, [task_of(game) for game in games])


def task_of(game: Game) -> Task:
    """A game as a task of a suite."""
    return Task(game.name, _task_type(game.name), partial(HouseholdEnv, game))


def _task_type(name: str) -> str:
    """The task type in a game's name."""
    return name.split("-", 1)[0]
