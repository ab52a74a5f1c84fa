"""Play the same games in ALFWorld's original engine and in ours, and count what is the same.

    constrained bench original [--split valid_seen] [--every N] [--steps N] [--json FILE]

Each game is played twice, with the same actions in both: once by its known walkthrough, an
impossible command before every action, and once at random, every fourth command any that can
be spelled with the game's names, possible or not.  At every step the answer, the reward, whether
the game is over, the admissible commands and the slots in view are compared.  The engine is
the optional extra `alfworld`.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import islice

from tqdm import tqdm

from benchmarks import reporting
from constrained.environments.alfworld import AlfworldEnv
from constrained.environments.data import data_file, fields, read_rows
from constrained.environments.household import Game, HouseholdEnv
from constrained.environments.household.game import SPLITS, game_files
from constrained.environments.household.world import House
from constrained.errors import DataError

RANDOM_STEPS = 40
SHOWN_DIFFERENCES = 50
IDLE = ("go to", "examine", "look", "inventory", "close")
"""Commands that a random player would fill its game with, were they chosen as often as the others."""


@dataclass
class Comparison:
    """What playing side by side came to."""

    games: int = 0
    won: int = 0
    moments: int = 0
    without_effect: int = 0
    answers_identical: int = 0
    admissible_identical: int = 0
    views_identical: int = 0
    differences: list[dict] = field(default_factory=list)

    def to_json(self) -> dict:
        """Return the figures as plain data; the listed differences stop at 50."""
        return {
            "versions": {name: version(name) for name in ("alfworld", "textworld")},
            "games": self.games,
            "won by their walkthrough": self.won,
            "moments compared": self.moments,
            "without effect": self.without_effect,
            "answers identical": self.answers_identical,
            "admissible commands identical": self.admissible_identical,
            "slots identical": self.views_identical,
            "differences": self.differences[:SHOWN_DIFFERENCES],
        }


def compare(name: str, content: bytes, walkthrough: list[str], steps: int, found: Comparison) -> None:
    """Play one game twice in both engines and add what came of it to `found`."""
    ours = HouseholdEnv(Game.from_json(content, name))
    original = AlfworldEnv(content, name)
    rng = random.Random(f"original {name}")  # a text seeds the same numbers everywhere
    spelled = every_command(ours.world.house)
    try:
        found.games += 1
        moves = [move for action in walkthrough for move in (lambda: _impossible(ours, spelled, rng), action)]
        side_by_side(original, ours, moves, found)
        found.won += ours.done
        side_by_side(original, ours, (lambda: _wander(ours, spelled, rng) for _ in range(steps)), found)
    finally:
        original.close()


def side_by_side(original, ours, moves: Iterable[str | Callable[[], str]], found: Comparison) -> None:
    """Do the moves in both; one that is a function is asked when its turn comes."""
    _add(original, ours, None, found)
    for move in moves:
        if original.done or ours.done:
            return
        _add(original, ours, move() if callable(move) else move, found)


def _add(original: AlfworldEnv, ours: HouseholdEnv, command: str | None, found: Comparison) -> None:
    """Do one command in both, or begin the game, and compare the moment it leads to."""
    moments = {}
    for name, env in (("original", original), ("ours", ours)):
        answer = (env.reset(), 0.0, False) if command is None else env.step(command)
        moments[name] = {
            "answer": (*answer, env.had_effect),
            "admissible": env.admissible(),
            "view": {slot: values for slot, values in env.view().items() if values},
        }
    same = {kind: moments["original"][kind] == moments["ours"][kind] for kind in moments["ours"]}
    found.moments += 1
    found.without_effect += not ours.had_effect
    found.answers_identical += same["answer"]
    found.admissible_identical += same["admissible"]
    found.views_identical += same["view"]
    for kind in (kind for kind, alike in same.items() if not alike):
        theirs, our = (moments[name][kind] for name in ("original", "ours"))
        found.differences.append({"game": ours.game.name, "action": command, "of": kind, "theirs": theirs, "ours": our})


def _wander(env: HouseholdEnv, spelled: list[str], rng: random.Random) -> str:
    """A command at random: every fourth any that can be spelled, and of the others two thirds that change something."""
    if rng.random() < 0.25:
        return rng.choice(spelled)
    admissible = env.admissible()
    acting = [command for command in admissible if not command.startswith(IDLE)]
    return rng.choice(acting if acting and rng.random() < 0.67 else admissible)


def _impossible(env: HouseholdEnv, spelled: list[str], rng: random.Random) -> str:
    """A command that can be spelled, and is impossible now."""
    admissible = set(env.admissible())
    return rng.choice([command for command in spelled if command not in admissible])


def every_command(house: House) -> list[str]:
    """Return all commands that could be spelled with the names of a house."""
    receptacles, things = house.receptacles, house.objects
    commands = ["look", "inventory"]
    for r in receptacles:
        commands += [f"{verb} {r}" for verb in ("go to", "open", "close", "examine", "use")]
    for o in things:
        commands += [f"use {o}", f"examine {o}"]
        for r in receptacles:
            commands += [f"take {o} from {r}", f"put {o} in/on {r}"]
            commands += [f"{verb} {o} with {r}" for verb in ("clean", "heat", "cool")]
        commands += [f"slice {o} with {knife}" for knife in things]
    return commands


def walkthroughs() -> dict[str, list[str]]:
    """Return the published walkthrough of each game, in the words of these game files.

    Raises
    ------
    DataError
        When the index isn't there, or a row isn't one of it.
    """
    found = {}
    for place, row in read_rows(data_file("alfworld/index.jsonl")):
        name, actions = fields(place, row, name=str, walkthrough_move_syntax=list)
        found[name] = [_put(str(action)) for action in actions]
    return found


def _put(action: str) -> str:
    thing, to, receptacle = action.removeprefix("move ").partition(" to ")
    return f"put {thing} in/on {receptacle}" if action.startswith("move ") and to else action


def run(split: str = "valid_seen", every: int = 1, steps: int = RANDOM_STEPS, progress: bool = True) -> dict:
    """Compare the two on each `every`-th game of a split; see `Comparison.to_json`."""
    found, known = Comparison(), walkthroughs()
    for name, content in tqdm(islice(game_files(split), 0, None, every), unit="game", disable=not progress):
        if name not in known:
            raise DataError(f"alfworld/index.jsonl has no walkthrough of {name}", hint="fetch the file again")
        compare(name, content, known[name], steps, found)
    return {"split": split, **found.to_json()}


def table(figures: dict) -> str:
    """Lay the figures out as a small table in Markdown."""
    moments = figures["moments compared"]
    kinds = ("answers identical", "admissible commands identical", "slots identical")
    lines = [f"| {figures['games']} games of {figures['split']} | moments | identical |", "|---|---:|---:|"]
    lines += [f"| {kind.removesuffix(' identical')} | {moments:,} | {figures[kind]:,} |" for kind in kinds]
    lines += [
        "",
        f"{figures['won by their walkthrough']} games were won by their walkthrough; "
        f"{figures['without effect']:,} of the commands had no effect.",
    ]
    return "\n".join(lines)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `constrained bench original`."""
    reporting.add_arguments(parser, "play")
    parser.add_argument("--split", choices=SPLITS, default="valid_seen")
    parser.add_argument("--steps", type=int, default=RANDOM_STEPS, help=f"at random in a game (default {RANDOM_STEPS})")


def run_command(options: argparse.Namespace) -> int:
    """Print the table, write the JSON; 1 if anything differed."""
    figures = run(options.split, options.every, options.steps)
    reporting.give(figures, table, options)
    for difference in figures["differences"][:5]:
        print(json.dumps(difference))
    return 1 if figures["differences"] else 0
