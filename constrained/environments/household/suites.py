"""ALFWorld's games, and games generated from a seed, as suites."""

from __future__ import annotations

from functools import partial
from itertools import islice

from constrained.environments.household.env import KNOWLEDGE, HouseholdEnv
from constrained.environments.household.game import SPLITS, Game, game_files
from constrained.environments.household.generate import make_game
from constrained.environments.suite import Suite, Task, check_split
from constrained.errors import DataError

GENERATED_GAMES = 60
"""Games of the suite "household" where no limit is given."""
HELD_OUT = 25
"""Every 25th training game is kept from training, for choosing between models."""


def alfworld(*, split: str | None = None, limit: int | None = None, seed: int = 0) -> Suite:
    """ALFWorld's own games, sorted by name (Shridhar et al., 2021); `seed` changes nothing.

    Beside ALFWorld's splits there are "held_out", every 25th training game, and "practice", all the others.

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
    # A game takes a hundred times the memory of its file, so each is read when it is played.
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
    """Return a game as a task of a suite."""
    return Task(game.name, _task_type(game.name), partial(HouseholdEnv, game))


def _task_type(name: str) -> str:
    """Return the task type in a game's name."""
    return name.split("-", 1)[0]
